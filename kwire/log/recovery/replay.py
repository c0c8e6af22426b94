"""What recovery reads out of the batches: producers, transaction indexes, leader epochs.

A walk that meets a damaged segment raises `DamagedSegmentError`; `mending` repairs it and begins
anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from kwire.log.partition.base import LogBase
from kwire.log.partition.batch_rules import Marker, read_marker
from kwire.log.partition.leader_epochs import LeaderEpochs
from kwire.log.partition.producers import Producers
from kwire.log.recovery.repair import repair_segment
from kwire.log.segment.segment import Segment
from kwire.log.segment.transaction_index import AbortedTransaction
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader

logger = logging.getLogger(__name__)

EMPTY_SNAPSHOT_BYTES = 10
DOUBTFUL_BYTES_MAX = 256 << 20


class DamagedSegmentError(Exception):
    """A walk met bytes that are no batch."""

    def __init__(self, segment: Segment, reason: str) -> None:
        super().__init__(f"{segment.log_path}: {reason}")
        self.segment = segment


def mending(log: LogBase, action: Callable[[], None]) -> None:
    """Do `action`; where it meets a damaged segment, repair that and begin anew."""
    mended: set[int] = set()
    while True:
        try:
            return action()
        except DamagedSegmentError as error:
            base = error.segment.base_offset
            if base in mended:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
            mended.add(base)
            bases = log.segments.bases
            at = bases.index(base)
            next_base = bases[at + 1] if at + 1 < len(bases) else None
            repair_segment(log, error.segment, None, next_base)


def _walk(segment: Segment, offset: int) -> Iterator[tuple[int, BatchHeader]]:
    try:
        for position, header in segment.walk_from(offset):
            if position + header.size_bytes > segment.size_bytes:
                raise DamagedSegmentError(segment, f"the batch at {position} is not whole")
            yield position, header
    except KafkaError as error:
        raise DamagedSegmentError(segment, str(error)) from None


def _marker(segment: Segment, position: int, header: BatchHeader) -> Marker | None:
    try:
        return read_marker(segment.pread(header.size_bytes, position))
    except KafkaError as error:
        logger.error(
            "%s: the marker at offset %d cannot be read: %s",
            segment.log_path,
            header.base_offset,
            error,
        )
        return None


def rebuild_epochs(log: LogBase) -> None:
    """Epochs from the batches of all segments."""
    epochs = LeaderEpochs()
    for segment in log.segments:
        for _, header in _walk(segment, segment.base_offset):
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
    log.leader_epochs.replace(epochs.entries)


def load_producers(log: LogBase, end_offset: int, high_watermark: int) -> None:
    """Producer state at `end_offset`: the latest snapshot that will do, and the log behind it."""
    start = log.log_start_offset
    reached = _stable_below(log, end_offset, high_watermark)
    offset, entries = log.snapshots.load_latest(start, reached)
    log.producers.load(entries, log.clock.wall_ms())
    if offset < 0:
        offset = start
    for segment in log.segments.starting_at(offset):
        if offset < end_offset and segment.base_offset > max(log.snapshots.latest, offset):
            log.snapshots.write(segment.base_offset, log.producers.entries.values())
        aborted = _replay(log.producers, segment, offset, end_offset)
        _replace_transactions_from(segment, offset, aborted)
    log.producers.expire(log.clock.wall_ms())


def _stable_below(log: LogBase, end_offset: int, high_watermark: int) -> int:
    """Up to where a snapshot says all that is to be known at `end_offset`.

    It has nothing of transactions that have ended, and they hold back the last stable offset until
    their markers are below the high watermark. Markers in older segments than the high watermark's
    are not looked for: without a checkpoint that would be the whole log.
    """
    active = log.segments.active
    if not active.base_offset <= high_watermark < end_offset:
        return end_offset
    if not any(high_watermark < offset <= end_offset for offset in log.snapshots.offsets):
        return end_offset
    ends_any = any(
        header.is_control and header.base_offset < end_offset
        for _, header in _walk(active, high_watermark)
    )
    return high_watermark if ends_any else end_offset


def _replay(
    producers: Producers, segment: Segment, offset: int, end_offset: int
) -> list[AbortedTransaction]:
    """Take a segment's batches from `offset` on over into the producers."""
    aborted: list[AbortedTransaction] = []
    for position, header in _walk(segment, offset):
        if header.base_offset >= end_offset:
            break
        if header.producer_id < 0 or header.last_offset < offset:
            continue
        marker = _marker(segment, position, header) if header.is_control else None
        entry = producers.replay_batch(header, marker)
        if entry is not None:
            aborted.append(entry)
    return aborted


def _compare_transactions(segment: Segment, aborted: list[AbortedTransaction]) -> bool:
    """Make the segment's index hold these; returns whether it did not.

    An entry may begin earlier than what is left of its transaction: compaction keeps it so.
    """
    try:
        known = segment.aborted_transactions()
    except KafkaError:
        known = []
    if len(known) == len(aborted) and all(
        (a.producer_id, a.last_offset) == (b.producer_id, b.last_offset)
        and a.first_offset <= b.first_offset
        for a, b in zip(known, aborted, strict=True)
    ):
        return False
    segment.replace_transactions(aborted)
    return True


def _replace_transactions_from(
    segment: Segment, offset: int, aborted: list[AbortedTransaction]
) -> None:
    """Make the segment's index hold these from `offset` on.

    Entries of markers that are gone from the log have to go too.
    """
    try:
        before = [e for e in segment.aborted_transactions() if e.last_offset < offset]
    except KafkaError:
        if offset > segment.base_offset:
            return  # `check_transaction_indexes` rebuilds all of it
        before = []
    _compare_transactions(segment, before + aborted)


def rebuild_transaction_indexes(log: LogBase) -> None:
    """All transaction indexes anew, by a replay of the whole log."""
    shadow = Producers(log.name)
    end_offset = log.log_end_offset
    changed = 0
    for segment in log.segments:
        aborted = _replay(shadow, segment, segment.base_offset, end_offset)
        changed += _compare_transactions(segment, aborted)
    if changed:
        logger.error("%s: rebuilt the transaction indexes of %d segments", log.directory, changed)


def check_transaction_indexes(log: LogBase, snapshots: Mapping[int, int]) -> None:
    """Rebuild transaction indexes that are missing or damaged where there were transactions.

    Whether there were is told by the sizes of the producer snapshots: an empty one has 10 bytes.
    Segments without aborted transactions have no index, so that these are read once, unless there
    is too much of it (then a loss of these files goes unnoticed, as in Kafka).
    """
    bases = log.segments.bases
    doubtful: list[Segment] = []
    for segment, end in zip(log.segments, [*bases[1:], log.log_end_offset], strict=True):
        try:
            if segment.aborted_transactions():
                continue
        except KafkaError:
            rebuild_transaction_indexes(log)
            return
        if snapshots.get(end, EMPTY_SNAPSHOT_BYTES) > EMPTY_SNAPSHOT_BYTES:
            doubtful.append(segment)
    if sum(segment.size_bytes for segment in doubtful) > DOUBTFUL_BYTES_MAX:
        return
    for segment in doubtful:
        for position, header in _walk(segment, segment.base_offset):
            # One with a delete horizon ends a transaction of which compaction left nothing.
            if not header.is_control or header.producer_id < 0 or header.has_delete_horizon:
                continue
            marker = _marker(segment, position, header)
            if marker is not None and marker.aborted:
                rebuild_transaction_indexes(log)
                return
