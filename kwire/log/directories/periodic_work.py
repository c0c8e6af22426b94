"""Periodic work over all logs of a node, in slices between which the loop has its turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from kwire.log.partition.partition_log import PartitionLog
from kwire.log.scheduling import Scheduler, Timer
from kwire.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

NEVER_MS = 1 << 53
SLICE_LOGS = 20  # looked at before the loop gets its turn: 60 us each when it is the first time
SLICE_SEGMENTS = 10  # that are given up: their files are renamed by the loop


class Timers:
    """Tasks that are done again and again, each after its interval."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._timers: dict[str, Timer] = {}

    def repeat(
        self, name: str, interval_ms: int, task: Callable[[], object], delay_ms: int
    ) -> None:
        """Do `task` after `delay_ms` (0: the interval), and every `interval_ms` from then on."""
        if interval_ms < NEVER_MS:
            fire = partial(self._fire, name, interval_ms, task)
            self._timers[name] = self._scheduler.call_later(delay_ms or interval_ms, fire)

    def _fire(self, name: str, interval_ms: int, task: Callable[[], object]) -> None:
        again = partial(self._fire, name, interval_ms, task)
        self._timers[name] = self._scheduler.call_later(interval_ms, again)
        task()

    def cancel(self) -> None:
        """Do none of them any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


def visit_in_slices(
    scheduler: Scheduler,
    logs: Sequence[PartitionLog],
    visit: Callable[[PartitionLog], int],
    begin: int = 0,
) -> None:
    """Call `visit` with every log that works or is short of something (what is given up may be
    what it lacks); after an OSError the log takes no appends.

    `visit` returns how many segments it gave up, at most SLICE_SEGMENTS, and is asked again where
    those were as many as it may.
    """
    at, work = begin, 0
    while at < min(len(logs), begin + SLICE_LOGS) and work < SLICE_SEGMENTS:
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
        scheduler.call_soon(lambda: visit_in_slices(scheduler, logs, visit, at))
