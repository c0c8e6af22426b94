"""Limits on connections: in all, per listener, per address, of their rates; changed while the
broker runs (KIP-308, KIP-402, KIP-612)."""

from __future__ import annotations

import pytest

from kwire.config import BrokerConfig, ConfigError
from kwire.config.dynamic import RESOURCE_BROKER, DynamicConfig
from kwire.server.connection_limits import (
    ADDRESSES_MAX,
    UNLIMITED,
    ConnectionLimits,
    CreationRate,
    address_of,
)

OVERRIDES = "max.connections.per.ip.overrides"


def limits_of(dynamic: DynamicConfig, *listeners: str) -> ConnectionLimits:
    """Of a broker with these listeners; the last is that between brokers."""
    limits = ConnectionLimits(dynamic, listeners, listeners[-1])
    dynamic.add_listener(limits.changed)
    return limits


def with_settings(*listeners: str, **settings: str) -> ConnectionLimits:
    overrides = {name.replace("_", "."): text for name, text in settings.items()}
    return limits_of(DynamicConfig(BrokerConfig.load(overrides=overrides)), *listeners or ("ONE",))


def test_limit_of_an_address_and_its_override() -> None:
    config = BrokerConfig.load(
        overrides={"max.connections.per.ip": "5", OVERRIDES: "127.0.0.1:2, ::1:3"}
    )
    limits = limits_of(DynamicConfig(config), "ONE")
    hosts = ("/127.0.0.1", "/::1", "0:0:0:0:0:0:0:1", "/::ffff:127.0.0.1", "10.0.0.1")
    assert [limits.of_address(address_of(host)) for host in hosts] == [2, 3, 3, 2, 5]
    assert [limits.add("ONE", "127.0.0.1") for _ in range(3)] == [True, True, False]
    for _ in range(2):
        limits.remove("ONE", "127.0.0.1")
    assert limits.add("ONE", "127.0.0.1")
    assert limits.total == 2


@pytest.mark.parametrize("host", ["127.1", "2130706433", "::ffff:127.0.0.1", "", "localhost"])
def test_an_address_has_the_spellings_that_java_knows(host: str) -> None:
    """Measured on Apache Kafka 4.4; what was spelled so had no limit."""
    config = BrokerConfig.load(overrides={OVERRIDES: f"{host}:3"})
    limits = limits_of(DynamicConfig(config), "ONE")
    assert limits.of_address(address_of("/127.0.0.1")) == 3
    assert not limits.named


def test_hosts_have_their_limits_when_their_names_are_looked_up() -> None:
    dynamic = DynamicConfig(BrokerConfig.load(overrides={OVERRIDES: "one:3,10.0.0.1:4,two:5,no:6"}))
    limits = limits_of(dynamic, "ONE")
    assert limits.named == {"one": 3, "two": 5, "no": 6}
    limits.found({"one": "10.0.0.9", "two": "10.0.0.1"})
    hosts = ("10.0.0.9", "10.0.0.1", "10.0.0.2")
    assert [limits.of_address(host) for host in hosts] == [3, 4, UNLIMITED]


def test_dynamic_change_counts_at_once() -> None:
    dynamic = DynamicConfig(BrokerConfig.load())
    limits = limits_of(dynamic, "ONE")
    told: list[int] = []
    limits.on_change(lambda: told.append(limits.total_max))
    assert limits.total_max == UNLIMITED
    dynamic.update({(RESOURCE_BROKER, ""): {"max.connections": "7", OVERRIDES: "10.0.0.7:1"}})
    assert (limits.total_max, limits.of_address("10.0.0.7")) == (7, 1)
    dynamic.update({})
    assert (limits.total_max, limits.of_address("10.0.0.7")) == (UNLIMITED, UNLIMITED)
    assert told == [7, UNLIMITED]


@pytest.mark.parametrize("value", ["x", "1.2.3.4", "1.2.3.4:x", "a:1,b"])
def test_malformed_override_ends_the_start(value: str) -> None:
    with pytest.raises(ConfigError, match=OVERRIDES.replace(".", r"\.")):
        BrokerConfig.load(overrides={OVERRIDES: value})


