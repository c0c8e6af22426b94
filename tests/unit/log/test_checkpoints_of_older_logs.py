"""What the checkpoint files say of a log that is gone is never taken for a later one's."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.log.directories import checkpoint_format
from kwire.log.directories.checkpoint_format import parse_checkpoint
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.partition.config import LogConfig
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualClock, ManualScheduler, client_batch

OLD, NEW = bytes(range(1, 17)), bytes(range(2, 18))
KEY = ("topic", 0)
FILES = (
    checkpoint_format.RECOVERY_POINTS,
    checkpoint_format.HIGH_WATERMARKS,
    checkpoint_format.LOG_STARTS,
    checkpoint_format.CLEANER_POINTS,
)


class Node:
    """A manager with two directories on a simulated disk, killed and started again."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(SeededRandom(3))
        self.clock = ManualClock()
        self.start()

    def start(self) -> LogManager:
        self.scheduler = ManualScheduler()
        self.manager = LogManager(
            ["/a", "/b"],
            self.clock,
            SeededRandom(5),
            files=self.disk,
            scheduler=self.scheduler,
            settings=ManagerSettings(file_delete_delay_ms=1000),
            config_of=lambda topic: LogConfig(),
        )
        self.manager.open_directories()
        self.manager.load_all()
        return self.manager

    def kill(self) -> LogManager:
        self.disk.process_killed()
        return self.start()

    def append(self, count: int) -> None:
        log: Any = self.manager.get(*KEY)
        log.append_as_leader(client_batch(count), leader_epoch=0)
        self.scheduler.turn()
        log.update_high_watermark(log.log_end_offset)

    def checkpoint(self) -> None:
        """All four files, with what the log has now."""
        self.manager.checkpoint_recovery()
        self.manager.checkpoint_high_watermarks()
        self.manager.checkpoint_log_starts()
        home: Any = self.manager.directory_of(*KEY)
        home.cleaner_points[KEY] = 4
        home.write_checkpoint(checkpoint_format.CLEANER_POINTS, dict(home.cleaner_points))
        self.scheduler.turn()

    def old_log(self, directory: int = 0) -> Any:
        """A log with a start, recovery point, high watermark and cleaner point above 0."""
        home = self.manager.directories[directory]
        log = self.manager.create(*KEY, OLD, directory=home)
        for _ in range(3):
            self.append(2)
        log.flush()
        log.delete_records_before(5)
        self.checkpoint()
        return log

    def said(self, directory: str = "/a") -> dict[str, int]:
        """What the files say of the partition."""
        return {
            name: parse_checkpoint(self.disk.read_file(f"{directory}/{name}"))[KEY]
            for name in FILES
            if KEY in parse_checkpoint(self.disk.read_file(f"{directory}/{name}"))
        }


def test_a_topic_that_is_made_anew_begins_at_zero_also_after_a_kill() -> None:
    node = Node()
    node.old_log()
    assert list(node.said()) == list(FILES)
    node.manager.delete(*KEY)
    node.manager.create(*KEY, NEW, directory=node.manager.directories[0])
    for _ in range(4):
        node.append(2)
    log: Any = node.kill().get(*KEY)
    assert (log.topic_id, log.log_start_offset, log.log_end_offset) == (NEW, 0, 8)
    assert log.recovery_point == 0
    assert node.manager.directories[0].cleaner_points == {}


def test_it_is_durable_before_the_new_log_is_there() -> None:
    node = Node()
    node.old_log()
    node.manager.delete(*KEY)
    node.scheduler.turn()
    node.manager.create(*KEY, NEW, directory=node.manager.directories[0])
    node.append(8)
    log: Any = node.manager.get(*KEY)
    log.flush()
    node.scheduler.turn()
    node.disk.sync_directory("/")
    node.disk.crash()
    log = node.start().get(*KEY)
    assert (log.topic_id, log.log_start_offset, log.log_end_offset) == (NEW, 0, 8)


def test_a_checkpoint_that_was_being_written_meanwhile_comes_too_late() -> None:
    """It holds the old log, and may be written after the new one is there."""
    node = Node()
    log: Any = node.manager.create(*KEY, OLD, directory=node.manager.directories[0])
    node.append(6)
    log.flush()
    node.scheduler.turn()
    log.delete_records_before(5)
    node.scheduler.holds_jobs = True
    node.manager.checkpoint_log_starts()
    node.manager.delete(*KEY)
    node.manager.create(*KEY, NEW, directory=node.manager.directories[0])
    node.scheduler.run_jobs()
    node.scheduler.holds_jobs = False
    node.append(8)
    log = node.kill().get(*KEY)
    assert (log.topic_id, log.log_start_offset, log.log_end_offset) == (NEW, 0, 8)


def test_a_log_that_moves_to_where_an_older_one_was_brings_its_own() -> None:
    node = Node()
    node.old_log(directory=1)
    node.manager.delete(*KEY)
    node.manager.create(*KEY, NEW, directory=node.manager.directories[0])
    node.append(8)
    node.scheduler.holds_jobs = True  # no checkpoint is written behind the move
    node.manager.moves.begin(KEY, node.manager.directories[1])
    while node.manager.moves.moves:
        node.scheduler.run_jobs()
        node.scheduler.turn()
    log: Any = node.kill().get(*KEY)
    home: Any = node.manager.directory_of(*KEY)
    assert home.path == "/b"
    assert (log.topic_id, log.log_start_offset, log.log_end_offset) == (NEW, 0, 8)


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_word_of_a_file_is_what_was_asked_for_last(first: int) -> None:
    node = Node()
    home = node.manager.directories[0]
    jobs = [home.checkpoint_job(FILES[0], {KEY: offset}) for offset in (1, 2)]
    jobs[first]()
    jobs[1 - first]()
    assert parse_checkpoint(node.disk.read_file(f"/a/{FILES[0]}")) == {KEY: 2}
