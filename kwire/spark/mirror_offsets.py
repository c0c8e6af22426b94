"""Where a mirror's records lie: runs of source offsets at target offsets, as Parquet folders.

A run says: `records` records from source offset `sourceFirst` to `sourceLast` lie from target
offset `targetFirst` on, one after the other. A batch leaves a folder of runs; the state's commits
say which folders count. To translate a group's offset is to find the last run that begins below it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from kwire.clock import SystemClock
from kwire.spark.cluster import EARLIEST, LATEST, Cluster, Partition
from kwire.spark.headers import MIRROR_OFFSET, MIRROR_PATH, header_text
from kwire.spark.job import Progress
from kwire.spark.lake import PLAIN_PATHS
from kwire.spark.lake_log import DataFile, LakeLog
from kwire.spark.sending import RUN_SCHEMA
from kwire.spark.topic_source import read_ranges

TABLE = "offsets"
FOLDERS_MAX = 64
COPY_IDS = "target_ids"
ANEW = "remove what is left of it and begin anew with another --state"
SETTLE_S = 0.5


def with_origin(frame: Any) -> Any:
    """The frame with `path` and `origin` (text or null) from the headers."""
    return frame.withColumn("path", header_text(MIRROR_PATH)).withColumn(
        "origin", header_text(MIRROR_OFFSET)
    )


def new_folder(log: LakeLog, number: int) -> str:
    """A folder for the runs of a batch."""
    return f"{TABLE}/{log.state.version + 1:012d}-{log.session}-{number}"


def write(runs: Any, log: LakeLog, folder: str) -> None:
    """Write runs; this is what makes their records be sent. A folder is written once only."""
    runs.write.mode("errorifexists").parquet(f"{log.files.root}/{folder}")


def read(spark: Any, log: LakeLog, folders: Iterable[str] | None = None) -> Any:
    """All runs that count, or those of some folders."""
    if folders is None:
        folders = [file.path for file in log.state.select(TABLE)]
    paths = [f"{log.files.root}/{folder}" for folder in folders]
    if not paths:
        return spark.createDataFrame([], RUN_SCHEMA)
    return spark.read.schema(RUN_SCHEMA).option(*PLAIN_PATHS).parquet(*paths)


def count(spark: Any, log: LakeLog, folder: str) -> tuple[int, int, list[DataFile]]:
    """(records, bytes, what to commit) of a batch's folder."""
    from pyspark.sql import functions as f

    row = read(spark, log, [folder]).agg(f.sum("records"), f.sum("bytes")).collect()[0]
    records, size_bytes = row[0] or 0, row[1] or 0
    return records, size_bytes, [entry(folder, records, size_bytes)] if records else []


def entry(folder: str, records: int, size_bytes: int) -> DataFile:
    """A folder of runs as the log has it."""
    return DataFile(folder, TABLE, "", "", -1, records, size_bytes, 0, 0, 0, 0)


def remove_orphans(log: LakeLog) -> None:
    """Remove the runs that no commit names: what attempts left that did not end.

    Raises FinalError where another session has taken over.
    """
    folders = [name for name in log.files.names(TABLE) if not name.startswith(("_", "."))]
    named = {file.path for file in log.confirm().select(TABLE)}
    for name in folders:
        if (folder := f"{TABLE}/{name}") not in named:
            log.files.delete([info.path for info in list(log.files.walk(folder))])


def compact(spark: Any, log: LakeLog, now_ms: int) -> None:
    """Join many folders of runs into one."""
    from pyspark.sql import functions as f

    folders = [file.path for file in log.state.select(TABLE)]
    if len(folders) < FOLDERS_MAX:
        return
    folder = f"{new_folder(log, 0)}-joined"
    runs = merged(read(spark, log, folders))
    runs.repartition("sourceTopic", "sourcePartition").write.parquet(f"{log.files.root}/{folder}")
    row = read(spark, log, [folder]).agg(f.sum("records"), f.sum("bytes")).collect()[0]
    commit = log.new_commit(
        "compact", now_ms, add=[entry(folder, row[0] or 0, row[1] or 0)], remove=folders
    )
    log.commit(commit)
    for old in folders:
        log.files.delete([info.path for info in list(log.files.walk(old))])
    log.commit(log.new_commit("purge", now_ms, purged=folders))


def merged(runs: Any) -> Any:
    """Runs that continue each other as one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    place = ["sourceTopic", "sourcePartition", "targetTopic", "targetPartition"]
    order = Window.partitionBy(*place).orderBy("sourceFirst")
    follows = (f.lag("sourceLast").over(order) + 1 == f.col("sourceFirst")) & (
        f.lag(f.col("targetFirst") + f.col("records")).over(order) == f.col("targetFirst")
    )
    begins = f.when(f.coalesce(follows, f.lit(False)), 0).otherwise(1)
    return (
        runs.withColumn("begins", begins)
        .withColumn("island", f.sum("begins").over(order))
        .groupBy(*place, "island")
        .agg(
            f.min("sourceFirst").alias("sourceFirst"),
            f.max("sourceLast").alias("sourceLast"),
            f.min("targetFirst").alias("targetFirst"),
            f.sum("records").alias("records"),
            f.sum("bytes").alias("bytes"),
        )
        .drop("island")
    )


class Run(Protocol):
    """What a mirror's run offers to whoever recovers from its target."""

    options: argparse.Namespace
    progress: Progress
    spark: Any
    clock: SystemClock
    target: Cluster
    log: LakeLog

    def name_of(self, topic: str) -> str:
        """The target's name of a topic."""
        ...


