"""What raft knows about its log: offsets, epochs, snapshots. No bytes.

`RaftState` updates it when it emits the effect that changes the log, so that a step sees the log
as it will be; the driver checks that the log agrees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kwire.kraft.raft.types import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch, check


class Position(Enum):
    """How a follower's fetch position compares to the leader's log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class Validated(NamedTuple):
    """The verdict on a position: where the logs agree at most, or the snapshot to load."""

    position: Position
    at: OffsetAndEpoch


@dataclass
class LogState:
    """Offsets and epochs of a metadata log.

    `epochs` are (epoch, start offset) ascending; `snapshots` ascending and complete ones only;
    `flushed_offset` is the end of what is durable.
    """

    start_offset: int = 0
    end_offset: int = 0
    flushed_offset: int = 0
    high_watermark: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    snapshots: list[OffsetAndEpoch] = field(default_factory=list)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[0] if self.snapshots else None

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or of the snapshot that the empty log starts at."""
        if self.epochs:
            return self.epochs[-1][0]
        latest = self.latest_snapshot
        return latest.epoch if latest is not None and latest.offset == self.end_offset else 0

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def append(self, base_offset: int, last_offset: int, epoch: int) -> None:
        """A batch was appended."""
        if base_offset != self.end_offset:
            check(False, f"append at {base_offset}, end {self.end_offset}")
        if epoch < self.last_epoch:
            check(False, f"append of epoch {epoch} after {self.last_epoch}")
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs.append((epoch, base_offset))
        self.end_offset = last_offset + 1

    def truncate_to(self, end_offset: int) -> None:
        """Records from `end_offset` on are gone."""
        check(
            end_offset >= self.high_watermark,
            f"truncation to {end_offset} below the high watermark {self.high_watermark}",
        )
        self.end_offset = min(self.end_offset, end_offset)
        self.flushed_offset = min(self.flushed_offset, end_offset)
        while self.epochs and self.epochs[-1][1] >= end_offset:
            self.epochs.pop()

    def start_at(self, snapshot: OffsetAndEpoch) -> None:
        """The log was emptied and goes on from `snapshot`, which is stored."""
        self.start_offset = self.end_offset = self.flushed_offset = snapshot.offset
        self.high_watermark = max(self.high_watermark, snapshot.offset)
        self.epochs.clear()
        self.snapshots = [entry for entry in self.snapshots if entry.offset >= snapshot.offset]

    def add_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        if snapshot not in self.snapshots:
            self.snapshots.append(snapshot)
            self.snapshots.sort()

    def delete_before(self, snapshot: OffsetAndEpoch) -> list[OffsetAndEpoch]:
        """Start the log at a snapshot; returns the older snapshots, which are to be deleted."""
        gone = [entry for entry in self.snapshots if entry.offset < snapshot.offset]
        self.snapshots = [entry for entry in self.snapshots if entry.offset >= snapshot.offset]
        self.start_offset = max(self.start_offset, snapshot.offset)
        while len(self.epochs) > 1 and self.epochs[1][1] <= self.start_offset:
            self.epochs.pop(0)
        if self.epochs and self.epochs[0][1] < self.start_offset:
            self.epochs[0] = (self.epochs[0][0], self.start_offset)
        return gone

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the largest epoch that is not above `epoch` ends (KIP-279)."""
        if not self.epochs:
            return OffsetAndEpoch(self.end_offset, self.last_epoch)
        if epoch == self.epochs[-1][0]:
            return OffsetAndEpoch(self.end_offset, epoch)
        if epoch > self.epochs[-1][0]:
            return OffsetAndEpoch(self.end_offset, self.last_epoch)
        end = self.epochs[0][1]
        found = None
        for index, (known, _) in enumerate(self.epochs[:-1]):
            if known <= epoch:
                found, end = known, self.epochs[index + 1][1]
        if found is not None:
            return OffsetAndEpoch(end, found)
        earliest = self.earliest_snapshot
        if earliest is not None and earliest.offset == end:
            return earliest
        return OffsetAndEpoch(end, epoch)

    def validate(self, offset: int, epoch: int) -> Validated:
        """Judge a follower's end offset and the epoch of its last record."""
        snapshots = self.snapshots
        earliest, latest = (snapshots[0], snapshots[-1]) if snapshots else (None, None)
        if offset == 0 and latest is not None and latest != BOOTSTRAP_SNAPSHOT:
            return Validated(Position.SNAPSHOT, latest)
        if self.start_offset == 0 and offset == 0 and epoch == 0:
            return Validated(Position.VALID, OffsetAndEpoch(0, 0))
        if (
            earliest is not None
            and latest is not None
            and (
                offset < self.start_offset
                or (offset == self.start_offset and epoch != earliest.epoch)
                or epoch < earliest.epoch
            )
        ):
            return Validated(Position.SNAPSHOT, latest)
        end = self.end_offset_for_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            return Validated(Position.DIVERGING, end)
        return Validated(Position.VALID, OffsetAndEpoch(offset, epoch))

    def truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """Where to cut after the leader said that the logs agree up to `diverging` at most."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end_offset)
        local = self.end_offset_for_epoch(diverging.epoch)
        if local.epoch == diverging.epoch:
            return min(local.offset, diverging.offset)
        return local.offset
