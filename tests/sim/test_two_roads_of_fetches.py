"""Consumers and followers get the same of a quiet session on both roads (ADR 55)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kwire.log.partition.partition_log import PartitionLog
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.delayed_read import DelayedRead
from kwire.replica.follower_session import TopicIdPartition
from kwire.replica.partition import Partition
from kwire.replica.quiet_read import HostedPartitions, QuietRead
from kwire.replica.settled_partitions import SettledPartitions
from kwire.replica.state import Assigned, Effect
from kwire.server.fetch_sessions import FetchSession, SessionPartition
from tests.sim.two_roads import difference
from tests.sim.two_roads_of_fetches import FetchRoad
from tests.support.effort import seeds


@pytest.mark.parametrize("seed", seeds(6))
def test_both_roads_give_the_same_answers_and_leave_the_same_sessions(seed: int) -> None:
    assert difference(seed, road=FetchRoad) is None


def test_a_negative_limit_is_one_of_the_session_s_first_partition() -> None:
    """And not of the first one in which something happens."""
    assert difference(7088, road=FetchRoad) is None


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
    monkeypatch.setattr(FetchSession, "_disturb_one", lambda self, partition: None)
    assert _parts_from_seed()


def test_a_road_that_does_not_count_fetches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuietRead, "_count", lambda self, traffic, counted: None)
    assert _parts_from_seed()


def test_a_road_that_forgets_that_followers_are_there_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QuietRead, "_follower_read", lambda self, target: None)
    assert _parts_from_seed()


def test_a_follower_that_asks_for_what_it_had_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def stir(self: SettledPartitions, key: TopicIdPartition, partition: Partition) -> None:
        if partition not in self._keys:
            self.moving[key] = None

    monkeypatch.setattr(SettledPartitions, "stir", stir)
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
    def found_nothing(
        self: FetchSession, replicas: HostedPartitions, target: ReadTarget[SessionPartition]
    ) -> None:
        self.moving.setdefault(target.request)
        original(self, replicas, target)

    original = FetchSession.found_nothing
    monkeypatch.setattr(FetchSession, "found_nothing", found_nothing)
    assert _parts_from_seed(7)


def test_a_wait_that_is_not_told_what_moves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DelayedRead, "left", lambda self, target: None)
    assert _parts_from_seed()


def test_a_read_in_another_order_than_the_session_s_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FetchSession, "moving_in_order", lambda self: list(self.moving)[::-1])
    assert _parts_from_seed()