def test_a_listener_has_its_own_limit_and_that_between_brokers_none_of_the_whole() -> None:
    dynamic = DynamicConfig(
        BrokerConfig.load(
            overrides={"max.connections": "2", "listener.name.inside.max.connections": "3"}
        )
    )
    assert not dynamic.static.warnings
    limits = limits_of(dynamic, "OUTSIDE", "INSIDE")
    for _ in range(2):
        assert limits.has_slot("OUTSIDE")
        limits.add("OUTSIDE", "h")
    assert not limits.has_slot("OUTSIDE")
    for taken in range(3):
        assert limits.has_slot("INSIDE")
        limits.add("INSIDE", "h")
        assert limits.excess == taken + 1
    assert not limits.has_slot("INSIDE")
    dynamic.update({(RESOURCE_BROKER, "1"): {"listener.name.inside.max.connections": "4"}})
    assert limits.has_slot("INSIDE")


def test_an_only_listener_is_under_the_limit_of_the_whole() -> None:
    limits = with_settings(max_connections="1")
    limits.add("ONE", "h")
    assert not limits.has_slot("ONE")


def test_who_comes_too_early_waits_a_window_at_most() -> None:
    limits = with_settings(max_connection_creation_rate="2")
    waits = [limits.wait_ms("ONE", 0) for _ in range(23)]
    assert waits[:20] == [0] * 20, "ten windows of burst: the rate is over all windows but one"
    assert waits[20:] == [500, 1000, 1000]
    assert limits.wait_ms("ONE", 11_000) == 0


def test_rates_of_listeners_do_not_touch_each_other() -> None:
    dynamic = DynamicConfig(
        BrokerConfig.load(overrides={"listener.name.outside.max.connection.creation.rate": "1"})
    )
    limits = limits_of(dynamic, "OUTSIDE", "INSIDE")
    assert [limits.wait_ms("OUTSIDE", 0) for _ in range(11)][-1] == 1000
    assert [limits.wait_ms("INSIDE", 0) for _ in range(100)][-1] == 0


def test_the_rate_of_the_broker_does_not_count_connections_between_brokers() -> None:
    limits = with_settings("OUTSIDE", "INSIDE", max_connection_creation_rate="1")
    assert [limits.wait_ms("INSIDE", 0) for _ in range(11)][-1] == 1000, "its own, by default"
    assert limits.wait_ms("OUTSIDE", 0) == 0


def test_an_address_that_opens_too_many_is_turned_away_and_does_not_count() -> None:
    limits = with_settings(max_connection_creation_rate="2")
    limits.set_address_rates({None: 1, "10.0.0.1": 2})
    waits = [limits.address_wait_ms("ONE", "10.0.0.2", 0) for _ in range(12)]
    assert waits == [0] * 10 + [1000, 1000]
    assert [limits.address_wait_ms("ONE", "10.0.0.1", 0) for _ in range(20)] == [0] * 20
    # Two were turned away, and taken back from the rates of the listener and the broker.
    assert [limits.wait_ms("ONE", 0) for _ in range(22)] == [0] * 22
    limits.set_address_rates({})
    assert limits.address_wait_ms("ONE", "10.0.0.2", 0) == 0


def test_a_rate_of_zero_lets_nobody_in() -> None:
    limits = with_settings()
    limits.set_address_rates({"10.0.0.1": 0})
    assert limits.address_wait_ms("ONE", "10.0.0.1", 0) == 1000
    assert limits.address_wait_ms("ONE", "10.0.0.2", 0) == 0


def test_addresses_that_are_known_are_bounded() -> None:
    limits = with_settings()
    limits.set_address_rates({None: 1})
    for number in range(ADDRESSES_MAX + 10):
        limits.address_wait_ms("ONE", str(number), 0)
    assert len(limits._address_rates) == ADDRESSES_MAX


def test_a_broker_and_its_controller_count_connections_of_an_address_together() -> None:
    rates: dict[str, CreationRate] = {}
    dynamic = DynamicConfig(BrokerConfig.load())
    broker, controller = (
        ConnectionLimits(dynamic, [name], "", rates) for name in ("PLAINTEXT", "CONTROLLER")
    )
    for limits in (broker, controller):
        limits.set_address_rates({"10.0.0.1": 1})
    served = 0
    while not broker.address_wait_ms("PLAINTEXT", "10.0.0.1", 0):
        served += 1
    assert served == 10
    assert controller.address_wait_ms("CONTROLLER", "10.0.0.1", 0) > 0
    assert controller.address_wait_ms("CONTROLLER", "10.0.0.2", 0) == 0
