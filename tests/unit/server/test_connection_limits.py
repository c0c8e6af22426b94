"""Limits on connections: per address, overridden per address, changed while the broker runs."""

from __future__ import annotations

import pytest

from kwire.config import BrokerConfig, ConfigError
from kwire.config.dynamic import RESOURCE_BROKER, DynamicConfig
from kwire.server.connection_limits import ConnectionLimits

OVERRIDES = "max.connections.per.ip.overrides"


def test_limit_of_an_address_and_its_override() -> None:
    config = BrokerConfig.load(
        overrides={"max.connections.per.ip": "5", OVERRIDES: "127.0.0.1:2, [::1]:3"}
    )
    limits = ConnectionLimits(DynamicConfig(config))
    assert [limits.of(host) for host in ("/127.0.0.1", "::1", "/10.0.0.1")] == [2, 3, 5]


def test_dynamic_change_counts_at_once() -> None:
    dynamic = DynamicConfig(BrokerConfig.load())
    limits = ConnectionLimits(dynamic)
    dynamic.add_listener(limits.changed)
    assert limits.total == 2**31 - 1
    dynamic.update({(RESOURCE_BROKER, ""): {"max.connections": "7", OVERRIDES: "h:1"}})
    assert (limits.total, limits.of("h")) == (7, 1)
    dynamic.update({})
    assert (limits.total, limits.of("h")) == (2**31 - 1, 2**31 - 1)


@pytest.mark.parametrize("value", ["x", "1.2.3.4", "1.2.3.4:x", "a:1,b"])
def test_malformed_override_ends_the_start(value: str) -> None:
    with pytest.raises(ConfigError, match=OVERRIDES.replace(".", r"\.")):
        BrokerConfig.load(overrides={OVERRIDES: value})
