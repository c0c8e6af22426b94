"""Every config with many values, one change at a time, asked of any broker without changing it.

`changes()` lists what is asked: each broker, topic, group and client-metrics config with about
twenty values by SET, some by APPEND, SUBTRACT and DELETE, by AlterConfigs and (topics) at creation,
settings with a listener's prefix, and pairs that are only wrong together. All is `validate_only`,
so the order has no influence. `static_settings()` lists values to start with, for `KafkaConfig`.

An answer is (error code, text); `Answers` keeps those of Apache Kafka 4.4 in a compact form
(`tests/golden/data/config_sweep.json.gz`): texts that differ only in config and value are one.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kwire.config.definitions import BROKER as BROKER_TABLE
from kwire.config.definitions import CLIENT_METRICS, ConfigDefinition
from kwire.config.definitions import GROUP as GROUP_TABLE
from kwire.config.definitions import TOPIC as TOPIC_TABLE
from kwire.config.values import INTEGER_RANGES
from kwire.protocol import messages as m

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "golden" / "data" / "config_sweep.json.gz"
# Configs of topics that Apache Kafka lacks (ADR 51).
BEYOND_KAFKA = ("confluent.", "kwire.")
STATIC_DATA = DATA.with_name("config_static.json.gz")
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT, REPLACE, CREATE = range(6)
"""Operations of IncrementalAlterConfigs; REPLACE is AlterConfigs, CREATE is CreateTopics."""

TOPIC_NAME = "config-sweep"
RESOURCES = {TOPIC: (TOPIC_NAME,), BROKER: ("", "1"), METRICS: ("sub",), GROUP: ("g",)}
PROTOCOL_MAP = "listener.security.protocol.map"
LIST_OPERANDS = ("a", "delete", "")
FEW_VALUES = ("", "0", "x", "a,b")
ANY_TEXTS = ("x", "", "gzip", "PLAINTEXT", "a,b", "/x", "a b", "0")
NUMBERS = ("-2", "-1", "0", "1", "2", " 7 ", "100", "abc", "", "1.5", "+7", "100000", "10000000")
LISTS = (
    *("", "a", "a,b", "a,a", "a,,b", ",", " a , b ", "delete", "compact,delete", "compact", "*"),
    *("0:1", "0:1,1:2", "0:x", "PLAINTEXT://127.0.0.1:1", "PLAINTEXT,SSL", "simple", "uniform"),
    *("client_id=x.*", "client_id=[", "bogus=1", "none", "/x", "classic", "consumer,classic"),
)
OF_ONE_CONFIG = {
    "listeners": (
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
        "PLAINTEXT://127.0.0.1:@P,CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://:@P,CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://127.0.0.1:1,B://127.0.0.1:2,CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2,CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:1",
        "PLAINTEXT://127.0.0.1:66000,CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://127.0.0.1,CONTROLLER://127.0.0.1:@Q",
        "CONTROLLER://127.0.0.1:@Q",
        "PLAINTEXT://127.0.0.1:x",
        "plaintext://127.0.0.1:@P,controller://127.0.0.1:@Q",
    ),
    "advertised.listeners": (
        "PLAINTEXT://h:1",
        "PLAINTEXT://0.0.0.0:1",
        "PLAINTEXT://:1",
        "SSL://h:1",
        "PLAINTEXT://h:1,CONTROLLER://c:2",
        "PLAINTEXT://h:1,PLAINTEXT://h:2",
        "PLAINTEXT://h:66000",
    ),
    PROTOCOL_MAP: (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,B:SSL",
        "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
        "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "PLAINTEXT:BOGUS,CONTROLLER:PLAINTEXT",
        "PLAINTEXT:PLAINTEXT,PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
        "plaintext:plaintext,controller:plaintext",
        "PLAINTEXT:PLAINTEXT",
        "CONTROLLER:PLAINTEXT",
        "PLAINTEXT:PLAINTEXT,,CONTROLLER:PLAINTEXT",
        ":PLAINTEXT",
    ),
    "max.connections.per.ip.overrides": (
        *("127.0.0.1:5", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:1,127.0.0.1:2"),
        *("::1:5", "localhost:5", "no.such.host.invalid:5", ",", "127.0.0.1:0", ":5"),
    ),
    "process.roles": ("broker", "controller", "broker,controller", "broker,broker"),
    "node.id": ("1", "5"),
    "broker.id": ("1", "5"),
    "inter.broker.listener.name": ("PLAINTEXT", "CONTROLLER", "SSL", "B", "plaintext"),
    "security.inter.broker.protocol": ("PLAINTEXT", "SSL", "plaintext"),
    "controller.listener.names": ("CONTROLLER", "PLAINTEXT", "B", "CONTROLLER,B", "controller"),
    "controller.quorum.voters": ("1@127.0.0.1:5", "2@h:5", "1@127.0.0.1", "1@0.0.0.0:5", "x@h:5"),
    "controller.quorum.bootstrap.servers": ("127.0.0.1:5", "h", "h:x", "[::1]:5", "h:5,g:6"),
    "early.start.listeners": ("PLAINTEXT", "CONTROLLER", "B", "plaintext"),
    "log.dirs": ("/x,/y", "/x,/x", " /x , /y "),
    "offsets.topic.compression.codec": ("0", "1", "2", "3", "4", "5"),
    "group.coordinator.rebalance.protocols": ("classic", "classic,consumer", "share", "CLASSIC"),
    "group.consumer.assignors": ("uniform,range", "range", "org.x.Y"),
    "group.share.assignors": ("simple", "simple,simple", "org.x.Y"),
    "group.streams.assignors": ("sticky", "org.x.Y"),
    "metadata.log.dir": ("/x",),
    "compression.gzip.level": ("9", "10"),
    "sasl.enabled.mechanisms": ("PLAIN", "PLAIN,SCRAM-SHA-256"),
    "sasl.mechanism.inter.broker.protocol": ("PLAIN",),
    "replica.selector.class": (
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "org.apache.kafka.common.replica.LeaderSelector",
    ),
    "authorizer.class.name": ("org.apache.kafka.metadata.authorizer.StandardAuthorizer",),
    "share.auto.offset.reset": ("by_duration:PT1H", "by_duration:-PT1H", "by_duration:1h"),
    "streams.assignor.name": ("sticky", "highly_available"),
    "errors.deadletterqueue.topic.name": ("__x", "dlq.x", "no/slash"),
    "match": (
        "client_id=x,client_id=y",
        "client_source_port=1",
        "client_id=x=y",
        "=x",
        "client_id=",
    ),
    "interval.ms": ("99", "3600000", "3600001"),
    "metric.reporters": ("org.apache.kafka.common.metrics.JmxReporter",),
    "remote.log.storage.system.enable": ("true",),
}
"""More values of single configs; @P and @Q are the ports of the broker and of the controller."""

LISTENER_CONFIGS = (
    *(
        "max.connections",
        "max.connection.creation.rate",
        "max.connections.per.ip",
        "num.io.threads",
    ),
    *("num.network.threads", "connections.max.idle.ms", "log.retention.ms", "no.such.config"),
    *("ssl.keystore.location", "ssl.keystore.type", "ssl.client.auth", "ssl.cipher.suites"),
    *("ssl.enabled.protocols", "ssl.truststore.location", "ssl.protocol", "ssl.key.password"),
    *("sasl.enabled.mechanisms", "sasl.jaas.config", "principal.builder.class", "ssl.provider"),
    *(
        "sasl.login.refresh.window.factor",
        "sasl.kerberos.service.name",
        "connections.max.reauth.ms",
    ),
)
PAIRS: tuple[tuple[int, str, dict[str, str]], ...] = (
    (BROKER, "", {"log.local.retention.ms": "1001", "log.retention.ms": "1000"}),
    (BROKER, "", {"log.local.retention.ms": "-1", "log.retention.ms": "-1"}),
    (BROKER, "", {"log.local.retention.bytes": "1001", "log.retention.bytes": "1000"}),
    (BROKER, "", {"log.local.retention.bytes": "-1", "log.retention.bytes": "1000"}),
    (
        BROKER,
        "",
        {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"},
    ),
    (BROKER, "", {"log.roll.ms": "1", "log.roll.jitter.ms": "2"}),
    (
        BROKER,
        "",
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"},
    ),
    (BROKER, "", {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097152"}),
    (BROKER, "", {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097154"}),
    (BROKER, "", {"message.max.bytes": "2000000", "log.segment.bytes": "1048576"}),
    (BROKER, "", {"num.io.threads": "8", "num.network.threads": "5"}),
    (BROKER, "", {"num.io.threads": "9", "num.network.threads": "5"}),
    (BROKER, "", {"node.id": "1", "num.partitions": "2", "log.retention.ms": "abc"}),
    (BROKER, "", {"listeners": "a", "ssl.keystore.type": "x", "log.retention.ms": "1"}),
    (BROKER, "1", {"node.id": "1", "num.partitions": "2", "log.retention.ms": "abc"}),
    (BROKER, "1", {"ssl.keystore.type": "x", "ssl.protocol": "y", "log.retention.ms": "abc"}),
    (BROKER, "1", {"log.retention.ms": "abc", "log.roll.ms": "abc"}),
    (BROKER, "1", {"log.retention.ms": "0", "log.roll.ms": "0"}),
    (BROKER, "1", {"log.retention.ms": "1", "no.such.config": "x", "neither": "y"}),
    (
        BROKER,
        "1",
        {
            "listeners": "PLAINTEXT://127.0.0.1:@P,CONTROLLER://127.0.0.1:@Q,B://127.0.0.1:1",
            PROTOCOL_MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,B:PLAINTEXT",
        },
    ),
    (
        BROKER,
        "1",
        {
            "listeners": "PLAINTEXT://127.0.0.1:@P,CONTROLLER://127.0.0.1:@Q,B://127.0.0.1:1",
            PROTOCOL_MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,B:SSL",
        },
    ),
    (TOPIC, TOPIC_NAME, {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}),
    (TOPIC, TOPIC_NAME, {"local.retention.ms": "1001", "retention.ms": "1000"}),
    (TOPIC, TOPIC_NAME, {"local.retention.bytes": "1001", "retention.bytes": "1000"}),
    (TOPIC, TOPIC_NAME, {"local.retention.ms": "-1", "retention.ms": "1000"}),
    (TOPIC, TOPIC_NAME, {"remote.storage.enable": "true", "cleanup.policy": "compact"}),
    (TOPIC, TOPIC_NAME, {"remote.storage.enable": "false", "remote.log.copy.disable": "true"}),
    (TOPIC, TOPIC_NAME, {"remote.log.delete.on.disable": "true", "remote.storage.enable": "false"}),
    (TOPIC, TOPIC_NAME, {"segment.ms": "5", "segment.jitter.ms": "6"}),
    (TOPIC, TOPIC_NAME, {"retention.ms": "abc", "bogus": "1"}),
    (TOPIC, TOPIC_NAME, {"retention.ms": "abc", "segment.ms": "abc"}),
    (
        GROUP,
        "g",
        {"consumer.session.timeout.ms": "45000", "consumer.heartbeat.interval.ms": "15000"},
    ),
    (GROUP, "g", {"share.session.timeout.ms": "45000", "share.heartbeat.interval.ms": "45000"}),
    (GROUP, "g", {"consumer.session.timeout.ms": "abc", "bogus": "1"}),
    (METRICS, "sub", {"interval.ms": "5000", "bogus": "1"}),
    (METRICS, "sub", {"interval.ms": "5", "match": "bogus"}),
    (METRICS, "", {"interval.ms": "5000"}),
    (GROUP, "", {"consumer.session.timeout.ms": "45000"}),
    (TOPIC, "", {"retention.ms": "5000"}),
    (TOPIC, "no-such-topic", {"retention.ms": "5000"}),
    (BROKER, "2", {"log.retention.ms": "5000"}),
    (BROKER, "x", {"log.retention.ms": "5000"}),
)


class Change(NamedTuple):
    """One resource, configs (name -> value, None for DELETE) and the operation of them all."""

    resource_type: int
    resource: str
    operation: int
    configs: tuple[tuple[str, str | None], ...]


class Ports(NamedTuple):
    """The ports of the broker that is asked: texts and values call them @P and @Q."""

    broker: int
    controller: int

    def put_in(self, text: str) -> str:
        return text.replace("@P", str(self.broker)).replace("@Q", str(self.controller))

    def take_out(self, text: str) -> str:
        return text.replace(str(self.broker), "@P").replace(str(self.controller), "@Q")


def values_of(definition: ConfigDefinition) -> list[str]:
    """About twenty texts for a config: by its type, the bounds of its check, its own ones."""
    kind = definition.type
    if kind in INTEGER_RANGES:
        low, high = INTEGER_RANGES[kind]
        texts = [*NUMBERS, str(low), str(high), str(high + 1)]
        texts += [str(int(bound) + step) for bound in _bounds(definition) for step in (-1, 0, 1)]
    elif kind == "double":
        texts = [*NUMBERS, "0.5", "0.999999", "NaN", "Infinity", "-Infinity", "1e400", "-1e400"]
    elif kind == "boolean":
        texts = ["true", "FALSE", " true ", "x", "", "1", "yes"]
    elif kind == "list":
        texts = [*LISTS]
    else:
        texts = [*ANY_TEXTS]
    word, _, argument = definition.check.partition(" ")
    if word in ("one", "one-nocase"):
        texts += [option.swapcase() for option in argument.split(",")] + argument.split(",")
    if definition.default_text is not None:
        texts.append(definition.default_text)
    return list(dict.fromkeys([*texts, *OF_ONE_CONFIG.get(definition.name, ())]))


def _bounds(definition: ConfigDefinition) -> list[str]:
    word, _, argument = definition.check.partition(" ")
    return argument.split(" ") if word == "range" and argument else []


def changes() -> Iterator[Change]:
    """Everything that is asked, each once."""
    seen: dict[Change, None] = {}
    for change in _all_changes():
        if change not in seen:
            seen[change] = None
            yield change


def _all_changes() -> Iterator[Change]:
    tables = {TOPIC: TOPIC_TABLE, GROUP: GROUP_TABLE, METRICS: CLIENT_METRICS, BROKER: BROKER_TABLE}
    for kind, table in tables.items():
        for name, definition in table.items():
            if name.startswith(BEYOND_KAFKA):
                continue
            fixed = definition.update_mode == "read-only"
            values = list(FEW_VALUES) if fixed else values_of(definition)
            for resource in RESOURCES[kind]:
                yield from _of_config(kind, resource, name, values, definition.type == "list")
    for name in LISTENER_CONFIGS:
        broker = BROKER_TABLE.get(name)
        values = ["x"] if broker is None else values_of(broker)
        for listener in ("plaintext", "unknown"):
            for resource in RESOURCES[BROKER]:
                prefixed = f"listener.name.{listener}.{name}"
                is_list = broker is not None and broker.type == "list"
                yield from _of_config(BROKER, resource, prefixed, values, is_list)
    for name in (
        "no.such.config",
        "listener.name.plaintext.plain.sasl.jaas.config",
        "listener.name.",
    ):
        for kind, resources in RESOURCES.items():
            for resource in resources:
                yield from _of_config(kind, resource, name, ["x", ""], False)
    for kind, resource, configs in PAIRS:
        for operation in (SET, REPLACE):
            yield Change(kind, resource, operation, tuple(configs.items()))
        if kind == TOPIC and resource == TOPIC_NAME:
            yield Change(kind, resource, CREATE, tuple(configs.items()))


def _of_config(
    kind: int, resource: str, name: str, values: list[str], is_list: bool
) -> Iterator[Change]:
    for value in values:
        yield Change(kind, resource, SET, ((name, value),))
        if kind == TOPIC:
            yield Change(kind, resource, CREATE, ((name, value),))
    for value in values[:: max(1, len(values) // 4)]:
        yield Change(kind, resource, REPLACE, ((name, value),))
    for operation in (APPEND, SUBTRACT):
        for value in [*LIST_OPERANDS, *values] if is_list else values[:2]:
            yield Change(kind, resource, operation, ((name, value),))
    yield Change(kind, resource, DELETE, ((name, None),))


def static_settings() -> Iterator[dict[str, str]]:
    """What a node could be started with, beyond what every node needs; @P and @Q as above."""
    for name, definition in BROKER_TABLE.items():
        for value in values_of(definition):
            yield {name: value}
    for kind, _, configs in PAIRS:
        if kind == BROKER and "no.such.config" not in configs:
            yield configs
    yield from STATIC_PAIRS


STATIC_PAIRS: tuple[dict[str, str], ...] = (
    {"node.id": "2", "broker.id": "3"},
    {"replica.fetch.wait.max.ms": "40000", "replica.lag.time.max.ms": "30000"},
    {"replica.fetch.wait.max.ms": "30000", "replica.socket.timeout.ms": "30000"},
    {"group.consumer.session.timeout.ms": "5000", "group.consumer.heartbeat.interval.ms": "5000"},
    {"group.min.session.timeout.ms": "5", "group.max.session.timeout.ms": "4"},
    {"process.roles": "broker", "controller.quorum.voters": "2@h:5"},
    {
        "process.roles": "broker",
        "listeners": "PLAINTEXT://127.0.0.1:@P",
        "controller.quorum.voters": "2@h:5",
    },
    {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:@Q"},
    {
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:@Q",
        "advertised.listeners": "",
    },
    {"broker.heartbeat.interval.ms": "9000", "broker.session.timeout.ms": "9000"},
    {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
)


def request_of(change: Change, ports: Ports) -> Any:
    """The request that asks for a change, validate only."""
    put_in = ports.put_in
    pairs = [(name, None if v is None else put_in(v)) for name, v in change.configs]
    if change.operation == CREATE:
        topic = m.CreateTopicsRequest.CreatableTopic(
            name="config-sweep-new",
            num_partitions=1,
            replication_factor=1,
            configs=[
                m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in pairs
            ],
        )
        return m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
    incremental = change.operation != REPLACE
    kind: Any = m.IncrementalAlterConfigsRequest if incremental else m.AlterConfigsRequest
    operation = {"config_operation": change.operation} if incremental else {}
    configs = [kind.AlterableConfig(name=name, value=value, **operation) for name, value in pairs]
    resource = kind.AlterConfigsResource(
        resource_type=change.resource_type, resource_name=change.resource, configs=configs
    )
    return kind(resources=[resource], validate_only=True)


def answer_of(response: Any, ports: Ports) -> tuple[int, str]:
    """(error code, text) of the response to `request_of`; no text for success."""
    result = (getattr(response, "topics", None) or response.responses)[0]
    return int(result.error_code), ports.take_out(result.error_message or "")


class Answers:
    """Answers by change, read from and written to the recorded form.

    `{"texts": [[code, text]], "answers": {group: {name: [[value, number of text]]}}}`; in a text
    `{name}` and `{value}` stand for a single config's.
    """

    def __init__(self, known: dict[str, tuple[int, str]] | None = None) -> None:
        self.known = dict(known or {})

    @classmethod
    def read(cls, path: pathlib.Path) -> Answers:
        document = json.loads(gzip.decompress(path.read_bytes()))
        texts = [tuple(text) for text in document["texts"]]
        known = {}
        for group, names in document["answers"].items():
            for name, rows in names.items():
                for value, number in rows:
                    code, text = texts[number]
                    key = _key(group, name, value)
                    known[key] = (code, text.replace("{name}", name).replace("{value}", str(value)))
        return cls(known)

    def write(self, path: pathlib.Path) -> None:
        texts: dict[tuple[int, str], int] = {}
        groups: dict[str, dict[str, list[Any]]] = {}
        for key, (code, text) in self.known.items():
            group, name, value = json.loads(key)
            shown = text.replace(name, "{name}")
            if value and len(value) > 1:
                shown = shown.replace(value, "{value}")
            back = shown.replace("{name}", name).replace("{value}", str(value))
            shown = shown if back == text else text
            number = texts.setdefault((code, shown), len(texts))
            groups.setdefault(group, {}).setdefault(name, []).append([value, number])
        document = {"texts": [list(text) for text in texts], "answers": groups}
        raw = json.dumps(document, separators=(",", ":")).encode()
        path.write_bytes(gzip.compress(raw, 9, mtime=0))

    def put(self, change: Change, answer: tuple[int, str]) -> None:
        self.known[key_of(change)] = answer

    def of(self, change: Change) -> tuple[int, str]:
        return self.known[key_of(change)]


def key_of(change: Change) -> str:
    group = f"{change.resource_type} {change.resource} {change.operation}"
    if len(change.configs) == 1:
        name, value = change.configs[0]
        return _key(group, name, value)
    return _key(group, json.dumps(change.configs), "")


def static_key(settings: dict[str, str]) -> str:
    if len(settings) == 1:
        ((name, value),) = settings.items()
        return _key("static", name, value)
    return _key("static", json.dumps(list(settings.items())), "")


def _key(group: str, name: str, value: str | None) -> str:
    return json.dumps([group, name, value])


CREATING = "Error creating broker listeners from "
WITHOUT_A_MAP = {
    "a,b": "Unable to parse a listener name from a",
    "delete": "Unable to parse a listener name from delete",
    "PLAINTEXT://:9092,a": "Unable to parse a listener name from a",
    "SSL://h:1,a": f"{CREATING}'[SSL://h:1, a]': Unable to parse a to a broker endpoint",
    "PLAINTEXT://h,a:b": f"{CREATING}'[PLAINTEXT://h, a:b]': "
    "Unable to parse PLAINTEXT://h to a broker endpoint",
    "PLAINTEXT://h:1,ssl://h:2,CONTROLLER://h:3": (
        f"{CREATING}'[PLAINTEXT://h:1, ssl://h:2, CONTROLLER://h:3]': "
        "No security protocol defined for listener CONTROLLER"
    ),
    "PLAINTEXT://h:1,B://h:2,CONTROLLER://h:3": (
        f"{CREATING}'[PLAINTEXT://h:1, B://h:2, CONTROLLER://h:3]': "
        "No security protocol defined for listener B"
    ),
    "PLAINTEXT://h:1": (
        "requirement failed: controller.listener.names must only contain values appearing in the "
        "'listeners' configuration when running the KRaft controller role"
    ),
}
"""What Apache Kafka 4.4 says to `listeners` where nobody has set the map of their protocols."""


def ask_kafka_config(
    libs: pathlib.Path,
    base: dict[str, str],
    ports: Ports,
    some_settings: Iterable[dict[str, str]] | None = None,
) -> Answers:
    """What Kafka's `KafkaConfig` says to settings, or all `static_settings`, in one JVM."""
    settings = list(static_settings() if some_settings is None else some_settings)
    given = [{name: ports.put_in(text) for name, text in some.items()} for some in settings]
    source = ROOT / "compat_tests" / "peers" / "StaticConfigs.java"
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", str(source)],
        input="".join(json.dumps(entry) + "\n" for entry in [base, *given]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    answers = Answers()
    for some, line in zip(settings, lines, strict=True):
        text = json.loads(line.removeprefix("answer "))
        refused = text is not None
        answers.known[static_key(some)] = (int(refused), ports.take_out(text or ""))
    return answers


def play(call: Any, ports: Ports, some: Iterable[Change] | None = None) -> Answers:
    """Ask `call(request) -> response` for every change; the topic must exist."""
    answers = Answers()
    for change in changes() if some is None else some:
        answers.put(change, answer_of(call(request_of(change, ports)), ports))
    return answers
