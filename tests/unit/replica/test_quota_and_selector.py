"""Replication quotas (KIP-73) and the choice of a replica to read from (KIP-392)."""

from __future__ import annotations

import pytest

from kwire.replica.partition import Partition
from kwire.replica.quota import ReplicationQuota, is_throttled
from kwire.replica.selector import LEADER, RACK_AWARE, rack_aware, selector
from kwire.replica.state import Assigned, FollowerFetched, LogEndMoved, ReplicaState


def test_a_quota_allows_a_burst_of_one_window_and_then_its_rate() -> None:
    """As Kafka's SimpleRate: over the time since the oldest window began, a window at least."""
    quota = ReplicationQuota(rate=1000)
    quota.record(1000, 0)
    assert not quota.is_exceeded(0)
    quota.record(1, 500)
    assert quota.is_exceeded(500)
    assert quota.is_exceeded(1000)
    assert not quota.is_exceeded(1002)
    quota.record(9_999, 10_900)
    assert quota.is_exceeded(10_900)
    assert not quota.is_exceeded(11_000)
    assert quota.is_exceeded(11_500), "the first window is out: its time does not count either"
    assert not quota.is_exceeded(20_899)


def test_without_a_rate_nothing_is_held_back() -> None:
    quota = ReplicationQuota()
    quota.record(1 << 60, 0)
    assert not quota.is_exceeded(0)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [(["*"], True), (["none"], False), ([], False), (["0:1", "3:2"], True), (["3:1"], False)],
)
def test_which_replicas_are_throttled(entries: list[str], expected: bool) -> None:
    assert is_throttled(entries, 3, 2) is expected


def led_by_1() -> Partition:
    partition = Partition("t", bytes(16), 0, ReplicaState(1))
    state = partition.state
    state.step(Assigned(1, 0, 0, (1, 2, 3, 4), (1, 2, 3), 0), 0)
    state.step(LogEndMoved(20), 0)
    state.step(FollowerFetched(2, 1, 10, 0), 0)
    state.step(FollowerFetched(3, 1, 15, 5), 0)
    return partition


RACKS = {1: "a", 2: "b", 3: "b", 4: None}


def test_the_replica_in_the_rack_that_is_farthest() -> None:
    partition = led_by_1()
    assert rack_aware(partition, 8, "b", RACKS) == 3
    assert rack_aware(partition, 2, "b", RACKS) == 2, "3 begins behind the offset"
    assert rack_aware(partition, 16, "b", RACKS) is None, "nobody there has it"
    assert rack_aware(partition, 8, "a", RACKS) is None, "the leader is there"
    assert rack_aware(partition, 8, "elsewhere", RACKS) is None


def test_only_the_rack_aware_selector_selects() -> None:
    assert selector(None, dict) is None
    assert selector(LEADER, dict) is None
    assert selector(RACK_AWARE, dict) is not None
