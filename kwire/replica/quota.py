"""Replication quotas: bytes per second over a sliding window (KIP-73).

A rate is what was counted in the last `window_count` windows over the time they span, which is
never taken to be shorter than all but one of them: a quota may be exceeded by a burst at its begin.
"""

from __future__ import annotations

from collections import deque

UNLIMITED = (1 << 63) - 1
EVERY = "*"
NOBODY = "none"


class ReplicationQuota:
    """One direction's quota: `rate` in bytes per second, windows of `window_ms`."""

    def __init__(
        self, rate: int = UNLIMITED, window_count: int = 11, window_ms: int = 1000
    ) -> None:
        self.rate = rate
        self._window_count = window_count
        self._window_ms = window_ms
        self._windows: deque[tuple[int, int]] = deque()  # (start, bytes)

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count what was sent or received."""
        start_ms = now_ms - now_ms % self._window_ms
        windows = self._windows
        if windows and windows[-1][0] == start_ms:
            windows[-1] = start_ms, windows[-1][1] + size_bytes
        else:
            windows.append((start_ms, size_bytes))
        self._forget(now_ms)

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._window_count * self._window_ms
        while self._windows and self._windows[0][0] <= oldest_ms:
            self._windows.popleft()

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether the rate is over the quota now."""
        if self.rate >= UNLIMITED:
            return False
        self._forget(now_ms)
        if not self._windows:
            return False
        least_ms = (self._window_count - 1) * self._window_ms
        span_ms = max(least_ms, now_ms - self._windows[0][0])
        total = sum(size_bytes for _, size_bytes in self._windows)
        return total * 1000 > self.rate * max(1, span_ms)


def is_throttled(entries: list[str] | tuple[str, ...], index: int, broker_id: int) -> bool:
    """Whether `*.replication.throttled.replicas` of a topic names this replica: `*`, or
    `PARTITION:BROKER` entries."""
    return EVERY in entries or f"{index}:{broker_id}" in entries
