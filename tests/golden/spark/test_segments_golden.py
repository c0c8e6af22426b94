"""The segments source on data directories that Apache Kafka 4.4 wrote: what a consumer reads."""

from __future__ import annotations

import dataclasses
import datetime
import operator
import random
from pathlib import Path
from typing import Any

import pytest

from kwire.spark.segment_plan import Selection, plan
from kwire.spark.segment_reading import read_batch_rows, read_segment
from kwire.spark.stores import open_store
from tests.support import data_directories as golden

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kwire.spark.segment_source import narrow

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module", params=["clean", "killed"])
def directory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    name = request.param
    return golden.unpack(name, tmp_path_factory.mktemp(name)), golden.expected(name)


def read(path: Path, **selection: Any) -> dict[tuple[str, int], list[list[Any]]]:
    """The rows of each partition in the shape of the facts."""
    store, inner = open_store(str(path))
    rows: dict[tuple[str, int], list[list[Any]]] = {}
    for task in plan(store, inner, str(path), Selection(**selection)):
        for batch in read_segment(task, (*COLUMNS, "leaderEpoch")):
            for row in batch.to_pylist():
                rows.setdefault((row["topic"], row["partition"]), []).append(shaped(row))
    return rows


def shaped(row: dict[str, Any]) -> list[Any]:
    moment = (row["timestamp"] - EPOCH) // datetime.timedelta(milliseconds=1)
    headers = [[entry["key"].encode(), entry["value"]] for entry in row["headers"] or []]
    epoch = -1 if row["leaderEpoch"] is None else row["leaderEpoch"]
    return [row["offset"], moment, row["timestampType"], row["key"], row["value"], headers, epoch]


def partitions(facts: dict[str, Any]) -> list[tuple[tuple[str, int], dict[str, Any]]]:
    return [
        ((topic, int(partition)), content)
        for topic, parts in facts["topics"].items()
        if topic != "__cluster_metadata"
        for partition, content in parts["partitions"].items()
    ]


def test_uncommitted(directory: tuple[Path, dict[str, Any]]) -> None:
    path, facts = directory
    rows = read(path, committed_only=False)
    for key, content in partitions(facts):
        assert rows.get(key, []) == golden.expected_records(content), key


def test_committed(directory: tuple[Path, dict[str, Any]]) -> None:
    path, facts = directory
    rows = read(path)
    for key, content in partitions(facts):
        ranges = content["read_committed_offsets"]
        offsets = [offset for first, last in ranges for offset in range(first, last + 1)]
        wanted = [row for row in golden.expected_records(content) if row[0] in set(offsets)]
        assert rows.get(key, []) == wanted, key


def test_every_bound_gives_what_a_filter_gives(directory: tuple[Path, dict[str, Any]]) -> None:
    path, _ = directory
    everything = read(path, committed_only=False)
    for key, rows in everything.items():
        topic, partition = key
        for row in rows[:: max(1, len(rows) // 6)]:
            offset, moment = row[0], row[1]
            chosen = {"topics": frozenset([topic]), "partitions": frozenset([partition])}
            found = read(path, committed_only=False, offset_min=offset, **chosen)
            assert found.get(key, []) == [other for other in rows if other[0] >= offset]
            found = read(path, committed_only=False, offset_max=offset, **chosen)
            assert found.get(key, []) == [other for other in rows if other[0] <= offset]
            found = read(path, committed_only=False, timestamp_min=moment, **chosen)
            assert found.get(key, []) == [other for other in rows if other[1] >= moment]
            found = read(path, committed_only=False, timestamp_max=moment, **chosen)
            assert found.get(key, []) == [other for other in rows if other[1] <= moment]


def test_batches_count_what_the_records_are(directory: tuple[Path, dict[str, Any]]) -> None:
    path, facts = directory
    store, inner = open_store(str(path))
    codecs: dict[str, int] = {}
    records: dict[tuple[str, int], int] = {}
    for task in plan(store, inner, str(path), Selection(committed_only=False)):
        for batch in read_batch_rows(task):
            for row in batch.to_pylist():
                codecs[row["codec"]] = codecs.get(row["codec"], 0) + 1
                key = (row["topic"], row["partition"])
                records[key] = records.get(key, 0) + row["records"]
                assert row["rawBytes"] >= row["sizeBytes"] or row["codec"] != "none"
    assert set(codecs) <= {"none", "gzip", "snappy", "lz4", "zstd"}
    for key, content in partitions(facts):
        assert records.get(key, 0) >= len(content["records"]), key


def random_filter(chance: random.Random, row: list[Any], topic: str, partition: int) -> Any:
    """A filter near a record, as Spark hands it over, and the same as a function of a row."""
    moment = EPOCH + datetime.timedelta(milliseconds=row[1], microseconds=chance.choice((-1, 0, 1)))
    if chance.random() < 0.3:
        moment = moment.astimezone().replace(tzinfo=None)  # this machine's time
    column, at, values = chance.choice(
        [
            ("topic", 0, [topic, "zz", "", None]),
            ("partition", 1, [partition, 0, -1, 1 << 31, None]),
            ("offset", 2, [row[0], row[0] + 1, 0, -5, (1 << 63) - 1, None]),
            ("timestamp", 3, [moment]),
        ]
    )
    kind = chance.choice((EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan))
    kind = chance.choice((kind, LessThanOrEqual, In))
    value = chance.choice(values)
    if kind is In:
        found = tuple(chance.sample(values, chance.randint(1, len(values))))
        return In((column,), found), lambda own: any(_compare("==", own[at], v) for v in found)
    sign = {
        EqualTo: "==",
        EqualNullSafe: "==",
        GreaterThan: ">",
        GreaterThanOrEqual: ">=",
        LessThan: "<",
        LessThanOrEqual: "<=",
    }[kind]
    return kind((column,), value), lambda own: _compare(sign, own[at], value)


def _compare(sign: str, own: Any, value: Any) -> bool:
    if value is None:
        return False
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        value = value.astimezone()
    return bool(COMPARE[sign](own, value))


COMPARE = {
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@pytest.mark.parametrize("seed", range(2))
def test_random_filters_lose_no_row(directory: tuple[Path, dict[str, Any]], seed: int) -> None:
    """Whatever filters bound the plan: behind them the rows are those of an unbounded one."""
    path, _ = directory
    chance = random.Random(seed)
    everything = flat(read(path))
    for _ in range(10):
        topic, partition, row = chance.choice(everything)
        near = [random_filter(chance, row, topic, partition) for _ in range(chance.randint(1, 3))]
        selection = Selection()
        for filter_, _ in near:
            selection = narrow(selection, filter_)
        found = flat(read(path, **dataclasses.asdict(selection)))

        def wanted(row: tuple[str, int, list[Any]], near: Any = near) -> bool:
            topic, partition, record = row
            moment = EPOCH + datetime.timedelta(milliseconds=record[1])
            return all(holds((topic, partition, record[0], moment)) for _, holds in near)

        assert list(filter(wanted, found)) == list(filter(wanted, everything)), near


def flat(rows: dict[tuple[str, int], list[list[Any]]]) -> list[tuple[str, int, list[Any]]]:
    return [(*key, row) for key, found in sorted(rows.items()) for row in found]
