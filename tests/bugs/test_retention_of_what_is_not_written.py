"""A record that was old when it came was deleted by retention before any follower had it.

Retention came in the turn of the loop in which it was appended. It took the active segment, since
what is written of it was committed, the record that was still to be written included, and the
log's start took the high watermark with it: the leader acknowledged what only it had had. Found by
simulation (seed 720030).
"""

from __future__ import annotations

from kwire.log.partition.config import LogConfig
from tests.support.logs import NOW_MS, World


def test_retention_leaves_what_is_not_committed() -> None:
    world = World(config=LogConfig(retention_ms=1000, segment_ms=1 << 60))
    log = world.log
    world.append(1)
    world.scheduler.turn()
    log.update_high_watermark(1)
    world.append(1)
    assert (log.log_end_offset, log.next_offset) == (1, 2), "it waits for the end of the turn"

    assert log.delete_old_segments(NOW_MS + 5000) == 0
    assert (log.log_start_offset, log.high_watermark) == (0, 1)

    world.scheduler.turn()
    log.update_high_watermark(2)
    assert log.delete_old_segments(NOW_MS + 5000) == 1
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 2, 2)
