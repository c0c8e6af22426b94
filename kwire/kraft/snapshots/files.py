"""The files of snapshots.

One is written under its name with `.part` behind it, synced, made read-only and renamed. Deleted
ones are renamed to `.deleted` first, so that whoever reads one can finish (measured on Apache
Kafka 4.4, KIP-630).
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.kraft.snapshots.content import (
    SUFFIX,
    SnapshotError,
    parse_snapshot_name,
    snapshot_name,
)
from kwire.log.files import Files, write_fully

PART_SUFFIX = SUFFIX + ".part"
DELETED_SUFFIX = SUFFIX + ".deleted"
SNAPSHOT_BYTES_MAX = 1 << 31


class SnapshotFiles:
    """The snapshot files of one metadata log's directory."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.directory = directory
        self._parts: dict[OffsetAndEpoch, int] = {}

    def path(self, snapshot: OffsetAndEpoch) -> str:
        return f"{self.directory}/{snapshot_name(snapshot)}"

    def recover(self) -> list[OffsetAndEpoch]:
        """The complete snapshots, ascending; leftovers of a crash are removed."""
        found = []
        for name in self._files.listing(self.directory):
            if name.endswith((PART_SUFFIX, DELETED_SUFFIX)):
                self._files.unlink(f"{self.directory}/{name}")
                continue
            snapshot = parse_snapshot_name(name)
            if snapshot is not None:
                found.append(snapshot)
        return sorted(found)

    def read(self, snapshot: OffsetAndEpoch) -> bytes:
        """A whole snapshot. Raises OSError, SnapshotError when it is impossibly large."""
        size_bytes = self.size(snapshot)
        if size_bytes > SNAPSHOT_BYTES_MAX:
            raise SnapshotError(f"{snapshot_name(snapshot)} has {size_bytes} bytes")
        return self.read_piece(snapshot, 0, size_bytes)

    def size(self, snapshot: OffsetAndEpoch) -> int:
        return self._files.size_of(self.path(snapshot))

    def read_piece(self, snapshot: OffsetAndEpoch, position: int, size_bytes: int) -> bytes:
        handle = self._files.open(self.path(snapshot), writable=False)
        try:
            return self._files.pread(handle, size_bytes, position)
        finally:
            self._files.close(handle)

    def write_piece(self, snapshot: OffsetAndEpoch, position: int, piece: bytes) -> None:
        """A piece of a snapshot that arrives from the leader; position 0 begins anew."""
        handle = self._parts.get(snapshot)
        if handle is None or position == 0:
            self._close_parts()
            handle = self._files.open(self.path(snapshot) + ".part", create=True)
            self._files.truncate(handle, 0)
            self._parts[snapshot] = handle
        write_fully(self._files, handle, [piece], position)

    def freeze(self, snapshot: OffsetAndEpoch) -> None:
        """Make a fetched snapshot durable and complete."""
        handle = self._parts.pop(snapshot, None)
        if handle is None:
            return
        try:
            self._files.fdatasync(handle)
        finally:
            self._files.close(handle)
        self._publish(snapshot)

    def write(self, snapshot: OffsetAndEpoch, batches: Sequence[bytes]) -> None:
        """Write a snapshot at once, durably. Touches nothing but its own file: may run beside
        the loop."""
        path = self.path(snapshot) + ".part"
        handle = self._files.open(path, create=True)
        try:
            self._files.truncate(handle, 0)
            write_fully(self._files, handle, batches, 0)
            self._files.fdatasync(handle)
        finally:
            self._files.close(handle)
        self._publish(snapshot)

    def _publish(self, snapshot: OffsetAndEpoch) -> None:
        path = self.path(snapshot)
        self._files.set_read_only(path + ".part")
        self._files.rename(path + ".part", path)
        self._files.sync_directory(self.directory)

    def mark_deleted(self, snapshot: OffsetAndEpoch) -> str | None:
        """Take a snapshot out of sight; the path that is to be removed later, None if gone."""
        target = self.path(snapshot) + ".deleted"
        try:
            self._files.rename(self.path(snapshot), target)
        except FileNotFoundError:
            return None
        return target

    def remove(self, path: str) -> None:
        try:
            self._files.unlink(path)
        except FileNotFoundError:
            pass

    def close(self) -> None:
        self._close_parts()

    def _close_parts(self) -> None:
        for handle in self._parts.values():
            self._files.close(handle)
        self._parts.clear()
