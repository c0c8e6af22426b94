"""Consumers and followers get the same of a quiet session on both roads (ADR 55)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kwire.log.partition.partition_log import PartitionLog
from kwire.replica.fetcher import LeaderFetcher
from kwire.replica.partition import Partition
from kwire.replica.quiet_read import QuietRead
from kwire.replica.state import Assigned, Effect
from kwire.server import fetch_sessions
from kwire.server.fetch_sessions import FetchSession
from tests.sim.two_roads import difference
from tests.sim.two_roads_of_fetches import FetchRoad
from tests.support.effort import seeds


@pytest.mark.parametrize("seed", seeds(6))
def test_both_roads_give_the_same_answers_and_leave_the_same_sessions(seed: int) -> None:
    assert difference(seed, road=FetchRoad) is None


def test_fetches_of_consumers_and_followers_take_the_plain_road() -> None:
    road = FetchRoad(2, plain=True)
    road.run()
    assert road.taken > road.of_plain_apis / 5, (road.taken, road.of_plain_apis)
    assert road.followers_taken > 20


def _parts_from_seed(first: int = 0, seeds_max: int = 12) -> str | None:
    for seed in range(first, first + seeds_max):
        if found := difference(seed, road=FetchRoad):
            return found
    return None


def _unseen(partition: Partition, change: Callable[[], None]) -> None:
    """A change that nobody who watches hears of."""
    watchers, partition.watchers = partition.watchers, {}
    try:
        change()
    finally:
        partition.watchers = watchers


def test_a_road_that_does_not_hear_of_records_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(self: Partition, first: int, end: int, size_bytes: int) -> None:
        _unseen(self, lambda: original(self, first, end, size_bytes))

    original = Partition._written
    monkeypatch.setattr(Partition, "_written", written)
    assert _parts_from_seed()


def test_a_road_that_does_not_hear_of_the_log_s_start_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def set_start(self: PartitionLog, offset: int) -> None:
        on_moving, self.on_moving = self.on_moving, None
        original(self, offset)
        self.on_moving = on_moving

    original = PartitionLog._set_start
    monkeypatch.setattr(PartitionLog, "_set_start", set_start)
    assert _parts_from_seed()


def test_a_road_that_does_not_hear_of_a_new_leader_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def assign(self: Partition, assigned: Assigned, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        _unseen(self, lambda: effects.extend(original(self, assigned, now_ms)))
        return effects

    original = Partition.assign
    monkeypatch.setattr(Partition, "assign", assign)
    assert _parts_from_seed()


def test_a_road_that_uses_a_session_as_it_was_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FetchSession, "disturb", lambda self: None)
    assert _parts_from_seed()


def test_a_road_that_does_not_count_fetches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuietRead, "count", lambda self: None)
    assert _parts_from_seed()


def test_a_road_that_forgets_that_followers_are_there_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QuietRead, "_follower_read", lambda self: None)
    assert _parts_from_seed()


def test_a_follower_that_asks_for_what_it_had_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderFetcher, "_unsettle", lambda self: None)
    assert _parts_from_seed()


def test_a_road_whose_waits_are_woken_as_they_come_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Partition, "_listeners", lambda self: list(self.data_listeners))
    assert _parts_from_seed()


def test_a_road_that_goes_on_with_a_closed_session_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FetchSession, "close", FetchSession.disturb)
    assert _parts_from_seed(5)


def test_a_road_of_partitions_that_were_asked_for_before_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_sessions, "is_", lambda one, other: True)
    assert _parts_from_seed(7)
