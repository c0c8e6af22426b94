"""One rate against its bound: what is counted, and how long who exceeds it has to wait.

Nearly always a rate is far from its bound. Until when, and for how much, that is certain without
looking at it is known beforehand (`room`, `quiet_until_s`); what is used meanwhile is only summed
up (`count`), and goes to the windows with what comes next. The windows are exactly as if each use
had been counted by itself. Times are those of the loop, in seconds or whole milliseconds.
"""

from __future__ import annotations

from kwire.quota.entities import Tags
from kwire.quota.windows import THROTTLE_MS_MAX, Rate, throttle_ms

INT32_MAX = 2**31 - 1


class Sensor:
    """The rate that all clients with the same `tags` share. `bound` is per second.

    `throttled_count` and `throttled_ms` sum up who had to wait, for metrics.
    """

    __slots__ = (
        "_allowance",
        "_rate",
        "_wait_ms_max",
        "bound",
        "counted_s",
        "last_ms",
        "pending",
        "quiet_room",
        "quiet_until_s",
        "room",
        "skipped",
        "tags",
        "throttled_count",
        "throttled_ms",
        "window_bytes_max",
    )

    def __init__(self, tags: Tags, bound: float, rate: Rate, wait_ms_max: int) -> None:
        self.tags = tags
        self.last_ms = 0
        self.throttled_count = 0
        self.throttled_ms = 0
        self.pending = 0.0
        """What was counted since the windows were looked at, at `counted_s` last (-1: nothing)."""
        self.room = -1.0
        """How much of that is within the bound for certain."""
        self.quiet_room = -1.0
        """How much of it leaves half of what may be used."""
        self.quiet_until_s = 0.0
        """Until when: the window ends then, or an old one does not count any more."""
        self.counted_s = -1.0
        self.skipped = 0
        """How many of the next uses are not measured: one before counted for them, too."""
        self._rate = rate
        self._wait_ms_max = min(wait_ms_max, THROTTLE_MS_MAX)
        self.set_bound(bound)

    def set_bound(self, bound: float) -> None:
        """A new bound holds at once; what was counted stays."""
        self.bound = bound
        self.room = self.quiet_room = -1.0
        self.skipped = 0
        rate = self._rate
        # A rate is never measured over less: what is within this is within the bound.
        self._allowance = bound * (rate.sample_count - 1) * rate.window_ms / 1000.0
        self.window_bytes_max = int(min(self._allowance, INT32_MAX))
        """How much a response may have: what is allowed in all windows but one, as an int32."""

    def count(self, value: float, now_s: float) -> bool:
        """Count what is within the bound for certain; False, and nothing is counted, otherwise."""
        pending = self.pending + value
        if pending > self.room or now_s >= self.quiet_until_s:
            return False
        self.pending = pending
        self.counted_s = now_s
        return True

    def record(self, value: float, now_ms: int) -> None:
        """Count without asking; a negative value takes back."""
        self._settle()
        self.last_ms = now_ms
        self._rate.record(value, now_ms)
        self._look_ahead()

    def record_and_wait_ms(self, value: float, now_ms: int) -> int:
        """Count, and for how many ms the client has to wait; 0 while it is within the bound."""
        self._settle()
        self.last_ms = now_ms
        rate = self._rate
        rate.record(value, now_ms)
        measured, wait_ms = rate.measure(now_ms), 0
        if measured > self.bound:
            wait_ms = throttle_ms(measured, self.bound, rate.span_ms(now_ms))
        self._look_ahead()
        return min(wait_ms, self._wait_ms_max)

    def measure(self, now_ms: int) -> float:
        """The rate per second, for metrics."""
        self._settle()
        measured = self._rate.measure(now_ms)
        self._look_ahead()
        return measured

    def idle_ms(self, now_ms: int) -> int:
        """For how long nothing was counted."""
        return now_ms - max(self.last_ms, int(self.counted_s * 1000))

    def _settle(self) -> None:
        if self.counted_s >= 0:
            self.last_ms = int(self.counted_s * 1000)
            self._rate.record(self.pending, self.last_ms)
            self.pending = 0.0
            self.counted_s = -1.0

    def _look_ahead(self) -> None:
        rate = self._rate
        self.room = self._allowance - rate.total
        self.quiet_room = self._allowance / 2 - rate.total
        self.quiet_until_s = min(rate.ends_ms, rate.purged_before_ms) / 1000

    def throttled(self, wait_ms: int) -> None:
        """A client is made to wait."""
        self.throttled_count += 1
        self.throttled_ms += wait_ms
