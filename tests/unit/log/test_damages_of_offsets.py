"""Damages that touch what a log knows of its offsets: checkpoints with numbers that cannot be,
segments under other names, records that are missing where no start looks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kwire.log.directories.checkpoint_format import OFFSET_MAX
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import Record, build_batch, iterate_headers
from tests.support.damages import (
    CLEAN,
    CONFIG,
    STARTS,
    UNCLEAN,
    append_and_read,
    damaged_start,
    filled,
    truncate_last_batch,
)
from tests.support.logs import DIRECTORY, World, names, read_all


@pytest.mark.parametrize("start", [UNCLEAN, {"clean": True, "recovery_point": 500}])
def test_log_start_behind_an_end_that_was_lost_begins_anew(start: Any) -> None:
    """What is left was deleted, if the start is right; it is kept, as that nobody can know."""
    world = filled(20)
    before: dict[str, bytes] = {}

    def look(bases: list[int]) -> None:
        before.update({n: world.disk.read_file(f"{DIRECTORY}/{n}") for n in names(world.disk)})

    damaged_start(world, look, log_start_offset=500, **start)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (500, 500)
    for name, data in before.items():
        if name.endswith(".log"):
            assert world.disk.read_file(f"{DIRECTORY}/{name}.quarantine") == data
    world.append()
    world.scheduler.turn()
    assert read_all(world.log) == [(500, b"value")]


@pytest.mark.parametrize(
    ("start", "log_start"), [(CLEAN, 500), (CLEAN, OFFSET_MAX), (UNCLEAN, OFFSET_MAX)]
)
def test_a_log_start_that_cannot_be_costs_no_record(
    start: Any, log_start: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A digit more in `log-start-offset-checkpoint`, and all records of the partition were gone."""
    world = filled(20)
    before = read_all(world.log)
    end, _ = damaged_start(world, lambda bases: None, log_start_offset=log_start, **start)
    assert read_all(world.log) == before
    assert f"its start is {log_start} by log-start-offset-checkpoint, its end {end}" in caplog.text
    append_and_read(world, end)


