"""`spark.read.format("kwire-segments").load(DATA_DIRECTORY)`: segment files of Kafka or kwire.

No broker runs. A task reads a segment; the schema is that of Spark's Kafka source with headers and
the leader epoch. Options (all optional):

    topic                a name or several, separated by commas
    topicPattern         a regular expression that the whole name has to match
    partitions           numbers, separated by commas
    startingOffset       the first offset wanted
    endingOffset         the offset behind the last one wanted
    startingTimestamp    milliseconds, included
    endingTimestamp      milliseconds, not included
    isolation            read_committed (default) or read_uncommitted
    rows                 records (default) or batches: a row for each record batch, with its codec

`spark.readStream` follows the files as they grow (segment_stream.py has its options).

Filters on topic, partition, offset and timestamp are used the same way when
`spark.sql.python.filterPushdown.enabled` is true. It is not by default, and Spark 4.2 then keeps
the plan of a filtered frame for every later use of the same frame: call `load` for each query.
A schema given with `spark.read.schema("topic string, offset long")` leaves other columns out.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from kwire.spark.segment_plan import INT64_MAX, INT64_MIN, Selection, plan
from kwire.spark.segment_reading import read_batch_rows, read_segment
from kwire.spark.stores import open_store

NAME = "kwire-segments"
PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>, leaderEpoch int"
)
BATCH_SCHEMA = (
    "topic string, partition int, baseOffset bigint, lastOffset bigint, records int, "
    "sizeBytes bigint, rawBytes bigint, codec string, maxTimestamp timestamp, "
    "producerId bigint, leaderEpoch int, transactional boolean"
)
COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "leaderEpoch",
)
_OPTIONS = (
    "path",
    "topic",
    "topicPattern",
    "partitions",
    "startingOffset",
    "endingOffset",
    "startingTimestamp",
    "endingTimestamp",
    "isolation",
    "rows",
)
_STREAM_OPTIONS = ("maxOffsetsPerTrigger", "failOnDataLoss")
# What a stream has no use for.
_BATCH_OPTIONS = ("endingOffset", "endingTimestamp", "rows")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def register(spark: Any) -> None:
    """Make the format known to a session; Spark finds it alone where kwire is installed."""
    spark.dataSource.register(SegmentSource)


class SegmentPartition(InputPartition):
    """A SegmentTask on its way to a worker."""


class SegmentSource(DataSource):
    """The data source; raises ValueError for an option that is not one of the above."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return BATCH_SCHEMA if _rows_option(self.options) == "batches" else SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        names = [field.name for field in schema.fields]
        # Spark refuses a reader that takes filters while it does not push any, and tells nobody
        # which is the case: but it pushes them in workers of their own.
        kind = FilteringReader if PUSHDOWN_WORKER in sys.modules else SegmentReader
        return kind(self.options, names)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        from kwire.spark.segment_stream import SegmentStreamReader

        options = _lowered(self.options)
        for name in _BATCH_OPTIONS:
            if name.lower() in options:
                raise ValueError(f"{NAME}: {name} is not for a stream, which has no end")
        columns = _checked_columns([field.name for field in schema.fields])
        most = _number(options, "maxOffsetsPerTrigger", 0)
        if "maxoffsetspertrigger" in options and most < 1:
            raise ValueError(f"{NAME}: maxOffsetsPerTrigger {most} is not above 0")
        fails = options.get("failondataloss", "true").lower()
        if fails not in ("true", "false"):
            raise ValueError(f"{NAME}: failOnDataLoss {fails!r} is neither true nor false")
        selection = parse_selection(self.options, _STREAM_OPTIONS)
        path = _path_option(options)
        return SegmentStreamReader(NAME, path, columns, selection, most or None, fails == "true")


class DefaultSource(SegmentSource):
    """What Spark finds by itself in `pyspark_kwire`."""


