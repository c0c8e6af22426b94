"""The things that audit and profile look at: a topic, an archive, a mirror, segment files.

    topic:NAME[,NAME]        of the cluster at --bootstrap (or the other side's)
    archive:FOLDER           a lake, or a Delta table of another program with its columns
    segments:FOLDER          a data directory
    mirror:NAME[,NAME]       a topic that mirror wrote: records count by the source's offset
    replay:NAME[,NAME]       a topic that replay wrote: records count by the archive's position

A frame of a side has SIDE_COLUMNS. `lane` and `position` are the partition and the place in the
side itself; topic, partition and `offset` are where the record comes from: that is what two sides
have in common. Order is one of positions in a lane: a replay may spread a partition over several.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kwire.spark.archive_source import archive_frame, narrow_frame
from kwire.spark.cluster import EARLIEST, LATEST, Cluster, partitions_of
from kwire.spark.headers import MIRROR_OFFSET, OWN_PREFIX, header_text, source_place
from kwire.spark.job import check_topic, one_line
from kwire.spark.lake import (
    LAKE_COLUMNS,
    RECORD_COLUMNS,
    RECORDS,
    Archive,
    check_archive,
    has_log,
    table_folders,
)
from kwire.spark.lake_files import is_local, open_lake_files
from kwire.spark.stores import open_store
from kwire.spark.topic_source import read_ranges
from kwire.spark.usage import JobError, UsageError
from kwire.urls import without_userinfo

KINDS = ("topic", "archive", "segments", "mirror", "replay")
ON_CLUSTER = ("topic", "mirror", "replay")
SIDE_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "lane",
    "position",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
)
CONNECTOR_COLUMNS = tuple(name for name in RECORD_COLUMNS if name != "leaderEpoch")


@dataclasses.dataclass(frozen=True)
class Side:
    """One side: kind and place, and the cluster where it has one."""

    kind: str
    place: str
    bootstrap: str | None = None
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    as_of: tuple[str, int] | None = None

    @property
    def name(self) -> str:
        return without_userinfo(f"{self.kind}:{self.place}")

    @property
    def columns(self) -> tuple[str, ...]:
        """What a condition on its records may name."""
        if self.kind == "archive":
            return LAKE_COLUMNS
        return RECORD_COLUMNS if self.kind == "segments" else CONNECTOR_COLUMNS

    @property
    def is_copied(self) -> bool:
        """Whether a record's place here is another than where it comes from. Else all are in the
        order of their offsets."""
        return self.kind in ("mirror", "replay")

    @property
    def topics(self) -> list[str]:
        return [name for name in self.place.split(",") if name]


def parse_side(
    text: str,
    option: str,
    bootstrap: str | None,
    settings: Mapping[str, str],
    as_of: tuple[str, int] | None = None,
) -> Side:
    """A side by its text; UsageError names what is wrong. `as_of`: of an archive, its version."""
    kind, colon, place = text.partition(":")
    if not colon or kind not in KINDS or not place:
        raise UsageError(f"{option} {text}: expected one of {', '.join(KINDS)} with :PLACE")
    side = Side(kind, place, bootstrap, settings, as_of if kind == "archive" else None)
    if kind in ON_CLUSTER:
        if not bootstrap:
            raise UsageError(f"{option} {text}: needs --bootstrap")
        for name in side.topics:
            check_topic(name, option)
    return side


def check_side(side: Side, option: str, say: Callable[[str], None]) -> None:
    """Look whether it is there, before Spark starts (lakes elsewhere are looked at later).

    `say` hears of a cluster that does not answer soon.
    """
    if side.kind in ON_CLUSTER:
        found = Cluster(side.bootstrap or "", side.settings, say).describe(side.topics)
        for name in side.topics:
            if name not in found:
                raise UsageError(f"{option} topic {name}: not found at {side.bootstrap}")
    elif side.kind == "segments":
        try:
            store, path = open_store(side.place)
            store.entries(path)
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"{option} {side.place}: no such folder") from None
        except (ValueError, OSError) as error:
            raise UsageError(f"{option} {side.place}: {one_line(error)}") from None
    else:
        check_archive(side.place, option)


def check_known(topics: Sequence[str] | None, sides: Sequence[Side]) -> None:
    """UsageError for a topic of --topics that no side has, where that can be told before Spark
    starts: of nothing there would be nothing wrong."""
    known: set[str] = set()
    for side in sides:
        found = _topics_of(side)
        if found is None:
            return
        known |= found
    for name in topics or ():
        if name not in known:
            raise UsageError(f"--topics {name}: not in {' nor in '.join(s.name for s in sides)}")


def _topics_of(side: Side) -> set[str] | None:
    """The topics of a side; None where its place has to be read for that."""
    if side.kind == "topic":
        return set(side.topics)
    if side.kind != "archive" or not is_local(side.place):
        return None
    files = open_lake_files(side.place)
    if has_log(files, ""):
        return None
    return {topic for kind, topic in table_folders(files) if kind == RECORDS}


def _placed(frame: Any) -> Any:
    from pyspark.sql import functions as f

    return frame.withColumn("lane", f.col("partition")).withColumn("position", f.col("offset"))


def side_frame(spark: Any, side: Side, options: argparse.Namespace) -> Any:
    """The side's records that the options choose, with SIDE_COLUMNS."""
    if side.kind == "archive":
        archive = Archive(side.place, spark, side.name, side.as_of)
        frame = archive_frame(spark, archive, options)
        return _placed(frame).select(*SIDE_COLUMNS)
    if side.kind == "segments":
        frame = narrow_frame(_segments(spark, side, options), options)
        return _placed(frame).select(*SIDE_COLUMNS)
    frame = _placed(topic_frame(spark, side, options.isolation == "read_committed", options.say))
    if side.kind in ("mirror", "replay"):
        frame = _by_origin(frame, side.kind)
    return narrow_frame(frame, options).select(*SIDE_COLUMNS)


