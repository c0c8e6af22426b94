"""Segments that are damaged, torn, swapped, old, without indexes; planning of what to read."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol.records import Codec, Record, build_batch, stamp
from kwire.protocol.records.control import end_transaction_marker
from kwire.spark import segment_reading
from kwire.spark.segment_files import list_partitions, parse_directory
from kwire.spark.segment_plan import DamagedSegmentError, Selection, plan, walk_headers
from kwire.spark.segment_reading import read_segment
from kwire.spark.stores import LocalStore, open_store

pytest.importorskip("pyarrow")
STORE = LocalStore()


def batch(base: int, count: int, **arguments: Any) -> bytes:
    records = [
        Record(base + i, 1000 + base + i, b"k%d" % (base + i), b"v" * (base + i), [])
        for i in range(count)
    ]
    return bytes(build_batch(records, base_offset=base, leader_epoch=3, **arguments))


def partition(path: Path, segments: dict[int, bytes], name: str = "t-0") -> Path:
    folder = path / name
    folder.mkdir(parents=True)
    for base, data in segments.items():
        (folder / f"{base:020d}.log").write_bytes(data)
    return folder


def offsets(path: Path, **selection: Any) -> list[int]:
    location = str(path)
    store, inner = open_store(location)
    return [
        offset
        for task in plan(store, inner, location, Selection(**selection))
        for found in read_segment(task, ["offset"])
        for offset in found["offset"].to_pylist()
    ]


def test_names_of_partition_folders() -> None:
    assert parse_directory("with.dots_and-dashes-12") == ("with.dots_and-dashes", 12)
    for name in ("t", "t-", "t-01", "-0", "t-0.0123456789abcdef0123456789abcdef-delete", "..-0"):
        assert parse_directory(name) is None, name
    for kind in ("future", "stray"):
        assert parse_directory(f"t-0.{'0' * 32}-{kind}") is None


@pytest.mark.parametrize("cut", [1, 20, 61, 80])
def test_a_torn_end_of_the_newest_segment_is_where_reading_ends(tmp_path: Path, cut: int) -> None:
    partition(tmp_path, {0: batch(0, 5), 5: batch(5, 5) + batch(10, 5)[:cut]})
    assert offsets(tmp_path) == list(range(10))


def test_zeros_behind_the_newest_segment_are_no_records(tmp_path: Path) -> None:
    partition(tmp_path, {0: batch(0, 5) + bytes(4096)})
    assert offsets(tmp_path) == list(range(5))


@pytest.mark.parametrize("damage", ["torn", "zeros", "checksum"])
def test_damage_in_an_older_segment_is_named(tmp_path: Path, damage: str) -> None:
    data = bytearray(batch(0, 5))
    if damage == "torn":
        del data[-3:]
    elif damage == "zeros":
        data += bytes(100)
    else:
        data[-1] ^= 1
    partition(tmp_path, {0: bytes(data), 5: batch(5, 5)})
    with pytest.raises(DamagedSegmentError, match=r"00000000000000000000\.log: .* position \d+"):
        offsets(tmp_path)


def test_files_that_a_start_would_remove_do_not_count(tmp_path: Path) -> None:
    folder = partition(tmp_path, {0: batch(0, 5)})
    (folder / "00000000000000000005.log.deleted").write_bytes(batch(5, 5))
    (folder / "00000000000000000005.log.cleaned").write_bytes(batch(5, 5))
    partition(tmp_path, {0: batch(0, 9)}, f"t-1.{'a' * 32}-delete")
    assert offsets(tmp_path) == list(range(5))


def test_a_swapped_segment_takes_the_place_of_its_original(tmp_path: Path) -> None:
    folder = partition(tmp_path, {0: batch(0, 5), 5: batch(5, 1)})
    (folder / "00000000000000000000.log.swap").write_bytes(batch(4, 1))
    assert offsets(tmp_path) == [4, 5]


def test_the_log_start_offset_hides_deleted_records(tmp_path: Path) -> None:
    partition(tmp_path, {0: batch(0, 10)})
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 7\n")
    assert offsets(tmp_path) == [7, 8, 9]


def test_a_batch_larger_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reading, "CHUNK_BYTES", 100)
    partition(tmp_path, {0: batch(0, 3) + batch(3, 40) + batch(43, 1)})
    assert offsets(tmp_path) == list(range(44))


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec(tmp_path: Path, codec: Codec) -> None:
    partition(tmp_path, {0: batch(0, 200, codec=codec)})
    assert offsets(tmp_path, offset_min=150) == list(range(150, 200))


def transactional(base: int, count: int, producer: int) -> bytes:
    return batch(
        base, count, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(offset: int, producer: int, commit: bool) -> bytes:
    data = end_transaction_marker(producer, 0, commit, 0, 5000)
    stamp(data, 0, offset, 3)
    return bytes(data)


def test_transactions_without_any_index_or_snapshot(tmp_path: Path) -> None:
    partition(
        tmp_path,
        {
            0: transactional(0, 2, 1) + transactional(2, 2, 2) + batch(4, 1),
            5: marker(5, 1, commit=False) + marker(6, 2, commit=True),
            7: transactional(7, 2, 1) + batch(9, 2),
        },
    )
    assert offsets(tmp_path) == [2, 3, 4]
    assert offsets(tmp_path, committed_only=False) == [0, 1, 2, 3, 4, 7, 8, 9, 10]


def test_segments_are_left_out_by_offset(tmp_path: Path) -> None:
    partition(tmp_path, {0: batch(0, 5), 5: batch(5, 5), 10: batch(10, 5)})
    location = str(tmp_path)

    def bases(**selection: Any) -> list[int]:
        tasks = plan(STORE, location, location, Selection(**selection))
        return [task.segment.base_offset for task in tasks]

    assert bases() == [0, 5, 10]
    assert bases(offset_min=5) == [5, 10]
    assert bases(offset_max=4) == [0]
    assert bases(offset_min=6, offset_max=9) == [5]
    assert bases(topics=frozenset(["other"])) == []
    assert bases(partition_min=1) == []
    assert bases(topic_pattern="t+") == [0, 5, 10]


def test_replicas_in_several_data_directories(tmp_path: Path) -> None:
    partition(tmp_path / "broker-1", {0: batch(0, 5)})
    partition(tmp_path / "broker-2", {0: batch(0, 5), 5: batch(5, 5)})
    assert offsets(tmp_path) == list(range(10))
    assert offsets(tmp_path / "broker-1" / "t-0") == list(range(5))
    found = list_partitions(STORE, str(tmp_path))
    assert [files.path for files in found] == [str(tmp_path / "broker-2" / "t-0")]


def test_headers_are_walked_in_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.spark.segment_plan.WALK_BYTES", 70)
    sizes = [random.Random(1).randrange(1, 30) for _ in range(20)]
    data, base, bases = b"", 0, []
    for size in sizes:
        bases.append(base)
        data += batch(base, size)
        base += size
    path = tmp_path / "x.log"
    path.write_bytes(data + b"torn")
    walked = walk_headers(STORE, str(path), path.stat().st_size)
    assert [header.base_offset for _, header in walked] == bases


def test_a_file_uri_is_a_folder(tmp_path: Path) -> None:
    partition(tmp_path, {0: batch(0, 5)})
    for location in (f"file://{tmp_path}", f"file:{tmp_path}"):
        store, inner = open_store(location)
        tasks = plan(store, inner, location, Selection())
        assert [found["offset"].to_pylist() for t in tasks for found in read_segment(t, ["offset"])]


def test_what_fsspec_opens(tmp_path: Path) -> None:
    """A store behind fsspec reads as a folder does: indexes, ranges of files, missing folders."""
    fsspec = pytest.importorskip("fsspec")
    wanted = {0: batch(0, 5) + batch(5, 5), 10: batch(10, 5)}
    folder = partition(tmp_path, wanted)
    (folder / f"{0:020d}.timeindex").write_bytes((1009).to_bytes(8, "big") + (9).to_bytes(4, "big"))
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/lake/data", recursive=True)
    try:
        for selection in ({}, {"offset_min": 7}, {"timestamp_min": 1010}):
            found = []
            for location in (str(tmp_path), "memory://lake/data"):
                store, inner = open_store(location)
                tasks = plan(store, inner, location, Selection(**selection))
                rows = [r for t in tasks for r in read_segment(t, ["offset", "value"])]
                found.append((len(tasks), [row.to_pydict() for row in rows]))
            assert found[0] == found[1]
        store, inner = open_store("memory://nowhere")
        with pytest.raises(FileNotFoundError):
            plan(store, inner, "memory://nowhere", Selection())
    finally:
        memory.rm("/lake", recursive=True)


def test_a_store_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="nosuch://bucket/data"):
        open_store("nosuch://bucket/data")


def test_without_fsspec_the_schemes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ValueError, match=r"memory://x: not one of file, s3a, .*fsspec is not"):
        open_store("memory://x")


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        offsets(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="nosuch"):
        open_store("nosuch://bucket/path")


def test_options_count_however_they_are_written() -> None:
    """Found in Spark: it hands options over in small letters, and all but the ones that have
    none other (topic, partitions) were passed over without a word."""
    pytest.importorskip("pyspark")
    from kwire.spark.segment_source import parse_selection

    written = {
        "topicPattern": "a.*",
        "partitions": "1,2",
        "startingOffset": "5",
        "endingOffset": "9",
        "startingTimestamp": "1000",
        "endingTimestamp": "2000",
        "isolation": "read_uncommitted",
    }
    wanted = Selection(
        topic_pattern="a.*",
        partitions=frozenset({1, 2}),
        offset_min=5,
        offset_max=8,
        timestamp_min=1000,
        timestamp_max=1999,
        committed_only=False,
    )
    assert parse_selection(written) == wanted
    assert parse_selection({name.lower(): value for name, value in written.items()}) == wanted
    assert parse_selection({name.upper(): value for name, value in written.items()}) == wanted
    with pytest.raises(ValueError, match="partitions '1,x' are no numbers"):
        parse_selection({"Partitions": "1,x"})


@pytest.mark.parametrize("newest", [True, False])
def test_an_offset_that_is_not_where_it_belongs_is_damage(tmp_path: Path, newest: bool) -> None:
    """No checksum covers it: the records of the batch were passed over without a word."""
    data = bytearray(batch(0, 5) + batch(5, 5) + batch(10, 5))
    second = len(batch(0, 5))
    data[second : second + 8] = b"\xff" * 8
    partition(tmp_path, {0: bytes(data)} | ({} if newest else {15: batch(15, 5)}))
    with pytest.raises(DamagedSegmentError, match=rf"offset -1 .* at position {second}"):
        offsets(tmp_path)


@pytest.mark.parametrize("entry", [(2, 1), (5, 9999), (7, 0), (6, -60)])
def test_an_index_that_does_not_fit_its_log_is_not_believed(
    tmp_path: Path, entry: tuple[int, int]
) -> None:
    """Reading began in the middle of a batch, or behind what was wanted."""
    folder = partition(tmp_path, {0: batch(0, 5) + batch(5, 5) + batch(10, 5)})
    (folder / f"{0:020d}.index").write_bytes(struct.pack(">ii", *entry))
    assert offsets(tmp_path, offset_min=7) == list(range(7, 15))


@pytest.mark.parametrize("damage", ["torn", "version", "outside", "backwards"])
def test_a_damaged_transaction_index_shows_no_aborted_records(tmp_path: Path, damage: str) -> None:
    """Entries that are none were left out, and what they had aborted was read as committed."""
    log = transactional(0, 3, 9) + marker(3, 9, commit=False)
    folder = partition(tmp_path, {0: log, 4: batch(4, 2)})
    entry = {
        "torn": struct.pack(">hqqqq", 0, 9, 0, 3, 4)[:-1],
        "version": struct.pack(">hqqqq", 1, 9, 0, 3, 4),
        "outside": struct.pack(">hqqqq", 0, 9, 0, 4, 4),
        "backwards": struct.pack(">hqqqq", 0, 9, 3, 0, 4),
    }[damage]
    index = folder / f"{0:020d}.txnindex"
    index.write_bytes(struct.pack(">hqqqq", 0, 9, 0, 3, 4))
    assert offsets(tmp_path) == [4, 5]
    index.write_bytes(entry)
    with pytest.raises(DamagedSegmentError, match=r"\.txnindex: no transaction at position 0"):
        offsets(tmp_path)


def test_a_batch_that_damage_makes_a_control_batch_is_not_passed_over(tmp_path: Path) -> None:
    """What a header says was believed before the checksum was looked at."""
    data = bytearray(batch(0, 5) + batch(5, 5))
    data[22] |= 0x20
    partition(tmp_path, {0: bytes(data), 10: batch(10, 1)})
    with pytest.raises(DamagedSegmentError, match="bad checksum at position 0"):
        offsets(tmp_path)
