"""What was acquired for an answer that does not leave is given back, and nothing but that: by then
its lock may have run out, and another fetch may have it."""

from __future__ import annotations

import pytest

from kwire.share.acquisition import Ask, acquire
from kwire.share.changes import Acquired, AcquireMode, FetchedBatch
from kwire.share.partition import SharePartition
from kwire.share.settings import ShareSettings
from kwire.share.states import ACQUIRED, AVAILABLE

LOCK_MS = 1000
FETCHED = [FetchedBatch(0, 4, 100)]


def _opened() -> SharePartition:
    settings = ShareSettings(lock_duration_ms=LOCK_MS)
    partition = SharePartition(lambda: settings)
    partition.opened(0, 0, ())
    return partition


def _taken(partition: SharePartition, member_id: str, now_ms: int) -> list[Acquired]:
    ask = Ask(member_id, AcquireMode.BATCH_OPTIMIZED, 500, 500)
    return acquire(partition, ask, partition.next_fetch_offset(), FETCHED, now_ms)


def test_what_is_given_back_was_no_delivery() -> None:
    partition = _opened()
    (given,) = _taken(partition, "a", 0)
    partition.give_back("a", given)
    (batch,) = partition.batches
    assert (batch.status.state, batch.status.delivery_count) == (AVAILABLE, 0)
    assert _taken(partition, "b", 0) == [given]


@pytest.mark.parametrize("other", ["a", "b"])
def test_what_another_fetch_has_meanwhile_is_not_given_back(other: str) -> None:
    """An answer that waits for its acknowledgements to be written may find that its client is over
    its quota when the lock has run out, and the records are somebody's."""
    partition = _opened()
    (given,) = _taken(partition, "a", 0)
    partition.written(partition.expire(LOCK_MS), True)
    (again,) = _taken(partition, other, LOCK_MS)
    partition.give_back("a", given)
    (batch,) = partition.batches
    assert (batch.status.state, batch.status.delivery_count) == (ACQUIRED, again.delivery_count)
    assert batch.status.member_id == other
    assert partition.next_deadline_ms() == 2 * LOCK_MS
