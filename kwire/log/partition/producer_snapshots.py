"""Producer snapshots (`OFFSET.snapshot`): the producers of a log up to that offset.

    offset  size  type    name
    0       2     int16   version, 1
    2       4     uint32  CRC-32C of everything from byte 6 on
    6       4     int32   number of entries, 40 + 6 bytes each:
    +0      8     int64   producer id
    +8      2     int16   epoch
    +10     4     int32   last sequence, -1 without a batch of this epoch
    +14     8     int64   last offset, -1 without
    +22     4     int32   offset delta of the last batch, 0 without
    +26     8     int64   last timestamp
    +34     4     int32   epoch of the coordinator of the last marker, -1 without
    +38     8     int64   first offset of the open transaction, -1 without

Big-endian (message ProducerSnapshot version 1 behind the version).
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable

from kwire.checksums import crc32c
from kwire.log.files import Files, unlink_quietly, write_atomically
from kwire.log.partition.producers import BatchMetadata, ProducerEntry

logger = logging.getLogger(__name__)

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
VERSION = 1
CRC_END = 6


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The file's bytes, entries by producer id."""
    packed = []
    for entry in sorted(entries, key=lambda e: e.producer_id):
        last = entry.batches[-1] if entry.batches else None
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence if last else -1,
                last.last_offset if last else -1,
                last.offset_delta if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    data = bytearray(_HEAD.pack(VERSION, 0, len(packed)) + b"".join(packed))
    struct.pack_into(">I", data, 2, crc32c(bytes(data[CRC_END:])))
    return bytes(data)


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries; raises ValueError for a file that is damaged or of another version."""
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are too few for a producer snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"producer snapshot of unknown version {version}")
    if crc != crc32c(data[CRC_END:]):
        raise ValueError("producer snapshot whose CRC does not hold")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise ValueError(f"producer snapshot of {len(data)} bytes for {count} entries")
    entries = []
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first = fields
        entry = ProducerEntry(producer_id)
        entry.epoch = epoch
        if offset >= 0:
            entry.batches = (BatchMetadata(sequence, offset, delta, timestamp),)
        entry.last_timestamp = timestamp
        entry.coordinator_epoch = coordinator
        entry.transaction_first_offset = first
        entries.append(entry)
    return entries


class SnapshotFiles:
    """The `.snapshot` files of a partition's directory."""

    def __init__(self, files: Files, directory: str, offsets: Iterable[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self.offsets = sorted(offsets)

    @property
    def latest(self) -> int:
        """Offset of the latest snapshot, -1 without one."""
        return self.offsets[-1] if self.offsets else -1

    def relocated(self, directory: str) -> SnapshotFiles:
        """The same files in a directory that was renamed."""
        return SnapshotFiles(self._files, directory, self.offsets)

    def write(self, offset: int, entries: Iterable[ProducerEntry]) -> str:
        """Write the snapshot that holds up to `offset`; returns its path. Not synced."""
        path = self._path(offset)
        write_atomically(self._files, path, encode_snapshot(entries), sync=False)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])
        return path

    def load_latest(self, offset_min: int, offset_max: int) -> tuple[int, list[ProducerEntry]]:
        """(offset, entries) of the latest whole snapshot in the range; (-1, []) without one.

        Damaged ones on the way are removed: what they held comes from the log.
        """
        for offset in reversed(self.offsets):
            if offset > offset_max or offset < offset_min:
                continue
            try:
                return offset, decode_snapshot(self._files.read_file(self._path(offset)))
            except (ValueError, OSError) as error:
                logger.warning("%s: %s; rebuilding it from the log", self._path(offset), str(error))
                self.remove([offset])
        return -1, []

    def remove(self, offsets: Iterable[int]) -> None:
        gone = set(offsets)
        if not gone:
            return
        unlink_quietly(self._files, [self._path(o) for o in sorted(gone)])
        self.offsets = [o for o in self.offsets if o not in gone]

    def remove_above(self, offset: int) -> None:
        self.remove([o for o in self.offsets if o > offset])

    def remove_stray(self, bases: list[int]) -> None:
        """Keep those at a segment's base, and the latest one behind the last segment's base."""
        if not self.offsets:
            return
        kept = set(bases)
        behind = [o for o in self.offsets if not bases or o > bases[-1]]
        if behind:
            kept.add(behind[-1])
        if not kept.issuperset(self.offsets):
            self.remove([o for o in self.offsets if o not in kept])

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}.snapshot"
