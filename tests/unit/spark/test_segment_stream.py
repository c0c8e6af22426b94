"""A stream over segment files: where batches begin and end while a broker writes and removes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kwire.log.directories.checkpoint_format import HIGH_WATERMARKS, encode_checkpoint
from kwire.spark.segment_plan import Selection
from tests.unit.spark.test_segment_reading import batch, marker, partition, transactional

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kwire.spark.segment_source import SegmentSource
from kwire.spark.segment_stream import SegmentStreamReader

ALL = ReadAllAvailable()


def reader(path: Path, *, fails: bool = True, **selection: Any) -> SegmentStreamReader:
    chosen = Selection(**selection)
    return SegmentStreamReader("kwire-segments", str(path), ["offset"], chosen, None, fails)


def read(stream: SegmentStreamReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    return [
        offset
        for task in stream.partitions(start, end)
        for found in stream.read(task)
        for offset in found["offset"].to_pylist()
    ]


def test_batches_follow_each_other_as_the_log_grows(tmp_path: Path) -> None:
    folder = partition(tmp_path, {0: batch(0, 5)})
    stream = reader(tmp_path)
    start = stream.initialOffset()
    assert start == {"t-0": 0}
    end = stream.latestOffset(start, ALL)
    assert end == {"t-0": 5}
    assert read(stream, start, end) == list(range(5))
    assert stream.latestOffset(end, ALL) == end
    assert read(stream, end, end) == []
    with open(folder / f"{0:020d}.log", "ab") as log:
        log.write(batch(5, 2) + batch(7, 2)[:-1])  # the last one is being written
    partition(tmp_path, {0: batch(0, 1)}, "u-3")
    grown = stream.latestOffset(end, ALL)
    assert grown == stream.reportLatestOffset() == {"t-0": 7, "u-3": 1}
    assert read(stream, end, grown) == [5, 6, 0]
    (folder / f"{0:020d}.log").write_bytes(batch(0, 5) + batch(5, 2) + batch(7, 2))
    (folder / f"{9:020d}.log").write_bytes(batch(9, 1))
    assert stream.latestOffset(grown, ALL) == {"t-0": 10, "u-3": 1}
    # A query that is started anew plans by what was kept of the offsets.
    assert read(reader(tmp_path), end, grown) == [5, 6, 0]


def test_a_limit_is_shared_by_what_partitions_have(tmp_path: Path) -> None:
    partition(tmp_path, {0: batch(0, 30)})
    partition(tmp_path, {0: batch(0, 10)}, "t-1")
    stream, start = reader(tmp_path), {"t-0": 0, "t-1": 0}
    assert stream.latestOffset(start, ReadMaxRows(8)) == {"t-0": 6, "t-1": 2}
    assert read(stream, start, {"t-0": 6, "t-1": 2}) == [0, 1, 2, 3, 4, 5, 0, 1]


def test_nothing_is_read_behind_the_high_watermark(tmp_path: Path) -> None:
    partition(tmp_path, {0: batch(0, 5) + batch(5, 5)})
    checkpoint = tmp_path / HIGH_WATERMARKS
    checkpoint.write_bytes(encode_checkpoint({("t", 0): 5, ("other", 0): 9}))
    stream = reader(tmp_path)
    assert (end := stream.latestOffset({"t-0": 0}, ALL)) == {"t-0": 5}
    assert read(stream, {"t-0": 0}, end) == list(range(5))
    checkpoint.write_bytes(encode_checkpoint({("t", 0): 10}))
    assert stream.latestOffset(end, ALL) == {"t-0": 10}


def test_open_transactions_hold_a_stream_back(tmp_path: Path) -> None:
    written = batch(0, 1) + transactional(1, 2, 1) + batch(3, 1)
    folder = partition(tmp_path, {0: written})
    stream, start = reader(tmp_path), {"t-0": 0}
    assert stream.latestOffset(start, ALL) == {"t-0": 1}
    everything = reader(tmp_path, committed_only=False)
    assert everything.latestOffset(start, ALL) == {"t-0": 4}
    (folder / f"{0:020d}.log").write_bytes(written + marker(4, 1, commit=False))
    assert (end := stream.latestOffset({"t-0": 1}, ALL)) == {"t-0": 5}
    assert read(stream, {"t-0": 1}, end) == [3]


def test_offsets_that_were_removed_end_a_query_or_are_passed(tmp_path: Path) -> None:
    folder = partition(tmp_path, {0: batch(0, 5), 5: batch(5, 5)})
    stream, calm = reader(tmp_path), reader(tmp_path, fails=False)
    (folder / f"{0:020d}.log").unlink()
    with pytest.raises(ValueError, match="t-0: offsets 3 to 4 were removed before they were read"):
        stream.latestOffset({"t-0": 3}, ALL)
    assert (end := calm.latestOffset({"t-0": 3}, ALL)) == {"t-0": 10}
    assert read(calm, {"t-0": 3}, end) == list(range(5, 10))
    folder.rename(tmp_path / "away")
    with pytest.raises(ValueError, match="t-0: offsets 3 to 9 are gone with the partition"):
        stream.partitions({"t-0": 3}, {"t-0": 10})
    assert read(calm, {"t-0": 3}, {"t-0": 10}) == []
    # A topic that is gone is nothing to fail for where all of it was read.
    assert stream.latestOffset({"t-0": 10}, ALL) == {"t-0": 10}
    partition(tmp_path, {0: batch(0, 2)})
    with pytest.raises(ValueError, match="t-0 ends at offset 2, 10 was read: it was made anew"):
        stream.latestOffset({"t-0": 10}, ALL)
    assert (end := calm.latestOffset({"t-0": 10}, ALL)) == {"t-0": 2}
    assert read(calm, {"t-0": 10}, end) == [0, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"endingOffset": "3"}, "endingOffset is not for a stream"),
        ({"rows": "batches"}, "rows is not for a stream"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger 0 is not above 0"),
        ({"maxOffsetsPerTrigger": "x"}, "maxOffsetsPerTrigger 'x' is no number"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss 'maybe' is neither true nor false"),
        ({"other": "1"}, "unknown option other"),
        ({"path": ""}, "load() needs the path of a data directory"),
    ],
)
def test_options_of_a_stream(options: dict[str, str], said: str) -> None:
    from pyspark.sql.types import StructType

    source = SegmentSource({"path": "/x", **options})
    with pytest.raises(ValueError, match=re.escape(said)):
        source.streamReader(StructType().add("offset", "long"))


def test_a_stream_over_no_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such data directory"):
        reader(tmp_path / "x").initialOffset()
