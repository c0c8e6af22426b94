"""Going through the batches of a segment by their headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import MAGIC_CURRENT, BatchHeader, parse_header

HEADER_SIZE = 61
HEADER_SIZE_MIN = 17  # up to the magic
WALK_CHUNK_BYTES = 64 * 1024
OFFSET_DELTA_MAX = 0x7FFFFFFF


class Walkable(Protocol):
    """What is written of a segment."""

    base_offset: int
    size_bytes: int

    @property
    def log_path(self) -> str: ...
    def pread(self, size_bytes: int, position: int) -> bytes: ...


def walk(segment: Walkable, position: int, end: int | None) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the written batches from `position` on, up to `end`.

    Raises KafkaError(CORRUPT_MESSAGE) where there is no batch, or one whose offsets cannot be
    there (no checksum covers them). A torn last batch is given out too: compare its end with
    `size_bytes`.
    """
    limit = segment.size_bytes if end is None else min(end, segment.size_bytes)
    chunk, chunk_at = b"", position
    least, most = segment.base_offset, segment.base_offset + OFFSET_DELTA_MAX
    while position + HEADER_SIZE_MIN <= limit:
        if position + HEADER_SIZE > chunk_at + len(chunk):
            chunk_at = position
            chunk = segment.pread(min(WALK_CHUNK_BYTES, segment.size_bytes - position), position)
        header = parse_header(chunk, position - chunk_at)
        last_offset = header.last_offset
        first_offset = header.base_offset if header.magic >= MAGIC_CURRENT else last_offset
        if not least <= first_offset <= last_offset <= most:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{segment.log_path}: offsets {first_offset} to {last_offset} at byte {position} "
                f"cannot be there, behind {least - 1}",
            )
        yield position, header
        least = last_offset + 1
        position += header.size_bytes
