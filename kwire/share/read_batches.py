"""The record batches that a share fetch has read: their headers, and what is sent of them.

Of batches in memory all is there; of much data only its place in a segment's file is known, from
where it is sent (`FileSlice`), and no more than headers is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kwire.log.types import FileSlice
from kwire.protocol.records import HEADER_SIZE, Outline, outline, outlines
from kwire.protocol.structs import Buffer, FilePart
from kwire.share.changes import FetchedBatch

PEEK_BYTES = 4096
"""What is read of a file at once for the headers in it."""

Data: TypeAlias = "list[Buffer | FilePart]"


def headers(data: Data, until: int) -> list[FetchedBatch]:
    """Headers of whole batches, in order, up to the first one that reaches the offset `until`.

    OSError where a file cannot be read.
    """
    found: list[Outline] = []
    for index, buffer in enumerate(data):
        if isinstance(buffer, FileSlice):
            in_file = _in_file(buffer, until)
            if in_file is None:
                data[index] = buffer = buffer.read()
                in_file = outlines(buffer, until)
            found += in_file
        else:
            assert isinstance(buffer, (bytes, bytearray, memoryview)), buffer
            found += outlines(buffer, until)
        if found and found[-1][1] >= until:
            break
    return list(map(FetchedBatch._make, found))


def _in_file(part: FileSlice, until: int) -> list[Outline] | None:
    """As `outlines`; None where a batch is of the old formats."""
    found: list[Outline] = []
    chunk, begin, at, size_bytes = b"", 0, 0, len(part)
    while at + HEADER_SIZE <= size_bytes:
        if at + HEADER_SIZE > begin + len(chunk):
            chunk, begin = part.peek(at, PEEK_BYTES), at
        batch = outline(chunk, at - begin)
        if batch is None:
            return None
        at += batch[2]
        if at > size_bytes:
            break
        found.append(batch)
        if batch[1] >= until:
            break
    return found


def cut(data: Data, fetched: Sequence[FetchedBatch], first: int, last: int) -> tuple[Data, int]:
    """The record batches with an offset from `first` to `last`, uncopied, and their size."""
    skipped = kept = 0
    for batch in fetched:
        if batch.last_offset < first:
            skipped += batch.size_bytes
        elif batch.base_offset <= last:
            kept += batch.size_bytes
    size_bytes = kept
    found: Data = []
    for buffer in data:
        begin = min(skipped, len(buffer))
        skipped -= begin
        end = min(len(buffer), begin + kept)
        kept -= end - begin
        if end > begin:
            found.append(_part(buffer, begin, end))
    return found, size_bytes


def _part(buffer: Buffer | FilePart, begin: int, end: int) -> Buffer | FilePart:
    if isinstance(buffer, FileSlice):
        return buffer.part(begin, end)
    assert isinstance(buffer, (bytes, bytearray, memoryview)), buffer
    return memoryview(buffer)[begin:end]


def kept(data: Data) -> Data:
    """The same for a later turn of the loop, when files may be gone: they are mapped. OSError."""
    return [part.view() if isinstance(part, FileSlice) else part for part in data]
