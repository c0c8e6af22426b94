"""A node starts with the settings of security that Apache Kafka 4.4 starts with, and with no other.

The settings are `tests/support/security_sweep.py`; `tests/differential/test_security_live.py` asks
a live Kafka's start the same. `MEANT` are the differences that are meant, and why.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from kwire.clock import SystemClock, SystemRandom
from kwire.config import BrokerConfig, ConfigError
from kwire.config.dynamic import DynamicConfig
from kwire.config.java_properties import ALLOWED_FILES, ALLOWED_URLS
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.node.listener_security import ListenerSecurity
from kwire.node.logins import Logins
from tests.support import security_sweep as sweep

SAYS_NOTHING = "kwire starts: the module of this mechanism says nothing about who may log in"
NOBODY = "Kafka starts, and nobody can connect or log in: kwire says so at once"
PBES2 = "kwire starts: Java's PEM reader does not know this encryption (PBES2)"
MEANT = {
    "SASL: the module of another mechanism": NOBODY,
    "SASL: SCRAM beside it without a module": SAYS_NOTHING,
    "SASL: rules of Kerberos names that are none": "Kafka reads them with GSSAPI only",
    "SCRAM: the module of PLAIN": "kwire refuses what is likely a mistake; Java reads its options",
    "tokens: no module": SAYS_NOTHING,
    "tokens: no claim of the subject": "kwire starts: no token has such a claim",
    "controller: TLS without a store": NOBODY,
    "TLS: an encrypted key": PBES2,
    "TLS: names compared by nothing known": NOBODY,
    "inline: an encrypted key": PBES2,
}
REQUIREMENT = "requirement failed: "
SECRETS = (sweep.WORD, 'password="p"')


def refusal(settings: dict[str, str], directory: Path) -> str | None:
    """What a start says of its settings of security; None where it would go on."""
    allowed = {ALLOWED_URLS: f"file://{directory}/keys.json"}
    allowed[ALLOWED_FILES] = f"{directory}/keys.json"
    loop = asyncio.new_event_loop()
    try:
        config = BrokerConfig.load(properties=settings, developer=False, overrides=allowed)
        dynamic = DynamicConfig(config)
        security = ListenerSecurity(loop, config, dynamic)
        logins = Logins(loop, dynamic, SystemRandom(), SystemClock(), MetadataImage)
        security.open()
        security.close()
        for listener in (
            config.controller_listener_names()[0],
            config.inter_broker_listener_name(),
        ):
            logins.at(listener)
        logins.close()
    except ConfigError as error:
        return str(error)
    finally:
        loop.close()
    return None


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    directory = tmp_path_factory.mktemp("sweep")
    sweep.prepare(directory)
    return {name: refusal(settings, directory) for name, settings in sweep.cases(directory)}


def test_a_node_starts_where_kafka_starts(answers: dict[str, str | None]) -> None:
    recorded = sweep.recorded()
    assert list(recorded) == list(answers)
    different = [
        name for name, told in answers.items() if (told is None) != (recorded[name] is None)
    ]
    assert different == list(MEANT)


def test_requirements_are_told_in_kafkas_words(answers: dict[str, str | None]) -> None:
    told = {
        name: (texts[0].removeprefix(REQUIREMENT), answers[name])
        for name, texts in sweep.recorded().items()
        if texts is not None and texts[0].startswith(REQUIREMENT + "sasl.mechanism")
    }
    assert len(told) > 5
    assert {name: kafka for name, (kafka, _) in told.items()} == {
        name: ours for name, (_, ours) in told.items()
    }


def test_a_refusal_is_one_line_without_a_secret(answers: dict[str, str | None]) -> None:
    for name, told in answers.items():
        if told is not None:
            assert "\n" not in told, name
            assert not any(secret in told for secret in SECRETS), name
