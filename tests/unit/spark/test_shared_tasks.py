"""Which ranges of a query have a task each, and what its consumers are told."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.spark.topic_source import (
    CONSUMER,
    OLDER_SOURCES,
    SHARED_RANGES_MAX,
    SMALL_RECORDS,
    Ranges,
    read_ranges,
    task_groups,
)


def ranges_of(*sizes: int) -> Ranges:
    return {("t", n): (10, 10 + size) for n, size in enumerate(sizes)}


@pytest.mark.parametrize(
    ("sizes", "tasks_min", "alone", "tasks"),
    [
        # A task each: the large, and small ones that fit into the tasks that there are at least.
        ([SMALL_RECORDS] * 3, 2, 3, 0),
        ([15, 15], 2, 2, 0),
        ([15], 8, 1, 0),
        # Small ones share the tasks that there are at least.
        ([15] * 10, 2, 0, 2),
        ([15] * 10, 4, 0, 4),
        # Beside large ones a task is enough for all of them.
        ([SMALL_RECORDS] * 4 + [15] * 10, 2, 4, 1),
        # Together they are as much as three large ones.
        ([SMALL_RECORDS // 10] * 30, 2, 0, 3),
        # Consumers of a task stay open to its end.
        ([15] * 1000, 2, 0, -(-1000 // SHARED_RANGES_MAX)),
        ([1] * (SHARED_RANGES_MAX + 1), 1, 0, 2),
        ([1] * SHARED_RANGES_MAX, 1, 0, 1),
    ],
)
def test_small_ranges_share_tasks(sizes: list[int], tasks_min: int, alone: int, tasks: int) -> None:
    ranges = ranges_of(*sizes)
    large, small, found = task_groups(ranges, tasks_min)
    assert large | small == ranges
    assert not large.keys() & small.keys()
    assert (len(large), found) == (alone, tasks)


class Settings(dict[str, str]):
    """A session's."""

    def __init__(self) -> None:
        super().__init__({OLDER_SOURCES: "avro,kafka"})
        self.set = self.__setitem__


class Reader:
    """Spark's reader of a source: what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.conf = Settings()
        self.older_sources: list[str] = []

    @property
    def read(self) -> Reader:
        return self

    def format(self, name: str) -> Reader:
        assert name == "kafka"
        return self

    def options(self, **found: str) -> Reader:
        self.told |= found
        return self

    def option(self, name: str, value: str) -> Reader:
        self.told[name] = value
        return self

    def load(self) -> Reader:
        self.older_sources.append(self.conf[OLDER_SOURCES])
        return self


@pytest.mark.parametrize("name", ["fetch.max.wait.ms", "kafka.fetch.max.wait.ms"])
def test_a_client_setting_counts_before_the_own_one(name: str) -> None:
    spark: Any = Reader()
    read_ranges(spark, "here:9092", {}, ranges_of(1))
    assert spark.told["kafka.fetch.max.wait.ms"] == CONSUMER["fetch.max.wait.ms"] == "5"
    read_ranges(spark, "here:9092", {name: "250"}, ranges_of(1))
    assert spark.told["kafka.fetch.max.wait.ms"] == "250"
    assert spark.told["kafka.bootstrap.servers"] == "here:9092"


def test_the_newer_form_of_sparks_source_reads_and_the_sessions_choice_stays() -> None:
    """The older one keeps three copies more of a record in a task."""
    spark: Any = Reader()
    read_ranges(spark, "here:9092", {}, ranges_of(1))
    assert "kafka" not in spark.older_sources[0].split(",")
    assert spark.conf[OLDER_SOURCES] == "avro,kafka"
