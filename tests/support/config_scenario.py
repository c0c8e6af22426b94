"""One history of config changes and descriptions, played against any broker.

`play(bootstrap)` sends the steps and returns what was answered, as JSON, in a shape that can be
compared between two brokers: entries sorted by name, nothing that depends on ports or paths.
Played against Apache Kafka 4.4 with `STATIC_PROPERTIES` it gave
`tests/golden/data/config_answers.json.gz`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from kwire.cli.client import Client
from kwire.cli.operations import create_topic
from kwire.protocol import messages as m

DATA = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data"
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

# Static settings beyond those that both brokers need to run; of every type and with synonyms.
STATIC_PROPERTIES = {
    "log.retention.minutes": "600",
    "log.roll.hours": "24",
    "log.segment.bytes": " 2097152 ",
    "message.max.bytes": "2000000",
    "log.cleanup.policy": "compact , delete",
    "log.cleaner.min.cleanable.ratio": ".25",
    "auto.create.topics.enable": "TRUE",
    "group.consumer.session.timeout.ms": "50000",
    "offsets.retention.minutes": "1000",
    "internal.metadata.delete.delay.millis": "50000",
    "compression.type": "producer",
}
TOPIC_NAME = "config-scenario"

# (resource type, name, [(config, operation, value)]): one IncrementalAlterConfigs each.
CHANGES: list[tuple[int, str, list[tuple[str, int, str | None]]]] = [
    (TOPIC, TOPIC_NAME, [("retention.ms", SET, " 77 ")]),
    (TOPIC, TOPIC_NAME, [("retention.ms", SET, "abc")]),
    (TOPIC, TOPIC_NAME, [("no.such", SET, "abc")]),
    (TOPIC, TOPIC_NAME, [("no.such", DELETE, None)]),
    (TOPIC, TOPIC_NAME, [("retention.ms", SET, None)]),
    (TOPIC, TOPIC_NAME, [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
    (TOPIC, TOPIC_NAME, [("retention.ms", APPEND, "1")]),
    (TOPIC, TOPIC_NAME, [("cleanup.policy", APPEND, "compact")]),
    (TOPIC, TOPIC_NAME, [("cleanup.policy", APPEND, "compact")]),
    (TOPIC, TOPIC_NAME, [("cleanup.policy", SUBTRACT, "delete")]),
    (TOPIC, TOPIC_NAME, [("cleanup.policy", APPEND, "bogus")]),
    (TOPIC, TOPIC_NAME, [("segment.bytes", SET, "100")]),
    (TOPIC, TOPIC_NAME, [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")]),
    (TOPIC, TOPIC_NAME, [("remote.storage.enable", SET, "true")]),
    (TOPIC, TOPIC_NAME, [("internal.segment.bytes", SET, "2000")]),
    (TOPIC, TOPIC_NAME, [("leader.replication.throttled.replicas", SET, "0:1")]),
    (TOPIC, TOPIC_NAME, [("leader.replication.throttled.replicas", APPEND, "1:1")]),
    (TOPIC, TOPIC_NAME, [("leader.replication.throttled.replicas", SET, "x")]),
    (TOPIC, TOPIC_NAME, [("min.cleanable.dirty.ratio", SET, ".5"), ("preallocate", SET, "TRUE")]),
    (TOPIC, TOPIC_NAME, []),
    (TOPIC, "no-such-topic", [("retention.ms", SET, "1")]),
    (TOPIC, "", [("retention.ms", SET, "1")]),
    (TOPIC, "bad/name", [("retention.ms", SET, "1")]),
    (BROKER, "1", [("log.retention.ms", SET, " 5000 ")]),
    (BROKER, "1", [("log.retention.ms", SET, "abc")]),
    (BROKER, "", [("log.retention.ms", SET, "6000")]),
    (BROKER, "1", [("log.retention.hours", SET, "5")]),
    (BROKER, "", [("log.retention.hours", SET, "5"), ("num.partitions", SET, "4")]),
    (BROKER, "1", [("node.id", SET, "1")]),
    (BROKER, "1", [("advertised.listeners", SET, "PLAINTEXT://h:1")]),
    (BROKER, "1", [("no.such", SET, "5")]),
    (BROKER, "2", [("log.retention.ms", SET, "5000")]),
    (BROKER, "x", [("log.retention.ms", SET, "5000")]),
    (BROKER, "", [("ssl.keystore.location", SET, "/x")]),
    (BROKER, "1", [("ssl.keystore.location", SET, "/x")]),
    (BROKER, "", [("listener.name.plaintext.ssl.keystore.location", SET, "/x")]),
    (BROKER, "", [("listeners", SET, "PLAINTEXT://:1")]),
    (BROKER, "", [("cordoned.log.dirs", SET, "*")]),
    (BROKER, "1", [("background.threads", SET, "100")]),
    (BROKER, "1", [("background.threads", SET, "1")]),
    (BROKER, "1", [("background.threads", SET, "0")]),
    (BROKER, "1", [("background.threads", SET, "12")]),
    (BROKER, "1", [("background.threads", SET, None)]),
    (BROKER, "1", [("log.cleanup.policy", SET, " delete , compact")]),
    (BROKER, "", [("log.cleanup.policy", SUBTRACT, "delete")]),
    (BROKER, "1", [("log.roll.ms", SET, "1000"), ("log.roll.jitter.ms", SET, "5")]),
    (BROKER, "", [("log.roll.ms", SET, "2000"), ("log.flush.interval.ms", SET, "5000")]),
    (BROKER, "", [("min.insync.replicas", SET, "2")]),
    (BROKER, "1", [("min.insync.replicas", SET, "2")]),
    (BROKER, "", [("min.insync.replicas", DELETE, None)]),
    (BROKER, "1", [("leader.replication.throttled.rate", SET, "100")]),
    (BROKER, "", [("follower.replication.throttled.rate", SET, "100")]),
    (BROKER, "1", [("leader.replication.throttled.rate", SET, "-1")]),
    (BROKER, "1", [("message.max.bytes", SET, "3000000")]),
    (BROKER, "1", [("compression.type", SET, "gzip")]),
    (BROKER, "", [("compression.type", SET, "zstd")]),
    (BROKER, "1", [("log.message.timestamp.type", SET, "LogAppendTime")]),
    (BROKER, "1", [("log.cleaner.min.cleanable.ratio", SET, ".75")]),
    (BROKER, "1", [("log.preallocate", SET, "TRUE")]),
    (BROKER, "1", [("group.consumer.assignment.interval.ms", SET, "7000")]),
    (BROKER, "1", [("group.consumer.assignment.interval.ms", SET, "70000")]),
    (BROKER, "1", [("max.connections.per.ip.overrides", SET, "127.0.0.1:100")]),
    (LOGGER, "1", [("no.such.logger", SET, "INFO")]),
    (LOGGER, "1", [("root", SET, "WARN")]),
    (LOGGER, "1", [("root", SET, "BOGUS")]),
    (LOGGER, "1", [("root", SET, "warn")]),
    (LOGGER, "1", [("root", DELETE, None)]),
    (LOGGER, "1", [("root", APPEND, "INFO")]),
    (LOGGER, "2", [("root", SET, "INFO")]),
    (LOGGER, "", [("root", SET, "INFO")]),
    (METRICS, "sub", [("interval.ms", SET, "5000")]),
    (METRICS, "sub", [("interval.ms", SET, "5")]),
    (METRICS, "sub", [("metrics", SET, "a.b, c.d")]),
    (METRICS, "sub", [("metrics", APPEND, "e.f")]),
    (METRICS, "sub", [("match", SET, "client_id=x.*,client_software_name=y")]),
    (METRICS, "sub", [("match", SET, "client_id=[")]),
    (METRICS, "sub", [("match", SET, "bogus=1")]),
    (METRICS, "sub", [("match", SET, "bogus")]),
    (METRICS, "sub", [("bogus", SET, "1")]),
    (METRICS, "", [("interval.ms", SET, "5000")]),
    (GROUP, "g", [("consumer.session.timeout.ms", SET, "55000")]),
    (GROUP, "g", [("consumer.session.timeout.ms", SET, "5")]),
    (GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "55000")]),
    (GROUP, "g", [("consumer.assignment.interval.ms", SET, "50000")]),
    (GROUP, "g", [("share.record.lock.duration.ms", SET, "5")]),
    (GROUP, "g", [("share.delivery.count.limit", SET, "50")]),
    (GROUP, "g", [("share.partition.max.record.locks", SET, "50000")]),
    (GROUP, "g", [("share.auto.offset.reset", SET, "none")]),
    (GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:PT1H")]),
    (GROUP, "g", [("share.isolation.level", SET, "none")]),
    (GROUP, "g", [("streams.num.standby.replicas", SET, "50")]),
    (GROUP, "g", [("streams.num.warmup.replicas", SET, "3")]),
    (GROUP, "g", [("streams.task.offset.interval.ms", SET, "5")]),
    (GROUP, "g", [("streams.assignor.name", SET, "bogus")]),
    (GROUP, "g", [("streams.assignor.name", SET, "sticky")]),
    (GROUP, "g", [("errors.deadletterqueue.topic.name", SET, "__x")]),
    (GROUP, "g", [("bogus", SET, "5")]),
    (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]),
    (99, "x", [("a", SET, "1")]),
    (0, "x", [("a", SET, "1")]),
]
# AlterConfigs: what is not named goes.
REPLACEMENTS: list[tuple[int, str, list[tuple[str, str | None]]]] = [
    (TOPIC, TOPIC_NAME, [("retention.ms", "x")]),
    (TOPIC, TOPIC_NAME, [("retention.ms", None)]),
    (TOPIC, TOPIC_NAME, [("retention.ms", "1"), ("retention.ms", "2")]),
    (TOPIC, TOPIC_NAME, [("flush.ms", "1000")]),
    (TOPIC, "no-such-topic", [("retention.ms", "1")]),
    (TOPIC, "", []),
    (BROKER, "1", [("log.retention.ms", "1000")]),
    (BROKER, "", [("node.id", "1000")]),
    (LOGGER, "1", [("root", "INFO")]),
    (GROUP, "g", [("consumer.session.timeout.ms", "51000")]),
    (METRICS, "sub", [("interval.ms", "6000")]),
    (99, "x", []),
]
DESCRIPTIONS: list[tuple[int, str, list[str] | None]] = [
    (BROKER, "1", None),
    (BROKER, "", None),
    (TOPIC, TOPIC_NAME, None),
    (TOPIC, "config-plain", None),
    (TOPIC, TOPIC_NAME, ["retention.ms", "bogus"]),
    (TOPIC, TOPIC_NAME, []),
    (BROKER, "1", ["log.retention.ms", "no.such.thing", "log.roll.ms", "min.insync.replicas"]),
    (GROUP, "g", None),
    (GROUP, "no-such-group", None),
    (METRICS, "sub", None),
    (METRICS, "no-such-subscription", None),
    (LOGGER, "1", ["root"]),
]
REFUSED_DESCRIPTIONS: list[tuple[int, str]] = [
    (BROKER, "2"),
    (BROKER, "x"),
    (TOPIC, "no-such-topic"),
    (TOPIC, ""),
    (TOPIC, "bad/name"),
    (GROUP, ""),
    (METRICS, ""),
    (LOGGER, "2"),
    (LOGGER, ""),
    (LOGGER, "x"),
    (99, "x"),
    (0, "x"),
]


def play(bootstrap: str) -> dict[str, Any]:
    """Every answer by a name for its step; the broker must be node 1 and freshly formatted."""
    answers: dict[str, Any] = {}
    with Client(bootstrap) as client:
        for name in (TOPIC_NAME, "config-plain"):
            create_topic(client, name, 1, 1, {})
        _describe_all(client, "fresh", answers)
        for number, change in enumerate(CHANGES):
            answers[f"change {number} {change}"] = _change(client, *change)
        _describe_all(client, "changed", answers)
        for resource_type, name in REFUSED_DESCRIPTIONS:
            key = f"refused {resource_type} {name}"
            answers[key] = _describe(client, resource_type, name, None)
        for number, replacement in enumerate(REPLACEMENTS):
            answers[f"replacement {number} {replacement}"] = _replace(client, *replacement)
        _describe_all(client, "replaced", answers)
        answers["created"] = _create_described(client)
    return answers


def _describe_all(client: Client, when: str, answers: dict[str, Any]) -> None:
    for resource_type, name, keys in DESCRIPTIONS:
        described = _describe(client, resource_type, name, keys)
        answers[f"{when} {resource_type} {name} {keys}"] = described


def _describe(client: Client, resource_type: int, name: str, keys: list[str] | None) -> Any:
    request = m.DescribeConfigsRequest(
        resources=[
            m.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=keys
            )
        ],
        include_synonyms=True,
    )
    result = client.call(request).results[0]
    entries = {
        entry.name: [
            entry.value,
            entry.config_source,
            entry.read_only,
            entry.is_sensitive,
            entry.config_type,
            [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms],
            entry.documentation,
        ]
        for entry in result.configs
    }
    return [result.error_code, result.error_message, dict(sorted(entries.items()))]


def _change(
    client: Client, resource_type: int, name: str, configs: list[tuple[str, int, str | None]]
) -> Any:
    request_class = m.IncrementalAlterConfigsRequest
    resource = request_class.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            request_class.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ],
    )
    result = client.call(request_class(resources=[resource])).responses[0]
    return [result.error_code, result.error_message]


def _replace(
    client: Client, resource_type: int, name: str, configs: list[tuple[str, str | None]]
) -> Any:
    request_class = m.AlterConfigsRequest
    resource = request_class.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[request_class.AlterableConfig(name=key, value=value) for key, value in configs],
    )
    result = client.call(request_class(resources=[resource])).responses[0]
    return [result.error_code, result.error_message]


def _create_described(client: Client) -> Any:
    created = create_topic(client, "config-created", 1, 1, {"cleanup.policy": "compact"})
    return [[c.name, c.value, c.config_source, c.read_only] for c in created.configs or ()]


def peer_properties(port: int, more: Mapping[str, str] = STATIC_PROPERTIES) -> dict[str, str]:
    """What `compat_tests/peers/run-kafka.sh --port PORT` gives Apache Kafka, for kwire."""
    broker, controller = f"PLAINTEXT://127.0.0.1:{port}", f"CONTROLLER://127.0.0.1:{port + 1}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port + 1}",
        "listeners": f"{broker},{controller}",
        "advertised.listeners": f"{broker},{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "default.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.coordinator.threads": "1",
        "num.network.threads": "2",
        "num.io.threads": "4",
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.replication.factor"] = "1"
        properties[f"{topic}.num.partitions"] = "4"
    return {**properties, **more}


def comparable(answers: dict[str, Any]) -> dict[str, Any]:
    """`answers` as JSON reads them back, without what may differ between two brokers."""
    text = (DATA / "config_differences.json").read_text()
    differences = json.loads(text)
    result: dict[str, Any] = json.loads(json.dumps(answers))
    for step, answer in result.items():
        if step in differences["steps"]:
            result[step] = differences["steps"][step]
        elif len(answer) == 3 and isinstance(answer[2], dict):
            for name in differences["broker configs"]:
                answer[2].pop(name, None)
    return result
