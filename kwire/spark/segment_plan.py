"""From filters to tasks: which segments of a data directory have to be read, and up to where.

A `Selection` is what the options and the pushed-down filters leave of topics, partitions, offsets
and timestamps. `plan` makes a task of every segment that may hold something of it: segments are
left out by their base offsets and by the largest timestamp of their time index, without a look
into the log itself. What is in a transaction is decided here too, once per partition: the aborted
ones come from the `.txnindex` files, the open ones from the newest producer snapshot and the
headers behind it.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kwire.log.segment.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from kwire.log.segment.transaction_index import ENTRY_SIZE as TRANSACTION_ENTRY_SIZE
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import BatchHeader, parse_header, read_batch
from kwire.protocol.records.control import ControlType, control_type
from kwire.spark.segment_files import (
    METADATA_TOPIC,
    PartitionFiles,
    SegmentFiles,
    list_partitions,
    load_open_transactions,
)
from kwire.spark.stores import Store

INT64_MAX = 0x7FFFFFFFFFFFFFFF
INT64_MIN = -0x8000000000000000
HEADER_BYTES = 61
WALK_BYTES = 1 << 20
PLANNER_THREADS = 8
_TRANSACTION = struct.Struct(">hqqqq")
_TIME_ENTRY = struct.Struct(">qi")


class DamagedSegmentError(Exception):
    """A segment holds what no broker wrote and no crash leaves; names file and position."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """What is wanted; offsets and timestamps are bounds that include both ends.

    `topics` and `partitions` None: all of them, but of `__cluster_metadata`, which no consumer
    reads, only when it is named.
    """

    topics: frozenset[str] | None = None
    topic_pattern: str | None = None
    partitions: frozenset[int] | None = None
    partition_min: int = 0
    partition_max: int = 0x7FFFFFFF
    offset_min: int = 0
    offset_max: int = INT64_MAX
    timestamp_min: int = INT64_MIN
    timestamp_max: int = INT64_MAX
    committed_only: bool = True
    metadata_topic: bool = False

    def wants(self, topic: str, partition: int) -> bool:
        """Whether this partition can hold something that is wanted."""
        if topic == METADATA_TOPIC and not self.metadata_topic:
            return False
        return (
            (self.topics is None or topic in self.topics)
            and (self.topic_pattern is None or bool(re.fullmatch(self.topic_pattern, topic)))
            and (self.partitions is None or partition in self.partitions)
            and self.partition_min <= partition <= self.partition_max
        )


class Aborted(NamedTuple):
    """A transaction whose batches between the offsets (both included) do not count."""

    producer_id: int
    first_offset: int
    last_offset: int


class SegmentTask(NamedTuple):
    """One segment to read. `offset_max` includes; `is_newest`: a torn end is no damage."""

    location: str
    folder: str
    topic: str
    partition: int
    segment: SegmentFiles
    offset_min: int
    offset_max: int
    timestamp_min: int
    timestamp_max: int
    aborted: tuple[Aborted, ...]
    is_newest: bool

    @property
    def log_path(self) -> str:
        return f"{self.folder}/{self.segment.log}"


def plan(store: Store, path: str, location: str, selection: Selection) -> list[SegmentTask]:
    """The tasks for `path` (below the store's root), largest partitions not first but by name.

    Raises FileNotFoundError when there is no such folder.
    """
    wanted = [
        files
        for files in list_partitions(store, path)
        if files.segments and selection.wants(files.topic, files.partition)
    ]
    with ThreadPoolExecutor(PLANNER_THREADS) as threads:
        planned = threads.map(
            lambda files: plan_partition(store, location, files, selection), wanted
        )
        return [task for tasks in planned for task in tasks]


def plan_partition(
    store: Store, location: str, files: PartitionFiles, selection: Selection
) -> list[SegmentTask]:
    """The tasks for one partition, whether the selection wants it or not."""
    offset_min = max(selection.offset_min, files.log_start_offset)
    offset_max = selection.offset_max
    segments = list(_in_range(store, files, selection, offset_min))
    if not segments:
        return []
    aborted: list[Aborted] = []
    if selection.committed_only:
        aborted, stable = transactions(store, files)
        offset_max = min(offset_max, stable - 1)
    tasks = []
    for segment, end in segments:
        if segment.base_offset > offset_max:
            continue
        overlapping = tuple(
            entry
            for entry in aborted
            if entry.first_offset < end and entry.last_offset >= segment.base_offset
        )
        tasks.append(
            SegmentTask(
                location,
                files.path,
                files.topic,
                files.partition,
                segment,
                offset_min,
                offset_max,
                selection.timestamp_min,
                selection.timestamp_max,
                overlapping,
                end == INT64_MAX,
            )
        )
    return tasks


def _in_range(
    store: Store, files: PartitionFiles, selection: Selection, offset_min: int
) -> Iterator[tuple[SegmentFiles, int]]:
    """(segment, base of the next one) of those that may hold something wanted."""
    ends = [segment.base_offset for segment in files.segments[1:]] + [INT64_MAX]
    for segment, end in zip(files.segments, ends, strict=True):
        if end <= offset_min or segment.base_offset > selection.offset_max:
            continue
        if not segment.size_bytes:
            continue
        if selection.timestamp_min > INT64_MIN and end != INT64_MAX:
            newest = _max_timestamp(store, files, segment)
            if newest is not None and newest < selection.timestamp_min:
                continue
        yield segment, end


def _max_timestamp(store: Store, files: PartitionFiles, segment: SegmentFiles) -> int | None:
    """The largest timestamp of a sealed segment by its time index; None when that cannot tell."""
    size_bytes = segment.time_index_bytes
    if segment.time_index is None or size_bytes < TIME_ENTRY_SIZE or size_bytes % TIME_ENTRY_SIZE:
        return None
    data = store.read(
        f"{files.path}/{segment.time_index}", size_bytes - TIME_ENTRY_SIZE, TIME_ENTRY_SIZE
    )
    timestamp, offset = _TIME_ENTRY.unpack(data)
    # Zeros are the rest of an index that was not trimmed.
    return timestamp if timestamp > 0 or offset > 0 else None


def transactions(store: Store, files: PartitionFiles) -> tuple[list[Aborted], int]:
    """(aborted transactions, last stable offset) of a partition.

    What lies behind the newest producer snapshot is read from the log's headers, because after a
    kill the index of the newest segment may miss its last entries.
    """
    found = dict.fromkeys(_indexed(store, files))
    start, opened = load_open_transactions(store, files)
    for path, position, header in _headers_from(store, files, start):
        if not header.is_transactional:
            continue
        if not header.is_control:
            opened.setdefault(header.producer_id, header.base_offset)
            continue
        first_open = opened.pop(header.producer_id, None)
        if first_open is not None and _is_abort(store, path, position, header):
            found[Aborted(header.producer_id, first_open, header.last_offset)] = None
    stable = min(opened.values(), default=INT64_MAX)
    return sorted(found, key=lambda entry: entry.first_offset), stable


def _indexed(store: Store, files: PartitionFiles) -> Iterator[Aborted]:
    """The entries of the transaction indexes. The newest one may end in what is none; an older one
    that does would show aborted records as committed ones: DamagedSegmentError."""
    bases = [segment.base_offset for segment in files.segments]
    for base, name in files.transaction_indexes:
        data = store.read(f"{files.path}/{name}")
        end = next((other for other in bases if other > base), INT64_MAX)
        for at in range(0, len(data), TRANSACTION_ENTRY_SIZE):
            entry = data[at : at + TRANSACTION_ENTRY_SIZE]
            if len(entry) == TRANSACTION_ENTRY_SIZE:
                version, producer_id, first, last, _ = _TRANSACTION.unpack(entry)
                # The marker that ended a transaction lies in the index's own segment.
                if version == 0 and 0 <= first <= last and base <= last < end:
                    yield Aborted(producer_id, first, last)
                    continue
            if end == INT64_MAX:
                break
            raise DamagedSegmentError(f"{files.path}/{name}: no transaction at position {at}")


def _headers_from(
    store: Store, files: PartitionFiles, offset: int
) -> Iterator[tuple[str, int, BatchHeader]]:
    """(path, position, header) of the batches at or behind an offset."""
    bases = [segment.base_offset for segment in files.segments[1:]] + [INT64_MAX]
    for segment, end in zip(files.segments, bases, strict=True):
        if end <= offset:
            continue
        path = f"{files.path}/{segment.log}"
        for position, header in walk_headers(store, path, segment.size_bytes):
            if header.base_offset >= offset:
                yield path, position, header


def walk_headers(
    store: Store, path: str, size_bytes: int, position: int = 0
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the whole batches of a log file from a position on, up to the first
    that is none.

    Reads a window at a time; a batch that is larger than what is left of it is stepped over.
    """
    window, window_start = b"", position
    while position + HEADER_BYTES <= size_bytes:
        if position + HEADER_BYTES > window_start + len(window) or position < window_start:
            window = store.read(path, position, min(WALK_BYTES, size_bytes - position))
            window_start = position
            if len(window) < HEADER_BYTES:
                return
        try:
            header = parse_header(window, position - window_start)
        except KafkaError:
            return
        if position + header.size_bytes > size_bytes:
            return
        yield position, header
        position += header.size_bytes


def _is_abort(store: Store, path: str, position: int, header: BatchHeader) -> bool:
    try:
        records = read_batch(store.read(path, position, header.size_bytes))
        return bool(records) and control_type(records[0]) is ControlType.ABORT
    except KafkaError:
        return False


def overlaps(aborted: Sequence[Aborted]) -> dict[int, list[tuple[int, int]]]:
    """{producer id: [(first, last), ...]} for a look-up batch by batch."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for entry in aborted:
        ranges.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
    return ranges
