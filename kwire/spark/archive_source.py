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
from kwire.spark.lake_files import open_lake_files
from kwire.spark.lake_log import DataFile, LakeLog
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


def load_archive(location: str, spark: Any = None) -> LakeLog:
    """The log of a lake, up to date; UsageError when there is none."""
    log = LakeLog(open_lake_files(location, spark))
    try:
        if not log.exists():
            raise UsageError(f"{location}: no archive there")
        log.load()
    except OSError as error:
        raise UsageError(f"{location}: {error.strerror or one_line(error)}") from None
    return log


def chosen_files(log: LakeLog, options: argparse.Namespace) -> list[DataFile]:
    """Files that may hold what the options choose, by what the log knows of each."""
    return [
        file
        for file in log.state.select(topics=options.topic_list)
        if (options.partition_list is None or file.partition in options.partition_list)
        and (options.from_offset is None or file.last_offset >= options.from_offset)
        and (options.to_offset is None or file.first_offset < options.to_offset)
        and (options.from_ms is None or file.last_ms >= options.from_ms)
        and (options.to_ms is None or file.first_ms < options.to_ms)
    ]


def archive_frame(
    spark: Any, log: LakeLog, options: argparse.Namespace, files: Sequence[DataFile]
) -> Any:
    """The chosen records of these files with RECORD_COLUMNS."""
    frame = lake.read_files(spark, log.files.root, files)
    return narrow_frame(frame, options).select(*lake.RECORD_COLUMNS)


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
