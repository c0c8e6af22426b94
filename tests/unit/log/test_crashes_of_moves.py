"""A crash at any change of the disk while a log moves to the directory that is loaded first.

Between the two renames both directories hold the partition: the one that a start meets first
served on, without what only the checkpoint of the other knew, or the node did not start.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cleaning import CONFIG, TOPIC, TOPIC_ID, CleaningWorld

KEY = (TOPIC, 0)
READING = {"pread", "read_file"}
RECORDS = 12


class Crash(BaseException):
    """The machine stops at this call."""


def _world(records: int, start: int, *, durable: bool = True, seed: int = 1) -> CleaningWorld:
    """A log of batches of three in the second directory, its first records deleted."""
    world = CleaningWorld(CONFIG, seed=seed, partitions=0, other_directories=("/other",))
    world.disk.sync_directory("/")
    world.manager.create(TOPIC, 0, TOPIC_ID, CONFIG, directory=world.manager.directories[1])
    world.scheduler.turn()
    for number in range(records // 3):
        world.append([(b"k", b"%d" % number)] * 3)
    world.log.delete_records_before(start)
    saved = world.manager.checkpoint_log_starts([KEY])
    if durable:
        world.log.flush()
    world.scheduler.turn()
    assert saved.error() is None
    return world


def _move(world: CleaningWorld) -> None:
    world.manager.moves.begin(KEY, world.manager.directories[0])
    for _ in range(100):
        world.scheduler.advance(10)
        if not world.manager.moves.moves:
            return
    raise AssertionError("the move does not end")


def _crashes(
    records: int, start: int, *, durable: bool = True, seed: int = 1
) -> Iterator[CleaningWorld]:
    """A world stopped at each of its calls."""
    calls = [0]

    def count(operation: str, path: str) -> None:
        calls[0] += operation not in READING

    probe = _world(records, start, durable=durable)
    probe.disk.fault = count
    _move(probe)
    assert calls[0] > 30
    for at in range(calls[0]):
        world, left = _world(records, start, durable=durable, seed=seed), [at]

        def fault(operation: str, path: str, left: list[int] = left) -> None:
            left[0] -= operation not in READING
            if left[0] < 0:
                raise Crash

        world.disk.fault = fault
        with pytest.raises(Crash):
            _move(world)
        world.disk.fault = None
        yield world


@pytest.mark.parametrize("power", [False, True])
def test_deleted_records_stay_deleted(power: bool) -> None:
    for world in _crashes(RECORDS, 5):
        if power:
            world.disk.crash()
        else:
            world.disk.process_killed()
        for _ in range(2):
            world.start(lambda topic, partition: TOPIC_ID)
            assert world.log.log_start_offset == 5
            there = [offset for offset, _, _ in world.rows() if offset >= 5]
            assert there == list(range(5, RECORDS))
            world.manager.shutdown()


@pytest.mark.parametrize("power", [False, True])
def test_an_empty_log_moves(power: bool) -> None:
    """Two that hold nothing were two of the same partition that nobody could tell apart."""
    for world in _crashes(0, 0):
        if power:
            world.disk.crash()
        else:
            world.disk.process_killed()
        world.start(lambda topic, partition: TOPIC_ID)
        world.append([(b"k", b"v")])
        assert [offset for offset, _, _ in world.rows()] == [0]


def test_what_only_the_copy_has_stops_no_start() -> None:
    """The power goes between the renames, and takes the end of the original, which nothing had
    made durable: the copy, which has it, could not be told from a stranger."""
    for seed in range(3):
        for world in _crashes(RECORDS, 0, durable=False, seed=seed):
            world.disk.crash()
            world.start(lambda topic, partition: TOPIC_ID)
            log = world.manager.get(*KEY)
            assert log is None or log.log_end_offset <= RECORDS


def test_the_topic_id_of_a_log_that_is_made_anew_is_durable() -> None:
    """A power loss took the creation; the id that the start gave the empty directory was synced by
    nobody, and torn by the next loss, with records beside it: the node did not start."""
    world = _world(0, 0)
    path = f"/other/{TOPIC}-0/partition.metadata"
    world.manager.shutdown()
    world.disk.unlink(path)
    world.disk.sync_directory(f"/other/{TOPIC}-0")
    world.start(lambda topic, partition: TOPIC_ID)
    for seed in range(20):
        world.append([(b"k", b"%d" % seed)])
        world.log.flush()
        world.scheduler.turn()
        world.disk.crash()
        world.start(lambda topic, partition: TOPIC_ID)
        assert len(world.rows()) == seed + 1
