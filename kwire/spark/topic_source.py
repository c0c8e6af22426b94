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
# What the connector's consumers do, where no client setting says otherwise. Behind each poll a
# consumer asks for the log's ends, on the connection on which it has asked for more records: where
# there are none, that answer waits until the broker gives up waiting for some. All that is read is
# there already.
CONSUMER = {"fetch.max.wait.ms": "5"}
# Ranges of fewer records share tasks.
SMALL_RECORDS = 20_000
# A task's consumers stay open to its end: it reads so many ranges at most.
SHARED_RANGES_MAX = 32
# Sources of which Spark has an older form and takes that. Its own list has kafka too, whose older
# form makes an object of each value and turns that back.
OLDER_SOURCES = "spark.sql.sources.useV1SourceList"
OLDER_SOURCES_BUT_KAFKA = "avro,csv,json,orc,parquet,text"
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
    shares_tasks: bool = False,
) -> Any:
    """A frame of the records in the ranges, with headers; one task a partition or more.

    Records that are gone fail the query unless `fail_on_loss` is false. `shares_tasks`: a task
    reads several ranges, one behind the other, where they are small (`task_groups`).
    """
    if any(topic.startswith(INTERNAL) for topic, _ in ranges):
        # The connector finds internal topics only where it asks a consumer for offsets. Queries
        # are planned later: what was set for one of them stays.
        spark.conf.set(CONSUMER_OFFSETS, "true")
    options = {
        **connector_options(bootstrap, CONSUMER),
        **connector_options(bootstrap, settings),
        "includeHeaders": "true",
        "failOnDataLoss": str(fail_on_loss).lower(),
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),
        "kafka.isolation.level": "read_committed" if committed else "read_uncommitted",
    }

    def read(chosen: Ranges, tasks_min: int = 0) -> Any:
        assigned = {topic: [int(n) for n in found] for topic, found in _by_topic(chosen).items()}
        starts = _by_topic({key: start for key, (start, _) in chosen.items()})
        ends = _by_topic({key: end for key, (_, end) in chosen.items()})
        reader = (
            spark.read.format("kafka")
            .options(**options)
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
        )
        if tasks_min > len(chosen):
            reader = reader.option("minPartitions", str(tasks_min))
        # The form is chosen here; the session may be others' too.
        before = spark.conf.get(OLDER_SOURCES)
        spark.conf.set(OLDER_SOURCES, OLDER_SOURCES_BUT_KAFKA)
        try:
            return reader.load()
        finally:
            spark.conf.set(OLDER_SOURCES, before)

    if not shares_tasks or tasks_min > len(ranges):
        return read(ranges, tasks_min)
    large, small, tasks = task_groups(ranges, max(tasks_min, spark.sparkContext.defaultParallelism))
    if not small:
        return read(large)
    shared = read(small).coalesce(tasks)
    return read(large).unionAll(shared) if large else shared


def task_groups(ranges: Ranges, tasks_min: int) -> tuple[Ranges, Ranges, int]:
    """(ranges with a task each, ranges that share tasks, how many of these) of a query.

    The large ones have a task each. The small ones share so many that each reads about as much as
    is large and at most SHARED_RANGES_MAX of them, but no fewer than there are at least, as far as
    there are ranges.
    """
    large = {key: found for key, found in ranges.items() if found[1] - found[0] >= SMALL_RECORDS}
    small = {key: found for key, found in ranges.items() if key not in large}
    records = sum(end - start for start, end in small.values())
    by_records, by_ranges = -(-records // SMALL_RECORDS), -(-len(small) // SHARED_RANGES_MAX)
    tasks = max(by_records, by_ranges, tasks_min - len(large), 1)
    if tasks >= len(small):
        return dict(ranges), {}, 0
    return large, small, tasks
