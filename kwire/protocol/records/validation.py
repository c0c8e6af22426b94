"""What a leader checks before it appends a batch, and how the batch changes on the way in.

The order and the error codes are those of Apache Kafka 4.4 (measured): the shape of a produce
request's records (`check_produced`), size, checksum and base offset (`check_batch`), the header,
then the records in the kernel, whose faults are listed by record (`InvalidRecordsError`).
A valid batch keeps its bytes: base offset and leader epoch are stamped in place, the checksum is
computed again only when the header's max timestamp or timestamp type was not what it has to be.
Only another codec than the producer's makes a new batch.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import kernel
from kwire.protocol.records.build import assemble, build_batch
from kwire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Job, compress
from kwire.protocol.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MAGIC_CURRENT,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Codec,
    check_crc,
    next_batch_size,
    parse_header,
    stamp,
    stamp_timestamp,
)
from kwire.protocol.records.reading import (
    SLICE_RECORDS,
    Steps,
    failure,
    finish,
    payload_steps,
    read_batch,
    records_payload,
)

LONG_WALK_BYTES = 4 * 1024 * 1024  # a walk of that is for another thread: 5 ms at most below
COMPILED_SLICE_RECORDS = 100_000  # about a millisecond
NO_EPOCH = -1
_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_new: Any = tuple.__new__  # named tuples without the detour through keyword arguments


class RecordError(NamedTuple):
    """A record that is at fault: its index in the batch, and why."""

    batch_index: int
    message: str


class InvalidRecordsError(KafkaError):
    """INVALID_RECORD or INVALID_TIMESTAMP, with the records that are at fault."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class AppendRules(NamedTuple):
    """What a topic's configs ask of a batch.

    `codec` None is compression.type=producer; `record_bytes_max` is
    max.decompressed.message.bytes, which bounds each record of a compressed batch; `size_max`
    bounds all records of it together. `topic_partition` is for messages.
    """

    timestamp_type: int = CREATE_TIME
    timestamp_before_max_ms: int = _INT64_MAX
    timestamp_after_max_ms: int = _INT64_MAX
    key_required: bool = False
    codec: Codec | None = None
    level: int | None = None
    size_max: int = MAX_DECOMPRESSED_BYTES
    record_bytes_max: int = _INT64_MAX
    topic_partition: str = ""


class BatchInfo(NamedTuple):
    """What the walk found. The offset is the first record's with the largest timestamp."""

    max_timestamp: int
    offset_of_max_timestamp: int
    record_count: int


class ValidatedBatch(NamedTuple):
    """A batch ready to be written: `buffer[position : position + header.size_bytes]`.

    `buffer` is the caller's own unless the batch had to be made anew; `header` is as stamped.
    """

    buffer: Buffer
    position: int
    header: BatchHeader
    info: BatchInfo


def check_produced(records: Buffer | None, api_version: int) -> BatchHeader:
    """The header of the one batch that a produce request may carry for a partition.

    Bytes behind it that are no whole batch are ignored, as Kafka does. Raises KafkaError:
    INVALID_RECORD without a batch, with more than one, or with magic below 2;
    UNSUPPORTED_COMPRESSION_TYPE for zstd before version 7; CORRUPT_MESSAGE.
    """
    end = 0 if records is None else len(records)
    if records is not None and end >= HEADER_SIZE and records[16] == MAGIC_CURRENT:
        header = parse_header(records)
        if header.size_bytes == end and (
            api_version >= 7 or header.attributes & CODEC_MASK != Codec.ZSTD
        ):
            return header  # one whole batch and nothing else: what every client sends
    if records is None or not (size_bytes := next_batch_size(records, 0, end)):
        raise _invalid(
            f"Produce requests with version {api_version} must have at least one record batch per "
            "partition"
        )
    if records[16] != MAGIC_CURRENT:
        raise _invalid(
            f"Produce requests with version {api_version} are only allowed to contain record "
            "batches with magic version 2"
        )
    header = parse_header(records)
    if api_version < 7 and header.attributes & CODEC_MASK == Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {api_version} are not allowed to use ZStandard "
            "compression",
        )
    if next_batch_size(records, size_bytes, end):
        raise _invalid(
            f"Produce requests with version {api_version} are only allowed to contain exactly one "
            "record batch per partition"
        )
    return header


