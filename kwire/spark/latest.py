"""The newest record of each key of a topic, as compaction would leave it (`--latest-by-key`).

    topic.T/        what was archived; its next offsets are 0: 900, 1: 700
    latest.T/       what came of it up to 0: 900, 1: 650; then 650 to 700 of partition 1 are next

The table follows the archive's tables, not the topic: what an archive has is merged whenever that
is behind, also what came before there was such a table, or before a kill. As compaction it keeps
the last record of each key in each partition, by offset; one without a value takes its key out, one
without a key counts for nothing. What could not be decoded is a record as any other.

A merge is one commit, with the next offsets that it reaches and under the writer's session, as the
archive's own commits are (topic_table.py): killed anywhere, the table is that of some offsets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from kwire.spark import lake
from kwire.spark.delta import DeltaTable
from kwire.spark.delta_actions import AddedFile
from kwire.spark.topic_table import SessionTables, Table, TopicTable, Writer

Ranges = Mapping[int, tuple[int, int]]
# The newest record of each key in ranges of offsets of the archive, as a frame.
Changes = Callable[[Ranges], Any]


def add_latest_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latest-by-key",
        action="store_true",
        help="keep a table of the newest record of each key too, as compaction would",
    )


class LatestTable(SessionTables):
    """The table of one topic, opened by one session."""

    def __init__(
        self, root: str, topic: str, writer: Writer, open_table: Callable[[str], Table]
    ) -> None:
        super().__init__(topic, writer)
        self.table = open_table(lake.table_path(root, lake.LATEST, topic))

    def check(self, topic_id: str) -> None:
        """As `TopicTable.check`."""
        self._refuse(self.table, lake.LATEST, topic_id)

    def open(self, topic_id: str) -> int:
        """As `TopicTable.open`."""
        if not self._take(self.table, lake.LATEST, topic_id):
            self.load()
        return self.remove_left_overs(everything=True)

    def load(self) -> None:
        """Bring the offsets up to date; FinalError where a newer session has taken over."""
        state = lake.read_state(self.table)
        self._confirm(self.table, state)
        self.offsets = lake.offsets_of(state)

    def recover(self) -> int:
        """Go on behind a merge that failed, whatever became of it; how many files were removed."""
        self.load()
        return self.remove_left_overs()

    def follow(self, ends: Mapping[int, int], changes: Changes, codec: str) -> list[AddedFile]:
        """Merge what the archive has up to its next offsets `ends`; the files that it took."""
        ranges = {
            number: (self.offsets.get(number, 0), end)
            for number, end in ends.items()
            if end > self.offsets.get(number, 0)
        }
        if not ranges:
            return []
        transaction = self._begin(self.table, ranges)
        files = transaction.replace(changes(ranges), self.writer.prefix, codec)
        self.table.sync(files)
        reached = {number: end for number, (_, end) in ranges.items()}
        self._commit(self.table, transaction, reached)
        self.offsets |= reached
        return files

    def remove_left_overs(self, *, everything: bool = False) -> int:
        """As `TopicTable.remove_left_overs`."""
        start = f"{self.writer.name}." if everything else self.writer.prefix

        def check(state: Any) -> None:
            if everything:
                self._confirm(self.table, state)

        return self.table.remove_unnamed(start, check)


def changes_of(spark: Any, table: TopicTable) -> Changes:
    """By the records and dead letters of a topic's tables."""

    def changes(ranges: Ranges) -> Any:
        from pyspark.sql import functions as f

        records = _rows(spark, table.records, ranges)
        assert records is not None
        names = records.columns
        dead = _rows(spark, table.dead_letters, ranges)
        if dead is not None:
            known = dead.select(*[name for name in dead.columns if name in names])
            records = records.unionByName(known, allowMissingColumns=True)
        whole = f.struct(
            *[f.col(f"`{name}`") for name in names if name not in ("partition", "key")]
        )
        newest = f.max_by(whole, "offset").alias("newest")
        found = records.where("key is not null").groupBy("partition", "key").agg(newest)
        columns = [
            f.col(name) if name in ("partition", "key") else f.col("newest")[name].alias(name)
            for name in names
        ]
        return found.select(*columns)

    return changes


def _rows(spark: Any, table: Table, ranges: Ranges) -> Any:
    """The rows of ranges of offsets; None where there is no table."""
    state = DeltaTable(spark, table.path).state()
    if state is None:
        return None
    rows = spark.read.format("delta").option("versionAsOf", state.version).load(table.path)
    parts = (
        f"(partition = {number} AND offset >= {start} AND offset < {end})"
        for number, (start, end) in sorted(ranges.items())
    )
    return rows.where(" OR ".join(parts))
