"""The offset index of a segment (`BASE.index`).

    offset  size  type   name
    0       4     int32  offset relative to the segment's base: a batch's last offset
    4       4     int32  byte position where that batch starts

Big-endian, ascending. Kafka allocates the active segment's index in full, zeros behind the
entries, and trims it when the segment is sealed or the log closed.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

from kwire.log.files import Files, UnfitFileError, write_fully

ENTRY_SIZE = 8
PERSIST_ENTRIES = 512  # entries kept back before they go to the file


class _Table:
    """What the two indexes share: a file of fixed entries, kept in arrays, written in runs."""

    entry_size = ENTRY_SIZE

    def __init__(self, files: Files, path: str, size_bytes_max: int) -> None:
        self.files = files
        self.path = path
        self.entries_max = size_bytes_max // self.entry_size
        self._persisted = 0  # entries that are in the file
        self._allocated = False  # the file is allocated in full, zeros behind the entries
        self._exact = False  # the file ends behind its entries

    def __len__(self) -> int:
        raise NotImplementedError

    def _encode(self, start: int) -> bytes:
        raise NotImplementedError

    def load(self, data: bytes) -> bool:
        raise NotImplementedError

    def load_file(self) -> bool:
        """Take over what the file holds; False where there is none, or no valid index in it."""
        try:
            data = self.files.read_file(self.path)
        except (FileNotFoundError, UnfitFileError):
            return False
        return self.load(data)

    def persist(self) -> None:
        """Write what is not in the file yet; the file is allocated in full, zero-filled."""
        if self._persisted == len(self) and self._allocated:
            return
        handle = self.files.open(self.path, create=True)
        try:
            if not self._allocated:
                self.files.truncate(handle, self._persisted * self.entry_size)
                self.files.truncate(handle, self.entries_max * self.entry_size)
                self._allocated, self._exact = True, False
            if self._persisted < len(self):
                position = self._persisted * self.entry_size
                write_fully(self.files, handle, [self._encode(self._persisted)], position)
                self._persisted = len(self)
        finally:
            self.files.close(handle)

    def trim(self) -> None:
        """Write what is left and cut the file to its entries."""
        handle = self.files.open(self.path, create=True)
        try:
            if self._persisted < len(self):
                position = self._persisted * self.entry_size
                write_fully(self.files, handle, [self._encode(self._persisted)], position)
            size_bytes = len(self) * self.entry_size
            if self.files.size(handle) != size_bytes:  # to ask costs less than to cut
                self.files.truncate(handle, size_bytes)
        finally:
            self.files.close(handle)
        self._persisted = len(self)
        self._allocated, self._exact = False, True

    @property
    def is_trimmed(self) -> bool:
        """Whether the file is known to hold exactly the entries."""
        return self._exact and self._persisted == len(self)

    def found_empty(self) -> None:
        """The file is there and has no bytes, and there are no entries yet."""
        self._exact = True

    def _loaded(self, size_bytes: int) -> None:
        """The entries came from a file of this size."""
        self._persisted = len(self)
        self._exact = size_bytes == len(self) * self.entry_size
        self._allocated = size_bytes == self.entries_max * self.entry_size

    def _cut(self) -> None:
        """Entries were dropped, the file still holds them: it has to be cut before it grows."""
        self._persisted = min(self._persisted, len(self))
        self._allocated = self._exact = False


class OffsetIndex(_Table):
    """The entries of one `.index` file, in memory as two parallel arrays."""

    entry_size = ENTRY_SIZE

    def __init__(self, files: Files, path: str, base_offset: int, size_bytes_max: int) -> None:
        super().__init__(files, path, size_bytes_max)
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def is_full(self) -> bool:
        return len(self.offsets) >= self.entries_max

    def load(self, data: bytes) -> bool:
        """Take over a file's content; False if it is not a valid index (then it is empty).

        Zeros behind the entries (a preallocated file) are no fault.
        """
        usable = len(data) - len(data) % ENTRY_SIZE
        table = array("i")
        table.frombytes(data[:usable])
        if sys.byteorder == "little":
            table.byteswap()
        offsets, positions = table[0::2], table[1::2]
        count = _count_ascending(offsets, positions)
        if any(positions[count:]) or any(offsets[count:]):
            return False
        self.offsets, self.positions = offsets[:count], positions[:count]
        self._loaded(len(data))
        return len(data) == usable

    def append(self, offset: int, position: int) -> None:
        """Add the batch with last offset `offset` that starts at `position`."""
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)
        if len(self.offsets) - self._persisted >= PERSIST_ENTRIES:
            self.persist()

    def floor(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the greatest entry at or below `offset`, (base, 0) without one."""
        at = bisect_right(self.offsets, min(offset - self.base_offset, 0x7FFFFFFF)) - 1
        if at < 0:
            return self.base_offset, 0
        return self.base_offset + self.offsets[at], self.positions[at]

    def floor_position(self, position: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `position`, (-1, 0) without one."""
        at = bisect_right(self.positions, position) - 1
        return (self.base_offset + self.offsets[at], self.positions[at]) if at >= 0 else (-1, 0)

    def last(self) -> tuple[int, int]:
        """(offset, position) of the last entry, (base offset, 0) without one."""
        if not self.offsets:
            return self.base_offset, 0
        return self.base_offset + self.offsets[-1], self.positions[-1]

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above `offset`."""
        keep = bisect_left(self.offsets, offset - self.base_offset)
        del self.offsets[keep:], self.positions[keep:]
        self._cut()

    def clear(self) -> None:
        del self.offsets[:], self.positions[:]
        self._cut()

    def _encode(self, start: int) -> bytes:
        table = array("i", bytes(8 * (len(self.offsets) - start)))
        table[0::2] = self.offsets[start:]
        table[1::2] = self.positions[start:]
        if sys.byteorder == "little":
            table.byteswap()
        return table.tobytes()


def _count_ascending(offsets: array[int], positions: array[int]) -> int:
    """How many leading entries are strictly ascending; a first entry must not be (0, 0)."""
    count = len(offsets)
    if not count or (offsets[0] == 0 and positions[0] == 0):
        return 0
    # Zeros at the end are the usual case: find them by bisection, then check what is left.
    low, high = 1, count
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] == 0 and positions[middle] == 0:
            high = middle
        else:
            low = middle + 1
    for i in range(1, low):
        if offsets[i] <= offsets[i - 1] or positions[i] <= positions[i - 1]:
            return i
    return low if offsets[0] >= 0 and positions[0] >= 0 else 0
