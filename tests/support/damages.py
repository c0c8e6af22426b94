"""Logs of several segments, stopped, damaged and started again."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.log.partition.config import LogConfig
from tests.support.logs import World, read_all

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)


def filled(batches: int = 30, *, producers: bool = False) -> World:
    """Several segments of batches of 3 records, stopped cleanly."""
    world = World(1, CONFIG)
    for at in range(batches):
        options: dict[str, Any] = {}
        if producers:
            options = {"producer_id": 5, "producer_epoch": 0, "base_sequence": at * 3}
        world.append(3, value=b"%d" % at, timestamp=world.clock.now_ms + at, **options)
        world.scheduler.turn()
    assert len(world.log.segments) > 3
    return world


def damaged_start(world: World, what: Any, **options: Any) -> tuple[int, list[int]]:
    """Stop cleanly, damage, start; returns the end before and the segments' bases."""
    log = world.log
    end, bases = log.log_end_offset, log.segments.bases
    log.close(sync=True)
    what(bases)
    world.open(
        **{
            "clean": True,
            "recovery_point": end,
            "high_watermark": end,
            "log_start_offset": log.log_start_offset,
            **options,
        }
    )
    return end, bases


def append_and_read(world: World, count: int) -> None:
    """The log goes on: one more batch, everything readable."""
    before = read_all(world.log)
    info = world.append(1, value=b"999")
    world.scheduler.turn()
    assert read_all(world.log) == [*before, (info.base_offset, b"999")]
    assert len(before) == count


CLEAN = {"clean": True}
UNCLEAN = {"clean": False}
FROM_ZERO: dict[str, Any] = {"clean": False, "recovery_point": None}
STARTS = pytest.mark.parametrize("start", [CLEAN, UNCLEAN, FROM_ZERO])


def truncate_last_batch(world: World) -> Any:
    def cut(bases: list[int]) -> None:
        path = world.path(".log", bases[-1])
        world.resize(path, world.disk.size_of(path) - 20)

    return cut
