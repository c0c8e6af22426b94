"""Kafka's command-line tools write against kwire what they write against Apache Kafka 4.4.

`script.txt` holds the steps, `kafka-4.4.txt` what Kafka answered (README.md says how it was recorded).
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
from kwire.testing.cluster import Broker
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


def _kept(line: str) -> bool:
    """Whether a line is compared: not the versions of an API that is not built yet."""
    api = re.match(r"\w+\((\d+)\): ", line)
    return api is None or int(api[1]) not in UNBUILT


@pytest.mark.parametrize("name", [step.name for step in STEPS])
def test_tool_writes_what_it_writes_against_kafka(name: str, outcomes: dict[str, object]) -> None:
    found, wanted = outcomes[name], RECORDED[name]
    assert sorted(filter(_kept, found.lines)) == sorted(filter(_kept, wanted.lines))  # type: ignore[attr-defined]
    assert found.status == wanted.status  # type: ignore[attr-defined]


def test_every_step_is_recorded() -> None:
    assert list(RECORDED) == [step.name for step in STEPS]
    assert "not reached" not in {outcome.status for outcome in RECORDED.values()}


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
