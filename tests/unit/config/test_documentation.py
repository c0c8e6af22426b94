"""Every config has a sentence that says what it is for, and DescribeConfigs gives it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import describe_configs
from kwire.cli.tables import SCOPES
from kwire.config.broker_config import BrokerConfig
from kwire.config.definitions import BROKER
from kwire.config.documentation import FILE, texts
from kwire.config.dynamic import DynamicConfig
from kwire.protocol import messages as m
from tests.support.parts import made_parts

BROKERS, TOPIC, LOGGER, METRICS, GROUP = 4, 2, 8, 16, 32
TEXT_LENGTH_MAX = 260
OWN = {
    "listener.name.plaintext.connections.max.idle.ms": "600001",
    "no.such.setting": "1",
}
DYNAMIC = {"log.retention.ms": "70000", "my.own": "1", "leader.replication.throttled.rate": "10000"}


def test_every_config_has_one_line_in_its_order() -> None:
    with open(FILE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    expected = [(scope, name) for scope, table in SCOPES.items() for name in table]
    assert [tuple(line.split("\t")[:2]) for line in lines[1:]] == expected


def test_texts_are_sentences() -> None:
    for key, text in texts().items():
        assert text[0].isupper(), key
        assert text.endswith("."), key
        assert len(text) <= TEXT_LENGTH_MAX, key
        assert text.count("`") % 2 == 0, key


def test_what_a_text_names_in_backticks_exists() -> None:
    names = {name for table in SCOPES.values() for name in table}
    for key, text in texts().items():
        for quoted in text.split("`")[1::2]:
            if "." in quoted:
                assert quoted in names, (key, quoted)


def described(kind: int, name: str, documentation: bool) -> dict[str, str | None]:
    """Config -> its text, of one resource."""
    config = BrokerConfig.load(OWN)
    configs = {(BROKERS, "1"): DYNAMIC, (BROKERS, ""): {"my.own": "1", "log.retention.ms": "5"}}
    parts = made_parts(
        dynamic_config=DynamicConfig(config, configs),
        image=SimpleNamespace(topics=SimpleNamespace(by_name={"t": None})),
    )
    context: Any = SimpleNamespace(parts=parts, authorize=lambda *_: True, allows=lambda *_: True)
    shape = m.DescribeConfigsRequest
    resource = shape.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = shape(resources=[resource], include_documentation=documentation)
    result = describe_configs.handle(context, request).results[0]
    assert result.error_code == 0
    return {entry.name: entry.documentation for entry in result.configs}


@pytest.mark.parametrize(
    ("kind", "name", "without"),
    [
        (BROKERS, "1", {*OWN, "my.own", "leader.replication.throttled.rate"}),
        (BROKERS, "", {"my.own"}),
        (TOPIC, "t", set()),
        (GROUP, "g", set()),
        (METRICS, "s", set()),
    ],
)
def test_configs_are_described_with_texts_where_kafka_has_some(
    kind: int, name: str, without: set[str]
) -> None:
    """Measured on Apache Kafka 4.4: no text of what it does not define by that very name."""
    found = described(kind, name, documentation=True)
    assert {config for config, text in found.items() if text is None} == without
    assert set(described(kind, name, documentation=False).values()) == {None}


def test_a_topic_config_and_its_default_have_texts_of_their_own() -> None:
    topic = described(TOPIC, "t", documentation=True)["compression.type"]
    default = described(BROKERS, "1", documentation=True)["compression.type"]
    assert topic is not None
    assert default == f"{topic} It counts for topics that do not set it themselves."
    for name, definition in BROKER.items():
        if definition.topic_config == name:
            assert texts()["broker", name].startswith(texts()["topic", name])


def test_loggers_have_empty_texts() -> None:
    assert set(described(LOGGER, "1", documentation=True).values()) == {""}


def test_a_node_does_not_read_the_texts_at_its_start() -> None:
    code = (
        "import sys, kwire.cli.serve, kwire.node.node, kwire.api.describe_configs;"
        "sys.exit('kwire.config.documentation' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