def _segments(spark: Any, side: Side, options: argparse.Namespace) -> Any:
    from kwire.spark.segment_source import NAME, register

    register(spark)
    reader = spark.read.format(NAME).option("isolation", options.isolation)
    if options.topic_list is not None:
        reader = reader.option("topic", ",".join(options.topic_list))
    else:
        reader = reader.option("topicPattern", "(?!__).*")
    if options.partition_list is not None:
        reader = reader.option("partitions", ",".join(map(str, options.partition_list)))
    for name, value in (
        ("startingOffset", options.from_offset),
        ("endingOffset", options.to_offset),
        ("startingTimestamp", options.from_ms),
        ("endingTimestamp", options.to_ms),
    ):
        if value is not None:
            reader = reader.option(name, str(value))
    return reader.load(side.place)


def topic_frame(spark: Any, side: Side, committed: bool, say: Callable[[str], None]) -> Any:
    """All records that its topics have by now; `say` hears of a cluster that is waited for."""
    cluster = Cluster(side.bootstrap or "", side.settings, say)
    partitions = partitions_of(cluster.describe(side.topics))
    firsts = cluster.offsets(partitions, EARLIEST)
    ends = cluster.offsets(partitions, LATEST, committed=committed)
    ranges = {key: (firsts[key], ends[key]) for key in partitions if ends[key] > firsts[key]}
    if not ranges:
        # The connector refuses to read nothing: an empty range of the first partition.
        key = partitions[0] if partitions else None
        if key is None:
            raise JobError(f"{side.name}: no partitions")
        ranges = {key: (firsts[key], firsts[key])}
    return read_ranges(spark, side.bootstrap or "", side.settings, ranges, committed=committed)


def _by_origin(frame: Any, kind: str) -> Any:
    """Topic, partition and offset by what mirror or replay wrote into the headers."""
    from pyspark.sql import functions as f

    if kind == "mirror":
        origin = {"offset": header_text(MIRROR_OFFSET).try_cast("bigint")}
    else:
        topic, partition, offset = source_place()
        origin = {"topic": topic, "partition": partition, "offset": offset}
    frame = frame.withColumns(origin).where(
        f.col("partition").isNotNull() & f.col("offset").isNotNull()
    )
    kept = f.filter("headers", lambda entry: ~entry["key"].startswith(OWN_PREFIX))
    return frame.withColumn("headers", kept)
