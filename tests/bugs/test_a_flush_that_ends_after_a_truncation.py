"""A log ended behind its own end for good: what was cut off while it was synced came back.

A leader with `log.flush.interval.messages=1` waited for the sync of its last records when another
one took over, and cut them off. The sync that ended then moved the log's end over them, and the
follower waited for ever for its own appends to be written: out of the ISR until it was started
again. Found by simulation (seed 720141).
"""

from __future__ import annotations

import pytest

from kwire.log.partition.config import LogConfig
from tests.support.logs import World


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "being synced"])
def test_the_log_ends_where_it_was_cut_off(is_settled: bool) -> None:
    world = World(config=LogConfig(flush_messages=1))
    log = world.log
    world.append(1)
    world.scheduler.turn()
    world.scheduler.holds_jobs = True
    world.append(1)
    world.scheduler.turn()
    assert (log.log_end_offset, log.next_offset) == (1, 2), "the second record is being synced"

    if is_settled:  # as a change of roles does
        log.settle()
    log.truncate_to(1)
    world.scheduler.run_jobs()
    assert (log.log_end_offset, log.next_offset) == (1, 1)

    world.scheduler.holds_jobs = False
    world.append(1)
    world.scheduler.turn()
    assert (log.log_end_offset, log.next_offset) == (2, 2)
