"""Checking a segment batch by batch: which of its bytes are damaged. Changes nothing."""

from __future__ import annotations

import logging
from typing import NamedTuple

from kwire.log.segment.segment import Segment
from kwire.log.segment.walking import HEADER_SIZE
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import BatchHeader, check_crc, parse_header

logger = logging.getLogger(__name__)

READ_BYTES = 4 << 20
READINGS_MAX = 3


class Damage(NamedTuple):
    """Bytes of a segment that are no valid batch.

    `next_offset` is the offset due there, `resume_offset` that of the next whole batch behind,
    None where the segment has none.
    """

    position: int
    size_bytes: int
    next_offset: int
    resume_offset: int | None
    reason: str


class Checked(NamedTuple):
    """What a reading of a segment found: the offset behind the last whole batch, and a digest of
    the headers of all whole ones."""

    damage: list[Damage]
    end_offset: int
    digest: int


def check_segment(segment: Segment) -> Checked:
    """Check every batch of a segment: shape, checksum, ascending offsets. Reads it all.

    Damage is believed when a second reading finds the same: a bit that is flipped on its way from
    the disk must not cost a batch that is whole there.
    """
    found = _check(segment)
    for _ in range(READINGS_MAX):
        if not found.damage:
            break
        again = _check(segment)
        if again == found:
            break
        logger.warning("%s: two readings differ; reading it again", segment.log_path)
        found = again
    return found


def _check(segment: Segment) -> Checked:
    damage: list[Damage] = []
    position, expected, digest = 0, segment.base_offset, 0
    size_bytes = segment.size_bytes
    chunk, chunk_at = memoryview(b""), 0
    while position < size_bytes:
        if position + HEADER_SIZE > chunk_at + len(chunk) and chunk_at + len(chunk) < size_bytes:
            chunk_at = position
            chunk = memoryview(segment.pread(min(READ_BYTES, size_bytes - position), position))
        header, reason = _header(chunk, position - chunk_at, size_bytes - position)
        if header is not None and position + header.size_bytes > chunk_at + len(chunk):
            chunk_at = position
            wanted = max(READ_BYTES, header.size_bytes)
            chunk = memoryview(segment.pread(min(wanted, size_bytes - position), position))
            header, reason = _header(chunk, 0, size_bytes - position)
        if header is not None:
            reason = _fault(chunk, position - chunk_at, header, expected, segment.base_offset)
            if not reason:
                expected = header.next_offset
                digest = hash((digest, header))
                position += header.size_bytes
                continue
        resume, resume_offset = _resume(segment, position, header, expected)
        damage.append(Damage(position, resume - position, expected, resume_offset, reason))
        position = resume
    return Checked(damage, expected, digest)


def _header(chunk: memoryview, at: int, remaining: int) -> tuple[BatchHeader | None, str]:
    try:
        header = parse_header(chunk, at)
    except KafkaError as error:
        return None, error.message or "no record batch"
    if header.size_bytes > remaining:
        return None, f"a batch of {header.size_bytes} bytes of which {remaining} are there"
    return header, ""


def _fault(chunk: memoryview, at: int, header: BatchHeader, expected: int, base_offset: int) -> str:
    first = header.base_offset if header.magic >= 2 else header.last_offset
    if header.last_offset_delta < 0 or first < expected:
        return f"offset {first} where {expected} or more is due"
    if header.last_offset - base_offset > 0x7FFFFFFF:
        return f"offset {header.last_offset} is too far from the segment's base"
    if not check_crc(chunk, at, header):
        return f"the checksum of the batch at offset {first} does not hold"
    return ""


def _resume(
    segment: Segment, position: int, header: BatchHeader | None, expected: int
) -> tuple[int, int | None]:
    """(position, offset) of the next whole batch: by the damaged one's length, or the index."""
    candidates = []
    if header is not None:
        candidates.append(position + header.size_bytes)
    else:  # what says how long it is may be right all the same
        length = int.from_bytes(segment.pread(4, position + 8), "big")
        candidates.append(position + 12 + length)
    try:
        candidates += [p for p in segment.read_index_positions() if p > position]
    except OSError:
        pass
    for candidate in candidates:
        if candidate >= segment.size_bytes:
            continue
        head = segment.pread(61, candidate)
        found, _ = _header(memoryview(head), 0, segment.size_bytes - candidate)
        if found is None:
            continue
        data = memoryview(segment.pread(found.size_bytes, candidate))
        if not _fault(data, 0, found, expected, segment.base_offset):
            return candidate, found.base_offset
    return segment.size_bytes, None


def is_a_batch(segment: Segment, item: Damage) -> bool:
    """Whether damage begins with a batch that is whole, at offsets where it does not belong."""
    head = memoryview(segment.pread(HEADER_SIZE, item.position))
    header, _ = _header(head, 0, segment.size_bytes - item.position)
    if header is None:
        return False
    return check_crc(memoryview(segment.pread(header.size_bytes, item.position)), 0, header)
