"""Compaction of record batches, and the reduction of a coordinator's log to its last records.

A cleaner goes twice over a log: `index_batch` puts the last offset of every key into an
`OffsetMap`, then `filter_batch` leaves of each batch what the map says is last. Which batches
take part (control batches, aborted transactions, what is above the last stable offset) is the
caller's knowledge. Both have a form in steps, generators that yield between slices of 1,024
records; compiled, a slice runs without the interpreter lock.

What a filtered batch looks like is Kafka's (measured on Apache Kafka 4.4): base offset, last
offset, sequence and producer stay, records keep their offset deltas, the base timestamp becomes
the first retained record's, or the delete horizon once the batch holds tombstones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from kwire.protocol.records import kernel
from kwire.protocol.records.build import assemble, build_batch, empty_batch
from kwire.protocol.records.compaction_kernel import (
    OffsetMap,
    Selection,
    index_keys,
    rewrite,
    select,
)
from kwire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, compress
from kwire.protocol.records.header import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    MAGIC_CURRENT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    Codec,
)
from kwire.protocol.records.reading import (
    failure,
    finish,
    read_batch,
    to_record,
    walk_batch,
    walk_records,
)
from kwire.protocol.records.record import Record

TABLE_ROWS = 1024
_ROW_BYTES = 96
_RECORD_BYTES_MIN = 7
_ROOM_BYTES = 24  # what `rewrite` may need for a record beyond its size


class FilteredBatch(NamedTuple):
    """What is left of a batch.

    `data` is None when nothing is left, the batch's own bytes when everything is (`original`),
    otherwise a new batch. `tombstones` counts the retained ones.
    """

    data: Buffer | None
    original: bool
    records_read: int
    records_retained: int
    tombstones: int
    max_timestamp: int


def new_table() -> memoryview[int]:
    """A table of places for TABLE_ROWS records."""
    return memoryview(bytearray(_ROW_BYTES * TABLE_ROWS)).cast("q")


def _flags(walk: kernel.RecordWalk) -> bytearray:
    """A flag for each record that the payload can hold, whatever the header counts."""
    return bytearray(min(walk.count, (walk.end - walk.position) // _RECORD_BYTES_MIN + 1))


def _tables(walk: kernel.RecordWalk, table: memoryview[int]) -> Iterator[tuple[int, int]]:
    """(index of the first record, rows) of each table of the walk; raises for malformed records."""
    status = kernel.RUNNING
    while status == kernel.RUNNING:
        first = walk.index
        status = walk.places(table, TABLE_ROWS)
        if status < 0:
            raise failure(status, walk.index)
        if walk.rows:
            yield first, walk.rows


def index_steps(
    offsets: OffsetMap,
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    *,
    offset_min: int = 0,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> Generator[None, None, bool]:
    """`index_batch` in slices."""
    if header.magic < MAGIC_CURRENT:
        for record in read_batch(buffer, offset, header, size_max):
            if record.key is None or record.offset < offset_min:
                continue
            if not offsets.put(record.key, record.offset):
                return False
    else:
        text, walk = walk_records(buffer, offset, header, size_max)
        table = new_table()
        for _, rows in _tables(walk, table):
            if index_keys(text, table, rows, offsets, offset_min) < rows:
                return False
            yield
    if header.last_offset >= offset_min:
        offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
    return True


def index_batch(
    offsets: OffsetMap,
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    *,
    offset_min: int = 0,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> bool:
    """Put the keys of the batch at `offset`, from `offset_min` on, into the map.

    False when the map is full: it then holds the batch up to its `latest_offset`. Raises
    KafkaError as `read_batch` does.
    """
    return finish(
        index_steps(offsets, buffer, offset, header, offset_min=offset_min, size_max=size_max)
    )


def filter_steps(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    offsets: OffsetMap,
    *,
    keep_tombstones: bool,
    delete_horizon_ms: int | None = None,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> Generator[None, None, FilteredBatch]:
    """`filter_batch` in slices."""
    if header.magic < MAGIC_CURRENT:
        return _filter_legacy(buffer, offset, header, offsets, keep_tombstones, size_max)
    text, walk = walk_records(buffer, offset, header, size_max)
    flags = _flags(walk)
    table = new_table()
    selection = Selection()
    for first, rows in _tables(walk, table):
        select(text, table, rows, offsets, keep_tombstones, flags, first, selection)
        yield
    horizon = header.delete_horizon_ms
    if horizon is None and selection.tombstones:
        horizon = delete_horizon_ms
    read, retained = walk.index, selection.count
    if retained == 0:
        return FilteredBatch(None, False, read, 0, 0, -1)
    if retained == read and horizon == header.delete_horizon_ms:
        with memoryview(buffer) as view:
            own = view[offset : offset + header.size_bytes]
        return FilteredBatch(own, True, read, retained, selection.tombstones, header.max_timestamp)
    base_timestamp = selection.first_timestamp if horizon is None else horizon
    verbatim = base_timestamp == header.base_timestamp and not header.is_log_append_time
    out = bytearray(selection.size_bytes + _ROOM_BYTES * retained)
    at = 0
    text, walk = _again(buffer, offset, header, text, size_max)
    for first, rows in _tables(walk, table):
        at = rewrite(text, table, rows, flags, first, out, at, base_timestamp, verbatim)
        yield
    del out[at:]
    batch = _retained_batch(header, out, retained, base_timestamp, horizon, selection)
    return FilteredBatch(
        batch, False, read, retained, selection.tombstones, selection.max_timestamp
    )


def filter_batch(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    offsets: OffsetMap,
    *,
    keep_tombstones: bool,
    delete_horizon_ms: int | None = None,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> FilteredBatch:
    """The batch at `offset` without the records that later ones replaced.

    A record behind the map's latest offset stays; otherwise one stays that has a key, is the
    last of it, and is no tombstone unless `keep_tombstones`. A batch that keeps tombstones and has
    no delete horizon yet is given `delete_horizon_ms`. Raises KafkaError as `read_batch` does.
    """
    return finish(
        filter_steps(
            buffer,
            offset,
            header,
            offsets,
            keep_tombstones=keep_tombstones,
            delete_horizon_ms=delete_horizon_ms,
            size_max=size_max,
        )
    )


def with_delete_horizon(
    buffer: Buffer, offset: int, header: BatchHeader, delete_horizon_ms: int
) -> bytearray:
    """The batch at `offset`, which has none, with a delete horizon (a marker of an empty
    transaction gets one when compaction first passes it)."""
    text, walk = walk_records(buffer, offset, header, MAX_DECOMPRESSED_BYTES)
    selection = Selection()
    everything = OffsetMap(48, bytes(16))  # empty: every record lies behind its latest offset
    flags = _flags(walk)
    out = bytearray(walk.end - walk.position + _ROOM_BYTES * len(flags))
    at = 0
    table = new_table()
    for first, rows in _tables(walk, table):
        select(text, table, rows, everything, True, flags, first, selection)
        at = rewrite(text, table, rows, flags, first, out, at, delete_horizon_ms, False)
    del out[at:]
    return _retained_batch(
        header, out, selection.count, delete_horizon_ms, delete_horizon_ms, selection
    )


def emptied(header: BatchHeader) -> bytearray:
    """The header alone that compaction leaves of a batch that has to stay without its records.

    A live producer's last batch stays so, for its sequence. It has no codec and no base timestamp.
    """
    return empty_batch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes & (APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT),
        base_timestamp=NO_TIMESTAMP,
        timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


def _again(
    buffer: Buffer, offset: int, header: BatchHeader, text: Buffer, size_max: int
) -> tuple[Buffer, kernel.RecordWalk]:
    """A second walk over the same records, not decompressed again."""
    if not header.is_compressed:
        return walk_records(buffer, offset, header, size_max)
    append_time = header.max_timestamp if header.is_log_append_time else None
    return text, kernel.RecordWalk(
        text,
        0,
        len(text),
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        append_time,
    )


def _retained_batch(
    header: BatchHeader,
    payload: bytearray,
    count: int,
    base_timestamp: int,
    horizon: int | None,
    selection: Selection,
) -> bytearray:
    attributes = header.attributes & 0x3F
    if horizon is not None:
        attributes |= DELETE_HORIZON_BIT
    codec = header.codec
    max_timestamp = selection.max_timestamp
    return assemble(
        payload if codec == Codec.NONE else compress(codec, payload),
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if header.is_log_append_time else max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=count,
    )


def _filter_legacy(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    offsets: OffsetMap,
    keep_tombstones: bool,
    size_max: int,
) -> FilteredBatch:
    """Messages of magic 0 and 1: kept as they are, or what is left of them as magic 2."""
    records = read_batch(buffer, offset, header, size_max)
    kept = [record for record in records if _is_retained(record, offsets, keep_tombstones)]
    tombstones = sum(record.value is None for record in kept)
    if not kept:
        return FilteredBatch(None, False, len(records), 0, 0, -1)
    newest = max(record.timestamp for record in kept)
    if len(kept) == len(records):
        with memoryview(buffer) as view:
            own = view[offset : offset + header.size_bytes]
        return FilteredBatch(own, True, len(records), len(kept), tombstones, newest)
    batch = build_batch(
        kept,
        base_offset=records[0].offset,
        last_offset=records[-1].offset,
        codec=header.codec,
        timestamp_type=1 if header.is_log_append_time else 0,
    )
    return FilteredBatch(batch, False, len(records), len(kept), tombstones, newest)


def _is_retained(record: Record, offsets: OffsetMap, keep_tombstones: bool) -> bool:
    if record.offset > offsets.latest_offset:
        return True
    if record.key is None or (record.value is None and not keep_tombstones):
        return False
    return record.offset >= offsets.get(record.key)


class Share(IntEnum):
    """What a batch has to do with the state that its log describes."""

    COMMITTED = 0  # its records count: the last one of a key is enough
    OPEN = 1  # its transaction has no end yet: every record is needed
    NONE = 2  # aborted, or a control batch: no record is


def reduce_log(
    batches: Sequence[tuple[Buffer, int, BatchHeader, Share]],
    seed: bytes,
    *,
    memory_bytes: int | None = None,
    keep_tombstones: bool = False,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """The records of a coordinator's log that decide its state, by batch, in log order.

    `batches` are (buffer, position, header, share) in log order. Of the committed ones the last
    record of each key is given, tombstones only if `keep_tombstones`; the map of keys takes
    `memory_bytes` (default: enough for every record to have a key of its own), and what does
    not fit is given as it is. Empty lists separate slices of work, so that a loop that has to
    attend to something else can stop between them. Raises KafkaError as `read_batch` does.
    """
    count = sum(header.record_count for *_, header, share in batches if share is Share.COMMITTED)
    offsets = OffsetMap(max(48, memory_bytes or count * 27 + 48), seed)
    for buffer, position, header, share in batches:
        if share is not Share.COMMITTED:
            continue
        steps = index_steps(offsets, buffer, position, header, size_max=size_max)
        while (full := _step(steps)) is None:
            yield header, []
        if not full:
            break
    for buffer, position, header, share in batches:
        if share is Share.OPEN:
            yield header, read_batch(buffer, position, header, size_max)
        elif share is Share.COMMITTED:
            yield from _reduced(buffer, position, header, offsets, keep_tombstones, size_max)


def _step(steps: Generator[None, None, bool]) -> bool | None:
    """Advance by a slice; the result once there is one."""
    try:
        next(steps)
    except StopIteration as stop:
        result: bool = stop.value
        return result
    return None


def _reduced(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    offsets: OffsetMap,
    keep_tombstones: bool,
    size_max: int,
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    if header.magic < MAGIC_CURRENT:
        records = read_batch(buffer, position, header, size_max)
        yield header, [r for r in records if _is_retained(r, offsets, keep_tombstones)]
        return
    text, walk = walk_records(buffer, position, header, size_max)
    reader = (
        walk_batch(buffer, position, header, size_max)
        if not header.is_compressed
        else (_again(buffer, position, header, text, size_max)[1])
    )
    flags = _flags(walk)
    table = new_table()
    for first, rows in _tables(walk, table):
        selection = Selection()
        select(text, table, rows, offsets, keep_tombstones, flags, first, selection)
        _, found = reader.read(rows, flags)
        yield header, [to_record(*row) for row in found]
