"""Ranges of topics as frames: what to read next, how much of it, and Spark's Kafka source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from kwire.spark.client_settings import connector_options
from kwire.spark.cluster import LATEST, Cluster, Partition
from kwire.spark.job import TIME_OVERFLOW, one_line
from kwire.spark.usage import FinalError

# The connector waits two minutes by default for a broker that is gone.
POLL_TIMEOUT_MS = 30_000
CONSUMER_OFFSETS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
INTERNAL = "__"
# Spark counts microseconds in 64 bits.
TIME_MAX_MS = (1 << 63) // 1000 - 1

Ranges = dict[Partition, tuple[int, int]]
K = TypeVar("K")


def limit_ranges(
    starts: Mapping[K, int], ends: Mapping[K, int], most: int
) -> dict[K, tuple[int, int]]:
    """{partition: (first, behind the last)} of what is new, at most about `most` offsets in all.

    Each partition gets its share of the limit by how much it has, at least one offset.
    """
    ranges = {key: (starts[key], ends[key]) for key in starts if ends.get(key, 0) > starts[key]}
    total = sum(end - start for start, end in ranges.values())
    if total <= most:
        return ranges
    # Rounded up: rounded down, a batch of the few records that are left over would end it all.
    return {
        key: (start, start + -(-(end - start) * most // total))
        for key, (start, end) in ranges.items()
    }


def ranges_lag(starts: Mapping[Partition, int], ends: Mapping[Partition, int]) -> int:
    """How many offsets are left to do."""
    return sum(max(0, ends.get(key, start) - start) for key, start in starts.items())


def replaced(topic: str) -> FinalError:
    """A topic whose offsets are no more those that were archived or mirrored."""
    return FinalError(
        f"topic {topic} was deleted and created again; begin anew with another --lake or --state"
    )


def check_not_replaced(cluster: Cluster, topics: Mapping[str, str]) -> None:
    """FinalError when a topic has another id by now: what was read may be of either. One that is
    gone was read before that."""
    for name, info in cluster.describe(sorted(topics)).items():
        if info.topic_id != topics[name]:
            raise replaced(name)


def check_ends(
    cluster: Cluster, starts: Mapping[Partition, int], ends: Mapping[Partition, int]
) -> None:
    """FinalError where a log ends before what was read of it: it was truncated, and gives offsets
    again. A last stable offset may lie before that."""
    behind = [key for key, start in starts.items() if start > ends[key]]
    for key, end in cluster.offsets(behind, LATEST).items():
        if starts[key] > end:
            name = f"{key[0]}-{key[1]}"
            raise FinalError(f"{name} ends at {end}, before {starts[key]}, where it was read to")


def check_times(cluster: Cluster, ranges: Iterable[Partition], error: BaseException) -> None:
    """FinalError when it was a record's time that made a query fail: it would again."""
    if TIME_OVERFLOW not in str(error):
        return
    for (topic, n), (time_ms, offset) in cluster.largest_times(ranges).items():
        if time_ms > TIME_MAX_MS:
            record = f"{topic}-{n}: the record at offset {offset}"
            raise FinalError(f"{record} has a time that Spark cannot hold: {time_ms} ms")
    raise FinalError(one_line(error))


def _by_topic(values: Mapping[Partition, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (topic, partition), value in sorted(values.items()):
        found.setdefault(topic, {})[str(partition)] = value
    return found


def read_ranges(
    spark: Any,
    bootstrap: str,
    settings: Mapping[str, str],
    ranges: Ranges,
    *,
    committed: bool = True,
    tasks_min: int = 0,
    fail_on_loss: bool = True,
) -> Any:
    """A frame of the records in the ranges, with headers; one task a partition or more.

    Records that are gone fail the query unless `fail_on_loss` is false.
    """
    if any(topic.startswith(INTERNAL) for topic, _ in ranges):
        # The connector finds internal topics only where it asks a consumer for offsets. Queries
        # are planned later: what was set for one of them stays.
        spark.conf.set(CONSUMER_OFFSETS, "true")
    assigned = {topic: [int(n) for n in found] for topic, found in _by_topic(ranges).items()}
    starts = _by_topic({key: start for key, (start, _) in ranges.items()})
    ends = _by_topic({key: end for key, (_, end) in ranges.items()})
    reader = (
        spark.read.format("kafka")
        .options(**connector_options(bootstrap, settings))
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", str(fail_on_loss).lower())
        .option("kafkaConsumer.pollTimeoutMs", str(POLL_TIMEOUT_MS))
        .option("kafka.isolation.level", "read_committed" if committed else "read_uncommitted")
    )
    if tasks_min > len(ranges):
        reader = reader.option("minPartitions", str(tasks_min))
    return reader.load()
