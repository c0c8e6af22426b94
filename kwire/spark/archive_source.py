"""An archive, or what options choose of it, as a frame: for replay, audit and profile."""

from __future__ import annotations

import argparse
import datetime
import re
from collections.abc import Collection, Sequence
from typing import Any

from kwire.spark import lake
from kwire.spark.conditions import check_condition
from kwire.spark.job import check_topics, one_line
from kwire.spark.lake import Archive
from kwire.spark.topic_source import TIME_MAX_MS
from kwire.spark.usage import UsageError

PARTITION_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"-?[0-9]{1,18}\Z")


def add_range_options(parser: argparse.ArgumentParser) -> None:
    """Options that choose records."""
    group = parser.add_argument_group("which records")
    group.add_argument("--topics", metavar="A,B", help="only these topics")
    group.add_argument("--partitions", metavar="0,1", help="only these partitions")
    group.add_argument("--from-time", metavar="TIME", help="ms since 1970 or ISO 8601 (UTC)")
    group.add_argument("--to-time", metavar="TIME", help="not included")
    group.add_argument("--from-offset", type=int, metavar="N", help="in each partition")
    group.add_argument("--to-offset", type=int, metavar="N", help="not included")
    group.add_argument("--keys", metavar="A,B", help="only records with these keys (UTF-8)")
    group.add_argument("--where", metavar="SQL", help="a condition on the columns")


def check_range(options: argparse.Namespace, columns: Collection[str]) -> None:
    """Turn the options' texts into values; UsageError names the one that is wrong.

    `columns`: what a condition may name.
    """
    options.topic_list = check_topics(options.topics) or None
    try:
        numbers = [int(text) for text in (options.partitions or "").split(",") if text]
    except ValueError:
        raise UsageError(f"--partitions {options.partitions}: expected numbers") from None
    if options.partitions is not None and not all(0 <= n <= PARTITION_MAX for n in numbers or [-1]):
        raise UsageError(f"--partitions {options.partitions}: expected numbers from 0")
    options.partition_list = numbers or None
    options.from_ms = parse_time(options.from_time, "--from-time")
    options.to_ms = parse_time(options.to_time, "--to-time")
    for low, high, option in (
        (options.from_ms, options.to_ms, "--to-time"),
        (options.from_offset, options.to_offset, "--to-offset"),
    ):
        if low is not None and high is not None and high <= low:
            raise UsageError(f"{option}: nothing lies before it, it is not behind the beginning")
    if options.where is not None:
        check_condition(options.where, "--where", columns)


def parse_time(text: str | None, option: str) -> int | None:
    """Milliseconds since 1970 of a number or an ISO 8601 moment (UTC without a zone)."""
    if text is None:
        return None
    if _NUMBER.match(text):
        number = int(text)
        if abs(number) > TIME_MAX_MS:
            raise UsageError(f"{option} {text}: milliseconds beyond what a timestamp can hold")
        return number
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text}: neither milliseconds nor ISO 8601") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def add_as_of_option(parser: argparse.ArgumentParser) -> None:
    """Which version of an archive."""
    parser.add_argument(
        "--as-of", metavar="VERSION|TIME", help="an archive as it was: a version, or an ISO time"
    )


def parse_as_of(text: str | None) -> tuple[str, int] | None:
    """("version", number) or ("time", ms); UsageError for what is neither."""
    if text is None:
        return None
    if text.isdigit() and len(text) <= 18:
        return "version", int(text)
    found = parse_time(text, "--as-of") if not _NUMBER.match(text) else None
    if found is None:
        raise UsageError(f"--as-of {text}: neither a version nor an ISO 8601 time")
    return "time", found


def check_as_of(text: str | None, option: str, has_archive: bool) -> None:
    """UsageError for a version of what has none: it would be passed over without a word."""
    if text is not None and not has_archive:
        raise UsageError(f"{option} {text}: only an archive has older versions")


def archive_frame(
    spark: Any, archive: Archive, options: argparse.Namespace, columns: Sequence[str] = ()
) -> Any:
    """The chosen records of an archive, with RECORD_COLUMNS or those that are named."""
    wanted = tuple(columns) or lake.RECORD_COLUMNS
    frames = [table.frame() for table in archive.select(options.topic_list)]
    frame = spark.createDataFrame([], lake.ALL_SCHEMA) if not frames else frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other)
    return narrow_frame(frame, options).select(*wanted)


def narrow_frame(frame: Any, options: argparse.Namespace) -> Any:
    """The rows that the options choose."""
    from pyspark.sql import functions as f

    if options.topic_list is not None:
        frame = frame.where(f.col("topic").isin(options.topic_list))
    if options.partition_list is not None:
        frame = frame.where(f.col("partition").isin(options.partition_list))
    if options.from_offset is not None:
        frame = frame.where(f.col("offset") >= options.from_offset)
    if options.to_offset is not None:
        frame = frame.where(f.col("offset") < options.to_offset)
    if options.from_ms is not None:
        frame = frame.where(f.col("timestamp") >= f.timestamp_millis(f.lit(options.from_ms)))
    if options.to_ms is not None:
        frame = frame.where(f.col("timestamp") < f.timestamp_millis(f.lit(options.to_ms)))
    if options.keys is not None:
        keys = [bytearray(key.encode()) for key in options.keys.split(",")]
        frame = frame.where(f.col("key").isin(*[f.lit(key) for key in keys]))
    if options.where:
        from pyspark.errors import AnalysisException, ParseException

        try:
            frame = frame.where(options.where)
        except (AnalysisException, ParseException) as error:
            raise UsageError(f"--where {options.where}: {one_line(error)}") from None
    return frame
