"""Compaction: what stays, what goes and when, and what is never touched."""

from __future__ import annotations

import dataclasses
import errno

import pytest

from kwire.clock import SeededRandom
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.types import Isolation
from kwire.protocol.records import Codec
from tests.support.cleaning import (
    CONFIG,
    CleaningWorld,
    batches,
    committed_state,
    random_workload,
)
from tests.support.effort import seeds

DAY_MS = 86_400_000


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    world.append([(b"a", b"2"), (b"b", b"2")])
    world.append([(b"a", b"3")])
    world.roll()
    assert world.clean() == 1
    assert world.rows() == [(2, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
    assert world.shape() == ["0..2 1", "3..4 1", "5..5 1"]
    assert world.log.log_end_offset == 6
    assert world.log.log_start_offset == 0


def test_the_active_segment_is_not_touched_and_does_not_count() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.roll()
    world.append([(b"a", b"2")])
    assert world.clean() == 1
    assert world.rows() == [(0, b"a", b"1"), (1, b"a", b"2")]
    assert world.clean() == 0


def test_nothing_above_an_open_transaction_is_touched() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.roll()
    world.append([(b"a", b"2")], producer_id=1, transactional=True)
    world.roll()
    world.append([(b"a", b"3")])
    world.roll()
    world.clean()
    assert [row[0] for row in world.rows()] == [0, 1, 2]
    world.mark(1, commit=True)
    world.roll()
    world.clean()
    assert [row[0] for row in world.rows()] == [2]


def test_nothing_above_the_high_watermark_is_touched() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.roll()
    world.append([(b"a", b"2")])
    world.roll()
    world.log.high_watermark = 1
    world.clean()
    assert [row[0] for row in world.rows()] == [0, 1]


def test_tombstones_stay_until_their_horizon_has_passed() -> None:
    world = CleaningWorld(dataclasses.replace(CONFIG, delete_retention_ms=1000))
    world.append([(b"a", b"1"), (b"b", b"1")])
    world.append([(b"a", None)])
    world.append([(b"c", b"1")])
    world.roll()
    world.clean()
    assert world.rows() == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert world.shape()[1] == "2..2 1 horizon"
    for now_ms, expected in ((999, [1, 2, 3, 4]), (1, [1, 3, 4, 5])):
        world.clock.now_ms += now_ms
        world.append([(b"other-%d" % now_ms, b"1")])
        world.roll()
        assert world.clean() == 1
        assert [row[0] for row in world.rows()] == expected


def test_a_batch_with_nothing_left_is_kept_at_the_end_of_what_was_cleaned() -> None:
    world = CleaningWorld(dataclasses.replace(CONFIG, delete_retention_ms=0))
    world.append([(b"a", b"1")])
    world.append([(b"a", None)])
    world.roll()
    world.clean()
    world.append([(b"b", b"1")])
    world.roll()
    world.clean()
    assert world.shape() == ["2..2 1"]


def test_a_live_producers_last_batch_stays_without_its_records() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")], producer_id=5)
    world.append([(b"a", b"2")], producer_id=5)
    world.append([(b"a", b"3")])
    world.append([(b"z", b"1")])
    world.roll()
    world.clean()
    assert world.shape() == ["1..1 0", "2..2 1", "3..3 1"]
    world.kill()
    entry = world.log.producers.entries[5]
    assert (entry.last_sequence, entry.last_offset) == (1, 1)
    # A producer that has expired leaves nothing behind.
    world.clock.now_ms += 2 * DAY_MS
    world.log.producers.expire(world.clock.now_ms)
    world.append([(b"y", b"1")])
    world.roll()
    world.clean()
    assert world.shape() == ["2..2 1", "3..3 1", "4..4 1"]


def test_aborted_records_go_at_once_and_their_marker_later() -> None:
    config = dataclasses.replace(CONFIG, delete_retention_ms=1000)
    world = CleaningWorld(config)
    world.append([(b"a", b"1")])
    world.append([(b"a", b"aborted"), (b"b", b"aborted")], producer_id=1, transactional=True)
    world.append([(b"c", b"aborted")], producer_id=1, transactional=True)
    world.mark(1, commit=False)
    world.append([(b"z", b"1")])
    world.roll()
    world.clean()
    # The producer's last data batch stays empty, so the marker stays too, and its index entry.
    assert world.shape() == ["0..0 1", "3..3 0 tx", "4..4 1 tx control", "5..5 1"]
    assert committed_state(world.log) == {b"a": (0, b"1"), b"z": (5, b"1")}
    slices = world.log.read(0, 1 << 20, isolation=Isolation.COMMITTED)
    assert slices.aborted == [(1, 1)]
    world.clock.now_ms += 2 * DAY_MS
    world.log.producers.expire(world.clock.now_ms)
    shapes = []
    for round_ in range(3):
        world.append([(b"round-%d" % round_, b"1")])
        world.roll()
        world.clean()
        shapes.append([line for line in world.shape() if "tx" in line])
        world.clock.now_ms += 1001
    assert shapes == [["4..4 1 tx control"], ["4..4 1 tx control horizon"], []] or shapes == [
        ["4..4 1 tx control horizon"],
        [],
        [],
    ]
    assert not any(name.endswith(".txnindex") for name in world.names())


def test_min_compaction_lag_protects_young_segments() -> None:
    world = CleaningWorld(dataclasses.replace(CONFIG, min_compaction_lag_ms=1000))
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    assert world.clean() == 0
    world.clock.now_ms += 1001
    assert world.clean() == 1
    assert [row[0] for row in world.rows()] == [1]


def test_a_log_is_left_alone_until_its_dirty_share_exceeds_the_ratio() -> None:
    world = CleaningWorld(dataclasses.replace(CONFIG, min_cleanable_dirty_ratio=0.5))
    world.append([(b"a", b"x" * 400)])
    world.roll()
    assert world.clean() == 1
    world.append([(b"b", b"x" * 300)])
    world.roll()
    assert world.clean() == 0
    world.append([(b"c", b"x" * 200)])
    world.roll()
    assert world.clean() == 1


def test_max_compaction_lag_overrules_the_ratio_and_rolls_the_active_segment() -> None:
    config = dataclasses.replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    world = CleaningWorld(config)
    world.append([(b"a", b"1")])
    assert world.clean() == 0
    world.clock.now_ms += 1001
    world.append([(b"a", b"2")])  # rolls: what is older must not wait in the active segment
    assert world.clean() == 1
    world.append([(b"a", b"3")])
    world.roll()
    assert world.clean() == 0


def test_a_map_that_is_too_small_cleans_in_several_rounds() -> None:
    settings = CleanerSettings(dedupe_buffer_bytes=24 * 8)  # 7 keys
    world = CleaningWorld(settings=settings)
    for value in (b"1", b"2", b"3"):
        for first in range(0, 20, 4):
            world.append([(b"key-%d" % key, value) for key in range(first, first + 4)])
    world.roll()
    assert world.clean() > 3
    assert [row[1:] for row in world.rows()] == [(b"key-%d" % key, b"3") for key in range(20)]


def test_segments_are_grouped_up_to_their_size_and_named_by_the_first() -> None:
    world = CleaningWorld(dataclasses.replace(CONFIG, segment_bytes=4000))
    for round_ in range(8):
        world.append([(b"key-%d" % round_, b"x" * 1800)])
        world.roll()
    world.clean()
    logs = [name for name in world.names() if name.endswith(".log")]
    assert logs == [f"{base:020d}.log" for base in (0, 2, 4, 6, 8)]
    world.scheduler.advance(1000)
    assert not any(".deleted" in name for name in world.names())
    assert not any(".cleaned" in name or ".swap" in name for name in world.names())


def test_compacted_segments_keep_what_retention_needs() -> None:
    world = CleaningWorld(dataclasses.replace(CONFIG, cleanup_policy=("compact", "delete")))
    world.append([(b"a", b"1")], timestamp=world.clock.now_ms - 8 * DAY_MS)
    world.append([(b"a", b"2")], timestamp=world.clock.now_ms - 7 * DAY_MS - 1)
    world.append([(b"b", b"1")], timestamp=world.clock.now_ms - 7 * DAY_MS - 2)
    world.roll()
    world.append([(b"c", b"1")])
    world.clean()
    world.manager.enforce_retention()
    assert world.rows() == [(3, b"c", b"1")]
    assert world.log.log_start_offset == 3


def test_the_log_directory_remembers_how_far_it_is_clean() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    world.clean()
    assert world.disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n1\ncompacted 0 2\n"
    world.kill()
    assert world.clean() == 0
    world.log.truncate_to(1)
    world.scheduler.turn()
    assert world.disk.read_file("/data/cleaner-offset-checkpoint") == b"0\n1\ncompacted 0 1\n"
    world.manager.delete("compacted", 0)
    assert world.manager.directories[0].cleaner_points == {}


def test_a_damaged_batch_makes_the_partition_uncleanable_and_stays_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    path = f"{world.log.directory}/{0:020d}.log"
    handle = world.disk.open(path)
    world.disk.pwritev(handle, [b"\xff"], 68)
    before = world.disk.read_file(path)
    assert world.clean() == 0
    assert "checksum" in world.cleaner.uncleanable["compacted", 0]
    assert "compacted-0 cannot be compacted" in caplog.text
    assert world.disk.read_file(path) == before
    assert world.failed == []
    assert not any(".cleaned" in name for name in world.names())


def test_a_full_disk_is_tried_again_later() -> None:
    world = CleaningWorld()
    world.meet_a_full_disk()
    assert not any(".cleaned" in name for name in world.names())
    world.disk.capacity_bytes = None
    assert world.clean() == 0
    world.clock.now_ms += 601_000
    assert world.clean() == 1


def test_a_full_disk_for_the_checkpoint_of_a_cleaning_takes_nothing_offline() -> None:
    """On a node alone, as with the other checkpoints: records go on being read."""
    world = CleaningWorld()
    for _ in range(2):
        world.append([(b"a", b"1")])
        world.roll()
    world.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space left on device", path)
        if operation == "pwritev" and "cleaner-offset-checkpoint" in path
        else None
    )
    assert world.clean() == 1
    assert world.failed == []
    world.disk.fault = None
    world.append([(b"a", b"2")])
    world.roll()
    assert world.clean() == 1
    assert b"compacted 0 3" in world.disk.read_file("/data/cleaner-offset-checkpoint")


def test_a_failed_sync_of_a_cleaned_segment_takes_the_directory_offline() -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    syncs = []

    def fault(operation: str, path: str) -> OSError | None:
        if operation == "fdatasync" and ".cleaned" in path:
            syncs.append(path)
            return OSError(errno.EIO, "input/output error", path)
        return None

    world.disk.fault = fault
    assert world.clean() == 0
    assert world.failed == ["/data"]
    assert len(syncs) == 1
    world.disk.fault = None
    world.kill()
    assert [row[0] for row in world.rows()] == [0, 1]


@pytest.mark.parametrize("change", ["truncate", "delete", "retention", "close"])
def test_a_log_that_changes_meanwhile_drops_the_cleaning(change: str) -> None:
    world = CleaningWorld()
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    world.append([(b"b", b"2")])
    world.roll()
    log = world.log
    world.scheduler.holds_jobs = True
    world.cleaner.find_work()
    world.scheduler.turn()
    world.scheduler.run_jobs()  # the flush; what is clean is known
    world.scheduler.turn()
    if change == "truncate":
        log.truncate_to(1)
    elif change == "delete":
        world.manager.delete("compacted", 0)
    elif change == "retention":
        log.delete_records_before(2)
        log.delete_old_segments(world.clock.now_ms)
    else:
        log.close()
    world.scheduler.holds_jobs = False
    world.scheduler.turn()
    assert world.cleaner.uncleanable == {}
    if change in ("truncate", "retention"):
        assert [row[0] for row in world.rows()] == ([0] if change == "truncate" else [2])
    else:
        assert world.cleaner.cleanings == 0


def test_a_deleted_topics_name_is_cleaned_again() -> None:
    world = CleaningWorld()
    world.cleaner.uncleanable["compacted", 0] = "damaged"
    world.manager.delete("compacted", 0)
    world.scheduler.turn()
    world.manager.create("compacted", 0, bytes(range(2, 18)), CONFIG)
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    assert world.clean() == 1


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_of_every_codec_are_compacted(codec: Codec) -> None:
    world = CleaningWorld()
    for value in range(5):
        world.append(
            [(b"key-%d" % key, b"%d" % value * 20) for key in range(value, 6)], codec=codec
        )
    world.roll()
    world.clean()
    assert [row[1] for row in world.rows()] == [b"key-%d" % key for key in range(6)]
    assert {header.codec for header, _ in batches(world.log)} == {codec}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("seed", seeds(12))
def test_random_workloads_keep_their_state(seed: int, compiled: bool) -> None:
    """Compacted, compacted again and recovered: a consumer ends with the same values."""
    config = dataclasses.replace(CONFIG, delete_retention_ms=100)
    world = CleaningWorld(config, seed=seed, compiled=compiled)
    random = SeededRandom(seed)
    for _ in range(3):
        random_workload(world, random, 60)
        before = committed_state(world.log)
        producers = {p: e.last_sequence for p, e in world.log.producers.entries.items()}
        end, size = world.log.log_end_offset, world.log.size_bytes
        assert world.clean() >= 1
        assert world.cleaner.uncleanable == {}
        assert committed_state(world.log) == before
        assert world.log.size_bytes < size
        offsets = [header.base_offset for header, _ in batches(world.log)]
        assert offsets == sorted(offsets)
        for offset in range(end):
            slices = world.log.read(offset, 1, isolation=Isolation.LOG_END)
            assert slices.next_offset > offset
        world.kill()
        assert world.log.log_end_offset == end
        world.log.update_high_watermark(end)
        assert committed_state(world.log) == before
        assert {p: e.last_sequence for p, e in world.log.producers.entries.items()} == producers
        world.clock.now_ms += 1000


def test_recovery_takes_compacted_transactions_for_what_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Entries of the transaction index begin before what is left; markers end nothing."""
    world = CleaningWorld()
    world.append([(b"a", b"1")], producer_id=1, transactional=True)
    world.append([(b"b", b"1")], producer_id=1, transactional=True)
    world.mark(1, commit=False)
    world.append([(b"c", b"1")], producer_id=2, transactional=True)
    world.mark(2, commit=False)
    world.append([(b"c", b"2")], producer_id=2)
    world.append([(b"z", b"1")])
    world.roll()
    world.clean()
    assert world.shape()[2] == "4..4 1 tx control"
    world.append([(b"y", b"1")])
    world.roll()
    world.clean()
    assert world.shape() == [
        "1..1 0 tx",
        "2..2 1 tx control",
        "4..4 1 tx control horizon",
        "5..5 1",
        "6..6 1",
        "7..7 1",
    ]
    for _ in range(2):
        world.kill()
        world.log.update_high_watermark(8)
        assert sorted(committed_state(world.log)) == [b"c", b"y", b"z"]
        assert world.log.segments.first.aborted_transactions()[0][:3] == (1, 0, 2)
    world.manager.shutdown()
    world.start()
    assert "transaction index" not in caplog.text


@pytest.mark.parametrize("compiled", [True, False])
def test_a_rate_limit_spreads_the_work_over_time(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    monkeypatch.setattr("kwire.log.compaction.cleaner.PIECE_BYTES", 1000)
    settings = CleanerSettings(io_bytes_per_second_max=10_000.0)
    world = CleaningWorld(settings=settings, compiled=compiled)
    for at in range(10):
        world.append([(b"key-%d" % at, b"x" * 400)])
    world.roll()
    assert world.clean() == 0  # about 4.5 KB read twice and written: more than a second
    world.scheduler.advance(900)
    assert world.cleaner.cleanings == 0
    world.scheduler.advance(1000)
    assert world.cleaner.cleanings == 1


def test_two_threads_clean_two_logs_at_a_time() -> None:
    world = CleaningWorld(settings=CleanerSettings(threads=2), partitions=3)
    for partition in range(3):
        world.partition = partition
        world.append([(b"a", b"1")])
        world.append([(b"a", b"2")])
        world.roll()
    world.scheduler.holds_jobs = True
    world.cleaner.find_work()
    world.scheduler.turn()
    assert len(world.cleaner._busy) == 2
    world.scheduler.holds_jobs = False
    world.scheduler.turn()
    assert world.cleaner.cleanings == 3


def test_a_disabled_cleaner_does_nothing() -> None:
    world = CleaningWorld(settings=CleanerSettings(enabled=False))
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.roll()
    world.cleaner.start()
    world.scheduler.advance(60_000)
    assert world.clean() == 0
    assert [row[0] for row in world.rows()] == [0, 1]