def recover(mirror: Run, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """{source partition: behind the last record that has arrived} of a session that was killed.

    Reads the target behind the last commit (all of it where the state is new) and commits the
    runs of what it finds.
    """
    from pyspark.sql import functions as f

    sources = {(mirror.name_of(topic), n): (topic, n) for topic, n in partitions}
    noted = mirror.log.state.extra.get("target_ends", {})
    firsts = mirror.target.offsets(sources, EARLIEST)
    ends = mirror.target.offsets(sources, LATEST)
    while True:  # what a killed session has sent may still arrive
        mirror.progress.wait(SETTLE_S)
        again = mirror.target.offsets(sources, LATEST)
        if again == ends:
            break
        ends = again
    ranges = {}
    for key, end in ends.items():
        begin = max(noted.get(f"{key[0]}/{key[1]}", 0), firsts[key])
        if end > begin:
            ranges[key] = (begin, end)
    if not ranges:
        return {}
    options = mirror.options
    frame = with_origin(
        read_ranges(mirror.spark, options.to, options.to_settings, ranges, committed=False)
    )
    own = f.element_at(f.split("path", ","), -1) == options.alias
    # Others may write headers of these names too, with whatever they like.
    frame = frame.withColumn("origin", f.col("origin").try_cast("bigint"))
    found = frame.where(f.col("path").isNotNull() & f.col("origin").isNotNull()).where(own)
    runs = found.select(
        f.expr(f"substring(topic, {len(options.prefix) + 1})").alias("sourceTopic"),
        f.col("partition").alias("sourcePartition"),
        f.col("topic").alias("targetTopic"),
        f.col("partition").alias("targetPartition"),
        f.col("origin").alias("sourceFirst"),
        f.col("origin").alias("sourceLast"),
        f.col("offset").alias("targetFirst"),
        f.lit(1).cast("bigint").alias("records"),
        f.lit(0).cast("bigint").alias("bytes"),
    )
    folder = f"{new_folder(mirror.log, 0)}-recovered-{mirror.clock.wall_ms()}"
    write(merged(runs), mirror.log, folder)
    rows = (
        read(mirror.spark, mirror.log, [folder])
        .groupBy("sourceTopic", "sourcePartition")
        .agg(f.max("sourceLast").alias("last"), f.sum("records").alias("records"))
        .collect()
    )
    done = {(row.sourceTopic, row.sourcePartition): row.last + 1 for row in rows}
    if done:
        total = sum(row.records for row in rows)
        mirror.progress.say(f"{total:,} records had arrived behind the last commit")
        known = mirror.log.state.offsets
        moved = {key: end for key, end in done.items() if end > known.get(key, -1)}
        ends_noted = {**noted, **{f"{t}/{n}": end for (t, n), end in ends.items()}}
        commit = mirror.log.new_commit(
            "recover",
            mirror.clock.wall_ms(),
            add=[entry(folder, total, 0)],
            offsets=moved,
            extra={"target_ends": ends_noted},
        )
        mirror.log.commit(commit)
    return done


def translate(
    spark: Any, log: LakeLog, rows: Sequence[tuple[str, str, int, int]], prefix: str
) -> dict[str, dict[Partition, int]]:
    """{group: {target partition: offset}} for (group, topic, partition, committed) rows."""
    if not rows:
        return {}
    groups = spark.createDataFrame(
        list(rows), "group string, sourceTopic string, sourcePartition int, committed bigint"
    )
    found = positions(groups, read(spark, log)).collect()
    translated: dict[str, dict[Partition, int]] = {}
    for row in found:
        key = (f"{prefix}{row.sourceTopic}", row.sourcePartition)
        translated.setdefault(row.group, {})[key] = row.position
    return translated


def positions(groups: Any, runs: Any) -> Any:
    """group, sourceTopic, sourcePartition, position: where a group goes on in the target.

    Behind the last record that it has consumed, but never behind one that it has not: where both
    clusters were written to, their records lie in different orders. Where nothing below the
    committed offset was mirrored, the first record that was.
    """
    from pyspark.sql import functions as f

    joined = f.broadcast(groups).join(runs, ["sourceTopic", "sourcePartition"])
    consumed = f.col("committed") - f.col("sourceFirst")
    behind = f.col("targetFirst") + f.least(consumed, f.col("records"))
    not_consumed = f.col("targetFirst") + f.greatest(consumed, f.lit(0))
    return joined.groupBy("group", "sourceTopic", "sourcePartition").agg(
        # `least` passes over nulls: there may be none of either kind.
        f.least(
            f.max(f.when(consumed > 0, behind)),
            f.min(f.when(f.col("sourceLast") >= f.col("committed"), not_consumed)),
        ).alias("position")
    )
