"""What the settings of a listener say about SASL."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.security.sasl.settings import listener_sasl, server_module
from tests.support.sasl import PLAIN_MODULE, SCRAM_MODULE, jaas

LISTENERS = "A://localhost:9094,B://localhost:9095,PLAINTEXT://localhost:9092"
MAP = "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"


def config(environment: dict[str, str] | None = None, **settings: str) -> BrokerConfig:
    given = {
        "listeners": LISTENERS,
        "listener.security.protocol.map": MAP,
        "sasl.enabled.mechanisms": "PLAIN",
        **settings,
    }
    return BrokerConfig.load(properties=given, environment=environment or {})


def test_a_listener_has_settings_of_its_own() -> None:
    given = {
        "listener.name.a.plain.sasl.jaas.config": jaas("PLAIN", users={"alice": "x"}),
        "listener.name.b.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "connections.max.reauth.ms": "1000",
        "listener.name.b.connections.max.reauth.ms": "2000",
        "listener.name.b.scram-sha-512.connections.max.reauth.ms": "3000",
        "listener.name.b.sasl.server.max.receive.size": "4000",
    }
    read = config(**given)
    a, b = listener_sasl(read, "A"), listener_sasl(read, "B")
    assert (a.mechanisms, dict(a.passwords), dict(a.session_ms)) == (
        ("PLAIN",),
        {"alice": "x"},
        {"PLAIN": 1000},
    )
    assert dict(b.session_ms) == {"SCRAM-SHA-256": 2000, "SCRAM-SHA-512": 3000}
    assert (a.receive_bytes_max, b.receive_bytes_max) == (524_288, 4000)
    assert read.warnings == []
    assert "alice" not in repr(a)


def test_users_by_a_file_that_kafka_opts_names(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(
        f'KafkaServer {{ {SCRAM_MODULE} required; {PLAIN_MODULE} required user_carol="y"; }};\n'
        f'b.KafkaServer {{ {PLAIN_MODULE} required user_bob="z"; }};\n'
    )
    environment = {"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={path}"}
    read = config(environment)
    assert dict(listener_sasl(read, "A").passwords) == {"carol": "y"}
    assert dict(listener_sasl(read, "B").passwords) == {"bob": "z"}
    scram = server_module(read, "A", "SCRAM-SHA-256")
    assert scram is not None
    assert scram.name == SCRAM_MODULE
    # A setting counts before the file.
    given = {"listener.name.a.plain.sasl.jaas.config": jaas("PLAIN", users={"alice": "x"})}
    assert dict(listener_sasl(config(environment, **given), "A").passwords) == {"alice": "x"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file"),
        ("KafkaServer {", "is not closed"),
        ("KafkaServer { com.sun.security.auth.module.Krb5LoginModule required; };", "not allowed"),
        ("Client { };", "PLAIN needs users"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str | None, told: str) -> None:
    path = tmp_path / "jaas.conf"
    if text is not None:
        path.write_text(text)
    read = config({"KAFKA_OPTS": f"-Djava.security.auth.login.config={path}"})
    with pytest.raises(ConfigError, match=told):
        listener_sasl(read, "A")