class SegmentReader(DataSourceReader):
    """Plans in the driver, reads in the workers."""

    def __init__(self, options: Mapping[str, str], columns: Sequence[str]) -> None:
        self.path = _path_option(_lowered(options))
        self.rows = _rows_option(options)
        self.columns = list(columns)
        if self.rows == "records":
            _checked_columns(columns)
        self.selection = parse_selection(options)

    def partitions(self) -> Sequence[InputPartition]:
        store, path = open_store(self.path)
        try:
            tasks = plan(store, path, self.path, self.selection)
        except (FileNotFoundError, NotADirectoryError):
            raise ValueError(f"{NAME}: {self.path}: no such data directory") from None
        return [SegmentPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        task = partition.value
        if task is None:  # Spark asks once without a partition when there is none
            return iter(())
        if self.rows == "batches":
            return read_batch_rows(task)
        return read_segment(task, self.columns)


class FilteringReader(SegmentReader):
    """A reader that filters are pushed to."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what bounds the plan; Spark evaluates every filter again on the rows."""
        if self.rows == "records":
            for filter_ in filters:
                self.selection = narrow(self.selection, filter_)
        return filters


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    """Options by their names in small letters: Spark hands them over so, whatever was written."""
    return {name.lower(): value for name, value in options.items()}


def _path_option(options: Mapping[str, str]) -> str:
    if not (path := options.get("path", "")):
        raise ValueError(f"{NAME}: load() needs the path of a data directory")
    return path


def _checked_columns(names: Sequence[str]) -> Sequence[str]:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise ValueError(f"{NAME}: no column {unknown[0]}; there are {', '.join(COLUMNS)}")
    return names


def _rows_option(options: Mapping[str, str]) -> str:
    rows = _lowered(options).get("rows", "records")
    if rows not in ("records", "batches"):
        raise ValueError(f"{NAME}: rows {rows!r} is neither records nor batches")
    return rows


def parse_selection(options: Mapping[str, str], others: Sequence[str] = ()) -> Selection:
    """What the options select, beside those that stand for something else; ValueError names the one
    that is wrong."""
    known = {name.lower() for name in (*_OPTIONS, *others)}
    for name in options:
        if name.lower() not in known:
            raise ValueError(f"{NAME}: unknown option {name}; see docs/SPARK.md")
    options = _lowered(options)
    isolation = options.get("isolation", "read_committed")
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ValueError(
            f"{NAME}: isolation {isolation!r} is neither read_committed nor read_uncommitted"
        )
    pattern = options.get("topicpattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{NAME}: topicPattern {pattern!r}: {error}") from None
    topics = _words(options.get("topic"))
    return Selection(
        topics=None if topics is None else frozenset(topics),
        topic_pattern=pattern,
        partitions=_numbers(options, "partitions"),
        offset_min=_number(options, "startingOffset", 0),
        offset_max=_number(options, "endingOffset", INT64_MAX, -1),
        timestamp_min=_number(options, "startingTimestamp", INT64_MIN),
        timestamp_max=_number(options, "endingTimestamp", INT64_MAX, -1),
        committed_only=isolation == "read_committed",
        metadata_topic="__cluster_metadata" in (topics or ()),
    )


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _number(options: Mapping[str, str], name: str, default: int, shift: int = 0) -> int:
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        return int(text) + shift
    except ValueError:
        raise ValueError(f"{NAME}: {name} {text!r} is no number") from None


def _numbers(options: Mapping[str, str], name: str) -> frozenset[int] | None:
    words = _words(options.get(name.lower()))
    try:
        return None if words is None else frozenset(int(word) for word in words)
    except ValueError:
        raise ValueError(f"{NAME}: {name} {options[name.lower()]!r} are no numbers") from None


def narrow(selection: Selection, filter_: Filter) -> Selection:
    """The selection without what the filter excludes; unchanged for a filter of no use here."""
    column: tuple[str, ...] = getattr(filter_, "attribute", ())
    if len(column) != 1:
        return selection
    if isinstance(filter_, In):
        return _narrow_in(selection, column[0], filter_.value)
    bounds = _bounds(filter_)
    if bounds is None:
        return selection
    low, high = bounds
    change = dataclasses.replace
    if column[0] == "topic" and low is not None and low == high:
        return _narrow_in(selection, "topic", (low,))
    if column[0] == "partition":
        low, high = _whole(low, high)
        return change(
            selection,
            partition_min=max(selection.partition_min, low),
            partition_max=min(selection.partition_max, high),
        )
    if column[0] == "offset":
        low, high = _whole(low, high)
        return change(
            selection,
            offset_min=max(selection.offset_min, low),
            offset_max=min(selection.offset_max, high),
        )
    if column[0] == "timestamp":
        low, high = _whole(_milliseconds(low), _milliseconds(high))
        return change(
            selection,
            timestamp_min=max(selection.timestamp_min, low),
            timestamp_max=min(selection.timestamp_max, high),
        )
    return selection


def _narrow_in(selection: Selection, column: str, values: Iterable[Any]) -> Selection:
    wanted = frozenset(value for value in values if value is not None)
    if column == "topic":
        kept = wanted if selection.topics is None else wanted & selection.topics
        return dataclasses.replace(selection, topics=kept)
    if column == "partition":
        kept_numbers = wanted if selection.partitions is None else wanted & selection.partitions
        return dataclasses.replace(selection, partitions=kept_numbers)
    if column == "offset" and wanted:
        return dataclasses.replace(
            selection,
            offset_min=max(selection.offset_min, min(wanted)),
            offset_max=min(selection.offset_max, max(wanted)),
        )
    return selection


def _bounds(filter_: Filter) -> tuple[Any, Any] | None:
    """(low, high) that the filter's column is between, both included; None open.

    A bound that is excluded is kept as included: the selection may be wider than the filter.
    """
    value = getattr(filter_, "value", None)
    if value is None:
        return None
    if isinstance(filter_, EqualTo | EqualNullSafe):
        return value, value
    if isinstance(filter_, GreaterThan | GreaterThanOrEqual):
        return value, None
    if isinstance(filter_, LessThan | LessThanOrEqual):
        return None, value
    return None


def _whole(low: Any, high: Any) -> tuple[int, int]:
    return (
        INT64_MIN if low is None else int(low),
        INT64_MAX if high is None else int(high),
    )


def _milliseconds(moment: Any) -> int | None:
    """A timestamp literal in ms; Spark hands over a datetime, with or without a zone."""
    if moment is None or not isinstance(moment, datetime):
        return None
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return int((moment - _EPOCH) // _MILLISECOND)
