"""What a data directory holds: partitions, their segments and what bounds a reader.

Only names and sizes are looked at, and per partition a few small files. Without a broker nothing
repairs a directory, so this follows what a start would do: files that are `.deleted` or `.cleaned`
do not count, a `.swap` stands for its segment, records below the log start offset are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kwire.log.directories.checkpoint_format import LOG_STARTS, Offsets, parse_checkpoint
from kwire.log.partition.producer_snapshots import decode_snapshot
from kwire.spark.stores import Entry, Store

METADATA_TOPIC = "__cluster_metadata"
_DIRECTORY = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})\Z")
_NOT_PARTITIONS = re.compile(r"\.[0-9a-f]{32}-(?:delete|future|stray)\Z")
_SEGMENT_FILE = re.compile(
    r"(?P<base>[0-9]{20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)(?P<swap>\.swap)?\Z"
)


class SegmentFiles(NamedTuple):
    """A segment's files: size of the log (bytes), names of the others or None."""

    base_offset: int
    log: str
    size_bytes: int
    offset_index: str | None
    time_index: str | None
    time_index_bytes: int


class PartitionFiles(NamedTuple):
    """A partition's folder. `segments` ascend; `snapshots` and `transaction_indexes` too."""

    topic: str
    partition: int
    path: str
    segments: tuple[SegmentFiles, ...]
    transaction_indexes: tuple[tuple[int, str], ...]
    snapshots: tuple[tuple[int, str], ...]
    log_start_offset: int

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)


def parse_directory(name: str) -> tuple[str, int] | None:
    """(topic, partition) of a partition's folder; None for any other name."""
    if _NOT_PARTITIONS.search(name):
        return None
    match = _DIRECTORY.match(name)
    if match is None or match["topic"] in (".", ".."):
        return None
    partition = int(match["partition"])
    return (match["topic"], partition) if partition <= 0x7FFFFFFF else None


def list_partitions(store: Store, path: str) -> list[PartitionFiles]:
    """The partitions of a data directory, of a folder of data directories, or one partition.

    A partition that is there more than once (replicas in the directories of several brokers) is
    read from the directory that reaches furthest. Raises FileNotFoundError.
    """
    path = path.rstrip("/") or "/"
    own = parse_directory(path.rpartition("/")[2])
    entries = store.entries(path)
    if own is not None and any(_SEGMENT_FILE.match(entry.name) for entry in entries):
        starts = _log_starts(store, path.rpartition("/")[0] or "/")
        found = [_partition(path, own, entries, starts)]
    else:
        found = list(_data_directory(store, path, entries))
        # A folder of data directories may be named like a partition: `broker-1`.
        if not any(files.segments for files in found):
            found = []
            for entry in entries:
                if entry.is_folder:
                    inner = f"{path}/{entry.name}"
                    found += _data_directory(store, inner, store.entries(inner))
    furthest: dict[tuple[str, int], PartitionFiles] = {}
    for files in found:
        key = (files.topic, files.partition)
        if key not in furthest or _reach(files) > _reach(furthest[key]):
            furthest[key] = files
    return [furthest[key] for key in sorted(furthest)]


def _reach(files: PartitionFiles) -> tuple[int, int]:
    last = files.segments[-1] if files.segments else None
    return (last.base_offset, last.size_bytes) if last else (-1, 0)


def _data_directory(store: Store, path: str, entries: list[Entry]) -> Iterable[PartitionFiles]:
    names = [(entry.name, parse_directory(entry.name)) for entry in entries if entry.is_folder]
    if not any(own for _, own in names):
        return
    starts = _log_starts(store, path)
    for name, own in names:
        if own is not None:
            inner = f"{path}/{name}"
            yield _partition(inner, own, store.entries(inner), starts)


def _log_starts(store: Store, path: str) -> Offsets:
    """The log start offsets that DeleteRecords moved; {} without a readable checkpoint."""
    try:
        return parse_checkpoint(store.read(f"{path}/{LOG_STARTS}"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}


def _partition(
    path: str, own: tuple[str, int], entries: list[Entry], starts: Offsets
) -> PartitionFiles:
    by_kind: dict[str, dict[int, Entry]] = {
        kind: {} for kind in ("log", "index", "timeindex", "txnindex", "snapshot")
    }
    for entry in sorted(entries, key=lambda entry: entry.name.endswith(".swap")):
        match = _SEGMENT_FILE.match(entry.name)
        if match is not None and not entry.is_folder:
            # A swapped file comes last and takes the place of the one it replaces.
            by_kind[match["kind"]][int(match["base"])] = entry
    segments = []
    for base, entry in sorted(by_kind["log"].items()):
        index = by_kind["index"].get(base)
        time_index = by_kind["timeindex"].get(base)
        segments.append(
            SegmentFiles(
                base,
                entry.name,
                entry.size_bytes,
                index.name if index else None,
                time_index.name if time_index else None,
                time_index.size_bytes if time_index else 0,
            )
        )
    first = segments[0].base_offset if segments else 0
    return PartitionFiles(
        topic=own[0],
        partition=own[1],
        path=path,
        segments=tuple(segments),
        transaction_indexes=_named(by_kind["txnindex"]),
        snapshots=_named(by_kind["snapshot"]),
        log_start_offset=max(first, starts.get(own, 0)),
    )


def _named(entries: dict[int, Entry]) -> tuple[tuple[int, str], ...]:
    return tuple((base, entry.name) for base, entry in sorted(entries.items()))


def load_open_transactions(store: Store, files: PartitionFiles) -> tuple[int, dict[int, int]]:
    """(offset, {producer id: first offset}) of the latest whole producer snapshot.

    (The log's first offset, {}) without one: brokers write one at every roll.
    """
    for offset, name in reversed(files.snapshots):
        try:
            entries = decode_snapshot(store.read(f"{files.path}/{name}"))
        except (ValueError, OSError):
            continue
        return offset, {
            entry.producer_id: entry.transaction_first_offset
            for entry in entries
            if entry.transaction_first_offset >= 0
        }
    return (files.segments[0].base_offset if files.segments else 0), {}
