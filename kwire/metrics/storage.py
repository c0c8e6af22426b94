"""Log directories, the cleaner, and partitions that refuse appends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from kwire.log.directories.manager import LogManager
from kwire.log.directories.shortages import Shortages
from kwire.log.partition.partition_log import PartitionLog
from kwire.metrics.blocks import Row, Value, encoded, in_blocks, single
from kwire.metrics.quantiles import quantiles

NS_PER_MS = 1e6
MANAGER = "kafka_log_logmanager_"
CLEANER = "kafka_log_logcleaner"
REFUSING_MAX = 1000
LOGS_A_TURN = 500


def read_storage(logs: LogManager) -> Iterator[bytes]:
    """See the module. What a disk has left is asked by the HTTP process: that may take long."""
    offline = [directory for directory in logs.directories if directory.error is not None]
    yield single(
        {
            f"{MANAGER}offlinelogdirectorycount": len(offline),
            f"{MANAGER}cordonedlogdirectorycount": len(logs.cordoned),
        }
    )
    rows = [
        (directory.path, int(directory in offline), int(directory in logs.cordoned))
        for directory in logs.directories
    ]
    names = (f"{MANAGER}logdirectoryoffline", f"{MANAGER}logdirectorycordoned")
    yield encoded(("logDirectory",), names, rows)
    yield from _read_cleaner(logs)
    yield from _read_flushes(logs)
    yield from read_refusing(logs)


class Refusing(Protocol):
    """The logs of a node, some of which may refuse appends."""

    @property
    def shortages(self) -> Shortages: ...

    def logs(self) -> Sequence[PartitionLog]: ...


def read_refusing(logs: Refusing) -> Iterator[bytes]:
    """The partitions that refuse appends, until a shortage is over or for good, as health tells."""
    rows: list[Row] = [
        (topic, str(index), refusal.reason, 1)
        for (topic, index), refusal in logs.shortages.refused.items()
    ]
    for at, log in enumerate(logs.logs()):
        if at % LOGS_A_TURN == LOGS_A_TURN - 1:
            yield b""
        if log.error is not None and not log.is_short:
            why = log.error.message or log.error.code.name
            rows.append((log.topic, str(log.partition), why, 1))
    yield from in_blocks(
        ("topic", "partition", "reason"), ("kwire_partition_refusing",), rows[:REFUSING_MAX]
    )
    yield single({"kwire_partitions_refusing": len(rows)})


def _read_cleaner(logs: LogManager) -> Iterator[bytes]:
    cleaner = logs.cleaner
    if cleaner is None:
        return
    last = cleaner.last
    values: dict[str, Value] = {
        f"{CLEANER}_deadthreadcount": 0,
        f"{CLEANER}_max_clean_time_secs": round(last.took_ms / 1000, 3),
        f"{CLEANER}_cleaner_recopy_percent": 100 * last.bytes_after // max(1, last.bytes_before),
        f"{CLEANER}manager_max_dirty_percent": int(100 * cleaner.ratio_max),
        f"{CLEANER}manager_time_since_last_run_ms": max(
            0, logs.clock.wall_ms() - cleaner.looked_at_ms
        )
        if cleaner.looked_at_ms
        else 0,
        "kwire_log_cleanings_total": cleaner.cleanings,
    }
    yield single(values)
    counts = {directory.path: 0 for directory in logs.directories}
    sizes = dict(counts)
    for topic, index in list(cleaner.uncleanable):
        directory = logs.directory_of(topic, index)
        if directory is not None:
            counts[directory.path] += 1
            log = logs.get(topic, index)
            if log is not None:
                sizes[directory.path] += log.size_bytes - log.segments.active.size_bytes
    names = ("uncleanable_partitions_count", "uncleanable_bytes")
    yield encoded(
        ("logDirectory",),
        [f"{CLEANER}manager_{name}" for name in names],
        [(path, count, sizes[path]) for path, count in counts.items()],
    )


def _read_flushes(logs: LogManager) -> Iterator[bytes]:
    """Rounds of syncs: each is for all partitions of a directory that asked meanwhile."""
    flushes = sum(directory.flusher.flushes for directory in logs.directories)
    recent = [x for directory in logs.directories for x in directory.flusher.recent_ns]
    name = "kafka_log_logflushstats_logflushrateandtimems"
    yield single({name: quantiles(flushes, recent, NS_PER_MS)})
