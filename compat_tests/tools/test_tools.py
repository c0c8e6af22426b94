"""Kafka's command-line tools write against kwire what they write against Apache Kafka 4.4.

`script*.txt` hold the steps, `kafka-4.4*.txt` what Kafka
answered (README.md says how it was recorded).
Lines are compared without their order: the tools keep answers in hash maps.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import sys
from types import ModuleType

import pytest

from kwire.protocol.api_keys import UNBUILT
from kwire.testing.cluster import Broker, free_adjacent_ports
from tests.golden.broker import sasl_dialogues
from tests.support import sasl
from tests.support.acls import STANDARD_AUTHORIZER
from tests.support.kafka import kafka_libs

HERE = pathlib.Path(__file__).resolve().parent


def _transcript() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_transcript", HERE / "transcript.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


transcript = _transcript()
STEPS = transcript.read_script()
RECORDED = transcript.read_transcript(HERE / "kafka-4.4.txt")
ACL_STEPS = transcript.read_script(HERE / "script-acls.txt")
ACLS_RECORDED = transcript.read_transcript(HERE / "kafka-4.4-acls.txt")

QUOTA_STEPS = transcript.read_script(HERE / "script-quotas.txt")
QUOTAS_RECORDED = transcript.read_transcript(HERE / "kafka-4.4-quotas.txt")

SASL_STEPS = transcript.read_script(HERE / "script-sasl.txt")
SASL_RECORDED = transcript.read_transcript(HERE / "kafka-4.4-sasl.txt")

METRICS_STEPS = transcript.read_script(HERE / "script-client-metrics.txt")
METRICS_RECORDED = transcript.read_transcript(HERE / "kafka-4.4-client-metrics.txt")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Every step run against a fresh broker, in order."""
    libs = kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    data = tmp_path_factory.mktemp("tools") / "data"
    with Broker(data_dir=data, options={"offsets.topic.num.partitions": 5}) as broker:
        ran = transcript.run(broker.bootstrap, libs, STEPS)
        return {step.name: outcome for step, outcome in ran}


@pytest.fixture(scope="module")
def acl_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The steps of kafka-acls against a broker with an authorizer, and its controller's listener."""
    libs = kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    port = free_adjacent_ports()
    controller = f"127.0.0.1:{port + 1}"
    options = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
    }
    data = tmp_path_factory.mktemp("acls") / "data"
    with Broker(data_dir=data, options=options, pass_listen=False) as broker:
        ran = transcript.run(broker.bootstrap, libs, ACL_STEPS, controller)
        return {step.name: outcome for step, outcome in ran}


@pytest.fixture(scope="module")
def quota_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The steps of quotas and throttles against a fresh broker."""
    libs = kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    data = tmp_path_factory.mktemp("quotas") / "data"
    with Broker(data_dir=data) as broker:
        ran = transcript.run(broker.bootstrap, libs, QUOTA_STEPS)
        return {step.name: outcome for step, outcome in ran}


@pytest.fixture(scope="module")
def sasl_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The steps of users and tokens against a broker at which the administrator logs in."""
    libs = kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    directory = tmp_path_factory.mktemp("sasl")
    login = directory / "admin.properties"
    login.write_text(sasl.properties("PLAIN", "admin"))
    options = {**sasl_dialogues.PROPERTIES, "delegation.token.secret.key": "secret"}
    with Broker(data_dir=directory / "data", options=options) as broker:
        ran = transcript.run(broker.bootstrap, libs, SASL_STEPS, login=str(login))
        return {step.name: outcome for step, outcome in ran}


@pytest.fixture(scope="module")
def metrics_outcomes() -> dict[str, object]:
    """The steps of kafka-client-metrics against a broker."""
    libs = kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    with Broker() as broker:
        ran = transcript.run(broker.bootstrap, libs, METRICS_STEPS)
        return {step.name: outcome for step, outcome in ran}


