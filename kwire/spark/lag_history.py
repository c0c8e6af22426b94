"""Consumer lag over time, from the commits in `__consumer_offsets` and the times of the records.

The topic holds what was committed and when, as far as compaction has left it. Per minute the last
commit of a group is set against where the partition ended then: behind the last record whose
timestamp is not later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.protocol import coordinator_records
from kwire.protocol.errors import MalformedError

OFFSETS_TOPIC = "__consumer_offsets"
MODULE = "group-coordinator"
OFFSET_COMMIT_KEYS = (0, 1)
COMMIT_SCHEMA = (
    "group string, topic string, partition int, committed bigint, minute bigint, place bigint"
)
MINUTE_MS = 60_000


def decode_commits(batches: Iterator[Any]) -> Iterator[Any]:
    """For `mapInArrow`: key, value and offset in the offsets topic in, COMMIT_SCHEMA out. `place`
    is that offset: it tells which of a group's commits is the later one."""
    import pyarrow as pa

    schema = pa.schema(
        [
            ("group", pa.string()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("committed", pa.int64()),
            ("minute", pa.int64()),
            ("place", pa.int64()),
        ]
    )
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "offset"))
        rows = [
            (*found, offset)
            for key, value, offset in zip(*columns, strict=True)
            if (found := decode_commit(key, value)) is not None
        ]
        lists = zip(*rows, strict=True) if rows else ([] for _ in schema)
        arrays = [
            pa.array(list(values), field.type) for values, field in zip(lists, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def decode_commit(key: bytes | None, value: bytes | None) -> tuple[str, str, int, int, int] | None:
    """(group, topic, partition, offset, minute) of an offset commit; None for anything else."""
    if not key or not value:
        return None
    try:
        if coordinator_records.key_type(key) not in OFFSET_COMMIT_KEYS:
            return None
        place = coordinator_records.decode_key(MODULE, key)
        commit = coordinator_records.decode_value(MODULE, place.API_KEY, value)
    except (MalformedError, ValueError):
        return None
    minute = int(commit.commit_timestamp) // MINUTE_MS
    return place.group, place.topic, place.partition, commit.offset, minute


def lag_history(commits: Any, records: Any) -> Any:
    """group, topic, minute, lag: by minute the sum over a topic's partitions.

    `commits` has COMMIT_SCHEMA; `records` topic, partition, offset and timestamp.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    minute = f.floor(f.unix_millis("timestamp") / MINUTE_MS).cast("bigint")
    ends = (
        records.groupBy("topic", "partition", minute.alias("minute"))
        .agg((f.max("offset") + 1).alias("end"))
        .withColumn("committed", f.lit(None).cast("bigint"))
    )
    groups = commits.select("group", "topic", "partition").distinct()
    events = commits.groupBy("group", "topic", "partition", "minute").agg(
        # The last one, not the largest: a group may be set back.
        f.max_by("committed", "place").alias("committed"),
        f.lit(None).cast("bigint").alias("end"),
    )
    # Every group sees every end of its partitions.
    seen = ends.join(groups, ["topic", "partition"])
    order = Window.partitionBy("group", "topic", "partition").orderBy("minute")
    everything = (
        events.unionByName(seen)
        .groupBy("group", "topic", "partition", "minute")
        .agg(f.max("committed").alias("committed"), f.max("end").alias("end"))
    )
    # A partition where nothing happens in a minute lags as before, and counts all the same.
    places = groups.join(
        everything.select("group", "topic", "minute").distinct(), ["group", "topic"]
    )
    everything = places.join(everything, ["group", "topic", "partition", "minute"], "left")
    filled = everything.withColumn("committed", f.last("committed", True).over(order)).withColumn(
        "end", f.max("end").over(order)
    )
    return (
        filled.where(f.col("committed").isNotNull() & f.col("end").isNotNull())
        .withColumn("lag", f.greatest(f.col("end") - f.col("committed"), f.lit(0)))
        .groupBy("group", "topic", "minute")
        .agg(f.sum("lag").alias("lag"))
        .orderBy("group", "topic", "minute")
    )