def check_batch(
    buffer: Buffer, offset: int, header: BatchHeader, *, max_message_bytes: int, client: bool
) -> None:
    """What Kafka looks at before it takes the partition's lock.

    Raises KafkaError: INVALID_RECORD when a client sends a base offset other than 0,
    MESSAGE_TOO_LARGE, CORRUPT_MESSAGE for a wrong checksum.
    """
    if client and header.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch should be 0, but it is {header.base_offset}"
        )
    if header.size_bytes > max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {header.size_bytes} bytes which exceeds the maximum "
            f"configured value of {max_message_bytes}",
        )
    if offset + header.size_bytes > len(buffer) or not check_crc(buffer, offset, header):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc})"
        )


def check_header(header: BatchHeader, *, client: bool) -> None:
    """The header's own consistency. Raises KafkaError(INVALID_RECORD)."""
    if header.magic != MAGIC_CURRENT:
        raise _invalid(f"A batch of magic {header.magic} cannot be appended")
    if not client:
        if header.record_count <= 0:
            raise _invalid(f"Invalid reported count for record batch: {header.record_count}")
        return
    count = header.last_offset_delta + 1
    if (
        header.record_count == count > 0
        and not header.attributes & CONTROL_BIT
        and (header.base_sequence >= 0 or header.producer_id <= NO_PRODUCER_ID)
    ):
        return
    if count <= 0:
        raise _invalid(
            f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}]"
        )
    if header.record_count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {header.record_count}")
    if header.record_count != count:
        raise _invalid(
            f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and "
            f"count of records {header.record_count}"
        )
    if header.is_control:
        raise _invalid("Clients are not allowed to write control records")
    if header.has_producer_id and header.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {header.base_sequence} in record batch with producerId "
            f"{header.producer_id}"
        )


def validate_batch(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    *,
    verify_crc: bool = True,
    key_required: bool = False,
    timestamp_min: int = _INT64_MIN,
    timestamp_max: int = _INT64_MAX,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> BatchInfo:
    """Checksum and records of a magic-2 batch (the header's consistency is `check_header`'s).

    Raises KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, RECORD_LIST_TOO_LARGE,
    UNSUPPORTED_COMPRESSION_TYPE; InvalidRecordsError where single records are at fault.
    """
    if offset + header.size_bytes > len(buffer) or (
        verify_crc and not check_crc(buffer, offset, header)
    ):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc})"
        )
    text, start, end = records_payload(buffer, offset, header, size_max)
    walk = _walk(text, start, end, header)
    return finish(_walk_steps(walk, key_required, timestamp_min, timestamp_max))


