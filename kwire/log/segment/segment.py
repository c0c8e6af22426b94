"""One segment of a log: `BASE.log` with its indexes, BASE the first offset in 20 digits.

A segment's `size_bytes` is what is written; `assigned_bytes` also counts batches that have their
place but wait in the log's tail for the end of the loop's turn. Readers see written bytes only.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence

from kwire.log.files import FULL, Buffer, Files, unlink_quietly, write_fully
from kwire.log.flushing import SyncRequest
from kwire.log.partition.config import LogConfig
from kwire.log.segment.log_file import LogFile
from kwire.log.segment.offset_index import OffsetIndex
from kwire.log.segment.time_index import NO_TIMESTAMP, TimeIndex
from kwire.log.segment.transaction_index import (
    AbortedTransaction,
    DamagedIndexError,
    TransactionIndex,
)
from kwire.log.segment.walking import walk
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import BatchHeader, check_crc

logger = logging.getLogger(__name__)

ALLOCATE_FROM_BYTES = 1 << 20
ALLOCATE_STEP_BYTES_MAX = 32 << 20
HINTS_MAX = 64
CHECKED_BYTES_MAX = 64 * 1024

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Segment(LogFile):
    """The files of one segment. Methods raise OSError when a file fails."""

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        size_bytes: int = 0,
        created_ms: int = 0,
        has_transaction_index: bool = False,
        is_new: bool = True,
        suffix: str = "",
    ) -> None:
        super().__init__(files, size_bytes)
        self.directory = directory
        self.base_offset = base_offset
        self.assigned_bytes = size_bytes
        self.created_ms = created_ms
        self.index_interval_bytes = config.index_interval_bytes
        self._index_size_bytes = config.segment_index_bytes
        self.is_full = False  # an index has no room for another entry
        self.is_deleted = False
        self._suffix = suffix
        self._allocated_bytes = 0
        self._hints: dict[int, int] = {}
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None
        self.has_transaction_index = has_transaction_index
        self.is_index_file_empty = False  # as it was found; a rebuild is told once
        self.bytes_since_index = 0
        self._max_timestamp: int | None = NO_TIMESTAMP if is_new or not size_bytes else None
        self._offset_of_max_timestamp = base_offset
        self._first_timestamp: int | None = None
        if is_new:
            self._index, self._time_index = self._empty_indexes()

    # -- names ------------------------------------------------------------------------------

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}{self._suffix}"

    @property
    def log_path(self) -> str:
        return self.path(LOG_SUFFIX)

    @property
    def index_path(self) -> str:
        return self.path(INDEX_SUFFIX)

    @property
    def time_index_path(self) -> str:
        return self.path(TIME_INDEX_SUFFIX)

    @property
    def transaction_index_path(self) -> str:
        return self.path(TRANSACTION_INDEX_SUFFIX)

    # -- the parts, loaded when first needed ----------------------------------------------------

    def release(self) -> None:
        """Let go of the open file and, when sealed, of the indexes; they come back when needed."""
        self.close()
        if self.is_sealed:
            self._index = self._time_index = None

    def let_go_of_indexes(self) -> None:
        """Those that are in their files come back when somebody appends, or looks something up."""
        tables = (self._index, self._time_index)
        if all(table is not None and table.is_trimmed for table in tables):
            self._index = self._time_index = None

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._load_index()
        assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._load_time_index()
        assert self._time_index is not None
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex | None:
        if self._transaction_index is None and self.has_transaction_index:
            index, valid = TransactionIndex.load(self.files, self.transaction_index_path)
            self._transaction_index = index
            if not valid:
                logger.error("%s is damaged; rebuilding it", self.transaction_index_path)
                raise DamagedIndexError(self.transaction_index_path)
        return self._transaction_index

    def aborted_transactions(self) -> list[AbortedTransaction]:
        index = self.transaction_index
        return index.entries if index is not None else []

    def add_aborted_transaction(self, entry: AbortedTransaction) -> None:
        index = self.transaction_index
        if index is None:
            index = TransactionIndex(self.files, self.transaction_index_path, [])
            self._transaction_index = index
            self.has_transaction_index = True
        index.append(entry)

    def replace_transactions(self, entries: list[AbortedTransaction]) -> None:
        """Set the transaction index's content (recovery)."""
        index = TransactionIndex(self.files, self.transaction_index_path, [])
        index.replace(entries)
        self._transaction_index = index if entries else None
        self.has_transaction_index = bool(entries)

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, -1 without one."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        assert self._max_timestamp is not None
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the batch that holds the largest timestamp."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        return self._offset_of_max_timestamp

    def first_timestamp(self) -> int:
        """Max timestamp of the first batch (what rolling by time counts from), -1 without one."""
        if self._first_timestamp is None:
            if not self.assigned_bytes:
                return NO_TIMESTAMP
            for _, header in self.walk(0):
                self._first_timestamp = header.max_timestamp
                break
            else:
                return NO_TIMESTAMP
        return self._first_timestamp

    def largest_timestamp(self) -> int:
        """The largest timestamp, or without one when the file was modified (Kafka's rule).

        Retention goes by it, and a look-up by timestamp stops at the first segment where it is
        not below the target: behind a segment that compaction has emptied Kafka finds nothing.
        """
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return self.files.modified_ms(self.log_path)

    # -- appending ----------------------------------------------------------------------------

    def assign(self, header: BatchHeader, base_offset: int, max_timestamp: int) -> int:
        """Give a batch its place behind the last one and index it; returns its position."""
        position = self.assigned_bytes
        size_bytes = header.size_bytes
        if position == 0:
            self._first_timestamp = max_timestamp
            if self.size_bytes == 0 and self._time_index is None:
                # Taken up while the file is empty: later one without entries means damage.
                self._load_time_index()
        known = self._max_timestamp
        if max_timestamp > (self.max_timestamp if known is None else known):
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = base_offset + header.last_offset_delta
        if self.bytes_since_index > self.index_interval_bytes:
            last_offset = base_offset + header.last_offset_delta
            self.index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self.bytes_since_index = 0
            self.is_full = self.index.is_full or self.time_index.is_full
        self.bytes_since_index += size_bytes
        self.assigned_bytes = position + size_bytes
        hints = self._hints
        hints[base_offset] = position
        if len(hints) > HINTS_MAX:
            del hints[next(iter(hints))]
        return position

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Write assigned batches behind the written ones, in one vectored call."""
        handle = self.handle
        size_bytes = self.size_bytes
        if self.assigned_bytes > self._allocated_bytes:
            self._allocate(handle)
        self.size_bytes = size_bytes + write_fully(self.files, handle, buffers, size_bytes)

    def _allocate(self, handle: int) -> None:
        """Reserve blocks ahead in growing steps, so that small segments reserve nothing."""
        if self.assigned_bytes < ALLOCATE_FROM_BYTES:
            return
        step = min(self.assigned_bytes, ALLOCATE_STEP_BYTES_MAX)
        wanted = self.assigned_bytes - self.size_bytes + step
        try:
            known = self.files.allocate(handle, self.size_bytes, wanted)
        except OSError as error:
            if error.errno not in FULL:
                raise
            # There may be room for what is written now: only that it does not fit is a failure.
            self._allocated_bytes = self.assigned_bytes + ALLOCATE_FROM_BYTES
            return
        # Where the file system has none it is not asked again.
        self._allocated_bytes = self.assigned_bytes + step if known else 1 << 62

    def preallocate(self, size_bytes: int) -> None:
        """`preallocate=true`: reserve the whole segment (its size stays what is written)."""
        if self.files.allocate(self.handle, 0, size_bytes):
            self._allocated_bytes = size_bytes

    def give_back(self) -> None:
        """Let go of what is reserved behind the end."""
        self.files.truncate(self.handle, self.size_bytes)
        self._allocated_bytes = 0

    # -- reading ------------------------------------------------------------------------------

    def walk(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of the written batches, see `walking.walk`."""
        return walk(self, position, end)

    def walk_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """`walk` from a batch at or before the one that holds `offset`, found by the index.

        An index entry that points to no such batch makes the indexes be rebuilt.
        """
        hint = self._hints.get(offset)
        if hint is not None:
            yield from self.walk(hint)
            return
        entry_offset, position = self.index.floor(offset)
        walk = self.walk(position)
        if position:
            first = None
            with contextlib.suppress(KafkaError):
                first = next(walk, None)
            if first is None or first[1].last_offset != entry_offset:
                self.rebuild_indexes(f"the index entry of offset {entry_offset} is wrong")
                walk = self.walk(self.index.floor(offset)[1])
            else:
                yield first
        yield from walk

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """(position, header) of the first batch whose last offset is at or above `offset`."""
        for position, header in self.walk_from(offset):
            if header.last_offset >= offset:
                return position, header
        return None

    def position_of(self, offset: int) -> int:
        """Where the first batch that begins at or above `offset` starts; the end without one."""
        for position, header in self.walk_from(offset):
            if header.base_offset >= offset:
                return position
        return self.size_bytes

    def remember(self, offset: int, position: int) -> None:
        """A reader will ask for `offset` next, which is at `position`."""
        hints = self._hints
        hints[offset] = position
        if len(hints) > HINTS_MAX:
            del hints[next(iter(hints))]

    def hint(self, offset: int) -> int | None:
        return self._hints.get(offset)

    # -- changes of shape ---------------------------------------------------------------------

    def seal(self) -> None:
        """Finish a segment that is no longer written to: last time entry, trim all files."""
        if self.is_sealed:
            return
        self.finish_indexes()
        self.is_sealed = True
        if self._handle >= 0 and self._allocated_bytes:
            self.files.truncate(self._handle, self.size_bytes)
        # Sealed indexes are read again when somebody looks something up.
        self._index = self._time_index = None
        self._count_as_open()

    def finish_indexes(self) -> list[str]:
        """The last time entry, both index files trimmed; paths of those that were written."""
        index, is_as_read = self._index, self._time_index is None
        if is_as_read and (index is None or (self._max_timestamp is None and index.is_trimmed)):
            return []  # nothing was appended since
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        written = []
        for table in (self.index, self.time_index):
            if not table.is_trimmed or not self.files.exists(table.path):
                table.trim()
                written.append(table.path)
        return written

    def add_to_sync(self, request: SyncRequest) -> None:
        """The files to sync so that the segment is durable; a sealed one with its indexes.

        The active segment's indexes are rebuilt after a crash.
        """
        self.add_file_to_sync(request)
        if self.has_transaction_index:
            request.paths.append(self.transaction_index_path)
        if self.is_sealed:
            request.paths += [self.index_path, self.time_index_path]

    def create(self) -> None:
        """Create the empty files of a new segment."""
        self.files.truncate(self.handle, 0)
        self.index.trim()
        self.time_index.trim()

    def reopen(self, config: LogConfig) -> None:
        """Make a sealed segment the active one again (after a truncation)."""
        self._index_size_bytes = config.segment_index_bytes
        for table in (self.index, self.time_index):
            table.entries_max = self._index_size_bytes // table.entry_size
        self.is_sealed = False  # only now: what fails before is done again
        self._count_as_open()
        self.is_full = self.index.is_full or self.time_index.is_full

    def truncate_to(self, offset: int, position: int) -> None:
        """Drop everything from `offset` on, which begins at `position`."""
        self._hints.clear()
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self.has_transaction_index and self.transaction_index is not None:
            self.transaction_index.truncate_to(offset)
            self.has_transaction_index = bool(self.transaction_index.entries)
        self.files.truncate(self.handle, position)
        self._allocated_bytes = 0
        self.size_bytes = self.assigned_bytes = position
        _, last_position = self.index.last()
        self.bytes_since_index = position - last_position
        self._max_timestamp = self.time_index.last_timestamp
        self._offset_of_max_timestamp = self.time_index.last_offset
        if position == 0:
            self._first_timestamp = None
        # What follows the last time entry is not in it: read those batches.
        start = self.index.floor(self._offset_of_max_timestamp)[1]
        for _, header in self.walk(start):
            if header.max_timestamp > (self._max_timestamp or NO_TIMESTAMP):
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset

    def reset_indexes(self) -> None:
        """Empty indexes, for a rebuild by `reindex`."""
        self._index, self._time_index = self._empty_indexes()
        if self.is_index_file_empty:
            self.is_index_file_empty = False
            self._index.found_empty()
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None
        self.bytes_since_index = 0
        self.assigned_bytes = 0

    def rebuild_indexes(self, reason: str) -> None:
        """Build both indexes anew from the batches' headers."""
        logger.error("%s: %s; rebuilding the indexes", self.log_path, reason)
        self.reset_indexes()
        is_whole = True
        try:
            for _, header in self.walk(0):
                if self.assigned_bytes + header.size_bytes > self.size_bytes:
                    break
                self.assign(header, header.base_offset, header.max_timestamp)
        except KafkaError as error:
            logger.error(
                "%s: its indexes end at byte %d: %s", self.log_path, self.assigned_bytes, error
            )
            is_whole = False
        self.assigned_bytes = self.size_bytes
        self._hints.clear()
        if self.is_sealed:
            self.finish_indexes()
            if not is_whole:
                self.ask_for_repair()

    def ask_for_repair(self) -> None:
        """Its batches are damaged: the next start checks each, as where an index is missing."""
        try:
            unlink_quietly(self.files, [self.time_index_path])
        except OSError as error:
            logger.warning("%s: %s", self.time_index_path, error)

    def finish_rebuild(self) -> None:
        """After all batches were assigned again: a sealed segment's indexes go to their files."""
        self.assigned_bytes = self.size_bytes
        self._hints.clear()
        self.finish_indexes()
        if self.is_sealed:
            self._index = self._time_index = None

    def cut(self, position: int) -> None:
        """Drop what begins at `position`, from the log only (recovery; indexes are rebuilt)."""
        self.files.truncate(self.handle, position)
        self._allocated_bytes = 0
        self.size_bytes = self.assigned_bytes = position
        self._hints.clear()

    def is_batch_whole(self, position: int, header: BatchHeader) -> bool:
        """Whether a written batch's checksum holds; large ones are taken at their word."""
        if header.size_bytes > CHECKED_BYTES_MAX:
            return True
        return check_crc(self.pread(header.size_bytes, position), 0, header)

    def read_index_positions(self) -> list[int]:
        """Batch positions by the index file as it is, sorted; for finding batches behind damage."""
        index = OffsetIndex(self.files, self.index_path, self.base_offset, self._index_size_bytes)
        index.load(self.files.read_file(self.index_path))
        return sorted(index.positions)

    def use_suffix(self, suffix: str) -> None:
        """The files already have this suffix."""
        self._suffix = suffix

    def relocate(self, directory: str) -> None:
        """The directory has another name now; open files stay open."""
        self.directory = directory
        for table in (self._index, self._time_index):
            if table is not None:
                table.path = f"{directory}/{os.path.basename(table.path)}"
        self._transaction_index = None

    def has_suffix(self, suffix: str) -> bool:
        return self._suffix == suffix

    def rename(self, suffix: str) -> None:
        """Give all files this suffix (`.deleted`, `.swap`, none). OSError: may be done again."""
        for name in SEGMENT_SUFFIXES:
            source = self.path(name)
            with contextlib.suppress(FileNotFoundError):
                self.files.rename(source, source.removesuffix(self._suffix) + suffix)
        self._suffix = suffix
        if self.is_sealed:
            self._index = self._time_index = self._transaction_index = None  # they know their path

    def close(self) -> None:
        if self._handle >= 0:
            if self._allocated_bytes and not self.is_sealed and not self.is_deleted:
                self.files.truncate(self._handle, self.size_bytes)
            self._allocated_bytes = 0
            handle, self._handle = self._handle, -1
            if self._open_segments is not None:
                self._open_segments.closed(self)
            let_go = self.files.close if self.flusher is None else self.flusher.retire
            let_go(handle)  # a sync may need it

    def delete_files(self) -> None:
        self.is_deleted = True
        self.close()
        unlink_quietly(self.files, [self.path(suffix) for suffix in SEGMENT_SUFFIXES])

    def paths(self) -> list[str]:
        return [self.path(suffix) for suffix in SEGMENT_SUFFIXES]

    # -- loading ------------------------------------------------------------------------------

    def _empty_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        files, base, bytes_max = self.files, self.base_offset, self._index_size_bytes
        index = OffsetIndex(files, self.index_path, base, bytes_max)
        return index, TimeIndex(files, self.time_index_path, base, bytes_max)

    def take_empty_index(self) -> None:
        """The index is there and has no entries, as that of every small segment: it is not read."""
        self._index = self._empty_indexes()[0]
        self._index.load(b"")

    def _load_index(self) -> None:
        index = OffsetIndex(self.files, self.index_path, self.base_offset, self._index_size_bytes)
        if self.size_bytes == 0:
            self._index = index
            return
        valid = index.load_file() and index.last()[1] < self.size_bytes
        self._index = index
        if not valid:
            self.rebuild_indexes(f"{os.path.basename(self.index_path)} is missing or damaged")

    def _load_time_index(self) -> None:
        index = self._empty_indexes()[1]
        if self.size_bytes == 0:
            self._time_index = index
            return
        valid = index.load_file()
        self._time_index = index
        # Kafka creates a missing time index empty and leaves it so; a segment with data has at
        # least the entry that its seal wrote.
        if not valid or not len(index):
            self.rebuild_indexes(f"{os.path.basename(self.time_index_path)} is missing or damaged")

    def _load_max_timestamp(self) -> None:
        index = self.time_index
        if self._max_timestamp is None:
            self._max_timestamp = index.last_timestamp
            self._offset_of_max_timestamp = index.last_offset
