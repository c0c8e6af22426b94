"""Stored configs that this version cannot use: they count as not set, and are named once."""

from __future__ import annotations

import logging

import pytest

from kwire.config import BrokerConfig, ConfigError
from kwire.config.definitions import BROKER, TOPIC
from kwire.config.dynamic import (
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    DynamicConfig,
)
from kwire.config.validate_broker import validate_broker_configs
from kwire.kraft.controller.config_rules import KafkaConfigRules
from kwire.log.compaction.settings import CleanerSettings
from kwire.protocol.errors import KafkaError
from kwire.server.connection_limits import ConnectionLimits

OWN, DEFAULT = (RESOURCE_BROKER, "1"), (RESOURCE_BROKER, "")
Image = dict[tuple[int, str], dict[str, str]]


def started(image: Image | None = None, **static: str) -> DynamicConfig:
    settings = {name.replace("_", "."): text for name, text in static.items()}
    return DynamicConfig(BrokerConfig.load(overrides=settings), image)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    assert not any("\n" in line for line in found)
    return found


def named(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The configs that were said to be unusable."""
    told = [line for line in lines(caplog) if "cannot be used" in line]
    return [line.partition("=")[0].split()[-1] for line in told]


@pytest.mark.parametrize("value", ["-1", "-2", "abc", "", "9" * 5000])
def test_a_stored_jitter_that_cannot_be_is_named_and_zero_is_used(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`log.roll.jitter.ms=-1`: the next topic ended the node, and no start came up again."""
    config = started({OWN: {"log.roll.jitter.ms": value, "log.roll.ms": "5"}})
    assert config.topic_values_of("t")["segment.jitter.ms"] == 0
    assert config.topic_values_of("t")["segment.ms"] == 5
    (line,) = lines(caplog)
    for part in ("broker 1", "log.roll.jitter.ms=", "cannot be used", "it counts as not set"):
        assert part in line
    assert len(line) < 1000


def test_the_next_level_has_its_say_where_one_cannot_be_used() -> None:
    name = "log.segment.bytes"
    image = {OWN: {name: "x"}, DEFAULT: {name: "2000000"}}
    assert started(image)[name] == 2_000_000
    image = {OWN: {name: "x"}, DEFAULT: {name: "7"}}
    assert started(image, log_segment_bytes="3000000")[name] == 3_000_000
    assert started(image)[name] == 1 << 30


def test_settings_that_do_not_go_together_are_kept_as_far_as_they_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = {
        DEFAULT: {
            "log.roll.ms": "-1",
            "log.cleaner.threads": "0",
            "log.retention.ms": "5",
            "max.connections.per.ip": "0",
            "max.connections.per.ip.overrides": "127.0.0.1:9",
        },
        OWN: {"log.roll.jitter.ms": "-1", "num.io.threads": "9", "listeners": "nonsense"},
    }
    config = started(image)
    assert config["log.retention.ms"] == 5
    assert config["num.io.threads"] == 9
    assert config["log.cleaner.threads"] == 1
    # Zero is only taken with an exception beside it, which comes behind it.
    assert config["max.connections.per.ip"] == 0
    assert ConnectionLimits(config, ["A"], "A").of_address("127.0.0.1") == 9
    assert sorted(named(caplog)) == [
        "listeners",
        "log.cleaner.threads",
        "log.roll.jitter.ms",
        "log.roll.ms",
    ]


def test_what_cannot_be_used_does_not_stand_in_the_way_of_a_change() -> None:
    config = started(
        {OWN: {"log.roll.ms": "-1", "log.retention.ms": "7"}, DEFAULT: {"listeners": "x"}}
    )
    kept = config.usable(per_broker=True)
    assert kept == {"log.retention.ms": "7"}
    validate_broker_configs({**kept, "log.roll.ms": "9"}, config, per_broker=True)
    with pytest.raises(KafkaError):
        validate_broker_configs({**kept, "log.roll.ms": "-1"}, config, per_broker=True)


def test_what_is_only_for_a_start_or_a_single_broker_counts_nowhere_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = started({DEFAULT: {"node.id": "7", "ssl.provider": "x"}, OWN: {"broker.rack": "r"}})
    assert config["node.id"] == 1
    assert config["broker.rack"] is None
    assert named(caplog) == ["node.id", "ssl.provider", "broker.rack"]


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ((RESOURCE_TOPIC, "t"), "segment.bytes", "x"),
        ((RESOURCE_TOPIC, "t"), "internal.segment.bytes", "0"),
        ((RESOURCE_GROUP, "g"), "consumer.session.timeout.ms", "-5"),
        ((RESOURCE_CLIENT_METRICS, "s"), "interval.ms", "never"),
    ],
)
def test_others_than_brokers_are_named_too_and_again_only_when_they_change(
    key: tuple[int, str], name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[str]:
        return [line for line in lines(caplog) if "cannot be used" in line]

    config = started()
    image = {key: {name: value}}
    config.update(image, [key])
    (line,) = told()
    assert f"{key[1]}: {name}={value}" in line
    config.update({key: {name: value}}, [key])
    assert told() == []
    config.update({key: {name: value + "9x"}}, [key])
    assert len(told()) == 1
    config.update({}, [key])
    config.update(image, [key])
    assert len(told()) == 1
    if key[0] == RESOURCE_TOPIC:
        assert config.topic_values_of("t")[name] == TOPIC[name].default
    if key[0] == RESOURCE_GROUP:
        assert config.group_values("g")[name] == 45_000


def test_while_old_metadata_are_read_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    config = DynamicConfig(BrokerConfig.load(), is_catching_up=True)
    topic = (RESOURCE_TOPIC, "t")
    config.update({topic: {"segment.ms": "old"}}, [topic])
    config.update({topic: {"segment.ms": "new"}}, [topic])
    assert lines(caplog) == []
    config.caught_up()
    (line,) = lines(caplog)
    assert "segment.ms=new" in line


@pytest.mark.parametrize("value", ["0", "NaN", "-1", "1", "1e400"])
def test_a_cleaner_setting_that_nothing_works_with_is_named(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka takes these, as a change and at the start."""
    name = "log.cleaner.io.buffer.load.factor"
    config = started({OWN: {name: value}})
    assert config[name] == 0.9
    assert "accepted: a number from 0.01 to 0.99" in lines(caplog)[0]
    static = BrokerConfig.load(overrides={name: value})
    assert static[name] == 0.9
    assert any(f"{name}={value} cannot be used" in line for line in static.warnings)
    assert CleanerSettings.from_values(static).map_bytes(1000) > 0


def test_a_brokers_setting_that_no_topic_may_have_is_not_a_topics_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka checks `flush.ms` of topics, `log.flush.interval.ms` of brokers it takes as it is."""
    config = started({DEFAULT: {"log.flush.interval.ms": "-1"}})
    assert config.topic_values_of("t")["flush.ms"] == TOPIC["flush.ms"].default
    assert "log.flush.interval.ms=-1 cannot be used" in lines(caplog)[0]


@pytest.mark.parametrize("bad", ["x", "", "-1", "0", "9" * 5000])
def test_the_controller_goes_by_what_can_be_used(bad: str) -> None:
    rules = KafkaConfigRules(BrokerConfig.load(overrides={"min.insync.replicas": "2"}))
    name = "min.insync.replicas"
    assert rules.topic_value(name, {name: bad}, {name: bad}, {name: "3"}) == 3
    assert rules.topic_value(name, {name: bad}, {}, {name: bad}) == 2
    assert rules.topic_value(name, {name: " 4 "}, {}, {}) == 4
    unclean = "unclean.leader.election.enable"
    assert rules.topic_value(unclean, {unclean: bad}, {}, {unclean: "TRUE"}) is True
    hours = {"log.roll.hours": bad}
    assert rules.topic_value("segment.ms", {}, {}, hours) == 604_800_000


def test_a_secret_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    secrets = [name for name, definition in BROKER.items() if definition.sensitive]
    assert secrets
    for level in (OWN, DEFAULT):
        started({level: dict.fromkeys(secrets, "hunter2")})
    told = lines(caplog)
    assert told
    assert not [line for line in told if "hunter2" in line]


@pytest.fixture(autouse=True)
def every_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kwire.config")


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share.auto.offset.reset", f"by_duration:P{NINES}D"),
        ("share.auto.offset.reset", f"by_duration:PT{NINES}S"),
        ("share.auto.offset.reset", "by_duration:P9999999999999999999D"),
        ("share.session.timeout.ms", NINES),
    ],
)
def test_more_digits_than_a_number_has_are_malformed(name: str, value: str) -> None:
    """Python refuses to make a number of more than 4,300 digits, with an error of its own."""
    config = started({(RESOURCE_GROUP, "g"): {name: value}})
    assert config.group_values("g")[name] == started().group_values("g")[name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listeners", f"PLAINTEXT://:{NINES}"),
        ("advertised.listeners", f"PLAINTEXT://h:{NINES}"),
        ("controller.quorum.voters", f"{NINES}@h:1"),
        ("controller.quorum.voters", f"1@h:{NINES}"),
        ("max.connections.per.ip.overrides", f"h:{NINES}"),
    ],
)
def test_a_start_with_such_a_number_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        BrokerConfig.load(overrides={name: value})


def test_a_listeners_own_store_leaves_the_one_of_all_listeners_to_the_others() -> None:
    """With two listeners on one store, a change of it for one of them was refused: the other one
    was taken to have none."""
    static = BrokerConfig.load(overrides={"ssl.keystore.location": "/all.pem"})
    own = {"listener.name.clients.ssl.keystore.location": "/own.pem"}
    candidate = DynamicConfig(static).candidate(own, per_broker=True)
    assert candidate["ssl.keystore.location"] == "/all.pem"
    assert candidate["listener.name.clients.ssl.keystore.location"] == "/own.pem"
