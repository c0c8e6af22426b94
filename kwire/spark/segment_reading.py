"""Reading one segment into Arrow batches; runs in Spark's workers and without Spark.

The log is read in chunks of whole batches. A batch is passed over by its header when it is a
control batch, aborted, or outside of the wanted offsets and timestamps; its checksum is looked at
before that. The kernel (compiled where it can be) walks the records.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.records import BatchHeader, check_crc, kernel, next_batch_size, parse_header
from kwire.protocol.records.header import CODEC_MASK, MAGIC_CURRENT, RECORDS_POSITION
from kwire.protocol.records.legacy import read_message
from kwire.protocol.records.reading import failure, records_payload, walk_batch
from kwire.spark.segment_plan import (
    HEADER_BYTES,
    INT64_MIN,
    DamagedSegmentError,
    SegmentTask,
    overlaps,
)
from kwire.spark.stores import Store, open_store

CHUNK_BYTES = 4 << 20
BATCH_ROWS_MAX = 32_768
BATCH_BYTES_MAX = 8 << 20
BATCH_SIZE_MAX = 1 << 30
TIMESTAMP_MAX_MS = 0x7FFFFFFFFFFFFFFF // 1000
_INDEX_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Row = tuple[int, int, bytes | None, bytes | None, Sequence[tuple[Any, bytes | None]]]


def read_segment(task: SegmentTask, columns: Sequence[str]) -> Iterator[Any]:
    """pyarrow RecordBatches of the wanted records with these columns, in offset order."""
    rows: list[Row] = []
    runs: list[tuple[int, int, int]] = []  # (rows, timestamp type, leader epoch)
    size_bytes = 0
    for buffer, position, header in wanted_batches(task):
        found = _rows(task, buffer, position, header)
        if not found:
            continue
        rows += found
        runs.append((len(found), int(header.is_log_append_time), header.partition_leader_epoch))
        size_bytes += header.size_bytes
        if len(rows) >= BATCH_ROWS_MAX or size_bytes >= BATCH_BYTES_MAX:
            yield to_arrow(task.topic, task.partition, rows, runs, columns)
            rows, runs, size_bytes = [], [], 0
    if rows:
        yield to_arrow(task.topic, task.partition, rows, runs, columns)


def wanted_batches(task: SegmentTask) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """(buffer, position, header) of the batches that hold wanted records, checked."""
    aborted = overlaps(task.aborted)
    for buffer, position, header, at in _batches(task):
        if header.base_offset > task.offset_max and header.magic >= MAGIC_CURRENT:
            return
        # First of all: what a batch says of itself decides whether it is passed over.
        if not check_crc(buffer, position, header):
            if task.is_newest:
                return
            raise DamagedSegmentError(f"{task.log_path}: bad checksum at position {at}")
        if header.magic < MAGIC_CURRENT:
            # A wrapper's offset is its last record's; what is inside is looked at row by row.
            if header.base_offset < task.offset_min:
                continue
        else:
            if header.last_offset < task.offset_min or header.is_control:
                continue
            if header.record_count == 0 or header.max_timestamp < task.timestamp_min:
                continue
            if header.is_transactional and header.producer_id in aborted:
                offset = header.base_offset
                if any(first <= offset <= last for first, last in aborted[header.producer_id]):
                    continue
        yield buffer, position, header


def _batches(task: SegmentTask) -> Iterator[tuple[bytes, int, BatchHeader, int]]:
    """(buffer, position in it, header, position in the file) from the first useful batch on."""
    store, _ = open_store(task.location)
    start = start_position(store, task)
    size_bytes = task.segment.size_bytes
    chunk_bytes = CHUNK_BYTES
    least = task.segment.base_offset
    while start < size_bytes:
        data = store.read(task.log_path, start, min(chunk_bytes, size_bytes - start))
        position = 0
        while True:
            try:
                batch_bytes = next_batch_size(data, position, len(data))
            except KafkaError as error:
                if task.is_newest:
                    return
                raise DamagedSegmentError(
                    f"{task.log_path}: {error} at position {start + position}"
                ) from None
            if not batch_bytes:
                break
            header = parse_header(data, position)
            # No checksum covers a batch's offset: only that offsets ascend tells that it is right.
            if header.base_offset < least:
                if task.is_newest and not check_crc(data, position, header):
                    return
                raise DamagedSegmentError(
                    f"{task.log_path}: offset {header.base_offset} behind {least - 1} "
                    f"at position {start + position}"
                )
            least = header.next_offset
            yield data, position, header, start + position
            position += batch_bytes
        if not position and (chunk_bytes := _larger(task, data, start, chunk_bytes)) == 0:
            return
        if position:
            start += position
            chunk_bytes = CHUNK_BYTES


def _larger(task: SegmentTask, data: bytes, start: int, chunk_bytes: int) -> int:
    """How much to read for the batch that did not fit; 0 where the file ends before it does."""
    whole = int.from_bytes(data[8:12], "big") + 12 if len(data) >= 12 else BATCH_SIZE_MAX + 1
    if start + whole <= task.segment.size_bytes and chunk_bytes < whole <= BATCH_SIZE_MAX:
        return whole
    if task.is_newest:
        return 0
    raise DamagedSegmentError(f"{task.log_path}: a torn batch at position {start}")


def start_position(store: Store, task: SegmentTask) -> int:
    """Where to start reading: the indexes know a batch at or before the first wanted one."""
    segment = task.segment
    if segment.offset_index is None:
        return 0
    offset = task.offset_min - segment.base_offset
    if task.timestamp_min > INT64_MIN and segment.time_index is not None:
        offset = max(offset, _offset_by_time(store, task))
    if offset <= 0:
        return 0
    offsets, positions = _index(store.read(f"{task.folder}/{segment.offset_index}"))
    # The greatest entry below: an entry's offset is its batch's last, the position its start.
    at = bisect_right(offsets, min(offset, 0x7FFFFFFF)) - 1
    if at < 0:
        return 0
    last_offset = segment.base_offset + offsets[at]
    return positions[at] if _ends_with(store, task, positions[at], last_offset) else 0


def _ends_with(store: Store, task: SegmentTask, position: int, last_offset: int) -> bool:
    """Whether the batch with this last offset begins here: an index has no checksum either."""
    if not 0 <= position <= task.segment.size_bytes - HEADER_BYTES:
        return False
    try:
        header = parse_header(store.read(task.log_path, position, HEADER_BYTES))
    except (KafkaError, MalformedError):
        return False
    return header.next_offset - 1 == last_offset


def _index(data: bytes) -> tuple[list[int], list[int]]:
    """The ascending entries of an offset index; what is behind them does not count."""
    offsets: list[int] = []
    positions: list[int] = []
    for offset, position in _INDEX_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
        if offsets and (offset <= offsets[-1] or position <= positions[-1]):
            break
        if not offsets and offset == position == 0:
            break
        offsets.append(offset)
        positions.append(position)
    return offsets, positions


def _offset_by_time(store: Store, task: SegmentTask) -> int:
    """A relative offset: every batch before it has only timestamps below the wanted ones."""
    data = store.read(f"{task.folder}/{task.segment.time_index}")
    timestamps: list[int] = []
    offsets: list[int] = []
    for timestamp, offset in _TIME_ENTRY.iter_unpack(data[: len(data) // 12 * 12]):
        if timestamps and (timestamp <= timestamps[-1] or offset < offsets[-1]):
            break
        timestamps.append(timestamp)
        offsets.append(offset)
    at = bisect_left(timestamps, task.timestamp_min) - 1
    return offsets[at] if at >= 0 else 0


def _rows(task: SegmentTask, buffer: bytes, position: int, header: BatchHeader) -> list[Row]:
    """The wanted rows of a batch."""
    try:
        if header.magic < MAGIC_CURRENT:
            rows: list[Row] = [
                (record.offset, record.timestamp, record.key, record.value, [])
                for record in read_message(buffer, position, header)
            ]
        else:
            walk = walk_batch(buffer, position, header)
            status, rows = walk.read(header.record_count + 1)  # type: ignore[assignment]
            if status < 0:
                raise failure(status, walk.index)
    except KafkaError as error:
        raise DamagedSegmentError(
            f"{task.log_path}: {error} in the batch at offset {header.base_offset}"
        ) from None
    is_inside = (
        header.magic == MAGIC_CURRENT
        and header.base_offset >= task.offset_min
        and header.last_offset <= task.offset_max
    )
    if not is_inside:
        rows = [row for row in rows if task.offset_min <= row[0] <= task.offset_max]
    if task.timestamp_min > INT64_MIN or header.max_timestamp > task.timestamp_max:
        rows = [row for row in rows if task.timestamp_min <= row[1] <= task.timestamp_max]
    return rows


def to_arrow(
    topic: str,
    partition: int,
    rows: Sequence[Row],
    runs: Sequence[tuple[int, int, int]],
    columns: Sequence[str],
) -> Any:
    """A RecordBatch of these rows. `runs`: (rows, timestamp type, leader epoch) in order."""
    import pyarrow as pa

    count = len(rows)
    offsets, timestamps, keys, values, headers = zip(*rows, strict=True)
    arrays = []
    for column in columns:
        if column == "topic":
            array = pa.repeat(pa.scalar(topic, pa.string()), count)
        elif column == "partition":
            array = pa.repeat(pa.scalar(partition, pa.int32()), count)
        elif column == "offset":
            array = pa.array(offsets, pa.int64())
        elif column == "timestamp":
            array = _timestamps(timestamps)
        elif column == "timestampType":
            array = _run_values([(run[0], run[1]) for run in runs])
        elif column == "leaderEpoch":
            array = _run_values([(run[0], run[2] if run[2] >= 0 else None) for run in runs])
        elif column == "key":
            array = pa.array(keys, pa.binary())
        elif column == "value":
            array = pa.array(values, pa.binary())
        else:
            array = _headers(headers)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _timestamps(timestamps: Sequence[int]) -> Any:
    import pyarrow as pa

    kind = pa.timestamp("us", tz="UTC")
    try:
        return pa.array([timestamp * 1000 for timestamp in timestamps], kind)
    except (OverflowError, pa.ArrowException):
        # Spark's microseconds do not reach as far as Kafka's milliseconds.
        low, high = -TIMESTAMP_MAX_MS, TIMESTAMP_MAX_MS
        return pa.array([min(max(value, low), high) * 1000 for value in timestamps], kind)


def _run_values(runs: Sequence[tuple[int, int | None]]) -> Any:
    import pyarrow as pa

    values = {value for _, value in runs}
    if len(values) == 1:
        total = sum(count for count, _ in runs)
        return pa.repeat(pa.scalar(runs[0][1], pa.int32()), total)
    return pa.array([value for count, value in runs for _ in range(count)], pa.int32())


def header_type() -> Any:
    """Arrow's type of the headers column, as Spark's connector has it."""
    import pyarrow as pa

    return pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _headers(headers: Sequence[Sequence[tuple[Any, bytes | None]]]) -> Any:
    """Null where a record has none, which is what Spark's connector says too."""
    import pyarrow as pa

    if not any(headers):
        return pa.nulls(len(headers), header_type())
    texts = [
        [(key.decode("utf-8", "replace"), value) for key, value in found] if found else None
        for found in headers
    ]
    return pa.array(texts, header_type())


