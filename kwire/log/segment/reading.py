"""Reading batches from segments: whole ones, in order, as they lie in the file."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from kwire.log.files import Buffer, can_map
from kwire.log.segment.segment import Segment
from kwire.log.segment.segment_list import Segments
from kwire.log.segment.walking import HEADER_SIZE
from kwire.log.types import FileSlice
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import MAGIC_CURRENT, parse_header

FIRST_BATCH_GUESS_BYTES = 64 * 1024
FILE_SLICE_BYTES_MIN = 256 * 1024  # below that a copy costs no more than the way around it
WALK_BYTES = 4096
WARM_BYTES = 8 << 20  # so much before a segment's end is taken to be in memory


class SegmentRead(NamedTuple):
    """Whole batches of one segment; `next_offset` follows the last one.

    `counted_bytes` is what they count for towards the limits of a fetch: as Apache Kafka sends
    all bytes up to a limit, a batch that the limit cuts off counts with its part.
    """

    data: Buffer | FileSlice
    next_offset: int
    counted_bytes: int


class ColdReadError(Exception):
    """What is to be read is not in memory."""

    def __init__(self, segment: Segment, position: int, size_bytes: int) -> None:
        super().__init__(f"{segment.log_path} at {position} is not in memory")
        self.segment = segment
        self.position = position
        self.size_bytes = size_bytes


EMPTY = SegmentRead(b"", -1, 0)


def read_batches(
    segments: Segments,
    offset: int,
    bytes_max: int,
    offset_max: int,
    *,
    written_offset: int,
    min_one: bool,
    may_wait: bool = False,
    as_file: bool = False,
) -> SegmentRead:
    """Batches from the one that holds `offset` on, all of them below `offset_max`.

    At most `bytes_max` bytes of one segment, but with `min_one` at least one batch. Goes on to the
    next segment where compaction has left nothing in one. `next_offset` is -1 when there is none.
    `written_offset` is where the last segment ends. With `may_wait` raises ColdReadError instead of
    waiting for a disk. With `as_file` much data is given as its place (FileSlice). Raises
    KafkaError(CORRUPT_MESSAGE) where the batches are damaged so that a reader would not get on.
    """
    at = segments.floor_index(offset)
    while at < len(segments) and (at == 0 or segments.at(at).base_offset < offset_max):
        segment = segments.at(at)
        start = _start(segment, offset)
        if start >= 0:
            end = segment.size_bytes
            next_base = segments.next_base(at)
            end_offset = written_offset if next_base is None else next_base
            if offset_max < end_offset:
                end = segment.position_of(offset_max)
            if start >= end:
                return EMPTY
            if may_wait and (segment.is_sealed or segment.size_bytes - start > WARM_BYTES):
                size_bytes = min(end - start, max(bytes_max, HEADER_SIZE))
                is_cached = partial(segment.files.is_cached, position=start, size_bytes=size_bytes)
                if not segment.with_file(is_cached):
                    raise ColdReadError(segment, start, size_bytes)
            limit = min(end, start + bytes_max)
            if as_file and limit - start >= FILE_SLICE_BYTES_MIN and can_map(segment.files):
                found = _find_in_file(segment, start, limit)
                if found is not None and offset < found.next_offset <= end_offset:
                    return found
            found = _read(segment, start, end, bytes_max, min_one)
            if found.data and not offset < found.next_offset <= end_offset:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"the batches at {start} in {segment.log_path} end before "
                    f"{found.next_offset}, not between {offset} and {end_offset}",
                )
            return found
        at += 1
    return EMPTY


def begins_above(data: Buffer | FileSlice, offset: int) -> bool:
    """Whether offsets are missing in front of what a read at `offset` has found.

    Of a FileSlice, which is not read, only where whole segments are passed over.
    """
    if isinstance(data, FileSlice):
        return data.segment_base > offset
    # Of messages before magic 2 it is the last offset that is there.
    return int.from_bytes(data[:8], "big") > offset and data[16] >= MAGIC_CURRENT


def _start(segment: Segment, offset: int) -> int:
    """Where the batch with `offset`, or the first one behind it, starts; -1 without one."""
    position = segment.hint(offset)
    if position is not None:
        return position if position < segment.size_bytes else -1
    found = segment.find(offset)
    return found[0] if found is not None else -1


def _read(segment: Segment, start: int, end: int, bytes_max: int, min_one: bool) -> SegmentRead:
    limit = min(end, start + max(bytes_max, 0))
    size_bytes = limit - start
    if size_bytes < HEADER_SIZE:
        if not min_one:
            return EMPTY
        return _read_first(segment, start, b"")
    data = segment.pread(size_bytes, start)
    cut, next_offset = _cut(segment, start, data)
    if cut:
        segment.remember(next_offset, start + cut)
        whole = memoryview(data)[:cut] if cut < len(data) else data
        return SegmentRead(whole, next_offset, size_bytes)
    return _read_first(segment, start, data) if min_one else EMPTY


def _find_in_file(segment: Segment, start: int, limit: int) -> SegmentRead | None:
    """The whole batches from `start` up to `limit`, without reading more than a few headers.

    The walk begins at the last index entry before the limit. If the batch there is cut off, it is
    where the whole ones end. None when that did not lead to the end of a batch.
    """
    entry_offset, position = segment.index.floor_position(limit - HEADER_SIZE)
    if position <= start:
        end, next_offset = _walk_file(segment, start, limit, None)
    else:
        end, next_offset = _walk_file(segment, position, limit, entry_offset)
    if next_offset < 0 or end <= start:
        return None
    segment.remember(next_offset, end)
    return SegmentRead(FileSlice(segment, start, end - start), next_offset, limit - start)


def _walk_file(segment: Segment, at: int, limit: int, entry_offset: int | None) -> tuple[int, int]:
    """(end, next offset) of the last whole batch before `limit`, by the one at `at` and those
    behind it; `at` itself may be that end.

    (at, -1) when there is no batch at `at`, or not the one of the index entry.
    """
    chunk, chunk_at = b"", at
    end, next_offset = at, -1
    while at + HEADER_SIZE <= limit:
        if at + HEADER_SIZE > chunk_at + len(chunk):
            chunk, chunk_at = segment.pread(WALK_BYTES, at), at
        try:
            header = parse_header(chunk, at - chunk_at)
        except KafkaError:
            break
        if entry_offset is not None and header.last_offset != entry_offset:
            break
        entry_offset = None
        if next_offset < 0:
            next_offset = header.base_offset
        at += header.size_bytes
        if at > limit:
            break
        end, next_offset = at, header.next_offset
    return end, next_offset


def _read_first(segment: Segment, start: int, head: bytes) -> SegmentRead:
    """The batch at `start` whole, however large."""
    if len(head) < HEADER_SIZE:
        head = segment.pread(min(FIRST_BATCH_GUESS_BYTES, segment.size_bytes - start), start)
    header = parse_header(head)
    if start + header.size_bytes > segment.size_bytes:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the batch at {start} in {segment.log_path} is not whole"
        )
    if header.size_bytes <= len(head):
        head = head[: header.size_bytes]
    else:
        head += segment.pread(header.size_bytes - len(head), start + len(head))
    segment.remember(header.next_offset, start + header.size_bytes)
    return SegmentRead(head, header.next_offset, len(head))


def _cut(segment: Segment, start: int, data: bytes) -> tuple[int, int]:
    """(size, next offset) of the whole batches in `data`, which begins at `start`.

    The walk begins at the last index entry inside, so that large reads cost little.
    """
    size_bytes = len(data)
    entry_offset, position = segment.index.floor_position(start + size_bytes - HEADER_SIZE)
    at = position - start
    if at <= 0:
        return _walk_to_end(data, 0)
    try:
        is_right = parse_header(data, at).last_offset == entry_offset
    except KafkaError:
        is_right = False
    if not is_right:
        segment.rebuild_indexes(f"the index entry of offset {entry_offset} is wrong")
        return _walk_to_end(data, 0)
    result = _walk_to_end(data, at)
    if result[0] == 0:
        # The batch of that entry is cut off: only a walk from the beginning finds the one before.
        result = _walk_to_end(data, 0)
    return result


def _walk_to_end(data: bytes, at: int) -> tuple[int, int]:
    """(end, next offset) of the last whole batch from `at` on, (0, -1) without one.

    Raises KafkaError(CORRUPT_MESSAGE) where there is none at `at`; what is in front of damage is
    read, and what is behind the last batch of a segment is in nobody's way.
    """
    size_bytes = len(data)
    end, next_offset = 0, -1
    while at + HEADER_SIZE <= size_bytes:
        try:
            header = parse_header(data, at)
        except KafkaError:
            if end:
                break
            raise
        at += header.size_bytes
        if at > size_bytes:
            break
        end, next_offset = at, header.next_offset
    return end, next_offset
