"""No config value, however it got into the metadata, keeps a node from serving or from starting.

A broker whose checks are switched off stands for whatever wrote the values: an earlier version,
Apache Kafka, a hand. Every config of brokers, topics, groups and client metrics gets a value that
cannot be used, while it runs; topics are created and used, before and behind a restart, and the log
names each such config. Then the same with the extreme values that Kafka accepts, all at once.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Iterator

import pytest

from kwire.cli.client import Client
from kwire.cli.operations import LATEST, create_topic, list_offsets, topic_configs
from kwire.cli.records import Outgoing, Producer, consume
from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kwire.config.values import INTEGER_RANGES
from kwire.protocol import messages as m
from kwire.protocol.records import Codec
from kwire.testing.cluster import Broker
from tests.support import config_sweep as sweep

UNCHECKED = """
import kwire.api.shared.config_changes as altering
from kwire.kraft.controller.config_rules import KafkaConfigRules
altering.validate_broker_configs = lambda *_, **__: None
KafkaConfigRules.validate = lambda *_: None
import kwire.kraft.controller.requests.configs as configs
configs._check_one = configs._check_cordoned_directly = lambda *_: None
from kwire.cli.main import main
main()
"""
TABLES = {
    (sweep.BROKER, ""): BROKER,
    (sweep.BROKER, "1"): BROKER,
    (sweep.TOPIC, sweep.TOPIC_NAME): TOPIC,
    (sweep.TOPIC, "t0"): TOPIC,
    (sweep.GROUP, "g"): GROUP,
    (sweep.METRICS, "sub"): CLIENT_METRICS,
}
UNUSABLE = ("", "NaN", "0", "-1", "9" * 5000, "a,,a,", "1:-1", "abc")
# These keep records out where they are low, clients where they are few: that is what they are for.
SIDES = ("before", "after")
LIMITS = (
    "message.max.bytes",
    "max.message.bytes",
    "max.decompressed.message.bytes",
    "max.connections",
    "max.connections.per.ip",
    "min.insync.replicas",
    "internal.segment.bytes",
    *(f"{log}message.timestamp.{side}.max.ms" for log in ("", "log.") for side in SIDES),
)


# As the Kafka had them that was asked: thread counts move in small steps.
OPTIONS = {
    "node.id": 1,
    "num.io.threads": 4,
    "num.network.threads": 2,
    "offsets.topic.num.partitions": 1,
}
# What moves or closes a broker by design has tests of its own.
ELSEWHERE = ("listeners", "listener.security.protocol.map", "cordoned.log.dirs", "config.providers")


class UncheckedBroker(Broker):
    """`kwire serve` that takes any config value while `checks` is off."""

    checks = False

    def command(self) -> list[str]:
        line = super().command()
        return line if self.checks else [sys.executable, "-c", UNCHECKED, *line[3:]]


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[UncheckedBroker]:
    running = UncheckedBroker(data_dir=tmp_path / "data", options=OPTIONS)
    try:
        yield running
    finally:
        running.close()


def put(client: Client, kind: int, resource: str, configs: dict[str, str]) -> tuple[int, str]:
    """Set configs of one resource; (error code, text)."""
    request = m.IncrementalAlterConfigsRequest
    altered = request.AlterConfigsResource(
        resource_type=kind,
        resource_name=resource,
        configs=[
            request.AlterableConfig(name=name, config_operation=sweep.SET, value=value)
            for name, value in configs.items()
        ],
    )
    answer = client.call(request(resources=[altered])).responses[0]
    return answer.error_code, answer.error_message


def put_everywhere(client: Client, value: str) -> None:
    """Set every config to one value, but limits to none that is a limit."""
    for (kind, resource), table in TABLES.items():
        names = [name for name in table if value != "0" or name not in LIMITS]
        assert put(client, kind, resource, dict.fromkeys(names, value)) == (0, None)


def serves(client: Client, topic: str, *, create: bool) -> None:
    """A record goes in and comes out, an offset is kept."""
    if create:
        create_topic(client, topic, 1, 1, {})
    Producer(client, topic, Codec.NONE).send([Outgoing(b"k", topic.encode())])
    offset = list_offsets(client, client.topic(topic), LATEST)[0] - 1
    found = [got.record.value for got in consume(client, topic, {0: offset}, follow=False)]
    assert found == [topic.encode()]
    client.ask(lambda admin: admin.offsets.commit("g", {(topic, 0): offset}))
    assert client.ask(lambda admin: admin.offsets.committed("g"))[topic, 0] == offset
    assert topic_configs(client, topic)


def test_values_that_cannot_be_used_are_named_and_the_broker_serves(
    broker: UncheckedBroker,
) -> None:
    broker.start()
    with Client(broker.bootstrap) as client:
        create_topic(client, sweep.TOPIC_NAME, 1, 1, {})
        create_topic(client, "t0", 1, 1, {})
        for number, value in enumerate(UNUSABLE):
            put_everywhere(client, value)
            serves(client, f"during-{number}", create=True)
            serves(client, sweep.TOPIC_NAME, create=False)
        # "abc" stays where 0 is a limit, 0 is everywhere else.
        put_everywhere(client, "0")
    broker.stop()
    broker.checks = True
    broker.start()
    with Client(broker.bootstrap) as client:
        serves(client, "after", create=True)
        serves(client, sweep.TOPIC_NAME, create=False)
    told = broker.log_text()
    assert "Traceback" not in told
    for (_, resource), table in TABLES.items():
        for name, definition in table.items():
            if definition.type in ("int", "short", "long", "double", "boolean"):
                assert f"{name}=abc cannot be used" in told, (resource, name)


@functools.cache
def taken_by_kafka() -> dict[tuple[int, str], dict[str, list[str]]]:
    """(resource type, resource) -> config -> the values that Kafka took in the sweep."""
    recorded = sweep.Answers.read(sweep.DATA)
    result: dict[tuple[int, str], dict[str, list[str]]] = {}
    for change in sweep.changes():
        if change.operation != sweep.SET or len(change.configs) != 1:
            continue
        ((name, value),) = change.configs
        if value is not None and recorded.of(change) == (0, ""):
            names = result.setdefault((change.resource_type, change.resource), {})
            names.setdefault(name, []).append(value)
    return result


def extremes(kind: int, resource: str, *, largest: bool) -> Iterator[tuple[str, str]]:
    """(name, value) of each config: of a number the smallest or largest that Kafka takes, of
    anything else the first or last."""
    for name, values in taken_by_kafka().get((kind, resource), {}).items():
        definition = TABLES[kind, resource].get(name)
        if definition is None or name in (*LIMITS, *ELSEWHERE) or definition.support == "refused":
            continue
        if definition.type in INTEGER_RANGES:
            yield name, (max if largest else min)(values, key=int)
        else:
            yield name, values[-1 if largest else 0]


@pytest.mark.parametrize("largest", [False, True])
def test_the_extreme_values_that_kafka_takes_are_served_with(
    broker: UncheckedBroker, largest: bool
) -> None:
    broker.checks = True
    broker.start()
    with Client(broker.bootstrap) as client:
        create_topic(client, sweep.TOPIC_NAME, 1, 1, {})
        for kind, resource in TABLES:
            configs = dict(extremes(kind, resource, largest=largest))
            if configs:
                assert put(client, kind, resource, configs) == (0, None)
        serves(client, "while", create=True)
        serves(client, sweep.TOPIC_NAME, create=False)
    broker.stop()
    broker.start()
    with Client(broker.bootstrap) as client:
        serves(client, "after", create=True)
        serves(client, sweep.TOPIC_NAME, create=False)
    assert "Traceback" not in broker.log_text()
