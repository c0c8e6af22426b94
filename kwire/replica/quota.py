"""Replication quotas: bytes per second over a sliding window (KIP-73).

A rate is what was counted in the last windows over the time since the oldest of them began, which
is never taken to be shorter than one window (Kafka's SimpleRate; measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from collections import deque

UNLIMITED = (1 << 63) - 1
EVERY = "*"
NOBODY = "none"


class Samples:
    """What was counted in the last windows.

    A window begins with the first thing that is counted in it. One is forgotten when the last thing
    counted in it is `window_count * window_ms` ago.
    """

    __slots__ = ("_samples", "window_count", "window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self.window_count = window_count
        self.window_ms = window_ms
        self._samples: deque[list[int]] = deque()  # [begin, last, sum]

    def record(self, amount: int, now_ms: int) -> None:
        """Count something."""
        samples = self._samples
        if samples and now_ms - samples[-1][0] < self.window_ms:
            sample = samples[-1]
            sample[1] = now_ms
            sample[2] += amount
        else:
            self._forget(now_ms)
            samples.append([now_ms, now_ms, amount])

    def _forget(self, now_ms: int) -> None:
        samples, kept_ms = self._samples, self.window_count * self.window_ms
        while samples and now_ms - samples[0][1] >= kept_ms:
            samples.popleft()

    def total_and_elapsed_ms(self, now_ms: int) -> tuple[int, int]:
        """What was counted, and how long ago the oldest window began (0: there is none)."""
        self._forget(now_ms)
        samples = self._samples
        return sum(sample[2] for sample in samples), now_ms - samples[0][0] if samples else 0


class ReplicationQuota:
    """One direction's quota: `rate` in bytes per second, windows of `window_ms`."""

    def __init__(
        self, rate: int = UNLIMITED, window_count: int = 11, window_ms: int = 1000
    ) -> None:
        self.rate = rate
        self._samples = Samples(window_count, window_ms)

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count what was sent or received."""
        self._samples.record(size_bytes, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether the rate is over the quota now."""
        if self.rate >= UNLIMITED:
            return False
        total, elapsed_ms = self._samples.total_and_elapsed_ms(now_ms)
        return total * 1000 > self.rate * max(self._samples.window_ms, elapsed_ms)


def is_throttled(entries: list[str] | tuple[str, ...], index: int, broker_id: int) -> bool:
    """Whether `*.replication.throttled.replicas` of a topic names this replica: `*`, or
    `PARTITION:BROKER` entries."""
    return EVERY in entries or f"{index}:{broker_id}" in entries
