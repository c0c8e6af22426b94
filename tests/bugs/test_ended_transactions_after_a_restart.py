"""A restart forgot that the end of a transaction was not replicated yet, and let readers see it.

A producer snapshot has nothing of a transaction whose marker is there. The leader that was stopped
and started again with the marker at its high watermark took the transaction for decided: its
records were served to read_committed consumers before the marker was committed. (The decision is
safe in the transaction coordinator's log by then, so none was wrong; Apache Kafka 4.4 writes the
same snapshot.) Found by simulation (seed 750362).
"""

from __future__ import annotations

import pytest

from tests.support.logs import World


def _ended(world: World, *, commit: bool) -> None:
    """Two plain records, a transaction of two at 2, its marker at 4; committed is up to 4."""
    log = world.log
    log.producers.verify = False
    world.append(2)
    world.append(2, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    world.scheduler.turn()
    log.update_high_watermark(4)
    world.mark(9, 0, commit=commit)
    world.scheduler.turn()
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (5, 4, 2)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_has_ended_holds_readers_back_after_a_clean_stop(commit: bool) -> None:
    world = World()
    _ended(world, commit=commit)
    log = world.reopen()
    assert 5 in log.local.snapshots.offsets, "the snapshot of the stop"
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (5, 4, 2)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5
    assert log.producers.entries[9].transaction_first_offset == -1


def test_and_after_a_truncation_that_leaves_its_marker() -> None:
    world = World()
    _ended(world, commit=True)
    log = world.reopen()
    world.append(1)
    world.scheduler.turn()
    log.truncate_to(5)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (5, 4, 2)
