"""The batches of a file, one after the other, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.log.files import Files
from kwire.log.segment.walking import HEADER_SIZE
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import BatchHeader, check_crc, parse_header

READ_BYTES = 4 << 20
SEGMENT_BYTES_MAX = 1 << 31


class Problem(NamedTuple):
    """Something wrong: `position` in bytes, -1 where it is the file as a whole."""

    path: str
    position: int
    reason: str

    def __str__(self) -> str:
        where = f" at byte {self.position}" if self.position >= 0 else ""
        return f"{self.path}: {self.reason}{where}"


class Batch(NamedTuple):
    """A batch of a file, alone in `data` from `at` on."""

    position: int
    header: BatchHeader
    data: memoryview
    at: int


def scan(path: str, files: Files, problem: Callable[[Problem], None]) -> Iterator[Batch]:
    """The whole batches of a file in order, until what cannot be a batch; checksums are checked.

    A batch whose checksum is wrong is reported to `problem` and not given out; the walk goes on
    behind it. What follows the last batch is reported too.
    """
    handle = files.open(path, writable=False)
    try:
        size_bytes = files.size(handle)
        position, wanted = 0, READ_BYTES
        while position < size_bytes:
            chunk = memoryview(files.pread(handle, min(wanted, size_bytes - position), position))
            at = 0
            wanted = READ_BYTES
            while at < len(chunk):
                is_end = position + len(chunk) >= size_bytes
                if len(chunk) - at < HEADER_SIZE and not is_end:
                    break
                try:
                    header = parse_header(chunk, at)
                except KafkaError as error:
                    problem(_no_batch(path, files, handle, position + at, size_bytes, error))
                    return
                if at + header.size_bytes > len(chunk):
                    if position + at + header.size_bytes > size_bytes:
                        there = size_bytes - position - at
                        reason = f"a batch of {header.size_bytes} bytes of which {there} are there"
                        problem(Problem(path, position + at, reason))
                        return
                    wanted = max(READ_BYTES, header.size_bytes)
                    break
                if check_crc(chunk, at, header):
                    yield Batch(position + at, header, chunk, at)
                else:
                    reason = f"the checksum of the batch at offset {header.base_offset} is wrong"
                    problem(Problem(path, position + at, reason))
                at += header.size_bytes
            position += at
    finally:
        files.close(handle)


def _no_batch(
    path: str, files: Files, handle: int, position: int, size_bytes: int, error: KafkaError
) -> Problem:
    """What is wrong with bytes that are no batch: zeros are named as such."""
    if size_bytes - position > SEGMENT_BYTES_MAX:
        return Problem(path, position, f"no record batch, and {size_bytes - position} bytes of it")
    at = position
    while at < size_bytes:
        data = files.pread(handle, READ_BYTES, at)
        if data.count(0) != len(data):
            return Problem(path, position, error.message or "no record batch")
        at += len(data) or size_bytes
    return Problem(path, position, f"{size_bytes - position} zeros behind the last batch")
