"""Checkpoint files cost what has moved, and hold what a look at all logs would find."""

from __future__ import annotations

import contextlib
import errno
import random
from collections.abc import Callable
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.log.directories import checkpoint_writer
from kwire.log.directories.checkpoint_contents import VALUES
from kwire.log.directories.checkpoint_format import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    parse_checkpoint,
)
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.protocol.errors import KafkaError
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualClock, ManualScheduler, client_batch

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100, retention_bytes=2000)
KEYS = [("topic", partition) for partition in range(5)]


class Node:
    """A manager with two directories on a simulated disk, which counts what becomes of files."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(SeededRandom(3))
        self.clock = ManualClock()
        self.topics = 0
        self.written: list[str] = []
        self.disk.fault = self._count
        self.start()

    def _count(self, operation: str, path: str) -> None:
        if operation == "rename" and "-checkpoint" in path:
            self.written.append(path.rsplit("/", 1)[1].removesuffix(".tmp"))

    def start(self) -> None:
        self.scheduler = ManualScheduler()
        self.manager = LogManager(
            ["/a", "/b"],
            self.clock,
            SeededRandom(5),
            files=self.disk,
            scheduler=self.scheduler,
            settings=ManagerSettings(file_delete_delay_ms=1000),
            config_of=lambda topic: SMALL,
        )
        self.manager.open_directories()
        self.manager.load_all()

    def create(self, key: tuple[str, int]) -> PartitionLog:
        self.topics += 1
        log = self.manager.create(*key, self.topics.to_bytes(16, "big"))
        log.reconfigure(SMALL)
        return log

    def led(self, key: tuple[str, int], count: int) -> PartitionLog:
        """A log with records below its high watermark."""
        log = self.manager.get(*key) or self.create(key)
        log.append_as_leader(client_batch(count), leader_epoch=0)
        self.scheduler.turn()
        log.update_high_watermark(log.log_end_offset)
        return log

    def checkpoint(self) -> None:
        self.manager.checkpoint_recovery()
        self.manager.checkpoint_high_watermarks()
        self.manager.checkpoint_log_starts()

    def said(self, path: str, name: str) -> dict[tuple[str, int], int]:
        if not self.disk.exists(f"{path}/{name}"):
            return {}
        return parse_checkpoint(self.disk.read_file(f"{path}/{name}"))

    def check_safe(self) -> None:
        """No file speaks of records that a log of the directory does not have."""
        for home in self.manager.directories:
            for name in VALUES:
                for key, offset in self.said(home.path, name).items():
                    log = self.manager.get(*key)
                    if log is not None and self.manager.directory_of(*key) is home:
                        assert offset <= log.next_offset, (home.path, name, key)

    def check_whole(self) -> None:
        for home in self.manager.directories:
            for name, value in VALUES.items():
                whole = self.manager.offsets_in(home, value)
                assert self.said(home.path, name) == whole, (home.path, name)


def _steps(node: Node, dice: random.Random) -> list[Callable[[PartitionLog], object]]:
    manager = node.manager

    def append(log: PartitionLog) -> None:
        for _ in range(dice.randint(1, 9)):  # batches of one record: logs are truncated anywhere
            log.append_as_leader(client_batch(1), leader_epoch=0)

    def move(log: PartitionLog) -> None:
        key = log.topic, log.partition
        if not manager.is_moving(*key):
            manager.moves.begin(key, dice.choice(manager.directories))

    return [
        append,
        append,
        lambda log: log.update_high_watermark(dice.randint(0, log.log_end_offset)),
        lambda log: log.update_high_watermark(log.log_end_offset),
        lambda log: log.flush(),
        lambda log: log.roll(),
        lambda log: log.delete_records_before(dice.randint(0, log.high_watermark)),
        lambda log: log.truncate_to(dice.randint(log.log_start_offset, log.log_end_offset)),
        lambda log: log.truncate_fully_and_start_at(dice.randint(0, 50)),
        lambda log: log.delete_old_segments(node.clock.now_ms),
        lambda log: manager.delete(log.topic, log.partition),
        move,
    ]


@pytest.mark.parametrize("slice_logs", [1, 2, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_files_are_what_all_logs_together_say(
    monkeypatch: pytest.MonkeyPatch, seed: int, slice_logs: int
) -> None:
    monkeypatch.setattr(checkpoint_writer, "SLICE_LOGS", slice_logs)
    dice, node = random.Random(seed), Node()
    for step in range(400):
        key = dice.choice(KEYS)
        log = node.manager.get(*key) or node.create(key)
        dice.choice(_steps(node, dice))(log)
        node.scheduler.holds_jobs = dice.random() < 0.5
        if dice.random() < 0.2:
            dice.choice(
                [
                    node.manager.checkpoint_recovery,
                    node.manager.checkpoint_high_watermarks,
                    node.manager.checkpoint_log_starts,
                ]
            )()
        if dice.random() < 0.5:
            node.scheduler.turn()
        node.check_safe()
        if step % 20 == 19:
            node.scheduler.holds_jobs = False
            node.scheduler.turn()
            node.checkpoint()
            node.scheduler.turn()
            node.check_whole()
        if step % 100 == 99:
            node.disk.process_killed()
            node.start()
    assert node.written.count(HIGH_WATERMARKS) > 20


def test_only_what_has_moved_is_looked_at_and_a_file_is_not_written_for_nothing() -> None:
    node = Node()
    logs = [node.led(key, 3) for key in KEYS]
    node.checkpoint()
    node.scheduler.turn()
    node.checkpoint()
    node.scheduler.turn()
    node.written.clear()
    asked: list[tuple[str, int]] = []
    contents: Any = node.manager._contents
    find = contents._find
    contents._find = lambda home, key: asked.append(key) or find(home, key)
    done = node.manager.checkpoint_log_starts()
    node.checkpoint()
    node.scheduler.turn()
    assert (asked, node.written, done.error()) == ([], [], None)
    logs[2].update_high_watermark(1)
    node.checkpoint()
    node.scheduler.turn()
    assert set(asked) == {KEYS[2]}
    assert node.written == [HIGH_WATERMARKS]
    node.check_whole()


def test_a_file_that_could_not_be_written_is_written_although_nothing_moves() -> None:
    node = Node()
    node.led(KEYS[0], 3)
    node.checkpoint()
    node.scheduler.turn()
    node.led(KEYS[0], 3).flush()
    node.scheduler.turn()

    def full(operation: str, path: str) -> OSError | None:
        is_checkpoint = operation == "pwritev" and RECOVERY_POINTS in path
        return OSError(errno.ENOSPC, "no space left on device", path) if is_checkpoint else None

    node.disk.fault = full
    refused = node.manager.checkpoint_log_starts(), node.manager.checkpoint_recovery()
    node.scheduler.turn()
    assert refused[0].error() is None
    assert isinstance(refused[1].error(), OSError)
    assert node.said("/a", RECOVERY_POINTS) == {KEYS[0]: 0}
    node.disk.fault = None
    node.checkpoint()
    node.scheduler.turn()
    assert node.said("/a", RECOVERY_POINTS) == {KEYS[0]: 6}


@pytest.mark.parametrize("at", range(4))
def test_a_truncation_between_two_slices_is_in_the_file(
    monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Also that of a log which an earlier slice has taken in."""
    monkeypatch.setattr(checkpoint_writer, "SLICE_LOGS", 1)
    node = Node()
    logs = [node.led(key, 6) for key in KEYS]
    for log in logs:
        log.flush()
    node.scheduler.turn()
    node.manager.checkpoint_recovery()
    node.manager.checkpoint_high_watermarks()
    for _ in range(at):
        due, node.scheduler._soon = node.scheduler._soon, []
        for callback in due:
            callback()
    for log in logs:
        log.truncate_to(2)
    node.manager.delete(*KEYS[4])
    node.scheduler.turn()
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        said = {**node.said("/a", name), **node.said("/b", name)}
        assert said.pop(KEYS[4], 2) == 2  # there where the file was on its way already
        assert said == dict.fromkeys(KEYS[:4], 2)


