"""Coordinator records to batches and back.

Kafka's coordinators write uncompressed batches with several records and producer id -1; the group
coordinator's have base sequence 0 all the same, the transaction coordinator's -1. A transaction's
offset commits carry the transaction's producer id and epoch (measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.coordinator.open_batch import (
    BATCH_OVERHEAD_BYTES,
    NO_LEADER_EPOCH,
    RECORD_OVERHEAD_BYTES,
    Encoded,
)
from kwire.coordinator.shard_interface import CoordinatorRecord, Producer, Shard
from kwire.protocol import coordinator_records
from kwire.protocol.errors import EncodeError, ErrorCode, KafkaError
from kwire.protocol.records import (
    Record,
    assemble,
    build_batch,
    check_crc,
    iterate_headers,
    read_batch,
)
from kwire.protocol.records.build import encode_record
from kwire.protocol.records.control import parse_control
from kwire.protocol.records.header import TRANSACTIONAL_BIT, Buffer

ABORT_MARKER = 0
COMMIT_MARKER = 1


def encode(record: CoordinatorRecord) -> Encoded:
    """Key and value as they stand in the log."""
    key = record.encoded_key
    if key is None:
        key = coordinator_records.encode_key(record.key)
    if record.value is None:
        return key, None
    return key, coordinator_records.encode_value(record.value, record.value_version)


def encode_all(records: Sequence[CoordinatorRecord]) -> list[Encoded]:
    """Raises KafkaError(UNKNOWN_SERVER_ERROR) for a text too long."""
    try:
        return [encode(record) for record in records]
    except EncodeError as error:
        # A client id of 32,767 bytes makes a member id that no record can hold: the caller's
        # problem, not the shard's.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def build(
    encoded: Sequence[Encoded],
    wall_ms: int,
    producer: Producer | None,
    base_sequence: int = 0,
) -> bytearray:
    """One batch of encoded records, all with timestamp `wall_ms`."""
    records = [
        Record(offset=i, timestamp=wall_ms, key=key, value=value, headers=[])
        for i, (key, value) in enumerate(encoded)
    ]
    if producer is None:
        return build_batch(records, base_sequence=base_sequence)
    return build_batch(
        records,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )


def split(
    records: Sequence[CoordinatorRecord],
    encoded: Sequence[Encoded],
    wall_ms: int,
    producer: Producer | None,
    bytes_max: int,
    atomic: bool,
    base_sequence: int = 0,
) -> list[tuple[bytearray, Sequence[CoordinatorRecord]]]:
    """The batches for `records`, none larger than `bytes_max`: one if `atomic`, else as many as
    it takes. Raises KafkaError(MESSAGE_TOO_LARGE)."""
    sizes = [len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in encoded]
    if atomic or sum(sizes) + BATCH_OVERHEAD_BYTES <= bytes_max:
        bounds = [(0, len(encoded))]
    else:
        bounds = list(_cut(sizes, bytes_max))
    batches: list[tuple[bytearray, Sequence[CoordinatorRecord]]] = []
    for start, end in bounds:
        batch = build(encoded[start:end], wall_ms, producer, base_sequence)
        batches.append((bounded(batch, bytes_max), records[start:end]))
    return batches


def bounded(batch: bytearray, bytes_max: int) -> bytearray:
    """The batch; raises KafkaError(MESSAGE_TOO_LARGE)."""
    if len(batch) > bytes_max:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(batch)} bytes exceeds the largest allowed, {bytes_max}",
        )
    return batch


class GrowingBatch:
    """What `build` makes, a few records at a time."""

    __slots__ = ("_count", "_payload", "_producer", "_wall_ms")

    def __init__(self, wall_ms: int, producer: Producer | None) -> None:
        self._wall_ms = wall_ms
        self._producer = producer
        self._payload = bytearray()
        self._count = 0

    def add(self, encoded: Sequence[Encoded]) -> None:
        """The next records."""
        count = self._count
        self._payload += b"".join(
            encode_record(0, number, key, value, ())
            for number, (key, value) in enumerate(encoded, count)
        )
        self._count = count + len(encoded)

    def built(self) -> bytearray | None:
        """The batch; None without records."""
        if not self._count:
            return None
        producer = self._producer
        return assemble(
            self._payload,
            base_offset=0,
            leader_epoch=NO_LEADER_EPOCH,
            attributes=0 if producer is None else TRANSACTIONAL_BIT,
            last_offset_delta=self._count - 1,
            base_timestamp=self._wall_ms,
            max_timestamp=self._wall_ms,
            producer_id=-1 if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
            base_sequence=0,
            record_count=self._count,
        )


def _cut(sizes: list[int], bytes_max: int) -> Iterator[tuple[int, int]]:
    start, total = 0, BATCH_OVERHEAD_BYTES
    for i, size in enumerate(sizes):
        if i > start and total + size > bytes_max:
            yield start, i
            start, total = i, BATCH_OVERHEAD_BYTES
        total += size
    yield start, len(sizes)


class Undamaged(NamedTuple):
    """The batches of a buffer whose checksums hold, and the offsets at which the others begin.

    `reached` is where to read on where none of `data` is at or behind the offset, else 0.
    """

    data: Buffer
    damaged: list[int]
    reached: int


def undamaged(buffer: Buffer, offset: int) -> Undamaged:
    """Leave out the batches whose checksum does not hold: what they say may never have been said.

    How many offsets a damaged batch has is believed only where `buffer` has nothing else.
    """
    pieces: list[Buffer] = []
    damaged: list[int] = []
    start = reached = end = 0
    has_whole = False
    view = memoryview(buffer)
    for position, header in iterate_headers(view):
        end = position + header.size_bytes
        if check_crc(view, position, header):
            has_whole = has_whole or header.next_offset > offset
            continue
        pieces.append(view[start:position])
        start = end
        damaged.append(header.base_offset)
        reached = max(header.next_offset, offset + 1)
    if not damaged:
        return Undamaged(buffer, damaged, 0)
    pieces.append(view[start:end])
    return Undamaged(b"".join(pieces), damaged, 0 if has_whole else reached)


def replay_steps(shard: Shard, module: str, buffer: memoryview, offset: int) -> Iterator[int]:
    """Replay the batches of `buffer` from `offset` on into `shard`, a record a step; yields the
    next offset after each record and each batch, so that the caller can pause in between.

    Raises what decoding raises: a record of an unknown type or a higher version must not be
    dropped, so the shard is not loaded (decision 11)."""
    for position, header in iterate_headers(buffer):
        if header.next_offset <= offset:
            continue
        if header.is_control:
            for record in read_batch(buffer, position):
                control = parse_control(record)
                if control.type in (ABORT_MARKER, COMMIT_MARKER):
                    shard.replay_marker(
                        header.producer_id, header.producer_epoch, control.type == COMMIT_MARKER
                    )
            yield header.next_offset
            continue
        producer_id = header.producer_id if header.is_transactional else -1
        epoch = header.producer_epoch if header.is_transactional else -1
        for record in read_batch(buffer, position):
            if record.offset < offset or record.key is None:
                continue
            key = coordinator_records.decode_key(module, record.key)
            value = None
            if record.value is not None:
                value = coordinator_records.decode_value(module, key.API_KEY, record.value)
            shard.replay(key, value, record.offset, producer_id, epoch)
            yield record.offset + 1
        yield header.next_offset
