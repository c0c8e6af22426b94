"""Reads that are told by their place in the file: the same batches as reads of their bytes."""

from __future__ import annotations

import pathlib
import random
from typing import Any

import pytest

from kwire.log.files import WINDOW_BYTES, WINDOWS_MAX, SystemFiles
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.log.segment import reading
from kwire.log.types import FetchSlices, FileSlice, Isolation
from tests.support.logs import ManualClock, ManualScheduler, client_batch


def _log(tmp_path: pathlib.Path, **config: Any) -> PartitionLog:
    directory = tmp_path / "topic-0"
    directory.mkdir()
    return open_log(
        str(directory),
        "topic",
        0,
        bytes(16),
        LogConfig(**config),
        ManualClock(),
        files=SystemFiles(),
        scheduler=ManualScheduler(),
    )


def _fill(log: PartitionLog, sizes: list[int]) -> None:
    for size in sizes:
        log.append_as_leader(client_batch(2, value=bytes([size % 251]) * size), leader_epoch=0)
    log.write_tail()
    log.update_high_watermark(log.log_end_offset)


def _read(log: PartitionLog, offset: int, bytes_max: int, **options: Any) -> FetchSlices:
    found = log.read(offset, bytes_max, isolation=Isolation.HIGH_WATERMARK, **options)
    assert isinstance(found, FetchSlices)
    return found


def _bytes(found: FetchSlices) -> bytes:
    return b"".join(bytes(buffer) for buffer in found.buffers)


@pytest.mark.parametrize("seed", range(4))
def test_a_file_slice_is_what_a_read_gives(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(reading, "FILE_SLICE_BYTES_MIN", 1000)
    source = random.Random(seed)
    log = _log(tmp_path, segment_bytes=400_000)
    _fill(log, [source.choice((1, 50, 3000, 20_000, 90_000)) for _ in range(120)])
    slices = 0
    for _ in range(400):
        offset = source.randrange(log.log_end_offset)
        bytes_max = source.choice((0, 61, 5000, 50_000, 200_000, 1 << 20))
        plain = _read(log, offset, bytes_max)
        told = _read(log, offset, bytes_max, as_file=True)
        assert (told.next_offset, told.size_bytes) == (plain.next_offset, plain.size_bytes)
        (place,) = told.buffers
        if type(place) is FileSlice:
            slices += 1
            assert len(place) == told.size_bytes
            assert place.read() == bytes(place.view()) == _bytes(plain)
        else:
            assert bytes(place) == _bytes(plain)
    assert slices > 100
    log.close()


def test_a_read_stops_at_the_high_watermark(tmp_path: pathlib.Path) -> None:
    log = _log(tmp_path)
    _fill(log, [300_000] * 4)
    log.append_as_leader(client_batch(2, value=b"z" * 300_000), leader_epoch=0)
    log.write_tail()
    found = _read(log, 0, 1 << 30, as_file=True)
    assert found.next_offset == log.high_watermark < log.log_end_offset
    assert type(found.buffers[0]) is FileSlice
    assert found.buffers[0].read() == _bytes(_read(log, 0, 1 << 30))
    log.close()


def test_a_view_never_reaches_behind_the_end_of_the_file(tmp_path: pathlib.Path) -> None:
    path, files = tmp_path / "file", SystemFiles()
    path.write_bytes(b"0123456789" * 1000)
    handle = files.open(str(path))
    assert bytes(files.map(handle, 10, 4095)) == b"5678901234"
    with pytest.raises(OSError, match="shorter"):
        files.map(handle, 10, 9_995)
    files.truncate(handle, 5_000)
    with pytest.raises(OSError, match="shorter"):
        files.map(handle, 10, 4_995)
    files.close(handle)


def test_a_window_goes_with_the_file_it_was_of(tmp_path: pathlib.Path) -> None:
    files = SystemFiles()
    for name, byte in (("a", b"a"), ("b", b"b")):
        (tmp_path / name).write_bytes(byte * (WINDOW_BYTES + 5000))
    first = files.open(str(tmp_path / "a"))
    assert bytes(files.map(first, 3, 100)) == b"aaa"
    assert bytes(files.map(first, 3, WINDOW_BYTES + 100)) == b"aaa", "in the next window"
    files.close(first)
    second = files.open(str(tmp_path / "b"))
    assert second == first, "the number is used again"
    assert bytes(files.map(second, 3, WINDOW_BYTES + 100)) == b"bbb"
    files.close(second)


def test_windows_are_kept_of_few_files(tmp_path: pathlib.Path) -> None:
    """What goes out of several partitions in turn is not mapped anew each time."""
    files = SystemFiles()
    handles = []
    for number in range(WINDOWS_MAX + 1):
        (tmp_path / str(number)).write_bytes(bytes([number]) * 5000)
        handles.append(files.open(str(tmp_path / str(number))))
    before = [files.map(handle, 10, 100) for handle in handles[:WINDOWS_MAX]]
    again = [files.map(handle, 10, 200) for handle in handles[:WINDOWS_MAX]]
    assert [view.obj for view in again] == [view.obj for view in before]
    assert bytes(files.map(handles[-1], 10, 0)) == bytes([WINDOWS_MAX]) * 10
    assert files.map(handles[1], 10, 100).obj is before[1].obj
    anew = files.map(handles[0], 10, 100)
    assert anew.obj is not before[0].obj, "the oldest one went"
    assert bytes(anew) == bytes(before[0]) == bytes(10)
    for handle in handles:
        files.close(handle)


def test_a_view_outlives_its_window(tmp_path: pathlib.Path) -> None:
    files = SystemFiles()
    (tmp_path / "a").write_bytes(b"a" * 100_000)
    handle = files.open(str(tmp_path / "a"))
    view = files.map(handle, 50_000, 1000)
    files.close(handle)
    assert bytes(view) == b"a" * 50_000


def test_a_batch_that_is_cut_off_tells_where_the_whole_ones_end(tmp_path: pathlib.Path) -> None:
    """What a consumer gets whose limit is a little more than a batch: one header is read."""
    log = _log(tmp_path)
    _fill(log, [450_000] * 3)
    segment = log.segments.active
    read: list[tuple[int, int]] = []
    segment.pread = lambda size, at: (
        read.append((size, at))
        or SystemFiles().pread(  # type: ignore[method-assign]
            segment.handle, size, at
        )
    )
    found = _read(log, 0, 1 << 20, as_file=True)
    first_bytes = segment.size_bytes // 3
    assert found.size_bytes == first_bytes
    assert found.next_offset == 2
    assert read == [(reading.WALK_BYTES, first_bytes)]
    assert segment.hint(2) == first_bytes
    log.close()