def test_who_waits_gets_the_offsets_of_the_moment_also_when_they_are_gathered_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_writer, "SLICE_LOGS", 1)
    node = Node()
    logs = [node.led(key, 6) for key in KEYS]
    node.manager.checkpoint_log_starts()  # in its slices, while the others come
    for log in logs:
        log.delete_records_before(4)
    saved = node.manager.checkpoint_log_starts()
    said: list[dict[tuple[str, int], int]] = []
    saved.add_done_callback(
        lambda _: said.append({**node.said("/a", LOG_STARTS), **node.said("/b", LOG_STARTS)})
    )
    node.scheduler.turn()
    assert said == [dict.fromkeys(KEYS, 4)]


def test_a_node_that_has_stopped_writes_no_file_that_it_was_gathering(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_writer, "SLICE_LOGS", 1)
    node = Node()
    for key in KEYS:
        node.led(key, 6)
    node.manager.checkpoint_high_watermarks()
    node.manager.shutdown()
    node.written.clear()
    node.scheduler.turn()
    assert node.written == []
    assert node.said("/a", HIGH_WATERMARKS) | node.said("/b", HIGH_WATERMARKS) == dict.fromkeys(
        KEYS, 6
    )


def test_a_start_where_a_segment_begins_is_not_listed_once_the_one_before_is_gone() -> None:
    """Retention removes segments below the start without moving it."""
    node = Node()
    log = node.led(KEYS[0], 6)
    log.roll()
    log.delete_records_before(6)
    node.checkpoint()
    node.scheduler.turn()
    assert node.said("/a", LOG_STARTS) == {KEYS[0]: 6}
    node.checkpoint()
    assert log.delete_old_segments(node.clock.now_ms) == 1
    node.checkpoint()
    node.scheduler.turn()
    assert node.said("/a", LOG_STARTS) == {}


