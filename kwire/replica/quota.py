"""Replication quotas: bytes per second over a sliding window (KIP-73).

A rate is what was counted in the last windows over the time since the oldest of them began, which
is never taken to be shorter than one window (Kafka's SimpleRate; measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from kwire.quota.windows import SimpleRate

UNLIMITED = (1 << 63) - 1
EVERY = "*"
NOBODY = "none"


class ReplicationQuota:
    """One direction's quota: `rate` in bytes per second, windows of `window_ms`."""

    def __init__(
        self, rate: int = UNLIMITED, window_count: int = 11, window_ms: int = 1000
    ) -> None:
        self.rate = rate
        self._measured = SimpleRate(window_count, window_ms)

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count what was sent or received."""
        self._measured.record(size_bytes, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether the rate is over the quota now."""
        return self.rate < UNLIMITED and self._measured.measure(now_ms) > self.rate


def is_throttled(entries: list[str] | tuple[str, ...], index: int, broker_id: int) -> bool:
    """Whether `*.replication.throttled.replicas` of a topic names this replica: `*`, or
    `PARTITION:BROKER` entries."""
    return EVERY in entries or f"{index}:{broker_id}" in entries
