"""How much per second: rates over a number of sliding windows, and token buckets.

    Rate            what was counted in the newest `sample_count` windows, over the time they span;
                    the time is never taken to be shorter than all windows but one, so that a burst
                    may fill a whole window at once
    SimpleRate      the same over the time since the oldest window began (KIP-73)
    TokenBucket     tokens that come back at a rate, up to what all windows together allow; a use
                    that there are not enough tokens for leaves a debt (KIP-599)
    throttle_ms, token_throttle_ms    how long who has exceeded a bound waits

Times are milliseconds of any clock that does not go back. Source: KIP-13, KIP-124, KIP-599; Rate,
SampledStat, TokenBucket and QuotaUtils of Apache Kafka 4.4, whose results these have to the last
digit (tests/golden/quota).
"""

from __future__ import annotations

import math

THROTTLE_MS_MAX = 2**31 - 1
"""A response has no room for more."""


class _Sample:
    """One window: what was counted in it, when it began, when something was last counted."""

    __slots__ = ("last_event_ms", "start_ms", "value")

    def __init__(self, start_ms: int) -> None:
        self.reset(start_ms)

    def reset(self, start_ms: int) -> None:
        self.value = 0.0
        self.start_ms = start_ms
        self.last_event_ms = start_ms


class Rate:
    """What was counted per second.

    A window begins with the first thing that is counted after the one before has ended, and ends
    `window_ms` later. It is forgotten when nothing was counted in it for `sample_count` windows;
    one more than `sample_count` is kept. `total` is the sum of those that are kept, including such
    as only the next `measure` forgets.
    """

    __slots__ = ("_at", "_current", "_samples", "ends_ms", "sample_count", "total", "window_ms")

    def __init__(self, sample_count: int = 11, window_ms: int = 1000) -> None:
        self.sample_count = sample_count
        self.window_ms = window_ms
        self.total = 0.0
        self._samples: list[_Sample] = []
        self._at = 0  # the newest sample's place in the ring
        self._current: _Sample | None = None
        self.ends_ms = 0
        """When the newest window ends."""

    def record(self, value: float, now_ms: int) -> None:
        """Count `value`; a negative one takes back what was counted before."""
        current = self._current
        if current is None or now_ms >= self.ends_ms:
            current = self._begin(now_ms)
        current.value += value
        current.last_event_ms = now_ms
        self.total += value

    def measure(self, now_ms: int) -> float:
        """The rate per second."""
        self.purge(now_ms)
        return self.total / (self.span_ms(now_ms) / 1000.0)

    def span_ms(self, now_ms: int) -> int:
        """Over how long the rate is measured (Kafka's windowSize). To be asked behind `purge`."""
        if self._current is None:
            self._begin(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        full, least = elapsed_ms // self.window_ms, self.sample_count - 1
        if full < least:
            elapsed_ms += (least - full) * self.window_ms
        return max(elapsed_ms, 1)

    def purge(self, now_ms: int) -> None:
        """Forget what is too old to count."""
        oldest_ms = now_ms - self.sample_count * self.window_ms
        obsolete = [sample for sample in self._samples if sample.last_event_ms <= oldest_ms]
        if obsolete:
            for sample in obsolete:
                sample.reset(now_ms)
            self._changed()

    @property
    def purged_before_ms(self) -> int:
        """Until when `purge` forgets nothing, if nothing more is counted."""
        if not self._samples:
            return 0
        last_ms = min(sample.last_event_ms for sample in self._samples)
        return last_ms + self.sample_count * self.window_ms

    def _begin(self, now_ms: int) -> _Sample:
        """The next window."""
        if self._current is not None:
            self._at = (self._at + 1) % (self.sample_count + 1)
        if self._at == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._at].reset(now_ms)
        self._changed()
        return self._samples[self._at]

    def _changed(self) -> None:
        self._current = self._samples[self._at]
        self.ends_ms = self._current.start_ms + self.window_ms
        self.total = math.fsum(sample.value for sample in self._samples)


class SimpleRate(Rate):
    """What was counted per second over the time since the oldest window began, a window at least:
    less of a burst than `Rate` (KIP-73)."""

    __slots__ = ()

    def span_ms(self, now_ms: int) -> int:
        """See `Rate.span_ms`."""
        if self._current is None:
            self._begin(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        return max(elapsed_ms, self.window_ms)


class TokenBucket:
    """Tokens of which `bound` a second come back.

    It begins full; its size is what `sample_count` windows allow. The bound is given with every
    call, since it may change: what is in the bucket then stays.
    """

    __slots__ = ("_seconds", "_tokens", "_updated_ms")

    def __init__(self, sample_count: int = 11, window_ms: int = 1000) -> None:
        self._seconds = sample_count * (window_ms / 1000.0)
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def tokens(self, bound: float, now_ms: int) -> float:
        """What is in it; a debt is negative."""
        burst = self._seconds * bound
        if self._updated_ms is None:
            self._tokens = burst
        else:
            back = bound * ((now_ms - self._updated_ms) / 1000.0)
            self._tokens = min(burst, self._tokens + back)
        self._updated_ms = now_ms
        return self._tokens

    def record(self, value: float, bound: float, now_ms: int) -> None:
        """Take `value` tokens, whether or not there are so many."""
        self._tokens = min(self._seconds * bound, self.tokens(bound, now_ms) - value)


def throttle_ms(value: float, bound: float, span_ms: int) -> int:
    """How long nothing may be counted until a rate of `value` over `span_ms` is at the bound."""
    return _rounded((value - bound) / bound * span_ms)


def token_throttle_ms(tokens: float, bound: float) -> int:
    """How long it takes until a debt (`tokens` below 0) is paid."""
    return _rounded(-tokens / bound * 1000.0)


def _rounded(wait_ms: float) -> int:
    return math.floor(min(wait_ms, THROTTLE_MS_MAX) + 0.5)
