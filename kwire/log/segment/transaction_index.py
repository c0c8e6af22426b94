"""The transaction index of a segment (`BASE.txnindex`): its aborted transactions.

    offset  size  type   name
    0       2     int16  version, 0
    2       8     int64  producer id
    10      8     int64  first offset of the transaction
    18      8     int64  last offset: that of the abort marker
    26      8     int64  last stable offset when the marker was appended

Big-endian, in the order of the markers. The file exists once a transaction was aborted.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kwire.log.files import Files, UnfitFileError, unlink_quietly, write_fully
from kwire.protocol.errors import ErrorCode, KafkaError

ENTRY_SIZE = 34
_ENTRY = struct.Struct(">hqqqq")


class DamagedIndexError(KafkaError):
    """A transaction index that has to be rebuilt from the log."""

    def __init__(self, path: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is damaged")
        self.path = path


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions whose marker is in one segment; small, so wholly in memory."""

    def __init__(self, files: Files, path: str, entries: list[AbortedTransaction]) -> None:
        self._files = files
        self.path = path
        self.entries = entries

    @classmethod
    def load(cls, files: Files, path: str) -> tuple[TransactionIndex, bool]:
        """(index, whether the file was whole and in order)."""
        try:
            data = files.read_file(path)
        except UnfitFileError:
            return cls(files, path, []), False
        entries: list[AbortedTransaction] = []
        valid = len(data) % ENTRY_SIZE == 0
        for at in range(0, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE):
            version, *fields = _ENTRY.unpack_from(data, at)
            entry = AbortedTransaction(*fields)
            if (
                version != 0
                or not 0 <= entry.first_offset <= entry.last_offset
                or (entries and entry.last_offset <= entries[-1].last_offset)
            ):
                valid = False
                break
            entries.append(entry)
        return cls(files, path, entries), valid

    def append(self, entry: AbortedTransaction) -> None:
        self.entries.append(entry)
        self._write(self.entries[-1:], (len(self.entries) - 1) * ENTRY_SIZE)

    def truncate_to(self, offset: int) -> None:
        """Drop transactions whose marker is at or above `offset`."""
        keep = [entry for entry in self.entries if entry.last_offset < offset]
        if len(keep) != len(self.entries):
            self.replace(keep)

    def replace(self, entries: list[AbortedTransaction]) -> None:
        """Set the content, in the file too; without entries there is no file."""
        if not entries:
            unlink_quietly(self._files, [self.path])
        else:
            self._write(entries, 0)
        self.entries = entries  # only now: what failed is tried again

    def _write(self, entries: list[AbortedTransaction], position: int) -> None:
        data = b"".join(_ENTRY.pack(0, *entry) for entry in entries)
        handle = self._files.open(self.path, create=True)
        try:
            write_fully(self._files, handle, [data], position)
            self._files.truncate(handle, position + len(data))
        finally:
            self._files.close(handle)