def _kept(line: str) -> bool:
    """Whether a line is compared: not the versions of an API that is not built yet."""
    api = re.match(r"\w+\((\d+)\): ", line)
    return api is None or int(api[1]) not in UNBUILT


@pytest.mark.parametrize("name", [step.name for step in STEPS])
def test_tool_writes_what_it_writes_against_kafka(name: str, outcomes: dict[str, object]) -> None:
    found, wanted = outcomes[name], RECORDED[name]
    assert sorted(filter(_kept, found.lines)) == sorted(filter(_kept, wanted.lines))  # type: ignore[attr-defined]
    assert found.status == wanted.status  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [step.name for step in ACL_STEPS])
def test_kafka_acls_writes_what_it_writes_against_kafka(
    name: str, acl_outcomes: dict[str, object]
) -> None:
    found, wanted = acl_outcomes[name], ACLS_RECORDED[name]
    assert sorted(found.lines) == sorted(wanted.lines)  # type: ignore[attr-defined]
    assert found.status == wanted.status  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [step.name for step in QUOTA_STEPS])
def test_quotas_and_throttles_are_written_of_as_against_kafka(
    name: str, quota_outcomes: dict[str, object]
) -> None:
    found, wanted = quota_outcomes[name], QUOTAS_RECORDED[name]
    assert sorted(found.lines) == sorted(wanted.lines)  # type: ignore[attr-defined]
    assert found.status == wanted.status  # type: ignore[attr-defined]


#: Kafka's controller forgets no token: one that was expired is renewed, and is good again. Here it
#: is gone, and a second attempt is told so.
GONE = ("tokens 53: ", "tokens 54: ")


@pytest.mark.parametrize("name", [step.name for step in SASL_STEPS])
def test_users_and_tokens_are_written_of_as_against_kafka(
    name: str, sasl_outcomes: dict[str, object]
) -> None:
    found, wanted = sasl_outcomes[name], SASL_RECORDED[name]
    if name.startswith(GONE):
        assert wanted.status == "0"  # type: ignore[attr-defined]
        assert "Delegation Token is not found on server." in " ".join(found.lines)  # type: ignore[attr-defined]
        assert found.status == "1"  # type: ignore[attr-defined]
        return
    assert sorted(found.lines) == sorted(wanted.lines)  # type: ignore[attr-defined]
    assert found.status == wanted.status  # type: ignore[attr-defined]


def test_every_step_is_recorded() -> None:
    for steps, recorded in (
        (STEPS, RECORDED),
        (ACL_STEPS, ACLS_RECORDED),
        (QUOTA_STEPS, QUOTAS_RECORDED),
        (SASL_STEPS, SASL_RECORDED),
    ):
        assert list(recorded) == [step.name for step in steps]
        assert "not reached" not in {outcome.status for outcome in recorded.values()}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # One random id in forty has no digit: this one once failed four steps.
        ("leader nvpaHZwpTmeWvdbzLVuUUA", "leader <id>"),
        ("(id=1, directoryId=5L6g3nShT-eMCtK--X86sw)", "(id=1, directoryId=<id>)"),
        ("directoryId=AAAAAAAAAAAAAAAAAAAABQ", "directoryId=AAAAAAAAAAAAAAAAAAAABQ"),
        ("AnyWordOfThatLongLength", "AnyWordOfThatLongLength"),
    ],
)
def test_ids_are_told_by_their_form(text: str, told: str) -> None:
    assert transcript.replaced(text) == told


@pytest.mark.parametrize("name", [step.name for step in METRICS_STEPS])
def test_kafka_client_metrics_writes_what_it_writes_against_kafka(
    name: str, metrics_outcomes: dict[str, object]
) -> None:
    found, wanted = metrics_outcomes[name], METRICS_RECORDED[name]
    assert sorted(found.lines) == sorted(wanted.lines)  # type: ignore[attr-defined]
    assert found.status == wanted.status  # type: ignore[attr-defined]
