"""The work of compaction on one log, off the loop: files that no longer change go in, new ones out.

First the keys of the dirty part are put into a map with their last offsets, then segment by
segment what the map says is last is copied to `.cleaned` files. Both are generators that yield
after each slice of work, so that the same code runs in a thread, or in slices on the loop where
the kernel is not compiled. Nothing here touches an object that the loop uses.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from kwire.log.compaction.plan import Plan, Source, groups
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.compaction.transactions import CleanedTransactions
from kwire.log.files import Buffer, unlink_quietly
from kwire.log.flushing import SyncRequest, sync_files
from kwire.log.partition.batch_rules import Marker, read_marker
from kwire.log.segment.segment import CLEANED_SUFFIX, Segment
from kwire.log.segment.walking import HEADER_SIZE
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import MAGIC_CURRENT, BatchHeader, check_crc, parse_header
from kwire.protocol.records.compaction import (
    emptied,
    filter_steps,
    index_steps,
    with_delete_horizon,
)
from kwire.protocol.records.compaction_kernel import OffsetMap

READ_BYTES_MIN = 64 * 1024

Steps = Generator[None, None, None]


class CleaningStopped(Exception):
    """The log was closed, truncated or deleted meanwhile: what was done is dropped."""


class CleaningJob:
    """One cleaning of one log. `bytes_done` counts what was read and written so far.

    Raises, from its steps: CleaningStopped; KafkaError for batches that are damaged (nothing is
    rewritten that would get a valid checksum for wrong bytes); OSError.
    """

    def __init__(self, plan: Plan, settings: CleanerSettings, seed: bytes) -> None:
        self.plan = plan
        self.bytes_done = 0
        self.bytes_charged = 0  # of a rate limit: those that were waited for
        self.records_done = 0
        self.is_stopped = False
        memory_bytes = settings.map_bytes(plan.end - plan.first_dirty)
        self._offsets = OffsetMap(memory_bytes, seed, settings.load_factor)
        self._size_max = plan.config.max_decompressed_message_bytes
        io_bytes = settings.io_buffer_bytes // max(settings.threads, 1)
        self._io_bytes = max(io_bytes, READ_BYTES_MIN)
        self._transactions = CleanedTransactions(plan.aborted)
        self._legacy_horizon_ms = self._horizon_of_legacy()

    @property
    def end_offset(self) -> int:
        """Up to where the log is clean afterwards: known once `index_steps` is done."""
        return self._offsets.latest_offset + 1

    def groups(self) -> list[list[Source]]:
        """The groups of segments that become one each."""
        return groups(self.plan, self.end_offset)

    def _horizon_of_legacy(self) -> int:
        """Segments last changed up to here lose tombstones of messages before magic 2."""
        before = [s for s in self.plan.sources if s.base_offset < self.plan.first_dirty]
        return before[-1].modified_ms - self.plan.config.delete_retention_ms if before else 0

    # -- the map ------------------------------------------------------------------------------

    def index_steps(self) -> Steps:
        """Put the keys of the dirty part into the map, as far as it holds them."""
        plan, offsets = self.plan, self._offsets
        start = plan.first_dirty
        aborted = [entry for entry in plan.aborted if entry.last_offset >= start]
        transactions = CleanedTransactions(aborted)
        for source in plan.sources:
            if source.next_base <= start:
                continue
            for chunk, at, header in self._batches(source, start):
                self.records_done += header.record_count
                if header.is_control:
                    transactions.observe_control(header, _marker(chunk, at, header))
                elif not transactions.observe_data(header) and header.record_count:
                    whole = yield from index_steps(
                        offsets, chunk, at, header, offset_min=start, size_max=self._size_max
                    )
                    if not whole:
                        return
                if header.last_offset >= start:
                    offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
                yield
            offsets.latest_offset = max(offsets.latest_offset, source.next_base - 1)

    # -- the copy -----------------------------------------------------------------------------

    def copy_steps(self, group: list[Source]) -> Generator[None, None, Segment]:
        """Copy what is left of a group of segments to a new one, named `.cleaned`, not synced."""
        plan = self.plan
        target = Segment(
            plan.files,
            plan.directory,
            group[0].base_offset,
            plan.config,
            created_ms=plan.now_ms,
            suffix=CLEANED_SUFFIX,
        )
        unlink_quietly(plan.files, target.paths())
        self._transactions.keep = target.add_aborted_transaction
        writer = _Writer(target, self._io_bytes)
        is_whole = False
        try:
            target.create()
            for source in group:
                keeps_legacy = source.modified_ms > self._legacy_horizon_ms
                for chunk, at, header in self._batches(source):
                    self.records_done += header.record_count
                    data = yield from self._kept(chunk, at, header, keeps_legacy)
                    if data is not None:
                        self.bytes_done += writer.add(data)
                    yield
            writer.flush()
            target.seal()
            plan.files.set_modified_ms(target.log_path, group[-1].modified_ms)
            is_whole = True
        finally:
            target.close()
            if not is_whole:
                unlink_quietly(plan.files, target.paths())
        return target

    def _kept(
        self, chunk: memoryview, at: int, header: BatchHeader, keeps_legacy: bool
    ) -> Generator[None, None, Buffer | None]:
        """What stays of a batch: its own bytes, a new batch, or None."""
        plan = self.plan
        horizon = header.delete_horizon_ms
        keeps_empty = self._keeps_empty(header)
        if header.is_control:
            is_over = self._transactions.observe_control(header, _marker(chunk, at, header))
            drops = is_over and horizon is not None and horizon <= plan.now_ms
            if not header.record_count:
                drops = True
            elif is_over and horizon is None:
                limit_ms = plan.now_ms + plan.config.delete_retention_ms
                return with_delete_horizon(chunk, at, header, limit_ms)
            if not drops:
                return chunk[at : at + header.size_bytes]
        else:
            drops = self._transactions.observe_data(header)
            if not drops and header.record_count:
                is_current = header.magic >= MAGIC_CURRENT
                filtered = yield from filter_steps(
                    chunk,
                    at,
                    header,
                    self._offsets,
                    keep_tombstones=(
                        horizon is None or plan.now_ms < horizon if is_current else keeps_legacy
                    ),
                    delete_horizon_ms=plan.now_ms + plan.config.delete_retention_ms,
                    size_max=self._size_max,
                )
                if filtered.data is not None:
                    return filtered.data
        if not keeps_empty:
            return None
        return emptied(header) if header.record_count else chunk[at : at + header.size_bytes]

    def _keeps_empty(self, header: BatchHeader) -> bool:
        """Whether a batch stays even without records.

        For a live producer's last sequence or, without data, its epoch; and at the very end of
        what is cleaned, so that the log's offsets have no end before their end.
        """
        if header.magic < MAGIC_CURRENT:
            return False
        if header.next_offset == self.plan.end:
            return True
        last = self.plan.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.offset >= 0:
            return header.last_offset == last.offset
        return header.is_control and header.producer_epoch == last.epoch

    # -- reading ------------------------------------------------------------------------------

    def _batches(
        self, source: Source, offset_min: int = 0
    ) -> Iterator[tuple[memoryview, int, BatchHeader]]:
        """(chunk, position in it, header) of a segment's batches that end at `offset_min` or above.

        Their checksums are looked at: what compaction writes anew would hide a flipped bit.
        """
        files = self.plan.files
        try:
            handle = files.open(source.path, writable=False)
        except FileNotFoundError:
            raise CleaningStopped from None
        try:
            position, wanted = 0, self._io_bytes
            expected, end_offset = source.base_offset, source.next_base
            while position < source.size_bytes:
                size = min(wanted, source.size_bytes - position)
                chunk = memoryview(files.pread(handle, size, position))
                if len(chunk) != size:
                    raise _damaged(source, position, "the file is shorter than it was")
                at = 0
                while (header := _next_header(source, chunk, position, at)) is not None:
                    if self.is_stopped:
                        raise CleaningStopped
                    legacy = header.magic < MAGIC_CURRENT
                    first_offset = header.last_offset if legacy else header.base_offset
                    if not expected <= first_offset <= header.last_offset < end_offset:
                        raise _damaged(
                            source, position + at, f"offset {first_offset} is out of order"
                        )
                    expected = header.last_offset + 1
                    if header.last_offset >= offset_min:
                        if not check_crc(chunk, at, header):
                            raise _damaged(source, position + at, "a checksum does not hold")
                        yield chunk, at, header
                    at += header.size_bytes
                self.bytes_done += at
                position += at
                wanted = self._io_bytes if at else _size_at(chunk)
        finally:
            files.close(handle)


class _Writer:
    """Batches on their way into the new segment, in few large writes."""

    def __init__(self, segment: Segment, io_bytes: int) -> None:
        self._segment = segment
        self._io_bytes = io_bytes
        self._buffers: list[Buffer] = []
        self._size_bytes = 0

    def add(self, data: Buffer) -> int:
        header = parse_header(data)
        self._segment.assign(header, header.base_offset, header.max_timestamp)
        self._buffers.append(data)
        self._size_bytes += len(data)
        if self._size_bytes >= self._io_bytes:
            self.flush()
        return len(data)

    def flush(self) -> None:
        if self._buffers:
            self._segment.write(self._buffers)
            self._buffers, self._size_bytes = [], 0


def sync_segment(segment: Segment) -> None:
    """Make a cleaned segment's files durable; the job of the executor."""
    paths = [segment.log_path, segment.index_path, segment.time_index_path]
    if segment.has_transaction_index:
        paths.append(segment.transaction_index_path)
    request = SyncRequest()
    request.paths += paths
    request.directories.append(segment.directory)
    sync_files(segment.files, request)


def _next_header(source: Source, chunk: memoryview, position: int, at: int) -> BatchHeader | None:
    """The header of the batch at `at`, None when the chunk does not hold it whole."""
    remaining = len(chunk) - at
    is_end = position + len(chunk) == source.size_bytes
    if remaining < HEADER_SIZE and not is_end:
        return None
    if remaining == 0:
        return None
    try:
        header = parse_header(chunk, at)
    except (KafkaError, ValueError) as error:
        raise _damaged(source, position + at, str(error)) from None
    if header.size_bytes <= remaining:
        return header
    if position + at + header.size_bytes > source.size_bytes:
        raise _damaged(source, position + at, "a batch is longer than the file")
    return None


def _size_at(chunk: memoryview) -> int:
    """Size of the batch at the beginning of a chunk that was too small for it."""
    return max(parse_header(chunk, 0).size_bytes, HEADER_SIZE)


def _marker(chunk: memoryview, at: int, header: BatchHeader) -> Marker | None:
    if not header.record_count or header.producer_id < 0:
        return None
    return read_marker(chunk[at : at + header.size_bytes])


def _damaged(source: Source, position: int, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{source.path}: {reason} at byte {position}")
