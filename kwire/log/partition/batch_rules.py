"""What a batch must fulfil before a leader or a follower appends it. No state, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from kwire.checksums import crc32c
from kwire.log.files import Buffer
from kwire.log.partition.config import LogConfig
from kwire.log.types import Origin
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    BatchHeader,
    Codec,
    check_crc,
    iterate_headers,
    kernel,
    parse_header,
)
from kwire.protocol.records.control import ControlType, parse_control
from kwire.protocol.records.header import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    MAGIC_CURRENT,
    PREFIX_SIZE,
    TRANSACTIONAL_BIT,
)
from kwire.protocol.records.reading import read_batch
from kwire.protocol.records.validation import AppendRules, check_batch

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
STAMP = Struct(">qii")  # base offset, length, leader epoch
# Without the detour through keyword arguments.
_new_header: Callable[[type[BatchHeader], tuple[int, ...]], BatchHeader] = tuple.__new__


class Marker(NamedTuple):
    """What a transaction marker says."""

    coordinator_epoch: int
    timestamp: int
    aborted: bool


_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def rules_of(config: LogConfig, topic_partition: str) -> AppendRules:
    """A topic's configs as the validation of batches takes them."""
    codec = _CODECS.get(config.compression_type)
    level = (
        {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }.get(codec)
        if codec is not None
        else None
    )
    return AppendRules(
        timestamp_type=LOG_APPEND_TIME if config.is_log_append_time else CREATE_TIME,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        key_required=config.compacts,
        codec=codec,
        level=level,
        record_bytes_max=config.max_decompressed_message_bytes,
        topic_partition=topic_partition,
    )


def check_leader_batches(
    found: Sequence[tuple[BatchHeader, Buffer]], config: LogConfig, origin: Origin, name: str
) -> None:
    """What comes before the records: one batch from a client, sizes, checksum, base offset.

    Raises KafkaError: INVALID_RECORD, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, CORRUPT_MESSAGE.
    """
    if origin == Origin.CLIENT and len(found) > 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch"
        )
    size_max = 0x7FFFFFFF if origin == Origin.RAFT else config.max_message_bytes
    total = 0
    for header, view in found:
        if header.magic != MAGIC_CURRENT:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"batch of magic {header.magic}"
            )
        check_batch(view, 0, header, max_message_bytes=size_max, client=origin == Origin.CLIENT)
        total += header.size_bytes
    check_segment_size(total, config, name)


def check_made_size(header: BatchHeader, config: LogConfig, origin: Origin, name: str) -> None:
    """A batch that was compressed anew has to keep within the limits as well.

    Raises KafkaError: MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE.
    """
    if origin != Origin.RAFT and header.size_bytes > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {header.size_bytes} bytes in append to partition {name}, which "
            f"exceeds the maximum configured size of {config.max_message_bytes}.",
        )
    check_segment_size(header.size_bytes, config, name)


def check_segment_size(size_bytes: int, config: LogConfig, name: str) -> None:
    """Raises KafkaError(RECORD_LIST_TOO_LARGE) for what no segment has room for."""
    if size_bytes > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size_bytes} bytes in append to partition {name}, which "
            f"exceeds the maximum configured segment size of {config.segment_bytes}.",
        )


def split(batches: Buffer | Sequence[Buffer]) -> list[tuple[BatchHeader, Buffer]]:
    """Each batch of the buffers with its header; bytes behind the last whole one are an error."""
    buffers = [batches] if isinstance(batches, (bytes, bytearray, memoryview)) else batches
    found: list[tuple[BatchHeader, Buffer]] = []
    for buffer in buffers:
        view = memoryview(buffer)
        end = 0
        for position, header in iterate_headers(view):
            end = position + header.size_bytes
            found.append((header, view[position:end]))
        if end != len(view):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{len(view) - end} bytes behind the last batch are no whole batch",
            )
    if not found:
        raise KafkaError(ErrorCode.INVALID_RECORD, "There is no batch in the records")
    return found


def stamp_plain(
    view: memoryview, rules: AppendRules, wall_ms: int, base_offset: int, leader_epoch: int
) -> BatchHeader | None:
    """The short way of a usual batch: what `plain_header` checks is stamped in place.

    Gives the stamped header; None, and nothing is changed, for everything else: the long way then
    finds out whether it is only unusual or an error, and which.
    """
    header = plain_header(view, rules, wall_ms, base_offset, leader_epoch)
    if header is not None:
        stamp(view, header)
    return header


