"""How fast addresses may open connections, out of the metadata as it is stored."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Mapping

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import RESOURCE_BROKER, DynamicConfig
from kwire.config.listeners import Listener
from kwire.node.listeners import ADDRESS_RATE, Listeners, address_rates
from kwire.pending import Pending
from kwire.server.connection_limits import OVERRIDES, UNLIMITED, address_of


def test_what_is_stored_and_cannot_be_a_rate_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stored = {
        (("ip", "10.0.0.1"),): {ADDRESS_RATE: 5.0, "other": 1.0},
        (("ip", None),): {ADDRESS_RATE: 0.0},
        (("ip", "10.0.0.2"),): {ADDRESS_RATE: math.nan},
        (("ip", "10.0.0.3"),): {ADDRESS_RATE: math.inf},
        (("ip", "10.0.0.4"),): {ADDRESS_RATE: -1.0},
        (("ip", "10.0.0.5"),): {"other": 1.0},
        (("ip", "10.0.0.6"), ("user", "u")): {ADDRESS_RATE: 1.0},
        (("user", "u"),): {ADDRESS_RATE: 1.0},
        (): {ADDRESS_RATE: 1.0},
    }
    with caplog.at_level(logging.WARNING):
        assert address_rates(stored) == {"10.0.0.1": 5, None: 0}
    assert [line.rpartition(" ")[2] for line in caplog.messages] == ["nan", "inf", "-1.0"]


def test_localhost_is_the_address_that_it_stands_for() -> None:
    assert address_of("localhost") == address_of("/127.0.0.1") == "127.0.0.1"


class Limits:
    def __init__(self) -> None:
        self.rates: list[Mapping[str | None, int]] = []
        self.limits = self

    def set_address_rates(self, rates: Mapping[str | None, int]) -> None:
        self.rates.append(dict(rates))


def test_limits_of_hosts_hold_when_their_names_are_looked_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listeners = Listeners.__new__(Listeners)
    looked_up = list[tuple[list[str], Pending[dict[str, str]]]]()

    def look_up(names: Collection[str]) -> Pending[dict[str, str]]:
        looked_up.append((sorted(names), Pending()))
        return looked_up[-1][1]

    dynamic = DynamicConfig(BrokerConfig.load(overrides={OVERRIDES: "one:3,10.0.0.1:4,nosuch:1"}))
    listeners.look_up, listeners._dynamic_config = look_up, dynamic
    listeners._loop, listeners._admissions = asyncio.new_event_loop(), []
    listeners._address_rates = {}
    limits = listeners._admission([Listener("ONE", "PLAINTEXT", "", 1)], "").limits
    dynamic.update({(RESOURCE_BROKER, ""): {OVERRIDES: "two:5"}})
    assert [names for names, _ in looked_up] == [["nosuch", "one"], ["two"]]
    looked_up[0][1].complete({"one": "10.0.0.9"})
    assert limits.of_address("10.0.0.9") == UNLIMITED, "older ones do not count"
    looked_up[1][1].complete({"two": "10.0.0.2"})
    assert limits.of_address("10.0.0.2") == 5
    dynamic.update({(RESOURCE_BROKER, ""): {OVERRIDES: "nosuch:5"}})
    looked_up[2][1].complete({})
    assert caplog.messages == [
        f"{OVERRIDES} of nosuch is passed over: no address of this host was found"
    ]
    listeners._loop.close()


def test_names_are_looked_up_and_addresses_hold_at_once(caplog: pytest.LogCaptureFixture) -> None:
    listeners = Listeners.__new__(Listeners)
    limits, looked_up = Limits(), list[Pending[dict[str, str]]]()

    def look_up(names: Collection[str]) -> Pending[dict[str, str]]:
        looked_up.append(Pending())
        return looked_up[-1]

    listeners.look_up, listeners._rates_set = look_up, 0
    listeners._admissions = [limits]  # type: ignore[list-item]
    listeners._set_rates({"127.1": 5, None: 7, "one": 3, "two": 4, "nosuch": 1})
    listeners._set_rates({"10.0.0.1": 6, "one": 3, "two": 4, "nosuch": 1})
    looked_up[0].complete({"one": "10.0.0.9"})
    assert limits.rates == [{"127.0.0.1": 5, None: 7}, {"10.0.0.1": 6}], "older ones do not count"
    looked_up[1].complete({"one": "10.0.0.1", "two": "10.0.0.2"})
    assert limits.rates[2:] == [{"10.0.0.1": 6, "10.0.0.2": 4}]
    assert caplog.messages == [
        f"{ADDRESS_RATE} of nosuch is passed over: no address of this host was found; set it "
        "again, or that of the address"
    ]
