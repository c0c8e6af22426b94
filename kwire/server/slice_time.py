"""The time that a request's work in slices keeps the loop busy.

It counts for the request_percentage of the client when a slice ends, and before its client is asked
to wait; so also where the client goes before its answer is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.quota.sensor import Sensor

PERCENT_PER_NS = 100 / 1e9


class SliceTime:
    """Counts slices for `request`, the rate of one client. `ticks_ns()` measures them, `time()` is
    the loop's."""

    __slots__ = ("_begun_ns", "_request", "_ticks_ns", "_time")

    def __init__(
        self, request: Sensor, ticks_ns: Callable[[], int], time: Callable[[], float]
    ) -> None:
        self._request = request
        self._ticks_ns = ticks_ns
        self._time = time
        self._begun_ns = 0

    def begin(self) -> None:
        """A slice begins."""
        self._begun_ns = self._ticks_ns()

    def lap(self) -> None:
        """Count the time until now of the slice that goes on, if any."""
        if self._begun_ns:
            now_ns = self._ticks_ns()
            self._count(now_ns - self._begun_ns)
            self._begun_ns = now_ns

    def end(self) -> None:
        """Count the slice to its end. What else is done in this turn is another's."""
        if self._begun_ns:
            self._count(self._ticks_ns() - self._begun_ns)
            self._begun_ns = 0

    def _count(self, spent_ns: int) -> None:
        spent, now_s = spent_ns * PERCENT_PER_NS, self._time()
        if not self._request.count(spent, now_s):
            self._request.record(spent, int(now_s * 1000))