def validate_for_append(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    rules: AppendRules,
    *,
    client: bool,
    wall_ms: int,
    base_offset: int,
    leader_epoch: int,
) -> ValidatedBatch:
    """Check the batch at `offset` (after `check_batch`) and make it ready to be appended.

    Stamps base offset, leader epoch and where needed timestamps into `buffer`, in place, or
    returns a new one when the batch had to be compressed anew. `client` tells a produce request
    from what the broker itself writes (control batches, coordinators). Raises KafkaError:
    INVALID_RECORD, CORRUPT_MESSAGE, RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE, and
    InvalidRecordsError (INVALID_RECORD, INVALID_TIMESTAMP) naming the records at fault; nothing
    is changed then.
    """
    if (
        kernel.COMPILED
        and not header.attributes & (CODEC_MASK | APPEND_TIME_BIT)
        and not rules.codec
        and rules.timestamp_type == CREATE_TIME
    ):
        batch = _validate_plain(buffer, offset, header, rules, client, wall_ms)
        if batch is not None:
            return _stamped(*batch, base_offset, leader_epoch)
    return finish(
        validation_steps(
            buffer,
            offset,
            header,
            rules,
            client=client,
            wall_ms=wall_ms,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
    )


def _validate_plain(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    rules: AppendRules,
    client: bool,
    wall_ms: int,
) -> tuple[Buffer, int, BatchHeader, BatchInfo] | None:
    """`validate_for_append` for most batches: not compressed, the client's times, nothing wrong.

    None sends the batch the long way, which knows what to say about it.
    """
    end = offset + header.size_bytes
    count = header.record_count
    if header.magic != MAGIC_CURRENT or count <= 0 or end > len(buffer):
        return None
    check_header(header, client=client)
    walk = kernel.RecordWalk(
        buffer, offset + HEADER_SIZE, end, count, header.base_offset, header.base_timestamp
    )
    low = wall_ms - rules.timestamp_before_max_ms
    high = wall_ms + rules.timestamp_after_max_ms
    if low < _INT64_MIN:
        low = _INT64_MIN
    if high > _INT64_MAX:
        high = _INT64_MAX
    if walk.validate(count + 1, rules.key_required, low, high) != kernel.DONE:
        return None
    newest = walk.max_timestamp
    first = header.base_offset + max(0, walk.max_timestamp_index)
    buffer, offset = _writable(buffer, offset, header)
    if newest != header.max_timestamp:
        stamp_timestamp(buffer, offset, CREATE_TIME, newest)
        header = parse_header(buffer, offset)
    return buffer, offset, header, BatchInfo(newest, first, count)


def _stamped(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    info: BatchInfo,
    base_offset: int,
    leader_epoch: int,
) -> ValidatedBatch:
    """The checked batch with its offset and leader epoch."""
    assert not isinstance(buffer, bytes), "a batch to be stamped is in memory of its own"
    stamp(buffer, offset, base_offset, leader_epoch)
    newest, first, count = info
    first += base_offset - header.base_offset
    stamped = _new(BatchHeader, (base_offset, header.size_bytes, leader_epoch, *header[3:]))
    info = _new(BatchInfo, (newest, first, count))
    made: ValidatedBatch = _new(ValidatedBatch, (buffer, offset, stamped, info))
    return made


def takes_long(header: BatchHeader, rules: AppendRules) -> bool:
    """Whether checking a batch may hold up an event loop: see `checking_steps`."""
    if header.attributes & CODEC_MASK:
        return True
    if header.size_bytes > LONG_WALK_BYTES or rules.codec:
        return True
    return not kernel.COMPILED and header.record_count > SLICE_RECORDS


class CheckedBatch(NamedTuple):
    """A batch that fulfils `rules` and lacks only its offset and leader epoch."""

    buffer: bytearray | memoryview
    position: int
    header: BatchHeader
    info: BatchInfo
    rules: AppendRules

    def stamped(self, base_offset: int, leader_epoch: int) -> ValidatedBatch:
        """It in its place."""
        return _stamped(*self[:4], base_offset, leader_epoch)


def validation_steps(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    rules: AppendRules,
    *,
    client: bool,
    wall_ms: int,
    base_offset: int,
    leader_epoch: int,
) -> Steps[ValidatedBatch]:
    """`validate_for_append` in steps."""
    steps = checking_steps(buffer, offset, header, rules, client=client, wall_ms=wall_ms)
    checked = yield from steps
    return checked.stamped(base_offset, leader_epoch)


def checking_steps(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    rules: AppendRules,
    *,
    client: bool,
    wall_ms: int,
) -> Steps[CheckedBatch]:
    """`validate_for_append` but for the stamp, in steps of a few milliseconds.

    Yields None after every 1,500 records of an uncompiled walk and 1,500 faulty ones of any;
    decompression, long compiled walks and compression are for another thread.
    """
    check_header(header, client=client)
    text, start, end = yield from payload_steps(buffer, offset, header, rules.size_max)
    walk = _walk(text, start, end, header)
    low, high = _INT64_MIN, _INT64_MAX
    refused = header.is_log_append_time
    if rules.timestamp_type == CREATE_TIME:
        low = max(_INT64_MIN, wall_ms - rules.timestamp_before_max_ms)
        high = min(_INT64_MAX, wall_ms + rules.timestamp_after_max_ms)
        # Measured: a client's LogAppendTime passes where the topic keeps the client's times.
        refused = refused and header.max_timestamp == NO_TIMESTAMP
    body_max = rules.record_bytes_max if header.is_compressed else _INT64_MAX
    info = yield from _walk_steps(
        walk, rules.key_required, low, high, refused, body_max, rules.topic_partition
    )
    if rules.timestamp_type == LOG_APPEND_TIME:
        info = BatchInfo(wall_ms, header.base_offset, info.record_count)
    codec = header.codec if rules.codec is None else rules.codec
    if header.is_control and header.codec == Codec.NONE:
        codec = Codec.NONE
    if codec == header.codec:
        if codec != Codec.NONE and not walk.consecutive:
            # Kafka means to write such a batch anew and fails with UNKNOWN_SERVER_ERROR.
            raise _invalid("Inner records of the compressed batch have offsets out of order")
        made, offset = _writable(buffer, offset, header)
    else:
        _check_remade(header)
        records = memoryview(text)[start:end]
        remake = partial(_remake, buffer, offset, header, records, walk, codec, rules.level)
        job = Job(remake)
        yield job
        made, offset = job.result, 0
    stamp_timestamp(made, offset, rules.timestamp_type, info.max_timestamp)
    return CheckedBatch(made, offset, parse_header(made, offset), info, rules)


def _check_remade(header: BatchHeader) -> None:
    """What Kafka cannot write anew with another codec. Measured on Apache Kafka 4.4, which fails
    with UNKNOWN_SERVER_ERROR; an epoch below -1 is INVALID_PRODUCER_EPOCH, as our log has it."""
    producer_id, epoch = header.producer_id, header.producer_epoch
    if producer_id == NO_PRODUCER_ID:
        if header.is_transactional:
            raise _invalid("A transactional batch has no producer id")
    elif producer_id > NO_PRODUCER_ID:
        if epoch == NO_EPOCH:
            raise _invalid(f"The batch of producer {producer_id} has no producer epoch")
    elif epoch < 0 or header.base_sequence < 0:
        raise _invalid(f"The batch has producer id {producer_id} without an epoch or a sequence")


def _walk(text: Buffer, start: int, end: int, header: BatchHeader) -> kernel.RecordWalk:
    if header.record_count < 0:
        raise _invalid(f"Found invalid record count {header.record_count} in a batch of magic 2")
    return kernel.RecordWalk(
        text,
        start,
        end,
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp if header.is_log_append_time else None,
    )


def _walk_steps(
    walk: kernel.RecordWalk,
    key_required: bool,
    low: int,
    high: int,
    refused: bool = False,
    body_size_max: int = _INT64_MAX,
    topic_partition: str = "",
) -> Steps[BatchInfo]:
    rules = (key_required, low, high, refused, body_size_max)
    is_long = kernel.COMPILED and walk.end - walk.position > LONG_WALK_BYTES
    limit = walk.count + 1 if kernel.COMPILED else SLICE_RECORDS
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    while True:
        if is_long:
            job = Job(partial(walk.validate, limit, *rules))
            yield job
            status = job.result
        else:
            status = walk.validate(limit, *rules)
        if status == kernel.DONE:
            break
        if status < 0:
            raise failure(status, walk.index)
        if status == kernel.RUNNING:
            yield None
            continue
        index = walk.index - 1
        if status == kernel.NULL_KEY:
            message = (
                "Compacted topic cannot accept message without key in topic partition "
                f"{topic_partition}"
            )
        elif refused:
            code = ErrorCode.INVALID_TIMESTAMP
            message = (
                "Invalid timestamp type in message. Producer should not set timestamp type to "
                "LogAppendTime."
            )
        else:
            code = ErrorCode.INVALID_TIMESTAMP
            message = (
                f"Timestamp {walk.timestamp} of message with offset "
                f"{walk.base_offset + walk.offset_delta} is out of range. The timestamp should be "
                f"within [{low}, {high}]"
            )
        errors.append(RecordError(index, message))
        if is_long:  # from fault to fault it is a short way, mostly
            is_long, limit = False, COMPILED_SLICE_RECORDS
        if len(errors) % SLICE_RECORDS == 0:
            yield None
    if errors:
        raise _record_errors(code, errors)
    return BatchInfo(
        walk.max_timestamp, walk.base_offset + max(0, walk.max_timestamp_index), walk.count
    )


def _record_errors(code: ErrorCode, errors: list[RecordError]) -> InvalidRecordsError:
    if code is ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{reason}')" for index, reason in errors[:3]
        )
        message = (
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    return InvalidRecordsError(code, message, errors)


def _writable(
    buffer: Buffer, offset: int, header: BatchHeader
) -> tuple[bytearray | memoryview, int]:
    """The batch where it can be stamped: where it is, or a copy if that memory is read-only."""
    if isinstance(buffer, bytearray) or (isinstance(buffer, memoryview) and not buffer.readonly):
        return buffer, offset
    return bytearray(buffer[offset : offset + header.size_bytes]), 0


def _remake(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    text: Buffer,
    walk: kernel.RecordWalk,
    codec: Codec,
    level: int | None,
) -> bytearray:
    """The batch compressed with another codec.

    Its records are taken as they are if their offsets are in order and their timestamps count
    from the first one, as every producer writes them; otherwise they are written anew.
    """
    first = _walk(text, 0, len(text), header)
    first.validate(1)
    if (
        walk.consecutive
        and first.timestamp == header.base_timestamp
        and not header.attributes & ~0x37
    ):
        return assemble(
            compress(codec, text, level),
            base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
            attributes=(header.attributes & ~CODEC_MASK) | codec,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            record_count=header.record_count,
        )
    records = [record._replace(offset=-1) for record in read_batch(buffer, offset, header)]
    return build_batch(
        records,
        base_offset=header.base_offset,
        codec=codec,
        level=level,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)
