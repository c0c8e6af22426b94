"""What goes in and out of a partition log."""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.log.files import can_map
from kwire.pending import Pending

if TYPE_CHECKING:
    from kwire.log.segment.segment import Segment

UNKNOWN_OFFSET = -1


class Origin(IntEnum):
    """Who appends: decides which rules a batch has to keep (Kafka's AppendOrigin)."""

    CLIENT = 0
    COORDINATOR = 1
    RAFT = 2
    REPLICATION = 3


READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)
"""What a consumer asks for in Fetch and ListOffsets (KIP-98)."""


class Isolation(IntEnum):
    """How far a read may see."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    COMMITTED = 2


LOG_END, HIGH_WATERMARK, COMMITTED = Isolation
"""The same for every read: an enum's attribute costs ten times what a name of a module does."""


class AppendInfo:
    """What an append did.

    `base_offset` and `last_offset` are the offsets given (for a duplicate: those of the first
    time); `log_append_time_ms` is -1 with CreateTime; faulty records are raised, not listed here
    (InvalidRecordsError); `written` completes when the bytes are in
    the file, fails with KafkaError(KAFKA_STORAGE_ERROR) when they could not be written.
    """

    __slots__ = (
        "base_offset",
        "duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_count",
        "size_bytes",
        "written",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        written: Pending[None],
        duplicate: bool = False,
        record_count: int = 0,
        size_bytes: int = 0,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.written = written
        self.duplicate = duplicate
        self.record_count = record_count
        self.size_bytes = size_bytes

    def __repr__(self) -> str:
        kind = "duplicate" if self.duplicate else "appended"
        return f"AppendInfo({kind} {self.base_offset}..{self.last_offset})"


class FileSlice:
    """Whole batches in a segment's file, as a read found them: to be sent from there.

    What the file is may change when control returns to the loop (it is closed, deleted, cut), so
    whoever gets one sends it or takes its bytes before.
    """

    __slots__ = ("_segment", "_size_bytes", "position")

    def __init__(self, segment: Segment, position: int, size_bytes: int) -> None:
        self._segment = segment
        self.position = position
        self._size_bytes = size_bytes

    def __len__(self) -> int:
        return self._size_bytes

    @property
    def segment_base(self) -> int:
        """The base offset of the segment."""
        return self._segment.base_offset

    def part(self, begin: int, end: int) -> FileSlice:
        """The bytes from `begin` to `end` (excluded) of this slice."""
        return FileSlice(self._segment, self.position + begin, end - begin)

    def peek(self, at: int, size_bytes: int) -> bytes:
        """Bytes from `at` on, as many as there are up to `size_bytes`. OSError."""
        left = max(0, min(size_bytes, self._size_bytes - at))
        return self._segment.pread(left, self.position + at)

    def view(self) -> memoryview:
        """The bytes for a system call to take, not to be looked at in this process. OSError."""
        segment = self._segment
        files = segment.files
        assert can_map(files), "whoever made the slice has asked"
        return segment.with_file(lambda file: files.map(file, self._size_bytes, self.position))

    def read(self) -> bytes:
        """The bytes. OSError, also when the file has fewer."""
        data = self._segment.pread(self._size_bytes, self.position)
        if len(data) != self._size_bytes:
            raise OSError(errno.EIO, f"{self._segment.log_path} is shorter than it was")
        return data


class FetchSlices:
    """What a read found: whole batches, in order, the first one holding the offset asked for.

    `aborted` is [(producer id, first offset)] of the aborted transactions in what was read, None
    unless the isolation is COMMITTED. `next_offset` follows the last batch. A buffer is a FileSlice
    only where the reader asked for that. `counted_bytes` is what counts towards a fetch's limits:
    `size_bytes`, and the part of a batch behind that a limit cut off.
    """

    __slots__ = (
        "aborted",
        "buffers",
        "counted_bytes",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "next_offset",
        "size_bytes",
    )

    def __init__(
        self,
        buffers: list[Any],
        size_bytes: int,
        next_offset: int,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        aborted: list[tuple[int, int]] | None = None,
        counted_bytes: int = 0,
    ) -> None:
        self.buffers = buffers
        self.counted_bytes = counted_bytes if counted_bytes > size_bytes else size_bytes
        self.size_bytes = size_bytes
        self.next_offset = next_offset
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted = aborted


class TimestampOffset(NamedTuple):
    """The answer of a look-up by timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended; `last_offset` is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