class _Killed(BaseException):
    """The process ends here."""


def test_a_log_that_is_shorter_than_its_files_say_at_a_start_is_taken_back_in_them() -> None:
    """A kill came between a truncation and the note of it. What was appended next was committed and
    durable for the start after another kill."""
    node, key = Node(), KEYS[0]
    for _ in range(40):
        log = node.led(key, 1)
    log.delete_records_before(1)
    log.flush()
    node.scheduler.turn()
    node.checkpoint()
    node.scheduler.turn()

    def killed(operation: str, path: str) -> OSError | None:
        if "-offset-checkpoint" in path:
            raise _Killed
        return None

    node.disk.fault = killed
    with pytest.raises(_Killed):
        log.truncate_to(2)
    for _ in range(2):
        node.disk.fault = None
        node.disk.process_killed()
        node.start()
        again = node.manager.get(*key)
        assert again is not None
        assert (again.high_watermark <= 2, again.recovery_point <= 2) == (True, True)
        node.check_safe()
        for _ in range(38):
            again.append_as_leader(client_batch(1), leader_epoch=5)
        node.scheduler.turn()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_log_that_a_failed_truncation_left_without_segments_stops_no_file(code: int) -> None:
    """A start inside of a segment that is not there ended the gathering: whoever waited for the
    file of the directory waited for ever, and the clean stop failed."""
    found = 0
    for number in range(1, 40):
        node = Node()
        logs = {key: node.led(key, 6) for key in KEYS}
        key = KEYS[0]
        home = node.manager.directory_of(*key)
        other = next(x for x in KEYS[1:] if node.manager.directory_of(*x) is home)
        node.scheduler.turn()
        left = number

        def fails(operation: str, path: str) -> OSError | None:
            nonlocal left
            left -= "/topic-0/" in f"{path}/"
            return OSError(code, "x", path) if not left and "/topic-0/" in f"{path}/" else None

        node.disk.fault = fails
        with contextlib.suppress(KafkaError, OSError):
            logs[key].truncate_fully_and_start_at(20)
        node.disk.fault = None
        if logs[key].segments or home is None or home.error is not None:
            continue
        found += 1
        logs[other].delete_records_before(4)
        done = node.manager.checkpoint_log_starts([other])
        node.scheduler.turn()
        assert done.done
        assert node.said(home.path, LOG_STARTS).get(other) == 4
        node.manager.shutdown()
    assert found
