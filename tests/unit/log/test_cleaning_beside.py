"""Compaction beside what else happens to a log: moves, truncations, lost ends."""

from __future__ import annotations

import dataclasses
import logging

import pytest

from kwire.log.directories import moving
from tests.support.cleaning import CONFIG, TOPIC, CleaningWorld, committed_state

KEY = (TOPIC, 0)


def _world_with_a_tombstone() -> CleaningWorld:
    """`k` has a value in the first segment and a tombstone in the third."""
    config = dataclasses.replace(CONFIG, delete_retention_ms=0)
    world = CleaningWorld(config, other_directories=("/other",))
    world.append([(b"k", b"1")])
    for _ in range(6):
        world.append([(b"x", b"1" * 100)])
    world.roll()
    world.append([(b"k", None)])
    world.roll()
    world.append([(b"y", b"1")])
    world.roll()
    return world


def test_a_tombstone_outlives_what_a_move_has_copied_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The copy has the value; were the tombstone cleaned away in front of it, the value came
    back."""
    monkeypatch.setattr(moving, "STEP_BYTES", 200)
    monkeypatch.setattr(moving, "CLOSE_BYTES", 0)
    world = _world_with_a_tombstone()
    world.manager.moves.rate_max = 1
    world.manager.moves.begin(KEY, world.manager.directories[1])
    for _ in range(3):
        assert world.clean() == 0
        world.clock.now_ms += 1000
    world.manager.moves.rate_max = 1 << 40
    for _ in range(200):
        world.scheduler.advance(1000)
        if not world.manager.moves.moves:
            break
    home = world.manager.directory_of(*KEY)
    assert home is not None
    assert home.path == "/other"
    assert b"k" not in committed_state(world.log)
    for _ in range(3):
        world.append([(b"z", b"1")])
        world.roll()
        assert world.clean() == 1
        world.clock.now_ms += 1000
    assert b"k" not in committed_state(world.log)
    assert b"k" not in [key for _, key, _ in world.rows()]


def test_a_move_ends_the_cleaning_that_is_under_way() -> None:
    world = _world_with_a_tombstone()
    before = world.rows()
    world.scheduler.holds_jobs = True
    world.cleaner.find_work()
    world.scheduler.turn()
    world.manager.moves.rate_max = 1
    world.manager.moves.begin(KEY, world.manager.directories[1])
    world.scheduler.holds_jobs = False
    world.scheduler.turn()
    assert world.rows() == before
    world.manager.moves.cancel(KEY)
    assert world.clean() == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_appended_behind_a_truncation_is_not_clean(enabled: bool) -> None:
    """Also after a kill, and where the cleaner is turned off for the moment."""
    world = CleaningWorld(CONFIG)
    world.append([(b"a", b"1")] * 3)
    world.roll()
    world.append([(b"a", b"2")] * 3)
    world.roll()
    world.append([(b"b", b"1")])
    world.roll()
    assert world.clean() == 1
    assert world.cleaner.cleaned_to(KEY) == 7
    if not enabled:
        world.manager.cleaner = None
    world.scheduler.holds_jobs = True  # nothing that is done later is in time for the kill
    world.log.truncate_to(6)
    world.scheduler.holds_jobs = False
    for _ in range(3):
        world.append([(b"a", b"3")])
    world.kill()
    assert world.cleaner.cleaned_to(KEY) == 6


def test_recovery_points_are_not_above_what_was_truncated() -> None:
    """A power loss may tear what came instead: that is no damage below the recovery point."""
    world = CleaningWorld(CONFIG)
    for _ in range(4):
        world.append([(b"a", b"1")])
    world.log.flush()
    world.scheduler.turn()
    world.manager.checkpoint_recovery()
    world.manager.checkpoint_high_watermarks()
    world.scheduler.turn()
    world.scheduler.holds_jobs = True
    world.log.truncate_to(2)
    world.scheduler.holds_jobs = False
    for _ in range(3):
        world.append([(b"a", b"2")])
    world.kill()
    home = world.manager.directories[0]
    assert world.log.log_end_offset == 5
    assert (home.recovery_points[KEY], home.high_watermarks[KEY]) == (2, 2)


def test_a_log_that_lost_its_clean_end_is_cleaned_anew(caplog: pytest.LogCaptureFixture) -> None:
    world = CleaningWorld(CONFIG)
    for key in (b"a", b"b", b"c"):
        world.append([(key, b"1")])
        world.roll()
    assert world.clean() == 1
    assert world.cleaner.cleaned_to(KEY) == 3
    path = f"{world.log.directory}/{0:020d}.log"
    world.scheduler.turn()
    world.disk.process_killed()
    handle = world.disk.open(path)
    world.disk.truncate(handle, world.disk.size(handle) - 1)
    world.disk.close(handle)
    world.disk.unlink(f"{world.log.directory}/{3:020d}.log")
    with caplog.at_level(logging.WARNING):
        world.start()
    assert world.log.log_end_offset == 2
    assert "was cleaned up to offset 3" in caplog.text
    assert world.cleaner.cleaned_to(KEY) is None
    for _ in range(4):
        world.append([(b"a", b"2")])
    world.kill()  # the file says so, too
    assert world.cleaner.cleaned_to(KEY) is None


def test_retention_that_is_faster_than_a_cleaning_ends_it() -> None:
    """While its segments became durable all of them were deleted: the partition was never
    compacted again."""
    config = dataclasses.replace(CONFIG, cleanup_policy=("compact", "delete"))
    world = CleaningWorld(config)
    for at in range(3):
        world.append([(b"k", b"%d" % at)])
        world.roll()
    world.append([(b"other", b"1" * 100)])
    world.log.local.doubt_durability(0)
    world.log.local.recovery_point = 0
    world.scheduler.holds_jobs = True
    world.cleaner.find_work()
    world.scheduler.turn()
    world.log.delete_records_before(3)
    assert world.log.delete_old_segments(world.clock.now_ms) == 3
    world.scheduler.holds_jobs = False
    world.scheduler.turn()
    assert world.cleaner.uncleanable == {}
    for at in range(3):
        world.append([(b"k", b"%d" % at)])
        world.roll()
    assert world.clean() == 1
    assert [key for _, key, _ in world.rows()] == [b"other", b"k"]
