"""Disks that fail: short writes, full disks, failed syncs, at every call of an append or a roll."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from kwire.clock import SeededRandom
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.cleaning import CleaningWorld
from tests.support.logs import World, names, read_all

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


class Killed(BaseException):
    """The process dies at this call: nothing may catch it."""


def _failing(world: World, operation: str, suffix: str, after: int = 0) -> None:
    left = [after]

    def fault(called: str, path: str) -> OSError | None:
        if called == operation and path.endswith(suffix):
            if left[0] == 0:
                return OSError(errno.EIO, "input/output error", path)
            left[0] -= 1
        return None

    world.disk.fault = fault


def test_a_failed_write_is_told_to_all_who_wait_and_what_was_there_stays() -> None:
    world = World()
    world.append(3)
    world.scheduler.turn()
    _failing(world, "pwritev", ".log")
    infos = [world.append() for _ in range(3)]
    world.scheduler.turn()
    for info in infos:
        error = info.written.error()
        assert isinstance(error, KafkaError)
        assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
    world.disk.fault = None
    with pytest.raises(KafkaError) as caught:
        world.append()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(read_all(world.log)) == 3
    assert world.log.next_offset == world.log.log_end_offset == 3


def test_a_failed_large_write_is_raised() -> None:
    world = World()
    _failing(world, "pwritev", ".log")
    with pytest.raises(KafkaError) as caught:
        world.append(1, value=bytes(100_000))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_full_disk_is_cut_back_to_the_last_whole_batch() -> None:
    world = World()
    world.append(2)
    world.scheduler.turn()
    size = world.disk.size_of(world.path(".log"))
    world.disk.capacity_bytes = world.disk.used_bytes() + 50
    info = world.append(5)
    world.scheduler.turn()
    assert info.written.error() is not None
    assert world.disk.size_of(world.path(".log")) == size
    world.disk.capacity_bytes = None
    assert len(read_all(world.log)) == 2
    world.kill()
    assert len(read_all(world.log)) == 2
    world.append()
    world.scheduler.turn()
    assert len(read_all(world.log)) == 3


def test_a_failed_sync_is_not_repeated() -> None:
    world = World()
    heard: list[tuple[PartitionLog, Exception, bool]] = []
    world.log.close()
    world.open(on_error=lambda log, error, lost: heard.append((log, error, lost)))
    world.append()
    world.scheduler.turn()
    _failing(world, "fdatasync", ".log")
    syncs: list[str] = []
    inner = world.disk.fault
    assert inner is not None

    def counting(operation: str, path: str) -> OSError | None:
        if operation == "fdatasync":
            syncs.append(path)
        return inner(operation, path)

    world.disk.fault = counting
    done = world.log.flush()
    world.scheduler.turn()
    assert done.error() is not None
    assert [(log, lost) for log, _, lost in heard] == [(world.log, True)]
    assert world.log.recovery_point == 0
    with pytest.raises(KafkaError):
        world.append()
    world.log.close(sync=True)
    assert len(syncs) == 1


def test_flush_messages_holds_back_until_the_sync() -> None:
    """With flush.messages=1 nobody sees a record before it is durable."""
    world = World(config=LogConfig(flush_messages=1))
    world.scheduler.holds_jobs = True
    info = world.append(2)
    world.scheduler.turn()
    assert not info.written.done
    assert world.log.log_end_offset == 0
    assert read_all(world.log) == []
    other = world.append(1)
    world.scheduler.turn()
    assert not other.written.done
    world.scheduler.run_jobs()
    world.scheduler.turn()
    assert info.written.done
    assert not other.written.done
    assert world.log.log_end_offset == 2
    assert [offset for offset, _ in read_all(world.log)] == [0, 1]
    world.scheduler.run_jobs()
    assert other.written.done
    world.disk.crash()
    world.open()
    assert len(read_all(world.log)) == 3


def test_a_failed_sync_fails_who_waits_for_it() -> None:
    world = World(config=LogConfig(flush_messages=1))
    _failing(world, "fdatasync", ".log")
    info = world.append(2)
    world.scheduler.turn()
    error = info.written.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.log.log_end_offset == 0


def _work(world: World) -> list[bytes]:
    """Appends over several segments; what was acknowledged."""
    acknowledged: list[bytes] = []
    for at in range(24):
        value = b"%03d" % at
        try:
            info = world.append(
                2, value=value, producer_id=3, producer_epoch=0, base_sequence=2 * at, epoch=at // 8
            )
        except KafkaError as error:
            if error.code != ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            continue
        world.scheduler.turn()
        if info.written.error() is None:
            acknowledged.append(value)
    return acknowledged


def _count_calls(work: Callable[[World], list[bytes]]) -> int:
    world = World(1, SMALL)
    calls = [0]

    def count(operation: str, path: str) -> None:
        calls[0] += 1

    world.disk.fault = count
    work(world)
    return calls[0]


def _check_log(log: PartitionLog, acknowledged: list[bytes]) -> None:
    values = [value for offset, value in read_all(log) if offset % 2 == 0]
    assert values[: len(acknowledged)] == acknowledged
    assert len(values) <= len(acknowledged) + 1


def test_an_error_at_any_call_loses_nothing_that_was_acknowledged() -> None:
    calls = _count_calls(_work)
    assert calls >= 90
    for at in range(calls):
        world = World(1, SMALL)
        left = [at]

        def fault(operation: str, path: str, left: list[int] = left) -> OSError | None:
            left[0] -= 1
            return OSError(errno.EIO, f"{operation} failed", path) if left[0] == -1 else None

        world.disk.fault = fault
        acknowledged = _work(world)
        world.disk.fault = None
        _check_log(world.log, acknowledged)
        world.kill()
        _check_log(world.log, acknowledged)
        world.append()
        world.scheduler.turn()


def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged() -> None:
    calls = _count_calls(_work)
    for at in range(calls):
        world = World(1, SMALL)
        left = [at]
        acknowledged: list[bytes] = []

        def fault(operation: str, path: str, left: list[int] = left) -> OSError | None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return None

        world.disk.fault = fault
        try:
            for step in range(24):
                value = b"%03d" % step
                info = world.append(2, value=value, epoch=step // 8)
                world.scheduler.turn()
                assert info.written.done
                acknowledged.append(value)
        except Killed:
            pass
        world.disk.fault = None
        world.kill(recovery_point=world.log.recovery_point)
        _check_log(world.log, acknowledged)
        assert not [n for n in names(world.disk) if n.endswith(".tmp")]


def test_a_power_cut_at_any_call_keeps_what_was_flushed() -> None:
    config = LogConfig(segment_bytes=600, index_interval_bytes=100, flush_messages=1)

    def run(world: World) -> list[bytes]:
        acknowledged: list[bytes] = []
        try:
            for step in range(14):
                value = b"%03d" % step
                info = world.append(2, value=value, epoch=step // 5)
                world.scheduler.turn()
                assert info.written.done
                acknowledged.append(value)
        except Killed:
            pass
        return acknowledged

    probe, calls = World(1, config), [0]

    def count(operation: str, path: str) -> None:
        calls[0] += 1

    probe.disk.fault = count
    run(probe)
    for at in range(calls[0]):
        for seed in (1, 2, 3):
            world = World(seed, config)
            # What a node does before it serves: the new files' names are durable.
            world.disk.sync_directory("/data")
            left = [at]

            def fault(operation: str, path: str, left: list[int] = left) -> OSError | None:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return None

            world.disk.fault = fault
            acknowledged = run(world)
            world.disk.fault = None
            world.disk.crash()
            world.open(recovery_point=0)
            _check_log(world.log, acknowledged)


def test_a_bit_flipped_on_a_read_costs_nothing_that_is_there() -> None:
    """At every read of a recovery: it may refuse in a line, what it cuts or keeps must be right."""
    flips = SeededRandom(4)
    reads = [0]
    probe = World(1, SMALL)
    acknowledged = _work(probe)
    probe.disk.misread = lambda path, data: (reads.__setitem__(0, reads[0] + 1), data)[1]
    probe.kill(recovery_point=0)
    assert reads[0] > 10
    refused = 0
    for at in range(reads[0]):
        for _ in range(4):
            world, left = World(1, SMALL), [at]
            assert _work(world) == acknowledged

            def misread(path: str, data: bytes, left: list[int] = left) -> bytes:
                left[0] -= 1
                if left[0] != -1 or not data:
                    return data
                flipped = bytearray(data)
                flipped[flips.below(len(data))] ^= 1 << flips.below(8)
                return bytes(flipped)

            world.disk.misread = misread
            try:
                world.kill(recovery_point=0)
            except KafkaError:
                refused += 1
            world.disk.misread = None
            world.kill(recovery_point=0)
            _check_log(world.log, acknowledged)
    assert refused < reads[0]


def test_a_bit_flipped_on_a_read_is_not_made_durable_by_the_cleaner() -> None:
    """Nor in the fields that no checksum covers: the base offset and the length."""
    reads = [0]
    probe = _to_clean()
    expected = sorted({key: offset for offset, key, _ in probe.rows()}.values())
    probe.disk.misread = lambda path, data: (reads.__setitem__(0, reads[0] + 1), data)[1]
    probe.clean()
    assert [offset for offset, _, _ in probe.rows()] == expected
    flips = SeededRandom(8)
    for at in range(reads[0]):
        for _ in range(6):
            world, left = _to_clean(), [at]

            def misread(path: str, data: bytes, left: list[int] = left) -> bytes:
                left[0] -= 1
                if left[0] != -1 or not data or not path.endswith(".log"):
                    return data
                flipped = bytearray(data)
                place = (
                    flips.below(min(len(data), 12)) if flips.below(2) else flips.below(len(data))
                )
                flipped[place] ^= 1 << flips.below(8)
                return bytes(flipped)

            world.disk.misread = misread
            world.clean()
            world.disk.misread = None
            offsets = [offset for offset, _, _ in world.rows()]
            assert offsets == sorted(offsets)
            assert set(expected) <= set(offsets)
            last = {key: value for _, key, value in world.rows()}
            assert last == {b"key-%d" % key: b"%d" % (27 + key) + bytes(90) for key in range(3)}


def _to_clean() -> CleaningWorld:
    world = CleaningWorld()
    for at in range(30):
        world.append([(b"key-%d" % (at % 3), b"%d" % at + bytes(90))])
    world.roll()
    return world
