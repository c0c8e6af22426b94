"""Effective values: static settings under dynamic ones, topics and groups on top."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.config import BrokerConfig
from kwire.config.definitions import TOPIC
from kwire.config.dynamic import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC, DynamicConfig


def dynamic(static: dict[str, str] | None = None, **image: dict[str, str]) -> DynamicConfig:
    """`image`: broker, default, topic, group -> their configs."""
    keys = {
        "broker": (RESOURCE_BROKER, "1"),
        "default": (RESOURCE_BROKER, ""),
        "topic": (RESOURCE_TOPIC, "t"),
        "group": (RESOURCE_GROUP, "g"),
    }
    configs = {keys[name]: values for name, values in image.items()}
    return DynamicConfig(BrokerConfig.load(overrides=static or {}), configs)


def test_topic_without_anything_set_has_kafkas_defaults() -> None:
    values = dynamic().topic_values({})
    assert values == {name: definition.default for name, definition in TOPIC.items()}


@pytest.mark.parametrize(
    ("static", "image", "name", "expected"),
    [
        ({"log.retention.hours": "2"}, {}, "retention.ms", 7_200_000),
        ({"log.retention.minutes": "2"}, {}, "retention.ms", 120_000),
        ({"log.retention.hours": "-1"}, {}, "retention.ms", -1),
        (
            {"log.retention.ms": "5", "log.retention.minutes": "2", "log.retention.hours": "9"},
            {},
            "retention.ms",
            5,
        ),
        (
            {"log.retention.hours": "2"},
            {"default": {"log.retention.ms": "7"}},
            "retention.ms",
            7,
        ),
        (
            {},
            {"default": {"log.retention.ms": "7"}, "broker": {"log.retention.ms": "8"}},
            "retention.ms",
            8,
        ),
        (
            {},
            {"broker": {"log.retention.ms": "8"}, "topic": {"retention.ms": " 9 "}},
            "retention.ms",
            9,
        ),
        ({"log.roll.hours": "3"}, {}, "segment.ms", 10_800_000),
        ({"log.roll.jitter.hours": "1"}, {}, "segment.jitter.ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "50"}, {}, "flush.ms", 50),
        ({"message.max.bytes": "9000"}, {}, "max.message.bytes", 9000),
        (
            {},
            {"topic": {"cleanup.policy": "compact, delete"}},
            "cleanup.policy",
            ["compact", "delete"],
        ),
        ({}, {"topic": {"segment.bytes": "no number"}}, "segment.bytes", 1 << 30),
    ],
)
def test_topic_value(
    static: dict[str, str], image: dict[str, dict[str, str]], name: str, expected: Any
) -> None:
    assert dynamic(static, **image).topic_values_of("t")[name] == expected


def test_listeners_hear_what_changed_and_only_then() -> None:
    config = dynamic()
    heard: list[dict[str, Any]] = []
    config.add_listener(heard.append)
    image = {(RESOURCE_BROKER, ""): {"log.retention.ms": "7", "no.such": "1"}}
    config.update(image)
    config.update(image)
    config.update({**image, (RESOURCE_TOPIC, "t"): {"retention.ms": "1"}})
    config.update({(RESOURCE_BROKER, ""): {"log.retention.ms": "7"}})
    config.update({})
    assert heard == [{"log.retention.ms": 7}, {"log.retention.ms": None}]


def test_dynamic_setting_equal_to_the_static_one_is_no_change() -> None:
    config = dynamic({"log.retention.ms": "7"})
    assert config.update({(RESOURCE_BROKER, "1"): {"log.retention.ms": "7"}}) == {}


def test_settings_of_another_broker_are_not_ours() -> None:
    config = DynamicConfig(BrokerConfig.load(), {(RESOURCE_BROKER, "2"): {"log.retention.ms": "7"}})
    assert config["log.retention.ms"] is None


def test_group_values_come_from_the_group_then_the_broker() -> None:
    config = dynamic(
        {"group.consumer.session.timeout.ms": "50000"},
        group={"consumer.heartbeat.interval.ms": "6000"},
    )
    values = config.group_values("g")
    assert values["consumer.session.timeout.ms"] == 50000
    assert values["consumer.heartbeat.interval.ms"] == 6000
    assert values["share.isolation.level"] == "read_uncommitted"
    assert values["streams.assignor.name"] == "sticky"
    assert config.group_values("other")["consumer.heartbeat.interval.ms"] == 5000


def test_setting_without_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    config = dynamic()
    image = {(RESOURCE_TOPIC, "t"): {"remote.copy.lag.ms": "5"}, (RESOURCE_BROKER, ""): {}}
    config.update(image, [(RESOURCE_TOPIC, "t")])
    config.update(
        {**image, (RESOURCE_BROKER, ""): {"num.io.threads": "9"}}, [(RESOURCE_BROKER, "")]
    )
    config.update(image)
    assert [record.message.split(" ")[0] for record in caplog.records] == [
        "remote.copy.lag.ms=5",
        "num.io.threads=9",
    ]
