"""What a share fetch reads: headers as far as they are needed, and what is sent of the batches."""

from __future__ import annotations

import pathlib
import random

import pytest

from kwire.log.files import SystemFiles
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.log.segment import reading
from kwire.log.types import FetchSlices, FileSlice, Isolation
from kwire.protocol.records import Record, build_batch, outlines
from kwire.share.changes import FetchedBatch
from kwire.share.read_batches import cut, headers, kept
from tests.support.logs import ManualClock, ManualScheduler, client_batch

ALL = 1 << 62


@pytest.fixture
def log(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> PartitionLog:
    """Batches of 1 to 40 records, some of them larger than what is read of a file at once."""
    monkeypatch.setattr(reading, "FILE_SLICE_BYTES_MIN", 1000)
    directory = tmp_path / "topic-0"
    directory.mkdir()
    log = open_log(
        str(directory),
        "topic",
        0,
        bytes(16),
        LogConfig(),
        ManualClock(),
        files=SystemFiles(),
        scheduler=ManualScheduler(),
    )
    source = random.Random(5)
    for _ in range(100):
        size, count = source.choice((1, 50, 9000)), source.choice((1, 3, 40))
        log.append_as_leader(client_batch(count, value=bytes(size)), leader_epoch=0)
    log.write_tail()
    log.update_high_watermark(log.log_end_offset)
    return log


def _read(log: PartitionLog, offset: int, bytes_max: int, as_file: bool) -> FetchSlices:
    found = log.read(offset, bytes_max, isolation=Isolation.HIGH_WATERMARK, as_file=as_file)
    assert isinstance(found, FetchSlices)
    return found


def test_a_file_has_the_headers_and_the_bytes_that_memory_has(log: PartitionLog) -> None:
    source = random.Random(9)
    slices = 0
    for _ in range(300):
        offset = source.randrange(log.log_end_offset)
        bytes_max = source.choice((2000, 20_000, 1 << 20))
        plain = list(_read(log, offset, bytes_max, as_file=False).buffers)
        told = list(_read(log, offset, bytes_max, as_file=True).buffers)
        if type(told[0]) is not FileSlice:
            continue
        slices += 1
        until = offset + source.choice((0, 5, 100, ALL))
        fetched = headers(told, until)
        assert fetched == headers(plain, until)
        first = source.randrange(fetched[0].base_offset, fetched[-1].last_offset + 1)
        last = source.randrange(first, fetched[-1].last_offset + 1)
        places, size_bytes = cut(told, fetched, first, last)
        assert all(type(place) is FileSlice for place in places)
        views, view_bytes = cut(plain, fetched, first, last)
        sent = b"".join(bytes(part) for part in kept(places))  # type: ignore[arg-type]
        assert sent == b"".join(bytes(view) for view in views)  # type: ignore[arg-type]
        assert len(sent) == size_bytes == view_bytes
        given = outlines(sent)
        assert given[0][0] <= first <= given[0][1]
        assert given[-1][0] <= last <= given[-1][1]
    assert slices > 100
    log.close()


def test_headers_end_with_the_batch_that_reaches_the_offset() -> None:
    def batch(base: int, count: int) -> bytes:
        records = [Record(i, 0, None, b"x", []) for i in range(count)]
        return bytes(build_batch(records, base_offset=base))

    data = [batch(10, 5) + batch(15, 5), batch(20, 5)]
    size = len(batch(10, 5))
    whole = [FetchedBatch(base, base + 4, size) for base in (10, 15, 20)]
    assert headers(list(data), ALL) == whole
    assert headers(list(data), 14) == whole[:1]
    assert headers(list(data), 15) == headers(list(data), 19) == whole[:2]
    assert headers(list(data), 20) == whole
