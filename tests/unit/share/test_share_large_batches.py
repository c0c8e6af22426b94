"""A record batch of millions of records: handed out in parts, so that what is in flight is bounded,
and all of it in the end."""

from __future__ import annotations

import pytest

from kwire.coordinator import batches
from kwire.coordinator.share import states
from kwire.share import acquisition
from kwire.share.acknowledgement import acknowledge
from kwire.share.acquisition import Ask, acquire
from kwire.share.changes import AcknowledgedBatch, AcquireMode, FetchedBatch
from kwire.share.keys import SharePartitionKey
from kwire.share.partition import SharePartition
from kwire.share.persister import StateBatch
from kwire.share.settings import ShareSettings

ASK = Ask("m", AcquireMode.BATCH_OPTIMIZED, 500, 500)
RECORDS = 5_000
BEYOND = 300
RECORD_LOCKS_MAX = 10_000
"""The most that `group.share.max.partition.max.record.locks` may be."""
MESSAGE_BYTES_MAX = 1_048_588
"""`max.message.bytes`, as it is where nobody changes it."""


@pytest.mark.parametrize("gap", [0, 7])
def test_a_large_batch_is_handed_out_in_bounded_parts(
    monkeypatch: pytest.MonkeyPatch, gap: int
) -> None:
    monkeypatch.setattr(acquisition, "WHOLE_BATCH_MAX", BEYOND)
    settings = ShareSettings(record_locks_max=200)
    partition = SharePartition(lambda: settings)
    partition.opened(0, 0, ())
    fetched = [FetchedBatch(gap, gap + RECORDS - 1, 1000)]
    given: list[int] = []
    while partition.start_offset < gap + RECORDS:
        offset = partition.next_fetch_offset()
        found = acquire(partition, ASK, offset, fetched, 0)
        assert found
        for first, last, count in found:
            assert count == 1
            given += range(first, last + 1)
        held = sum(batch.size for batch in partition.batches)
        assert held <= settings.record_locks_max + BEYOND
        # One of many: each record in flight gets a state.
        begin, end = found[0].first_offset, found[-1].last_offset
        for one in ((begin, begin), (begin + 1, end)) if begin < end else ((begin, end),):
            change = acknowledge(partition, ASK.member_id, [AcknowledgedBatch(*one, [1])], 0)
            partition.written(change, True)
    assert given == list(range(gap, gap + RECORDS))


def test_a_snapshot_has_room_for_whatever_is_in_flight() -> None:
    """Each record in flight may be in another state than its neighbours. A snapshot that the log
    refuses would be the end of all acknowledgements: each one after it is to be a snapshot, too."""
    count = RECORD_LOCKS_MAX + acquisition.WHOLE_BATCH_MAX
    worst = [StateBatch(offset, offset, 2 + offset % 2 * 2, 1) for offset in range(count)]
    state = states.initial(0, 0, 0, 0)._replace(state_batches=worst)
    record = states.snapshot(SharePartitionKey("g" * 249, b"t" * 16, 0), state)
    (encoded,) = batches.encode_all([record])
    assert sum(len(part or b"") for part in encoded) < MESSAGE_BYTES_MAX - 100
