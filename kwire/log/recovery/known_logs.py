"""Logs whose files are known: they are opened without looking at a file.

Who copies a log directory that is written out (`LogManager.write_out`) knows what opening the copy
would find: the log whose files they are. `known_log` tells that, and `put_back` makes of it the
log that `opening.open_log` would have read from the files, indexes and transaction indexes left
to whoever needs them first. Of a log that recovery would change or ask further about nothing is
told; it is opened from its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kwire.log.directories.identity_files import PARTITION_METADATA
from kwire.log.partition.leader_epochs import EPOCHS_FILE, parse_epochs
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.partition.producer_snapshots import SnapshotFiles, decode_snapshot, encode_snapshot
from kwire.log.partition.producers import Producers
from kwire.log.segment.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    Segment,
)


class KnownSegment(NamedTuple):
    """One segment's files."""

    base_offset: int
    size_bytes: int
    has_transaction_index: bool


class KnownLog(NamedTuple):
    """The files of one log, by their content. `epochs` is what `epochs_file` says, `producers` are
    those of the snapshot at its end, `bytes_since_index` what lies behind the last entry of the
    active segment's index."""

    topic_id: bytes
    segments: tuple[KnownSegment, ...]
    bytes_since_index: int
    epochs_file: bytes
    epochs: tuple[tuple[int, int], ...]
    snapshots: tuple[int, ...]
    producers: bytes
    log_start_offset: int
    end_offset: int


def known_logs(logs: Iterable[PartitionLog]) -> dict[tuple[str, int], KnownLog]:
    """What is known of logs that were written out and have not changed since."""
    found: dict[tuple[str, int], KnownLog] = {}
    for log in logs:
        known = known_log(log)
        if known is not None:
            found[log.topic, log.partition] = known
    return found


def known_log(
    log: PartitionLog, is_beside: Callable[[str], bool] = lambda name: False
) -> KnownLog | None:
    """What the files of a log hold that was written out; None where an opening does more with them
    than to read them. `is_beside(name)` tells files of the directory that are no part of a log."""
    local, end = log.local, log.local.written_offset
    epochs_file = local.epoch_file.content
    # First: of a log that is given up there is no directory.
    if log.is_closed or log.error is not None or not _is_all_there(local, is_beside):
        return None
    if epochs_file is None:
        return None
    epochs = tuple(parse_epochs(epochs_file))
    is_plain = (
        log.next_offset == log.log_end_offset == log.high_watermark == end
        and local.recovery_point <= end
        and not local.unfinished
        and local.snapshots.latest in (end, end or -1)
        and all(one.size_bytes for one in local.segments if one.is_sealed)
    )
    if not is_plain:
        return None
    return KnownLog(
        log.topic_id,
        tuple(
            KnownSegment(one.base_offset, one.size_bytes, one.has_transaction_index)
            for one in local.segments
        ),
        local.segments.active.bytes_since_index,
        epochs_file,
        epochs,
        tuple(local.snapshots.offsets),
        encode_snapshot(log.producers.entries.values()) if log.producers.entries else b"",
        max(log.log_start_offset, local.segments.first.base_offset),
        end,
    )


def _is_all_there(local: LocalLog, is_beside: Callable[[str], bool]) -> bool:
    """Whether the directory holds the log's files, as long as they should be, and no others.

    Others are what an opening clears up: segments that were given up and wait for their removal, a
    replacement by compaction that has not ended, quarantined bytes.
    """
    expected = {EPOCHS_FILE, PARTITION_METADATA}
    expected.update(f"{offset:020d}{SNAPSHOT_SUFFIX}" for offset in local.snapshots.offsets)
    try:
        found = local.files.listing(local.directory)
    except OSError:
        return False
    for one in local.segments:
        stem = f"{one.base_offset:020d}"
        if found.get(stem + LOG_SUFFIX) != one.size_bytes:
            return False
        expected.update(stem + suffix for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX))
        if one.has_transaction_index:
            expected.add(stem + TRANSACTION_INDEX_SUFFIX)
    others = found.keys() ^ expected
    return all(name not in expected and is_beside(name) for name in others)


def put_back(
    known: KnownLog, local: LocalLog, producers: Producers, recovery_point: int | None
) -> None:
    """Make a new log's parts what reading its files would have made them."""
    local.snapshots = SnapshotFiles(local.files, local.directory, known.snapshots)
    local.epoch_file.put_back(known.epochs_file, known.epochs)
    if known.epochs and known.epochs[-1][1] >= known.end_offset:
        local.epoch_file.epochs.truncate_from_end(known.end_offset)
    wall_ms = local.clock.wall_ms()
    for base_offset, size_bytes, has_transaction_index in known.segments:
        segment = Segment(
            local.files,
            local.directory,
            base_offset,
            local.config,
            size_bytes=size_bytes,
            created_ms=wall_ms,
            has_transaction_index=has_transaction_index,
            is_new=False,
        )
        segment.is_sealed = base_offset != known.segments[-1].base_offset
        local.add(segment)
    local.segments.active.bytes_since_index = known.bytes_since_index
    local.snapshots.remove_stray(local.segments.bases)
    if known.producers:
        producers.load(decode_snapshot(known.producers), wall_ms)
    local.written_offset = known.end_offset
    local.recovery_point = min(max(recovery_point or 0, known.log_start_offset), known.end_offset)
