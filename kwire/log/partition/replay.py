"""What the batches of a log say when they are read again: producers, aborted transactions, epochs.

After a start, a truncation, or where an index is damaged. Where the batches themselves are damaged
`DamagedSegmentError` is raised; recovery repairs the segment and begins anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kwire.log.partition.batch_rules import Marker, read_marker
from kwire.log.partition.leader_epochs import LeaderEpochs
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.producers import Producers
from kwire.log.segment.segment import Segment
from kwire.log.segment.transaction_index import AbortedTransaction
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import BatchHeader

logger = logging.getLogger(__name__)

Batches = Sequence[tuple[int, BatchHeader]]
"""All of a segment: (position, header)."""
NONE_KNOWN: Mapping[int, Batches] = {}

EMPTY_SNAPSHOT_BYTES = 10
DOUBTFUL_BYTES_MAX = 256 << 20


class DamagedSegmentError(Exception):
    """Bytes that are no batch."""

    def __init__(self, segment: Segment, reason: str) -> None:
        super().__init__(f"{segment.log_path}: {reason}")
        self.segment = segment


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


def rebuild_epochs(local: LocalLog) -> None:
    """Epochs from the batches of all segments."""
    epochs = LeaderEpochs()
    for segment in local.segments:
        for _, header in _walk(segment, segment.base_offset):
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
    local.epoch_file.epochs.replace(epochs.entries)


def load_producers(
    local: LocalLog,
    producers: Producers,
    *,
    start: int,
    end_offset: int,
    high_watermark: int,
    known: Mapping[int, Batches] = NONE_KNOWN,
) -> None:
    """Producer state at `end_offset` of a log that begins at `start`: the latest snapshot that will
    do, and the batches behind it. When it fails the last stable offset is as it was. Segments whose
    batches are `known`, by base offset, are not read for them."""
    unstable = producers.first_unstable_offset
    try:
        _load_producers(local, producers, start, end_offset, high_watermark, known)
    except Exception:
        # Not that of those read so far: readers would be shown an open transaction.
        producers.first_unstable_offset = unstable
        raise


def _load_producers(
    local: LocalLog,
    producers: Producers,
    start: int,
    end_offset: int,
    high_watermark: int,
    known: Mapping[int, Batches],
) -> None:
    snapshots = local.snapshots
    reached = _stable_below(local, end_offset, high_watermark)
    offset, entries = snapshots.load_latest(start, reached)
    producers.load(entries, local.clock.wall_ms())
    if offset < 0:
        offset = start
    for segment in local.segments.starting_at(offset):
        if offset < end_offset and segment.base_offset > max(snapshots.latest, offset):
            snapshots.write(segment.base_offset, producers.entries.values())
        batches = known.get(segment.base_offset)
        aborted = _replay(producers, segment, offset, end_offset, batches)
        _replace_transactions_from(segment, offset, aborted)
    producers.expire(local.clock.wall_ms())


def _stable_below(local: LocalLog, end_offset: int, high_watermark: int) -> int:
    """Up to where a snapshot says all that is to be known at `end_offset`.

    It has nothing of transactions that have ended, and they hold back the last stable offset until
    their markers are below the high watermark. Markers in older segments than the high watermark's
    are not looked for: without a checkpoint that would be the whole log.
    """
    active = local.segments.active
    if not active.base_offset <= high_watermark < end_offset:
        return end_offset
    if not any(high_watermark < offset <= end_offset for offset in local.snapshots.offsets):
        return end_offset
    ends_any = any(
        header.is_control and header.base_offset < end_offset
        for _, header in _walk(active, high_watermark)
    )
    return high_watermark if ends_any else end_offset


def _replay(
    producers: Producers,
    segment: Segment,
    offset: int,
    end_offset: int,
    batches: Iterable[tuple[int, BatchHeader]] | None = None,
) -> list[AbortedTransaction]:
    """Take a segment's batches from `offset` on over into the producers."""
    aborted: list[AbortedTransaction] = []
    if offset >= end_offset:
        return aborted  # the snapshot of a clean stop says all
    for position, header in _walk(segment, offset) if batches is None else batches:
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


def rebuild_transaction_indexes(local: LocalLog, end_offset: int) -> None:
    """All transaction indexes anew, by a replay of the whole log up to `end_offset`."""
    shadow = Producers(local.directory)
    changed = 0
    for segment in local.segments:
        aborted = _replay(shadow, segment, segment.base_offset, end_offset)
        changed += _compare_transactions(segment, aborted)
    if changed:
        logger.error("%s: rebuilt the transaction indexes of %d segments", local.directory, changed)


def check_transaction_indexes(
    local: LocalLog, end_offset: int, snapshot_bytes: Mapping[int, int]
) -> None:
    """Rebuild transaction indexes that are missing or damaged where there were transactions.

    Whether there were is shown by the sizes of the producer snapshots (`snapshot_bytes`, by
    offset): an empty one has 10 bytes. Segments without aborted transactions have no index, so that
    these are read once, unless there is too much of it (then a loss of these files goes unnoticed,
    as in Kafka).
    """
    bases = local.segments.bases
    doubtful: list[Segment] = []
    for segment, end in zip(local.segments, [*bases[1:], end_offset], strict=True):
        try:
            if segment.aborted_transactions():
                continue
        except KafkaError:
            rebuild_transaction_indexes(local, end_offset)
            return
        if snapshot_bytes.get(end, EMPTY_SNAPSHOT_BYTES) > EMPTY_SNAPSHOT_BYTES:
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
                rebuild_transaction_indexes(local, end_offset)
                return