@pytest.mark.parametrize("start", [CLEAN, UNCLEAN])
def test_a_recovery_point_that_cannot_be_costs_nothing(
    start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """After a clean stop the leader filled the log up to there: it did not end."""
    world = filled(20)
    before = read_all(world.log)
    options = {**start, "recovery_point": OFFSET_MAX}
    end, _ = damaged_start(world, lambda bases: None, **options)
    assert f"offset {OFFSET_MAX} in recovery-point-offset-checkpoint cannot be" in caplog.text
    world.log.assign_epoch(5)
    assert read_all(world.log) == before
    append_and_read(world, end)


def test_a_leader_alone_shows_the_end_that_it_has_given_up() -> None:
    """Its high watermark began in front of the lost offsets, and told consumers of less."""
    world = filled()
    end, _ = damaged_start(world, truncate_last_batch(world), **CLEAN)
    world.log.assign_epoch(5)
    assert world.log.log_end_offset == end


def test_a_segment_under_another_name_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Its batches, at offsets below its base, were cut off as a torn tail."""
    world = filled()
    renamed: list[bytes] = []

    def rename(bases: list[int]) -> None:
        renamed.append(world.disk.read_file(world.path(".log", bases[-1])))
        world.disk.rename(world.path(".log", bases[-1]), world.path(".log", 5000))

    for start in (CLEAN, UNCLEAN):
        damaged_start(world, rename, **start)
        assert f"{5000:020d}.log: offset " in caplog.text
    kept = [world.disk.read_file(f"{DIRECTORY}/{n}") for n in names(world.disk) if "quara" in n]
    assert sorted(kept) == sorted(data for data in renamed if data)


@STARTS
@pytest.mark.parametrize("base", [OFFSET_MAX, OFFSET_MAX + 1, 10**20 - 1])
def test_a_segment_whose_name_is_no_offset_is_kept(start: Any, base: int) -> None:
    """The log went on at 2**63: no answer could tell that."""
    world = filled()
    renamed: list[bytes] = []

    def rename(bases: list[int]) -> None:
        for suffix in (".log", ".index"):
            renamed.append(world.disk.read_file(world.path(suffix, bases[-1])))
            world.disk.rename(world.path(suffix, bases[-1]), world.path(suffix, base))

    end, bases = damaged_start(world, rename, **start)
    assert world.log.log_end_offset == bases[-1] < end
    kept = [world.disk.read_file(f"{DIRECTORY}/{n}") for n in names(world.disk) if "quara" in n]
    assert sorted(kept) == sorted(renamed)


@pytest.mark.parametrize("high_watermark", [90, 60])
def test_a_lost_end_that_was_shown_is_named(
    high_watermark: int, caplog: pytest.LogCaptureFixture
) -> None:
    """After a loss of power an unsynced log may be empty; whoever read from it is told."""
    world = filled()

    def lose(bases: list[int]) -> None:
        for base in bases:
            world.resize(world.path(".log", base), 0)

    options = {"recovery_point": 0, "high_watermark": high_watermark}
    damaged_start(world, lose, **UNCLEAN, **options)
    assert f"although its high watermark was {high_watermark}" in caplog.text


def test_a_whole_batch_that_is_out_of_place_is_no_torn_write() -> None:
    """After a kill, behind the recovery point: the batches of another partition are kept."""
    world = filled()
    stray = bytes(world.log.read(0, 1).buffers[0])  # type: ignore[union-attr]

    def extend(bases: list[int]) -> None:
        path = world.path(".log", bases[-1])
        world.overwrite(path, world.disk.size_of(path), stray)

    end, _ = damaged_start(world, extend, **UNCLEAN)
    assert world.log.log_end_offset == end
    (kept,) = [n for n in names(world.disk) if n.endswith(".quarantine")]
    assert world.disk.read_file(f"{DIRECTORY}/{kept}") == stray


@pytest.mark.parametrize("start", [CLEAN, {"clean": False, "recovery_point": 90}])
def test_an_older_segment_that_is_empty_is_named(
    start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    world = filled()
    _, bases = damaged_start(
        world, lambda bases: world.resize(world.path(".log", bases[1]), 0), **start
    )
    assert f"{bases[1]:020d}.log is empty: offsets {bases[1]} to {bases[2] - 1} are" in caplog.text


def test_what_is_missing_is_named_when_it_is_read(caplog: pytest.LogCaptureFixture) -> None:
    """Below the recovery point no start looks at the batches."""
    world = filled()

    def cut(bases: list[int]) -> None:
        path = world.path(".log", bases[1])
        world.resize(path, next(iterate_headers(world.disk.read_file(path)))[1].size_bytes)

    _, bases = damaged_start(world, cut, **CLEAN)
    for _ in range(2):
        read_all(world.log)
    assert caplog.text.count(f"offset {bases[1] + 3} and those behind it are missing") == 1


def test_a_batch_that_cannot_be_read_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """The consumer was told, and nobody else."""
    world = filled()
    _, bases = damaged_start(
        world, lambda bases: world.resize(world.path(".log", bases[1]), 80), **CLEAN
    )
    for _ in range(2):
        with pytest.raises(KafkaError):
            world.log.read(bases[1], 1000)
    assert caplog.text.count(f"cannot be read at offset {bases[1]}") == 1


@pytest.mark.parametrize("with_index", [True, False])
def test_a_start_mends_what_could_not_be_read(with_index: bool) -> None:
    """Readers stopped in front of it, and no start after a clean stop looked at it."""
    world = filled()
    before = read_all(world.log)

    def flip(bases: list[int]) -> None:
        """The length of the second batch of the second segment."""
        path = world.path(".log", bases[1])
        at = next(iterate_headers(world.disk.read_file(path)))[1].size_bytes
        world.overwrite(path, at + 8, bytes([0x7F]))
        if not with_index:
            world.overwrite(world.path(".index", bases[1]), 0, bytes([0x7F]))

    end, bases = damaged_start(world, flip, **CLEAN)
    lost_from = bases[1] + 3
    for _ in range(2):
        with pytest.raises(KafkaError):
            world.log.read(lost_from, 1)
    for _ in range(2):
        damaged_start(world, lambda bases: None, **CLEAN)
        left = read_all(world.log)
        assert world.log.log_end_offset == end
        assert [row for row in before if row[0] < lost_from or row[0] >= bases[2]] == [
            row for row in left if row[0] < lost_from or row[0] >= bases[2]
        ]
    assert any(name.endswith(".quarantine") for name in names(world.disk))
    if with_index:
        assert len(left) == len(before) - 3, "what is behind the damage is found by the index"


def test_gaps_that_compaction_left_are_no_damage(caplog: pytest.LogCaptureFixture) -> None:
    world = World(1, replace(CONFIG, cleanup_policy=("compact",)))
    for offset in range(0, 200, 20):
        world.log.append_as_follower(build_batch([Record(0, 1, b"k", b"v")], base_offset=offset))
        world.scheduler.turn()
    assert len(read_all(world.log)) == 10
    assert caplog.text == ""


@STARTS
@pytest.mark.parametrize("which", [0, 2])
def test_a_damaged_header_costs_its_batch_only(start: Any, which: int) -> None:
    """Where the index had no entry behind it, the segment's rest went with it: of a coordinator's
    log, which is small, everything."""
    world = filled()
    before = read_all(world.log)
    lost: list[int] = []

    def flip(bases: list[int]) -> None:
        """The magic of a batch in the last segment."""
        path = world.path(".log", bases[-1])
        world.resize(world.path(".index", bases[-1]), 0)
        at, header = list(iterate_headers(world.disk.read_file(path)))[which]
        world.overwrite(path, at + 16, bytes([0x42]))
        lost.extend(range(header.base_offset, header.next_offset))

    options = {"recovery_point": 90, **start}
    end, _ = damaged_start(world, flip, **options)
    assert world.log.log_end_offset == end
    assert read_all(world.log) == [row for row in before if row[0] not in lost]
