"""`spark.readStream.format("kwire-segments").load(DATA_DIRECTORY)`: segment files as they grow.

Offsets are `{"TOPIC-PARTITION": the offset of the next record}`. A batch ends where the broker's
checkpoint says that the high watermark is, which brokers write every five seconds
(`replica.high.watermark.checkpoint.interval.ms`): what lies behind it may still be truncated. Of
files without such a checkpoint everything whole counts. Options, beside those of a batch:

    maxOffsetsPerTrigger    about so many offsets in a batch, shared by what partitions have
    failOnDataLoss          true (default): offsets that were removed before they were read end the
                            query; false: it goes on at the log start offset

Topics and partitions that are made meanwhile are found; of those that go, nothing more is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from kwire.spark.segment_ends import LogEnds, PartitionEnd
from kwire.spark.segment_files import list_partitions
from kwire.spark.segment_plan import Selection, plan_partition
from kwire.spark.segment_reading import read_segment
from kwire.spark.stores import open_store
from kwire.spark.topic_source import limit_ranges

Positions = dict[str, int]


class SegmentStreamReader(DataSourceStreamReader):
    """Plans in a process of the driver that lives as long as the query, reads in the workers.

    Raises ValueError, one line, for a folder that is none and for offsets that are gone.
    """

    def __init__(
        self,
        name: str,
        path: str,
        columns: Sequence[str],
        selection: Selection,
        max_offsets: int | None,
        fails_on_data_loss: bool,
    ) -> None:
        self.name = name
        self.path = path
        self.columns = list(columns)
        self.selection = selection
        self.max_offsets = max_offsets
        self.fails_on_data_loss = fails_on_data_loss
        self._ends = LogEnds()

    def initialOffset(self) -> Positions:
        first = self.selection.offset_min
        return {
            key: max(first, found.files.log_start_offset) for key, found in self._found().items()
        }

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.max_offsets is None else ReadMaxRows(self.max_offsets)

    def latestOffset(self, start: Positions, limit: ReadLimit) -> Positions:
        """Where a batch from `start` ends; of partitions that are not there any more, `start`."""
        found = self._found()
        begins = self._begins(start, found)
        ends = {key: max(begins[key], found[key].end) for key in found}
        if isinstance(limit, ReadMaxRows):
            ranges = limit_ranges(begins, ends, limit.max_rows)
            ends = {key: ranges[key][1] if key in ranges else begins[key] for key in ends}
        return {**start, **ends}

    def reportLatestOffset(self) -> Positions:
        return {key: found.end for key, found in self._found().items()}

    def partitions(self, start: Positions, end: Positions) -> Sequence[InputPartition]:
        store, _ = open_store(self.path)
        found = self._found()
        begins = self._begins(start, found)
        tasks = []
        for key, behind in end.items():
            if key not in found:
                if behind > (begin := start.get(key, 0)):
                    self._lost(
                        f"{key}: offsets {begin} to {behind - 1} are gone with the partition"
                    )
                continue
            chosen = dataclasses.replace(
                self.selection, offset_min=begins[key], offset_max=behind - 1
            )
            tasks += plan_partition(store, self.path, found[key].files, chosen)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(()) if partition.value is None else read_segment(partition.value, self.columns)

    def _found(self) -> dict[str, PartitionEnd]:
        store, path = open_store(self.path)
        try:
            listed = list_partitions(store, path)
        except (FileNotFoundError, NotADirectoryError):
            raise ValueError(f"{self.name}: {self.path}: no such data directory") from None
        wanted = [f for f in listed if f.segments and self.selection.wants(f.topic, f.partition)]
        return {
            f"{files.topic}-{files.partition}": PartitionEnd(
                files, self._ends.end(store, files, self.selection.committed_only)
            )
            for files in wanted
        }

    def _begins(self, start: Mapping[str, int], found: Mapping[str, PartitionEnd]) -> Positions:
        """Where each partition goes on: at the log start offset where it is new, where that has
        moved on, and where the log is another one."""
        begins = {}
        for key, (files, end) in found.items():
            first = files.log_start_offset
            begins[key] = begin = start.get(key, max(first, self.selection.offset_min))
            if begin < first:
                self._lost(
                    f"{key}: offsets {begin} to {first - 1} were removed before they were read"
                )
            elif key in start and end < begin:
                self._lost(f"{key} ends at offset {end}, {begin} was read: it was made anew")
            else:
                continue
            begins[key] = first
        return begins

    def _lost(self, what: str) -> None:
        if self.fails_on_data_loss:
            raise ValueError(f"{self.name}: {what}; failOnDataLoss=false goes on without them")
