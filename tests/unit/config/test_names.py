"""Unknown names of settings: a near miss of a known one is an error, anybody else's a warning."""

from __future__ import annotations

import pytest

from kwire.config import BrokerConfig, ConfigError
from kwire.config.definitions import BROKER, KWIRE
from kwire.config.describe import STATIC_BROKER_CONFIG, Synonym, describe_broker
from kwire.config.dynamic import DynamicConfig
from kwire.config.names import edit_distance, near_misses

KNOWN = [*BROKER, *KWIRE]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("log.segment.byte", "log.segment.bytes"),
        ("log.retention.hour", "log.retention.hours"),
        ("auto.create.topic.enable", "auto.create.topics.enable"),
        ("auto.craete.topics.enable", "auto.create.topics.enable"),
        ("num.partition", "num.partitions"),
        ("advertised.listener", "advertised.listeners"),
        ("listener", "listeners"),
        ("log_segment_bytes", "log.segment.bytes"),
        ("logSegmentBytes", "log.segment.bytes"),
        ("LOG.DIRS", "log.dirs"),
        ("log.dris", "log.dirs"),
    ],
)
def test_a_slip_of_the_pen_is_found(name: str, meant: str) -> None:
    assert near_misses(name, KNOWN)[0] == meant


@pytest.mark.parametrize(
    "name",
    # Of clients, of applications, of other images, of brokers before 4.0.
    ["use.ssl", "max.poll.records", "orders.topic", "bootstrap.servers", "group.id", "client.id"]
    + ["acks", "batch.size", "linger.ms", "key.serializer", "auto.offset.reset", "max.block.ms"]
    + ["enable.auto.commit", "session.timeout.ms", "fetch.min.bytes", "retries", "buffer.memory"]
    + [
        "sasl.username",
        "ssl.ca.location",
        "security.protocol",
        "isolation.level",
    ]
    + ["zookeeper.connect", "zookeeper.connection.timeout.ms", "create.topics", "port", "host.name"]
    + ["advertised.host.name", "inter.broker.protocol.version", "log.message.format.version"]
    + ["broker.id.generation.enable", "confluent.license.topic.replication.factor", "kraft.mode"]
    + ["retention.ms", "segment.bytes", "cleanup.policy", "log.level", "cfg.node.id", "cluster"],
)
def test_the_settings_of_others_are_no_near_misses(name: str) -> None:
    assert near_misses(name, KNOWN) == []
    for source in ({"properties": {name: "1"}}, {"environment": {_variable(name): "1"}}):
        assert len(BrokerConfig.load(**source).warnings) <= 1  # type: ignore[arg-type]


def _variable(name: str) -> str:
    return "KAFKA_" + name.upper().replace(".", "_")


def test_variables_of_applications_are_one_warning() -> None:
    """Each ended the start; Kafka's own image starts with them."""
    names = ("KAFKA_USE_SSL", "KAFKA_MAX_POLL_RECORDS", "KAFKA_ORDERS_TOPIC")
    config = BrokerConfig.load(environment=dict.fromkeys(names, "1"))
    assert config.warnings == [
        "KAFKA_MAX_POLL_RECORDS, KAFKA_ORDERS_TOPIC, KAFKA_USE_SSL are no settings of Kafka's "
        "brokers or of kwire: without effect"
    ]


def test_unknown_names_of_a_file_are_one_warning() -> None:
    config = BrokerConfig.load({"orders.topic": "x", "retention.ms": "5", "num.partitions": "2"})
    assert config.warnings == [
        "orders.topic, retention.ms (a topic's; the broker's is log.retention.ms) are no settings "
        "of Kafka's brokers or of kwire: without effect"
    ]
    assert config["num.partitions"] == 2


def test_an_unknown_value_is_not_told() -> None:
    """It may be an application's password; described as Kafka 4.4 does (measured)."""
    config = BrokerConfig.load(environment={"KAFKA_ORDERS_SECRET": "hunter2"})
    assert "hunter2" not in str(config.warnings)
    (entry,) = describe_broker(DynamicConfig(config, {}), ["orders.secret"])
    assert (entry.value, entry.sensitive) == (None, True)
    assert entry.synonyms == [Synonym("orders.secret", None, STATIC_BROKER_CONFIG)]


def test_a_misspelt_name_is_an_error_wherever_it_stands() -> None:
    for source in (
        {"properties": {"log.segment.byte": "5"}},
        {"environment": {"KAFKA_LOG_SEGMENT_BYTE": "5"}},
        {"overrides": {"log.segment.byte": "5"}},
        {"properties": {"listener.name.inside.ssl.keystore.locatoin": "x"}},
    ):
        with pytest.raises(ConfigError, match="did you mean"):
            BrokerConfig.load(**source)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="from KAFKA_LOG_SEGMENT_BYTE"):
        BrokerConfig.load(environment={"KAFKA_LOG_SEGMENT_BYTE": "5"})


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.pasword",
        "ssl.keystore.passwrod",
        "delegation.token.secret.kye",
        "listener.name.sasl_ssl.plain.sasl.jaas.confg",
        "my.password",
        "kwire.secret",
    ],
)
def test_the_value_of_a_misspelt_secret_is_not_told(name: str) -> None:
    with pytest.raises(ConfigError, match=r"\[hidden\]") as error:
        BrokerConfig.load(overrides={name: "hunter2"})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("source", ["properties", "overrides"])
def test_a_name_below_kwire_is_ours_alone(source: str) -> None:
    with pytest.raises(ConfigError, match=r"kwire\.no\.such\.thing"):
        BrokerConfig.load(**{source: {"kwire.no.such.thing": "1"}})  # type: ignore[arg-type]


def test_many_unknown_names_stay_one_line() -> None:
    config = BrokerConfig.load(environment={f"KAFKA_APP_{at}_X": "1" for at in range(500)})
    (line,) = config.warnings
    assert "and 488 more" in line


@pytest.mark.parametrize(
    ("left", "right", "edits"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "abd", 1), ("abc", "acb", 1), ("abc", "ab", 1)]
    + [("abc", "xabc", 1), ("abc", "cab", 2), ("abcd", "badc", 2), ("abc", "xyz", 3)],
)
def test_edits_are_counted_up_to_a_limit(left: str, right: str, edits: int) -> None:
    assert edit_distance(left, right, 2) == edits
    assert edit_distance(right, left, 2) == edits


def test_the_clusters_id_is_taken_from_the_environment_of_a_node() -> None:
    def told(environment: dict[str, str], container: bool = False) -> str | None:
        return BrokerConfig.load(environment=environment, container=container).cluster_id

    assert told({"CLUSTER_ID": "abc"}) is None, "anybody's variable"
    assert told({"CLUSTER_ID": "abc"}, container=True) == "abc"
    assert told({"CLUSTER_ID": " abc ", "KAFKA_NODE_ID": "2"}) == "abc"
    assert told({"CLUSTER_ID": "", "KAFKA_NODE_ID": "2"}) is None
