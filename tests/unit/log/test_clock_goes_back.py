"""The wall clock goes back by a year: nothing waits for it to catch up that need not."""

from __future__ import annotations

import dataclasses
from typing import Any

from kwire.clock import SeededRandom
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.cleaning import CONFIG, TOPIC, CleaningWorld
from tests.support.logs import ManualClock, ManualScheduler, client_batch, read_all

TOPIC_ID = bytes(range(1, 17))
YEAR_MS = 365 * 86_400_000
KEY = (TOPIC, 0)


def _manager(config: LogConfig) -> tuple[LogManager, ManualClock, ManualScheduler]:
    clock, scheduler = ManualClock(), ManualScheduler()
    manager = LogManager(
        ["/data"],
        clock,
        SeededRandom(5),
        files=SimulatedDisk(SeededRandom(3)),
        scheduler=scheduler,
        config_of=lambda topic: config,
    )
    manager.open_directories()
    manager.load_all()
    return manager, clock, scheduler


def test_flush_ms_is_kept() -> None:
    manager, clock, scheduler = _manager(LogConfig(flush_ms=1000))
    log: Any = manager.create("topic", 0, TOPIC_ID)
    log.append_as_leader(client_batch(1), leader_epoch=0)
    scheduler.turn()
    manager.flush_old()
    scheduler.turn()
    assert log.recovery_point == 1
    clock.now_ms -= YEAR_MS
    log.append_as_leader(client_batch(1, timestamp=clock.now_ms), leader_epoch=0)
    scheduler.turn()
    manager.flush_old()
    scheduler.turn()
    assert log.recovery_point == 2
    log.append_as_leader(client_batch(1, timestamp=clock.now_ms), leader_epoch=0)
    scheduler.turn()
    manager.flush_old()
    scheduler.turn()
    assert log.recovery_point == 2, "a moment ago, by the clock as it is now"


def test_a_partition_that_failed_to_be_compacted_is_tried_again() -> None:
    world = CleaningWorld()
    world.meet_a_full_disk()
    world.disk.capacity_bytes = None
    world.clock.now_ms -= YEAR_MS
    assert world.clean() == 1


def test_retention_takes_nothing_early_and_look_ups_stay_right() -> None:
    """Records of before, then those of a year ago behind them, then of now again."""
    config = LogConfig(retention_ms=3_600_000, message_timestamp_after_max_ms=1 << 62)
    manager, clock, scheduler = _manager(config)
    log: Any = manager.create("topic", 0, TOPIC_ID)
    now_ms = clock.now_ms
    for moment in (now_ms, now_ms - YEAR_MS, now_ms + 1000):
        clock.now_ms = moment
        log.append_as_leader(client_batch(1, timestamp=moment), leader_epoch=0)
        scheduler.turn()
        log.update_high_watermark(log.log_end_offset)
        log.roll()
        scheduler.turn()
        manager.enforce_retention()
        scheduler.turn()
    assert [offset for offset, _ in read_all(log)] == [0, 1, 2]
    assert log.offset_for_timestamp(now_ms - YEAR_MS).offset == 0
    assert log.offset_for_timestamp(now_ms + 1).offset == 2
    assert log.max_timestamp_offset().offset == 2
    clock.now_ms = now_ms + 3_600_001
    manager.enforce_retention()
    scheduler.turn()
    assert log.log_start_offset == 2


def test_tombstones_and_lags_wait_and_lose_nothing() -> None:
    config = dataclasses.replace(CONFIG, delete_retention_ms=1000, min_compaction_lag_ms=1000)
    world = CleaningWorld(config)
    world.append([(b"a", b"1")])
    world.append([(b"a", None)])
    world.roll()
    world.clock.now_ms -= YEAR_MS
    assert world.clean() == 0, "younger than its lag, as far as anybody knows"
    world.clock.now_ms += YEAR_MS + 1001
    assert world.clean() == 1
    assert [row[0] for row in world.rows()] == [1]
    world.clock.now_ms -= YEAR_MS
    world.append([(b"b", b"1")], timestamp=world.clock.now_ms)
    world.roll()
    world.clock.now_ms += 1001
    assert world.clean() == 1
    assert [row[0] for row in world.rows()] == [1, 2], "its horizon is a year away"
    world.clock.now_ms += YEAR_MS
    world.append([(b"c", b"1")], timestamp=world.clock.now_ms)
    world.roll()
    world.clock.now_ms += 1001
    assert world.clean() == 1
    assert [row[0] for row in world.rows()] == [2, 3]
