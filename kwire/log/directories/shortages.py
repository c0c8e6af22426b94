"""What a node refuses for the time of a shortage, and trying it again.

Whoever cannot go on for want of space, descriptors or memory says what it refuses, why, and how to
try again. Everything that waits is tried again after a short while, then less often; at once when
`hurry` says that something came back, or that somebody asks for it. Reasons are logged
when it begins, once a minute as long as it lasts, and to whoever asks for `refused`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from kwire.log.files import DESCRIPTORS
from kwire.log.scheduling import Scheduler, Timer
from kwire.pending import Pending

logger = logging.getLogger(__name__)

AGAIN_MS, AGAIN_MS_MAX = 50, 1000
HURRY_MS = 20  # hurries closer than this are one
CALM_MS = 10_000  # whoever falls short again sooner begins with the last pause
FAILURES_MAX = 32  # of one round: it is for want of the same
REMIND_MS = 60_000
NAMED_MAX = 20

Key = tuple[str, int]
Retry = Callable[[], Pending[None]]


class ShortLog(Protocol):
    """A log that takes no appends until `resume_appends` succeeds."""

    topic: str
    partition: int

    @property
    def is_short(self) -> bool: ...
    def resume_appends(self) -> Pending[None]: ...


def error_text(error: BaseException) -> str:
    """What an error says, without the path of the file where it happened."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(error)


class Refusal(NamedTuple):
    """A partition that refuses what it should take, since when (ms of the loop's time)."""

    reason: str
    since_ms: float
    retry: Retry


class Shortages:
    """Waiting partitions by (topic, partition); `now_ms` is time that does not go back.

    `give_up(log, reason)` is called for logs that are short for longer than `timeout_ms`,
    `on_descriptors_short` when it is descriptors that they lack.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        now_ms: Callable[[], float] | None = None,
        timeout_ms: float = float("inf"),
        give_up: Callable[[ShortLog, str], None] | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._now_ms = now_ms or (lambda: 0.0)
        self._timeout_ms = timeout_ms
        self._give_up = give_up
        self.on_descriptors_short: Callable[[], object] = lambda: None
        self._logs: dict[Key, ShortLog] = {}
        self._waiting: dict[Key, Refusal] = {}
        self._again_ms = AGAIN_MS
        self._ended_ms = -CALM_MS * 1.0
        self._reported_ms = 0.0
        self._timer: Timer | None = None
        self._is_hurried = False
        self._is_closed = False

    @property
    def refused(self) -> dict[Key, Refusal]:
        """What is refused now."""
        return dict(self._waiting)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def add(self, key: Key, reason: str, retry: Retry) -> None:
        """`key` refuses for `reason` until `retry` succeeds; its Pending fails while it does not.

        What was said of the same key before is replaced.
        """
        if self._is_closed:
            return
        now_ms = self._now_ms()
        known = self._waiting.get(key)
        if not self._waiting:
            self._reported_ms = now_ms
            if now_ms - self._ended_ms >= CALM_MS:
                self._again_ms = AGAIN_MS
        self._waiting[key] = Refusal(reason, now_ms if known is None else known.since_ms, retry)
        self._arm()

    def log_is_short(self, log: ShortLog, error: Exception) -> None:
        """A log takes no appends until `log.resume_appends` succeeds."""
        key = (log.topic, log.partition)
        self.add(key, error_text(error), log.resume_appends)
        self._logs[key] = log
        if isinstance(error, OSError) and error.errno in DESCRIPTORS:
            self.on_descriptors_short()

    def remove(self, key: Key) -> None:
        """It refuses no more, is gone, or has failed for good."""
        self._logs.pop(key, None)
        if self._waiting.pop(key, None) is not None and not self._waiting:
            self._ended_ms = self._now_ms()
            self._stop_timer()

    def hurry(self) -> None:
        """Something may have come back, or somebody asks: try again soon, whatever the pause."""
        if self._waiting and not self._is_hurried and not self._is_closed:
            self._is_hurried = True
            self._scheduler.call_later(HURRY_MS, self._hurried)

    def close(self) -> None:
        """Try nothing any more."""
        self._is_closed = True
        self._stop_timer()
        self._waiting.clear()
        self._logs.clear()

    def _hurried(self) -> None:
        self._is_hurried = False
        self._round()

    def _arm(self) -> None:
        if self._timer is None and self._waiting and not self._is_closed:
            self._timer = self._scheduler.call_later(self._again_ms, self._due)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._again_ms = min(2 * self._again_ms, AGAIN_MS_MAX)
        self._arm()
        self._round()

    def _round(self) -> None:
        """Try again those that wait; who fails goes behind the others."""
        failures = 0
        for key, refusal in list(self._waiting.items()):
            if failures >= FAILURES_MAX:
                break
            if self._waiting.get(key) is not refusal:
                continue
            done = refusal.retry()
            if done.done and done.error() is not None:
                failures += 1
                if self._waiting.get(key) is refusal:
                    self._waiting[key] = self._waiting.pop(key)
            else:
                done.add_done_callback(partial(self._tried, key, refusal))
        self._remind()
        self._give_up_some()

    def _tried(self, key: Key, refusal: Refusal, done: Pending[None]) -> None:
        """Over, unless it has fallen short anew meanwhile."""
        if done.error() is None and self._waiting.get(key) is refusal:
            self.remove(key)

    def _give_up_some(self) -> None:
        limit_ms = self._now_ms() - self._timeout_ms
        for key, log in list(self._logs.items()):
            refusal = self._waiting.get(key)
            if refusal is None or refusal.since_ms > limit_ms or self._give_up is None:
                continue
            if log.is_short:
                waited_s = self._timeout_ms // 1000
                self._give_up(log, f"{refusal.reason}, for more than {waited_s:.0f} s")

    def _remind(self) -> None:
        now_ms = self._now_ms()
        if not self._waiting or now_ms - self._reported_ms < REMIND_MS:
            return
        self._reported_ms = now_ms
        by_reason: dict[str, list[str]] = {}
        for (topic, partition), refusal in self._waiting.items():
            by_reason.setdefault(refusal.reason, []).append(f"{topic}-{partition}")
        for reason, names in by_reason.items():
            more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
            named = ", ".join(names[:NAMED_MAX])
            logger.error("%s: appends are still refused by %s%s", reason, named, more)
