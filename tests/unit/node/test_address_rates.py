"""How fast addresses may open connections, out of the metadata as it is stored."""

from __future__ import annotations

import logging
import math

import pytest

from kwire.node.listeners import ADDRESS_RATE, address_rates
from kwire.server.connection_limits import address_of


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
