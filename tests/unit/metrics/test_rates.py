"""Rates: what a count has grown by, a second, between two scrapes."""

from __future__ import annotations

from kwire.metrics.blocks import Block
from kwire.metrics.families import families, rates
from kwire.metrics.rates import Rates

COUNT = "kafka_server_socket_server_metrics_connection_creation_total"
RATE = "kafka_server_socket_server_metrics_connection_creation_rate"


def shown(found: Rates, value: int, now_s: float) -> list[object]:
    block = Block(("listener",), (COUNT,), [("PLAIN", value)])
    return [(made.names, made.rows) for made in found.of(block, now_s)]


def test_a_rate_is_0_first_and_then_what_came_since() -> None:
    found = Rates()
    assert shown(found, 100, 10.0) == [((RATE,), [("PLAIN", 0.0)])]
    assert shown(found, 130, 20.0) == [((RATE,), [("PLAIN", 3.0)])]
    assert shown(found, 130, 25.0) == [((RATE,), [("PLAIN", 0.0)])]


def test_a_count_that_began_anew_has_no_negative_rate() -> None:
    found = Rates()
    shown(found, 100, 10.0)
    assert shown(found, 5, 20.0) == [((RATE,), [("PLAIN", 0.0)])]
    assert shown(found, 15, 30.0) == [((RATE,), [("PLAIN", 1.0)])]


def test_two_scrapes_at_one_instant_have_no_rate() -> None:
    found = Rates()
    shown(found, 100, 10.0)
    assert shown(found, 200, 10.0) == [((RATE,), [("PLAIN", 0.0)])]


def test_every_rate_has_its_count() -> None:
    assert set(rates().values()) == {x.name for x in families().values() if x.kind == "rate"}


def test_what_has_no_rate_gives_none() -> None:
    block = Block((), ("kafka_server_replicamanager_leadercount",), [(1,)])
    assert list(Rates().of(block, 1.0)) == []
