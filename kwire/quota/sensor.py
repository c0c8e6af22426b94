"""One rate against its bound: what is counted, and how long who exceeds it has to wait."""

from __future__ import annotations

from kwire.quota.entities import Tags
from kwire.quota.windows import THROTTLE_MS_MAX, Rate, throttle_ms


class Sensor:
    """The rate that all clients with the same `tags` share. `bound` is per second.

    `throttled_count` and `throttled_ms` sum up who had to wait, for metrics.
    """

    __slots__ = (
        "_allowance",
        "_purged_before_ms",
        "_wait_ms_max",
        "bound",
        "last_ms",
        "rate",
        "tags",
        "throttled_count",
        "throttled_ms",
    )

    def __init__(self, tags: Tags, bound: float, rate: Rate, wait_ms_max: int) -> None:
        self.tags = tags
        self.rate = rate
        self.last_ms = 0
        self.throttled_count = 0
        self.throttled_ms = 0
        self._wait_ms_max = min(wait_ms_max, THROTTLE_MS_MAX)
        self._purged_before_ms = 0
        self.set_bound(bound)

    def set_bound(self, bound: float) -> None:
        """A new bound holds at once; what was counted stays."""
        self.bound = bound
        rate = self.rate
        # A rate is never measured over less: what is within this is within the bound.
        self._allowance = bound * (rate.sample_count - 1) * rate.window_ms / 1000.0

    @property
    def window_bytes_max(self) -> int:
        """How much a response may have: what is allowed in all windows but one, as an int32."""
        return int(min(self._allowance, 2**31 - 1))

    def record(self, value: float, now_ms: int) -> None:
        """Count without asking; a negative value takes back."""
        self.last_ms = now_ms
        self.rate.record(value, now_ms)

    def record_and_wait_ms(self, value: float, now_ms: int) -> int:
        """Count, and for how many ms the client has to wait; 0 while it is within the bound."""
        self.last_ms = now_ms
        rate = self.rate
        rate.record(value, now_ms)
        if rate.total <= self._allowance and now_ms < self._purged_before_ms:
            return 0
        return self._wait_ms(now_ms)

    def _wait_ms(self, now_ms: int) -> int:
        rate = self.rate
        value = rate.measure(now_ms)
        self._purged_before_ms = rate.purged_before_ms
        if value <= self.bound:
            return 0
        wait_ms = throttle_ms(value, self.bound, rate.span_ms(now_ms))
        return min(wait_ms, self._wait_ms_max)

    def throttled(self, wait_ms: int) -> None:
        """A client is made to wait."""
        self.throttled_count += 1
        self.throttled_ms += wait_ms
