"""Log directories, the cleaner, and partitions that refuse appends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kwire.log.directories.manager import LogManager
from kwire.metrics.blocks import Value, encoded, in_blocks, single

MANAGER = "kafka_log_logmanager_"
CLEANER = "kafka_log_logcleaner"
REFUSING_MAX = 1000


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
    refused = logs.shortages.refused
    yield from in_blocks(
        ("topic", "partition", "reason"),
        ("kwire_partition_refusing",),
        (
            (topic, str(index), refusal.reason, 1)
            for (topic, index), refusal in islice(refused.items(), REFUSING_MAX)
        ),
    )
    yield single({"kwire_partitions_refusing": len(refused)})


def _read_cleaner(logs: LogManager) -> Iterator[bytes]:
    cleaner = logs.cleaner
    if cleaner is None:
        return
    values: dict[str, Value] = {
        f"{CLEANER}_deadthreadcount": 0,
        "kwire_log_cleanings_total": cleaner.cleanings,
    }
    yield single(values)
    counts = {directory.path: 0 for directory in logs.directories}
    for topic, index in list(cleaner.uncleanable):
        directory = logs.directory_of(topic, index)
        if directory is not None:
            counts[directory.path] += 1
    yield encoded(
        ("logDirectory",), (f"{CLEANER}manager_uncleanable_partitions_count",), list(counts.items())
    )
