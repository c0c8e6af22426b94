"""A snapshot of the metadata log: its name and its bytes.

A snapshot `END-EPOCH.checkpoint` (end offset in 20 digits, exclusive; epoch of its last record in
10 digits) replaces the log before END. It is a sequence of record batches whose base offsets count
from 0 and whose leader epoch is that of the name:

    batch    records
    first    SnapshotHeaderRecord; from kraft.version 1 on KRaftVersionRecord and VotersRecord
    middle   metadata records, framed as in the log
    last     SnapshotFooterRecord

Measured on Apache Kafka 4.4 (KIP-630).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kwire.clock import Clock
from kwire.kraft.raft.control_records import (
    ControlRecord,
    ControlType,
    build_control_batch,
    decode_control,
)
from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.kraft.raft.voters import VoterSet
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import KafkaError, MalformedError
from kwire.protocol.metadata_records import (
    MetadataRecord,
    VersionedRecord,
    decode_record,
    encode_record,
)

SUFFIX = ".checkpoint"
OFFSET_DIGITS, EPOCH_DIGITS = 20, 10
RECORDS_PER_BATCH = 500


class SnapshotError(ValueError):
    """A snapshot cannot be read; one line."""


class SnapshotContent(NamedTuple):
    """What a snapshot holds: metadata records as messages, and what it says of the quorum."""

    records: list[MetadataRecord]
    last_timestamp_ms: int
    kraft_version: int | None
    voters: VoterSet | None


def snapshot_name(snapshot: OffsetAndEpoch) -> str:
    return f"{snapshot.offset:0{OFFSET_DIGITS}}-{snapshot.epoch:0{EPOCH_DIGITS}}{SUFFIX}"


def parse_snapshot_name(name: str) -> OffsetAndEpoch | None:
    """The snapshot that a complete snapshot's file name names, None for any other name."""
    stem = name.removesuffix(SUFFIX)
    if stem == name or len(stem) != OFFSET_DIGITS + 1 + EPOCH_DIGITS:
        return None
    offset, dash, epoch = stem.partition("-")
    if not (dash and offset.isdecimal() and epoch.isdecimal() and len(offset) == OFFSET_DIGITS):
        return None
    return OffsetAndEpoch(int(offset), int(epoch))


def build_snapshot(
    metadata: Sequence[VersionedRecord],
    *,
    epoch: int,
    clock: Clock,
    last_timestamp_ms: int,
    kraft_version: int,
    voters: VoterSet | None,
) -> list[bytes]:
    """The batches of a snapshot of these (record, version), all at once."""
    return list(
        snapshot_batches(
            metadata,
            epoch=epoch,
            clock=clock,
            last_timestamp_ms=last_timestamp_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
    )


def snapshot_batches(
    metadata: Iterable[VersionedRecord],
    *,
    epoch: int,
    clock: Clock,
    last_timestamp_ms: int,
    kraft_version: int,
    voters: VoterSet | None,
) -> Iterator[bytes]:
    """The batches of a snapshot one after another, for who builds it in slices."""
    head: list[ControlRecord] = [
        (
            ControlType.SNAPSHOT_HEADER,
            m.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms),
        )
    ]
    if kraft_version >= 1:
        record = m.KRaftVersionRecord(version=0, kraft_version=kraft_version)
        head.append((ControlType.KRAFT_VERSION, record))
        if voters is not None and len(voters):
            head.append((ControlType.VOTERS, voters.to_record()))
    offset = 0
    yield bytes(
        build_control_batch(tuple(head), base_offset=0, epoch=epoch, timestamp_ms=clock.wall_ms())
    )
    offset += len(head)
    left = iter(metadata)
    while chunk := list(itertools.islice(left, RECORDS_PER_BATCH)):
        yield bytes(
            encode_batch(chunk, base_offset=offset, epoch=epoch, timestamp_ms=clock.wall_ms())
        )
        offset += len(chunk)
    foot = ((ControlType.SNAPSHOT_FOOTER, m.SnapshotFooterRecord(version=0)),)
    yield bytes(
        build_control_batch(foot, base_offset=offset, epoch=epoch, timestamp_ms=clock.wall_ms())
    )


def encode_batch(
    metadata: Iterable[VersionedRecord], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """One batch of (metadata record, version)."""
    batch = [
        records.Record(base_offset + index, timestamp_ms, None, encode_record(record, version), [])
        for index, (record, version) in enumerate(metadata)
    ]
    return records.build_batch(batch, base_offset=base_offset, leader_epoch=epoch)


def parse_snapshot(content: bytes) -> SnapshotContent:
    """Read a whole snapshot; raises SnapshotError, UnsupportedRecordError for unknown records."""
    metadata: list[MetadataRecord] = []
    kraft_version: int | None = None
    voters: VoterSet | None = None
    timestamp_ms, footer, end = -1, False, 0
    try:
        for position, header in records.iterate_headers(content):
            end = position + header.size_bytes
            if not records.check_crc(content, position, header):
                raise SnapshotError(f"the batch at byte {position} has a wrong CRC")
            for record in records.read_batch(content, position):
                if not header.is_control:
                    if record.value is None:
                        raise SnapshotError(f"the record {record.offset} has no value")
                    metadata.append(decode_record(record.value)[0])
                    continue
                message = decode_control(record.offset, record.key, record.value).message
                if isinstance(message, m.SnapshotHeaderRecord):
                    timestamp_ms = message.last_contained_log_timestamp
                elif isinstance(message, m.KRaftVersionRecord):
                    kraft_version = message.kraft_version
                elif isinstance(message, m.VotersRecord):
                    voters = VoterSet.from_record(message)
                footer = isinstance(message, m.SnapshotFooterRecord)
    except (KafkaError, MalformedError) as error:
        raise SnapshotError(f"damaged: {error}") from None
    if not footer or end != len(content):
        raise SnapshotError("cut off: no snapshot footer at the end")
    return SnapshotContent(metadata, timestamp_ms, kraft_version, voters)


def snapshot_fault(content: bytes) -> str:
    """What is wrong with a snapshot as a file: a word on it, empty for a whole one."""
    end, is_control = 0, False
    try:
        for position, header in records.iterate_headers(content):
            if not records.check_crc(content, position, header):
                return f"the batch at byte {position} has a wrong CRC"
            end, is_control = position + header.size_bytes, header.is_control
    except KafkaError as error:
        return error.message or "no record batch"
    if end != len(content):
        return f"{len(content) - end} bytes behind the last batch at byte {end}"
    return "" if is_control else "no snapshot footer at the end"


def read_header(content: bytes) -> tuple[int, int | None, VoterSet | None]:
    """Timestamp, kraft.version and voters of a snapshot from its first batch alone."""
    timestamp_ms, kraft_version, voters = -1, None, None
    try:
        for record in records.read_batch(content, 0):
            message = decode_control(record.offset, record.key, record.value).message
            if isinstance(message, m.SnapshotHeaderRecord):
                timestamp_ms = message.last_contained_log_timestamp
            elif isinstance(message, m.KRaftVersionRecord):
                kraft_version = message.kraft_version
            elif isinstance(message, m.VotersRecord):
                voters = VoterSet.from_record(message)
    except (KafkaError, MalformedError) as error:
        raise SnapshotError(f"damaged header: {error}") from None
    return timestamp_ms, kraft_version, voters
