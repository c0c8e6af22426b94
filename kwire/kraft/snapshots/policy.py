"""When a snapshot of the committed image is taken, and when old ones go.

A snapshot is due when `metadata.log.max.record.bytes.between.snapshots` have been committed since
the last one, or `metadata.log.max.snapshot.interval.ms` after it when anything has. Also when the
log behind the last one has become longer than it is: each stop and start of a broker changes all of
its partitions twice, and the next start would replay the changes of all starts before. Retention
(`metadata.max.retention.bytes` and `.ms`) deletes the oldest snapshot and the log before the next
one, never the last snapshot (KIP-630).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kwire.kraft.raft.types import OffsetAndEpoch

SLICE_BATCHES = 1
"""Batches of a snapshot that are encoded in one turn of the loop (500 records each: about 3 ms)."""

CLEAN_INTERVAL_MS = 60_000

SHORT_BYTES = 1 << 20
"""A log that is no longer is replayed in no time, however small the last snapshot is."""

AFTER_START_MS = 5_000
"""A start has other things to do: it takes no snapshot only because the log is long."""


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """Kafka's settings, with its defaults. 0 as interval: by size only."""

    bytes_between: int = 20_971_520
    interval_ms: int = 3_600_000
    retention_bytes: int = 104_857_600
    retention_ms: int = 604_800_000


class SnapshotTrigger:
    """Counts committed bytes and time since the last snapshot."""

    def __init__(self, policy: SnapshotPolicy, now_ms: int) -> None:
        self._policy = policy
        self._bytes = 0
        self._began_ms = self._since_ms = now_ms
        self.snapshot_bytes = 0  # of the last one

    def committed(self, size_bytes: int) -> None:
        self._bytes += size_bytes

    def reset(self, now_ms: int) -> None:
        """A snapshot was taken or loaded."""
        self._bytes = 0
        self._since_ms = now_ms

    def is_due(self, now_ms: int) -> bool:
        if self._bytes == 0:
            return False
        if self._bytes >= self._policy.bytes_between:
            return True
        is_long = self._bytes > max(SHORT_BYTES, self.snapshot_bytes)
        if is_long and now_ms - self._began_ms >= AFTER_START_MS:
            return True
        interval_ms = self._policy.interval_ms
        return interval_ms > 0 and now_ms - self._since_ms >= interval_ms


def snapshot_to_start_at(
    snapshots: list[tuple[OffsetAndEpoch, int, int]],
    log_size_bytes: int,
    policy: SnapshotPolicy,
    wall_ms: int,
) -> OffsetAndEpoch | None:
    """The snapshot that retention lets the log start at, None to keep everything.

    `snapshots` are (id, size in bytes, timestamp of the last record contained), ascending. Each
    step gives up the oldest one for the one after it.
    """
    total = log_size_bytes + sum(size for _, size, _ in snapshots)
    start: OffsetAndEpoch | None = None
    for (_, size, timestamp_ms), (following, _, _) in pairs(snapshots):
        too_large = policy.retention_bytes >= 0 and total > policy.retention_bytes
        too_old = policy.retention_ms >= 0 and 0 <= timestamp_ms < wall_ms - policy.retention_ms
        if not (too_large or too_old):
            break
        total -= size
        start = following
    return start


def pairs(
    snapshots: list[tuple[OffsetAndEpoch, int, int]],
) -> Iterator[tuple[tuple[OffsetAndEpoch, int, int], tuple[OffsetAndEpoch, int, int]]]:
    return pairwise(snapshots)
