"""A batch whose checksum does not hold is named and left out, never replayed as what it says."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kwire.coordinator import batches, loading
from kwire.coordinator.loading import Loading, Worker
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.records.compaction_kernel import COMPILED
from tests.support.coordinators import ManualLoop, MemoryLog

COUNT = 6
DELTA_POSITION = 23  # of last_offset_delta in a batch
WAYS = ["replayed", "reduced", *(["by a worker"] if COMPILED else [])]


class Notes:
    """The offsets of partitions, as a shard keeps them."""

    def __init__(self) -> None:
        self.notes: dict[int, int] = {}

    def replay(self, key: Any, value: Any, offset: int, *_: int) -> None:
        self.notes[key.partition] = value.offset


def _log() -> MemoryLog:
    """COUNT batches: partition i gets offset 10 * i, then all of them one of their own again."""
    log = MemoryLog()
    for number in range(COUNT):
        key = m.OffsetCommitKey(group="g", topic="t", partition=number)
        record = CoordinatorRecord(key, m.OffsetCommitValue(offset=10 * number), 4)
        log.append(0, batches.build(batches.encode_all([record]), 0, None), 0)
    return log


def _load(log: MemoryLog, way: str, bytes_max: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What loading gives: the notes, or an error."""
    if way != "replayed":
        monkeypatch.setattr(loading, "REPLAYED_MAX", 0)
    loop, shard = ManualLoop(), Notes()
    ended: list[Any] = []

    def run(job: Any) -> Pending[int]:
        try:
            return Pending.completed(job())
        except Exception as error:
            return Pending.failed(error)

    Loading(
        shard,  # type: ignore[arg-type]
        0,
        module="group-coordinator",
        partition_log=log,
        loop=loop,
        bytes_max=bytes_max,
        finished=ended.append,
        failed=ended.append,
        worker=Worker(run, lambda: bytes(16)) if way == "by a worker" else None,
    )
    loop.run()
    assert ended == [COUNT]
    return shard.notes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bytes_max", [1, 250, 1 << 20])
@pytest.mark.parametrize("damaged", [(0,), (3,), (5,), (2, 3), (4, 5), tuple(range(COUNT))])
def test_damaged_batches_are_left_out_and_named(
    way: str,
    bytes_max: int,
    damaged: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = _log()
    for number in damaged:
        log.batches[0][number][-10] ^= 0x40
    with caplog.at_level(logging.ERROR):
        notes = _load(log, way, bytes_max, monkeypatch)
    assert notes == {i: 10 * i for i in range(COUNT) if i not in damaged}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(damaged), "each is named once"
    for number, line in zip(damaged, said, strict=True):
        assert line.startswith("partition 0 of the group-coordinator: the checksum of the batch at")
        assert f"offset {number} " in line


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bytes_max", [1, 300, 1 << 20])
@pytest.mark.parametrize("number", [0, 3, 5])
@pytest.mark.parametrize("bit", [0x01, 0x40000000])
def test_damaged_offsets_of_a_batch_cost_no_other(
    way: str, bytes_max: int, number: int, bit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of its last record is not believed where others follow."""
    log = _log()
    batch = log.batches[0][number]
    delta = int.from_bytes(batch[DELTA_POSITION : DELTA_POSITION + 4], "big") ^ bit
    batch[DELTA_POSITION : DELTA_POSITION + 4] = delta.to_bytes(4, "big")
    notes = _load(log, way, bytes_max, monkeypatch)
    if bytes_max > 1:
        assert notes == {i: 10 * i for i in range(COUNT) if i != number}
    else:
        # Read alone there is nothing else to go by: what is kept was said.
        assert all(notes[i] == 10 * i for i in notes if i != number)
        assert number not in notes


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_log_is_loaded_as_it_is(
    way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert _load(_log(), way, 1 << 20, monkeypatch) == {i: 10 * i for i in range(COUNT)}
    assert caplog.records == []
