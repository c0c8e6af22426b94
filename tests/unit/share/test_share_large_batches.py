"""A record batch of millions of records: handed out in parts, so that what is in flight is bounded,
and all of it in the end."""

from __future__ import annotations

import pytest

from kwire.share import acquisition
from kwire.share.acknowledgement import acknowledge
from kwire.share.acquisition import Ask, acquire
from kwire.share.changes import AcknowledgedBatch, AcquireMode, FetchedBatch
from kwire.share.partition import SharePartition
from kwire.share.settings import ShareSettings

ASK = Ask("m", AcquireMode.BATCH_OPTIMIZED, 500, 500)
RECORDS = 5_000
BEYOND = 300


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