def stamp(view: memoryview, header: BatchHeader) -> None:
    """Write base offset and leader epoch of a header into its batch; no checksum covers them."""
    base_offset, size_bytes, leader_epoch = header[:3]
    STAMP.pack_into(view, 0, base_offset, size_bytes - PREFIX_SIZE, leader_epoch)


def plain_header(
    view: memoryview, rules: AppendRules, wall_ms: int, base_offset: int, leader_epoch: int
) -> BatchHeader | None:
    """The header that a usual batch is to have: alone, uncompressed, valid, with CreateTime.

    Checks what `check_batch` and `validate_for_append` check. None for everything else.
    """
    size_bytes = len(view)
    if size_bytes < HEADER_SIZE or rules.codec or rules.timestamp_type or not kernel.COMPILED:
        return None
    fields = HEADER.unpack_from(view)
    base, length, _, magic, crc, attributes, delta, base_timestamp, max_timestamp = fields[:9]
    producer_id, _, sequence, count = fields[9:]
    if (
        length + PREFIX_SIZE != size_bytes
        or magic != MAGIC_CURRENT
        or base
        or attributes & ~TRANSACTIONAL_BIT
        or count != delta + 1
        or count <= 0
        or (producer_id >= 0 and sequence < 0)
        or view.readonly
        or crc32c(view[ATTRIBUTES_POSITION:]) != crc & 0xFFFFFFFF
    ):
        return None
    walk = kernel.RecordWalk(view, HEADER_SIZE, size_bytes, count, 0, base_timestamp)
    low = wall_ms - rules.timestamp_before_max_ms
    high = wall_ms + rules.timestamp_after_max_ms
    if (
        walk.validate(
            count + 1,
            rules.key_required,
            low if low > INT64_MIN else INT64_MIN,
            high if high < INT64_MAX else INT64_MAX,
        )
        != kernel.DONE
        or walk.max_timestamp != max_timestamp
        or not walk.consecutive
    ):
        return None
    return _new_header(BatchHeader, (base_offset, size_bytes, leader_epoch, *fields[3:]))


def earlier_start(records: Buffer, log_start_offset: int, log_end_offset: int) -> int | None:
    """Where a log without records has to begin to take `records`, if not where it does.

    A log that begins in the middle of a batch (DeleteRecords) is sent from there on: the batch
    comes whole. Its copy begins where the batch does, and moves its start then (KAFKA-6975).
    """
    if log_start_offset != log_end_offset:
        return None
    header = parse_header(records)
    is_inside = header.base_offset < log_end_offset <= header.last_offset
    return header.base_offset if is_inside else None


def check_follower_batches(
    found: Sequence[tuple[BatchHeader, Buffer]], next_offset: int, latest_epoch: int, name: str
) -> None:
    """What a leader sent must follow on: checksums, ascending offsets, epochs that do not fall.

    Raises KafkaError(CORRUPT_MESSAGE).
    """
    expected, epoch = next_offset, latest_epoch
    for header, view in found:
        if not check_crc(view, 0, header):
            raise _corrupt(f"the batch at offset {header.base_offset} of {name} has a wrong CRC")
        first = header.base_offset if header.magic >= MAGIC_CURRENT else header.last_offset
        if first < expected or header.last_offset < first:
            raise _corrupt(
                f"a batch of offsets {first} to {header.last_offset} does not follow "
                f"on {expected} in {name}"
            )
        if header.magic >= MAGIC_CURRENT:
            if header.partition_leader_epoch < epoch:
                raise _corrupt(
                    f"the batch at offset {first} of {name} has leader epoch "
                    f"{header.partition_leader_epoch} behind {epoch}"
                )
            epoch = header.partition_leader_epoch
        expected = header.last_offset + 1


def read_marker(data: Buffer) -> Marker | None:
    """The marker in a control batch with a producer id; None for an empty one or another type."""
    records = read_batch(data)
    if not records:
        return None
    control = parse_control(records[0])
    if control.type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    return Marker(
        control.coordinator_epoch, records[0].timestamp, control.type == ControlType.ABORT
    )


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
