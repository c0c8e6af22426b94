"""Retention, DeleteRecords and the start of one log."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.log.partition.config import LogConfig
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.logs import World, client_batch, names, read_all

DAY_MS = 86_400_000


def _append(world: World, count: int = 1, **options: Any) -> None:
    world.append(count, **options)
    world.scheduler.turn()


def _segments(world: World, count: int, step_ms: int = DAY_MS) -> None:
    for at in range(count):
        _append(world, timestamp=world.clock.now_ms - (count - 1 - at) * step_ms)
        if at < count - 1:
            world.log.roll()
    world.log.update_high_watermark(world.log.log_end_offset)


def test_retention_by_time() -> None:
    world = World(config=LogConfig(retention_ms=3 * DAY_MS, segment_ms=1 << 60))
    _segments(world, 6)
    assert world.log.delete_old_segments(world.clock.now_ms) == 2
    assert world.log.log_start_offset == 2
    assert world.log.segments.bases == [2, 3, 4, 5]
    assert any(name.endswith(".deleted") for name in names(world.disk))
    world.scheduler.advance(60_001)
    assert not any(name.endswith(".deleted") for name in names(world.disk))
    assert world.log.delete_old_segments(world.clock.now_ms) == 0


def test_retention_takes_the_active_segment_too() -> None:
    world = World(config=LogConfig(retention_ms=1000, segment_ms=1 << 60))
    _segments(world, 2)
    world.clock.now_ms += DAY_MS
    assert world.log.delete_old_segments(world.clock.now_ms) == 2
    assert (world.log.log_start_offset, world.log.segments.bases) == (2, [2])
    _append(world)
    world.reopen()
    assert [offset for offset, _ in read_all(world.log)] == [2]


def test_retention_stops_at_the_high_watermark() -> None:
    world = World(config=LogConfig(retention_ms=1000, segment_ms=1 << 60))
    _segments(world, 5)
    world.log.update_high_watermark(2)
    world.clock.now_ms += DAY_MS
    assert world.log.delete_old_segments(world.clock.now_ms) == 2


@pytest.mark.parametrize("config", [{"retention_ms": -1}, {"cleanup_policy": ("compact",)}])
def test_no_retention(config: Any) -> None:
    world = World(config=LogConfig(**config, segment_ms=1 << 60))
    _segments(world, 4)
    world.clock.now_ms += 1000 * DAY_MS
    assert world.log.delete_old_segments(world.clock.now_ms) == 0


def test_retention_by_size() -> None:
    size = len(client_batch(1))
    world = World(config=LogConfig(retention_bytes=3 * size, retention_ms=-1, segment_ms=1 << 60))
    _segments(world, 6)
    assert world.log.delete_old_segments(world.clock.now_ms) == 3
    assert world.log.size_bytes == 3 * size
    assert world.log.log_start_offset == 3


def test_delete_records() -> None:
    world = World(config=LogConfig(segment_ms=1 << 60))
    _segments(world, 5)
    with pytest.raises(KafkaError) as caught:
        world.log.delete_records_before(6)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.log.delete_records_before(3) == 3
    assert world.log.delete_records_before(1) == 3
    with pytest.raises(KafkaError):
        world.log.read(2, 100)
    assert world.log.delete_old_segments(world.clock.now_ms) == 3
    assert world.log.segments.bases == [3, 4]
    assert world.log.delete_records_before(5) == 5
    assert read_all(world.log) == []
    _append(world)
    assert [offset for offset, _ in read_all(world.log)] == [5]


def test_log_start_moves_the_epochs() -> None:
    world = World()
    for epoch in (0, 2, 4):
        _append(world, 10, epoch=epoch)
    world.log.update_high_watermark(30)
    world.log.delete_records_before(15)
    assert world.log.leader_epochs.entries == [(2, 15), (4, 20)]
    assert world.log.end_offset_for_epoch(0) == (0, 15)
    assert world.log.end_offset_for_epoch(2) == (2, 20)
    assert world.log.end_offset_for_epoch(3) == (2, 20)
    assert world.log.end_offset_for_epoch(4) == (4, 30)
    assert world.log.end_offset_for_epoch(5) == (-1, -1)
    assert world.log.end_offset_for_epoch(-1) == (-1, -1)
