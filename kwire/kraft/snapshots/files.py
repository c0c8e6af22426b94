"""Snapshots of the metadata log: their names, their content, their files.

A snapshot `END-EPOCH.checkpoint` (end offset in 20 digits, exclusive; epoch of its last record in
10 digits) replaces the log before END. It is a sequence of record batches whose base offsets count
from 0 and whose leader epoch is that of the name:

    batch    records
    first    SnapshotHeaderRecord; from kraft.version 1 on KRaftVersionRecord and VotersRecord
    middle   metadata records, framed as in the log
    last     SnapshotFooterRecord

It is written under the name with `.part` behind it, synced, made read-only and renamed. Deleted
ones are renamed to `.deleted` first, so that whoever reads one can finish (measured on Apache
Kafka 4.4, KIP-630).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kwire.clock import Clock
from kwire.kraft.raft.control_records import ControlType, build_control_batch, decode_control
from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.kraft.raft.voters import VoterSet
from kwire.log.files import Files, write_fully
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import KafkaError, MalformedError
from kwire.protocol.metadata_records import decode_record, encode_record

SUFFIX = ".checkpoint"
PART_SUFFIX = SUFFIX + ".part"
DELETED_SUFFIX = SUFFIX + ".deleted"
OFFSET_DIGITS, EPOCH_DIGITS = 20, 10
RECORDS_PER_BATCH = 1024
SNAPSHOT_BYTES_MAX = 1 << 31


class SnapshotError(ValueError):
    """A snapshot cannot be read; one line."""


class SnapshotContent(NamedTuple):
    """What a snapshot holds: metadata records as messages, and what it says of the quorum."""

    records: list[Any]
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
    metadata: Sequence[tuple[Any, int]],
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
    metadata: Iterable[tuple[Any, int]],
    *,
    epoch: int,
    clock: Clock,
    last_timestamp_ms: int,
    kraft_version: int,
    voters: VoterSet | None,
) -> Iterator[bytes]:
    """The batches of a snapshot one after another, for who builds it in slices."""
    head: list[tuple[int, Any]] = [
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
    metadata: Iterable[tuple[Any, int]], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """One batch of (metadata record, version)."""
    batch = [
        records.Record(base_offset + index, timestamp_ms, None, encode_record(record, version), [])
        for index, (record, version) in enumerate(metadata)
    ]
    return records.build_batch(batch, base_offset=base_offset, leader_epoch=epoch)


def parse_snapshot(content: bytes) -> SnapshotContent:
    """Read a whole snapshot; raises SnapshotError, UnsupportedRecordError for unknown records."""
    metadata: list[Any] = []
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
                entry = decode_control(record.offset, record.key, record.value)
                if entry.type == ControlType.SNAPSHOT_HEADER:
                    timestamp_ms = entry.message.last_contained_log_timestamp
                elif entry.type == ControlType.KRAFT_VERSION:
                    kraft_version = entry.message.kraft_version
                elif entry.type == ControlType.VOTERS:
                    voters = VoterSet.from_record(entry.message)
                footer = entry.type == ControlType.SNAPSHOT_FOOTER
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
            entry = decode_control(record.offset, record.key, record.value)
            if entry.type == ControlType.SNAPSHOT_HEADER:
                timestamp_ms = entry.message.last_contained_log_timestamp
            elif entry.type == ControlType.KRAFT_VERSION:
                kraft_version = entry.message.kraft_version
            elif entry.type == ControlType.VOTERS:
                voters = VoterSet.from_record(entry.message)
    except (KafkaError, MalformedError) as error:
        raise SnapshotError(f"damaged header: {error}") from None
    return timestamp_ms, kraft_version, voters


class SnapshotFiles:
    """The snapshot files of one metadata log's directory."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.directory = directory
        self._parts: dict[OffsetAndEpoch, int] = {}

    def path(self, snapshot: OffsetAndEpoch) -> str:
        return f"{self.directory}/{snapshot_name(snapshot)}"

    def recover(self) -> list[OffsetAndEpoch]:
        """The complete snapshots, ascending; leftovers of a crash are removed."""
        found = []
        for name in self._files.listing(self.directory):
            if name.endswith((PART_SUFFIX, DELETED_SUFFIX)):
                self._files.unlink(f"{self.directory}/{name}")
                continue
            snapshot = parse_snapshot_name(name)
            if snapshot is not None:
                found.append(snapshot)
        return sorted(found)

    def read(self, snapshot: OffsetAndEpoch) -> bytes:
        """A whole snapshot. Raises OSError, SnapshotError when it is impossibly large."""
        size_bytes = self.size(snapshot)
        if size_bytes > SNAPSHOT_BYTES_MAX:
            raise SnapshotError(f"{snapshot_name(snapshot)} has {size_bytes} bytes")
        return self.read_piece(snapshot, 0, size_bytes)

    def size(self, snapshot: OffsetAndEpoch) -> int:
        return self._files.size_of(self.path(snapshot))

    def read_piece(self, snapshot: OffsetAndEpoch, position: int, size_bytes: int) -> bytes:
        handle = self._files.open(self.path(snapshot), writable=False)
        try:
            return self._files.pread(handle, size_bytes, position)
        finally:
            self._files.close(handle)

    def write_piece(self, snapshot: OffsetAndEpoch, position: int, piece: bytes) -> None:
        """A piece of a snapshot that arrives from the leader; position 0 begins anew."""
        handle = self._parts.get(snapshot)
        if handle is None or position == 0:
            self._close_parts()
            handle = self._files.open(self.path(snapshot) + ".part", create=True)
            self._files.truncate(handle, 0)
            self._parts[snapshot] = handle
        write_fully(self._files, handle, [piece], position)

    def freeze(self, snapshot: OffsetAndEpoch) -> None:
        """Make a fetched snapshot durable and complete."""
        handle = self._parts.pop(snapshot, None)
        if handle is None:
            return
        try:
            self._files.fdatasync(handle)
        finally:
            self._files.close(handle)
        self._publish(snapshot)

    def write(self, snapshot: OffsetAndEpoch, batches: Sequence[bytes]) -> None:
        """Write a snapshot at once, durably. Touches nothing but its own file: may run beside
        the loop."""
        path = self.path(snapshot) + ".part"
        handle = self._files.open(path, create=True)
        try:
            self._files.truncate(handle, 0)
            write_fully(self._files, handle, batches, 0)
            self._files.fdatasync(handle)
        finally:
            self._files.close(handle)
        self._publish(snapshot)

    def _publish(self, snapshot: OffsetAndEpoch) -> None:
        path = self.path(snapshot)
        self._files.set_read_only(path + ".part")
        self._files.rename(path + ".part", path)
        self._files.sync_directory(self.directory)

    def mark_deleted(self, snapshot: OffsetAndEpoch) -> str | None:
        """Take a snapshot out of sight; the path that is to be removed later, None if gone."""
        target = self.path(snapshot) + ".deleted"
        try:
            self._files.rename(self.path(snapshot), target)
        except FileNotFoundError:
            return None
        return target

    def remove(self, path: str) -> None:
        try:
            self._files.unlink(path)
        except FileNotFoundError:
            pass

    def close(self) -> None:
        self._close_parts()

    def _close_parts(self) -> None:
        for handle in self._parts.values():
            self._files.close(handle)
        self._parts.clear()