def read_batch_rows(task: SegmentTask) -> Iterator[Any]:
    """RecordBatches with a row for each record batch: sizes, codec, producer (no records)."""
    found: list[tuple[Any, ...]] = []
    for buffer, position, header in wanted_batches(task):
        raw_bytes = header.size_bytes
        if header.is_compressed and header.magic == MAGIC_CURRENT:
            _, start, end = records_payload(buffer, position, header)
            raw_bytes = RECORDS_POSITION + end - start
        found.append(_batch_row(task, header, raw_bytes))
        if len(found) >= BATCH_ROWS_MAX:
            yield _batch_table(found)
            found = []
    if found:
        yield _batch_table(found)


def _batch_row(task: SegmentTask, header: BatchHeader, raw_bytes: int) -> tuple[Any, ...]:
    codec = header.attributes & CODEC_MASK
    if codec >= len(CODECS):
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {codec}")
    return (
        task.topic,
        task.partition,
        header.base_offset,
        header.last_offset,
        max(header.record_count, 1),
        header.size_bytes,
        raw_bytes,
        CODECS[codec],
        min(max(header.max_timestamp, -TIMESTAMP_MAX_MS), TIMESTAMP_MAX_MS) * 1000,
        header.producer_id,
        header.partition_leader_epoch,
        header.is_transactional,
    )


def _batch_table(rows: Sequence[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    int32, int64 = pa.int32(), pa.int64()
    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", int32),
            ("baseOffset", int64),
            ("lastOffset", int64),
            ("records", int32),
            ("sizeBytes", int64),
            ("rawBytes", int64),
            ("codec", pa.string()),
            ("maxTimestamp", pa.timestamp("us", tz="UTC")),
            ("producerId", int64),
            ("leaderEpoch", int32),
            ("transactional", pa.bool_()),
        ]
    )
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


COMPILED = kernel.COMPILED
