"""Reading the records of batches: for coordinators, raft and tools, not for the data path."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeVar

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import kernel
from kwire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Work, decompress_steps
from kwire.protocol.records.header import (
    MAGIC_CURRENT,
    RECORDS_POSITION,
    BatchHeader,
    Buffer,
    Codec,
    check_crc,
    iterate_headers,
    parse_header,
)
from kwire.protocol.records.record import Record

T = TypeVar("T")
Steps = Generator[Work | None, None, T]
"""A computation that is cut up: it yields None where others may have their turn, and what another
thread can do without the interpreter lock as work to be performed before it goes on."""

# Records a step of the uncompiled kernel handles: about 2 ms.
SLICE_RECORDS = 1500


def records_payload(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> tuple[Buffer, int, int]:
    """(buffer, start, end) of the uncompressed records of the magic-2 batch at `offset`.

    Without a codec that is `buffer` itself. Raises KafkaError: CORRUPT_MESSAGE for a batch that
    is not whole or does not decompress, UNSUPPORTED_COMPRESSION_TYPE, RECORD_LIST_TOO_LARGE.
    """
    return finish(payload_steps(buffer, offset, header, size_max))


def payload_steps(
    buffer: Buffer, offset: int, header: BatchHeader, size_max: int
) -> Steps[tuple[Buffer, int, int]]:
    """`records_payload` in steps."""
    end = offset + header.size_bytes
    if end > len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The batch at {offset} is not whole")
    codec = header.codec
    if codec == Codec.NONE or header.record_count == 0:
        return buffer, offset + RECORDS_POSITION, end
    with memoryview(buffer) as view:
        compressed = view[offset + RECORDS_POSITION : end]
    text = yield from decompress_steps(codec, compressed, size_max)
    return text, 0, len(text)


def walk_batch(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> kernel.RecordWalk:
    """A kernel walk at the first record of the magic-2 batch at `offset`; see `walk_records`."""
    return walk_records(buffer, offset, header, size_max)[1]


def walk_records(
    buffer: Buffer, offset: int, header: BatchHeader, size_max: int
) -> tuple[Buffer, kernel.RecordWalk]:
    """The buffer that holds the uncompressed records, and a kernel walk at the first of them.

    Raises as `records_payload`, and KafkaError(INVALID_RECORD) for a negative record count.
    """
    if header.record_count < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Found invalid record count {header.record_count} in a batch of magic 2",
        )
    text, start, end = records_payload(buffer, offset, header, size_max)
    return text, kernel.RecordWalk(
        text,
        start,
        end,
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp if header.is_log_append_time else None,
    )


def finish(steps: Steps[T]) -> T:
    """Run a computation in steps to its end, here and now."""
    while True:
        try:
            work = next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if work is not None:
            work.perform()


def failure(status: int, index: int) -> KafkaError:
    """Kafka's INVALID_RECORD for a failing status of the kernel at record `index`."""
    reason = {
        kernel.SHORT: "Incorrect declared batch size, premature EOF reached",
        kernel.REMAINING: "Incorrect declared batch size, records still remaining",
        kernel.TOO_LARGE: "A record is larger than max.decompressed.message.bytes",
    }.get(status, "Found invalid record structure")
    return KafkaError(ErrorCode.INVALID_RECORD, f"{reason} (record {index})")


def iterate_batch(
    buffer: Buffer,
    offset: int = 0,
    header: BatchHeader | None = None,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[list[Record]]:
    """The records of the batch at `offset` in lists of at most SLICE_RECORDS; any magic.

    Raises KafkaError(INVALID_RECORD) for malformed records and as `walk_batch` does.
    The checksum is not looked at.
    """
    if header is None:
        header = parse_header(buffer, offset)
    if header.magic < MAGIC_CURRENT:
        from kwire.protocol.records import legacy

        yield legacy.read_message(buffer, offset, header, size_max)
        return
    walk = walk_batch(buffer, offset, header, size_max)
    status = kernel.RUNNING
    while status == kernel.RUNNING:
        status, rows = walk.read(SLICE_RECORDS)
        if status < 0:
            raise failure(status, walk.index)
        yield [to_record(*row) for row in rows]


def read_batch(
    buffer: Buffer,
    offset: int = 0,
    header: BatchHeader | None = None,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> list[Record]:
    """All records of the batch at `offset`; see `iterate_batch`."""
    records: list[Record] = []
    for part in iterate_batch(buffer, offset, header, size_max):
        records += part
    return records


def read_records(
    buffer: Buffer, *, verify_crc: bool = False, size_max: int = MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """The records of all whole batches of `buffer`, control records included."""
    records: list[Record] = []
    for position, header in iterate_headers(buffer):
        if verify_crc and not check_crc(buffer, position, header):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt at {position}")
        records += read_batch(buffer, position, header, size_max)
    return records


def find_timestamp(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    target_ms: int,
    offset_min: int,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record of timestamp >= `target_ms` from `offset_min` on."""
    if header.magic < MAGIC_CURRENT:
        for record in read_batch(buffer, offset, header, size_max):
            if record.timestamp >= target_ms and record.offset >= offset_min:
                return record.timestamp, record.offset
        return None
    walk = walk_batch(buffer, offset, header, size_max)
    status = walk.find_timestamp(header.record_count + 1, target_ms, offset_min)
    if status < 0:
        raise failure(status, walk.index)
    if status != kernel.TIMESTAMP:
        return None
    return walk.timestamp, walk.base_offset + walk.offset_delta


def to_record(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[bytes, bytes | None]],
) -> Record:
    """A row of `RecordWalk.read` as a Record."""
    if not headers:
        return Record(offset, timestamp, key, value, [])
    return Record(offset, timestamp, key, value, [(_text(name), text) for name, text in headers])


def _text(name: bytes) -> str | bytes:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name
