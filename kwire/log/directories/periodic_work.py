"""Periodic work over all logs of a node, in slices between which the loop has its turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kwire.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kwire.log.partition.partition_log import PartitionLog
    from kwire.log.scheduling import Scheduler

logger = logging.getLogger(__name__)

SLICE_LOGS = 100  # logs that are looked at before the loop gets its turn
SLICE_SEGMENTS = 10  # that are given up: their files are renamed by the loop


def visit_in_slices(
    scheduler: Scheduler, logs: Sequence[PartitionLog], visit: Callable[[PartitionLog], int]
) -> None:
    """Call `visit` with every log that works or is short of something (what is given up may be
    what it lacks); after an OSError the log takes no appends.

    `visit` returns how many segments it gave up, at most SLICE_SEGMENTS, and is asked again where
    those were as many as it may.
    """
    work = at = 0
    while at < min(len(logs), SLICE_LOGS) and work < SLICE_SEGMENTS:
        log, done = logs[at], 0
        if (log.error is None or log.is_short) and not log.is_closed:
            try:
                done = visit(log)
            except OSError as error:
                log.fail(error)
            except KafkaError as error:
                if log.error is None:
                    raise
                logger.warning("%s: %s", log.directory, error)
        work += done
        if done < SLICE_SEGMENTS:
            at += 1
    if at < len(logs):
        scheduler.call_soon(lambda: visit_in_slices(scheduler, logs[at:], visit))
