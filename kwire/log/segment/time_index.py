"""The time index of a segment (`BASE.timeindex`).

    offset  size  type   name
    0       8     int64  the largest timestamp so far
    8       4     int32  last offset of the batch that holds it, relative to the segment's base

Big-endian, timestamps ascending. Allocated and trimmed like the offset index.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right

from kwire.log.files import Files
from kwire.log.segment.offset_index import PERSIST_ENTRIES, _Table

ENTRY_SIZE = 12
_ENTRY = struct.Struct(">qi")
NO_TIMESTAMP = -1


class TimeIndex(_Table):
    """The entries of one `.timeindex` file, in memory as two parallel arrays."""

    entry_size = ENTRY_SIZE

    def __init__(self, files: Files, path: str, base_offset: int, size_bytes_max: int) -> None:
        super().__init__(files, path, size_bytes_max)
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def is_full(self) -> bool:
        # One entry is kept for the seal: Kafka's rule.
        return len(self.timestamps) >= self.entries_max - 1

    def load(self, data: bytes) -> bool:
        """Take over a file's content; False if it is not a valid index (then it is cut short)."""
        usable = len(data) - len(data) % ENTRY_SIZE
        timestamps, offsets = array("q"), array("i")
        last_timestamp, last_offset = -1, -1
        valid = len(data) == usable
        # Zeros behind the entries are what is unused of a preallocated file.
        body = data[:usable].rstrip(b"\0")
        for timestamp, offset in _ENTRY.iter_unpack(
            data[: -(-len(body) // ENTRY_SIZE) * ENTRY_SIZE]
        ):
            if timestamp <= last_timestamp or offset < last_offset:
                valid = False
                break
            timestamps.append(timestamp)
            offsets.append(offset)
            last_timestamp, last_offset = timestamp, offset
        self.timestamps, self.offsets = timestamps, offsets
        self._loaded(len(data))
        return valid

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if its timestamp is larger than the last one's."""
        if timestamp > self.last_timestamp:
            self.timestamps.append(timestamp)
            self.offsets.append(offset - self.base_offset)
            if len(self.timestamps) - self._persisted >= PERSIST_ENTRIES:
                self.persist()

    @property
    def last_timestamp(self) -> int:
        return self.timestamps[-1] if self.timestamps else NO_TIMESTAMP

    @property
    def last_offset(self) -> int:
        return self.base_offset + (self.offsets[-1] if self.offsets else 0)

    def lookup(self, timestamp: int) -> int:
        """An offset: every batch before it has only timestamps below `timestamp`."""
        at = bisect_left(self.timestamps, timestamp) - 1
        return self.base_offset + self.offsets[at] if at >= 0 else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above `offset`."""
        keep = bisect_right(self.offsets, offset - self.base_offset - 1)
        del self.timestamps[keep:], self.offsets[keep:]
        self._cut()

    def clear(self) -> None:
        del self.timestamps[:], self.offsets[:]
        self._cut()

    def _encode(self, start: int) -> bytes:
        pack = _ENTRY.pack
        return b"".join(
            pack(timestamp, offset)
            for timestamp, offset in zip(self.timestamps[start:], self.offsets[start:], strict=True)
        )
