"""A log moves to another log directory while it is written to, truncated, deleted, or killed."""

from __future__ import annotations

import dataclasses

import pytest

from kwire.clock import SeededRandom
from kwire.log.directories.directory import LogDirectory
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.protocol.errors import KafkaError
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.effort import seeds
from tests.support.logs import ManualClock, ManualScheduler, client_batch, read_all

TOPIC_ID = bytes(range(1, 17))
KEY = ("topic", 0)
CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)
SETTINGS = ManagerSettings(file_delete_delay_ms=1000)


class Crash(BaseException):
    """The machine stops at this call."""


class Node:
    """Two log directories on one disk; the partition begins in the first."""

    def __init__(
        self,
        seed: int = 1,
        config: LogConfig = CONFIG,
        settings: ManagerSettings = SETTINGS,
    ) -> None:
        self.disk = SimulatedDisk(SeededRandom(seed))
        self.clock = ManualClock()
        self.config = config
        self.settings = settings
        self.start()
        self.manager.create(*KEY, TOPIC_ID, config, directory=self.manager.directories[0])
        self.scheduler.turn()
        self.disk.sync_directory("/")

    def start(self) -> None:
        self.scheduler = ManualScheduler()
        self.manager = LogManager(
            ["/a", "/b"],
            self.clock,
            SeededRandom(9),
            files=self.disk,
            scheduler=self.scheduler,
            settings=self.settings,
            config_of=lambda topic: self.config,
        )
        self.manager.open_directories()
        self.manager.load_all(lambda topic, partition: TOPIC_ID)

    @property
    def log(self) -> PartitionLog:
        log = self.manager.get(*KEY)
        assert log is not None
        return log

    @property
    def other(self) -> LogDirectory:
        return self.manager.directories[1]

    def append(self, value: bytes, **options: int) -> None:
        batch = client_batch(1, value=value, **options)
        info = self.log.append_as_leader(batch, leader_epoch=0)
        self.scheduler.turn()
        assert info.written.done
        assert info.written.error() is None
        self.log.update_high_watermark(self.log.log_end_offset)

    def where(self) -> str:
        home = self.manager.directory_of(*KEY)
        assert home is not None
        return home.path

    def move(self) -> None:
        self.manager.moves.begin(KEY, self.other)
        self.rest()

    def rest(self) -> None:
        """Until no move is under way."""
        self.scheduler.turn()
        for _ in range(100):
            if not self.manager.moves.moves:
                return
            self.scheduler.advance(10)
        raise AssertionError("the move does not end")


def test_a_log_moves_with_everything_it_knows() -> None:
    node = Node()
    for at in range(60):
        node.append(b"%03d" % at, producer_id=7, producer_epoch=0, base_sequence=at)
    node.log.delete_records_before(5)
    before = read_all(node.log)
    node.move()
    assert node.where() == "/b"
    assert read_all(node.log) == before
    assert node.log.log_start_offset == 5
    assert node.log.high_watermark == 60
    assert node.log.leader_epochs.entries == [(0, 5)]
    assert len(node.log.segments) > 2
    again = client_batch(1, value=b"059", producer_id=7, producer_epoch=0, base_sequence=59)
    assert node.log.append_as_leader(again, leader_epoch=0).duplicate
    node.append(b"060", producer_id=7, producer_epoch=0, base_sequence=60)
    assert [name for name in node.disk.directories("/a") if "-delete" in name]
    node.scheduler.advance(1000)
    assert node.disk.directories("/a") == []
    assert node.disk.directories("/b") == ["topic-0"]
    node.manager.shutdown()
    node.start()
    assert node.where() == "/b"
    assert len(read_all(node.log)) == 56


def test_an_open_transaction_is_not_shown_after_the_move() -> None:
    node = Node(settings=ManagerSettings(file_delete_delay_ms=1000, verify_transactions=False))
    node.append(b"0")
    node.append(b"1", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    node.append(b"2")
    assert node.log.last_stable_offset == 1
    node.move()
    assert node.where() == "/b"
    assert node.log.last_stable_offset == 1


def test_a_log_that_begins_inside_of_a_batch_moves() -> None:
    """KAFKA-6975: the copy refused the batch that holds its first offset."""
    node = Node()
    node.log.append_as_leader(client_batch(10), leader_epoch=0)
    node.append(b"last")
    node.log.delete_records_before(4)
    before = read_all(node.log)
    node.move()
    assert node.where() == "/b"
    assert node.log.log_start_offset == 4
    assert read_all(node.log) == before
    node.append(b"more")
    assert node.log.log_end_offset == 12


def test_it_is_written_to_meanwhile() -> None:
    node = Node()
    for at in range(40):
        node.append(b"%03d" % at)
    node.scheduler.holds_jobs = False
    node.manager.moves.begin(KEY, node.other)
    for at in range(40, 80):
        batch = client_batch(1, value=b"%03d" % at)
        node.log.append_as_leader(batch, leader_epoch=0)
        if at % 3 == 0:
            node.scheduler.turn()
    node.move()
    assert node.where() == "/b"
    assert [value for _, value in read_all(node.log)] == [b"%03d" % at for at in range(80)]


def test_a_truncation_meanwhile_is_followed() -> None:
    node = Node()
    for at in range(30):
        node.append(b"%03d" % at)
    moves = node.manager.moves
    moves.begin(KEY, node.other)
    assert moves.moves
    node.log.truncate_to(20)
    for at in range(20, 26):
        node.append(b"new %d" % at)
    node.move()
    values = [value for _, value in read_all(node.log)]
    assert values == [b"%03d" % at for at in range(20)] + [b"new %d" % at for at in range(20, 26)]
    assert node.where() == "/b"


def test_kafka_20961_epochs_without_records_move_too() -> None:
    """A leader that did not know the epoch of its followers' last fetch had no answer for them."""
    node = Node()
    node.append(b"a")
    node.log.assign_epoch(4)
    node.move()
    assert node.where() == "/b"
    assert node.log.leader_epochs.entries == [(0, 0), (4, 1)]
    assert node.log.end_offset_for_epoch(0) == (0, 1)


def test_a_deleted_topic_takes_its_move_along() -> None:
    node = Node()
    node.append(b"1")
    node.manager.moves.begin(KEY, node.other)
    node.manager.delete(*KEY)
    node.scheduler.turn()
    node.scheduler.advance(1000)
    assert node.manager.moves.moves == {}
    assert node.disk.directories("/a") == node.disk.directories("/b") == []


def test_a_full_disk_ends_the_move_and_nothing_else() -> None:
    node = Node()
    for at in range(40):
        node.append(b"%03d" % at)
    node.disk.capacity_bytes = node.disk.used_bytes() + 300
    node.manager.moves.begin(KEY, node.other)
    node.scheduler.turn()
    node.disk.capacity_bytes = None
    assert node.manager.moves.moves == {}
    assert node.where() == "/a"
    node.append(b"040")
    assert len(read_all(node.log)) == 41
    node.other.error = OSError("gone")
    with pytest.raises(KafkaError):
        node.manager.moves.begin(KEY, node.other)


def test_a_crash_at_any_change_of_the_disk_keeps_what_was_flushed() -> None:
    config = dataclasses.replace(CONFIG, flush_messages=1)
    calls = [0]

    def life(node: Node, acknowledged: list[bytes]) -> None:
        for at in range(12):
            node.append(b"%03d" % at)
            acknowledged.append(b"%03d" % at)
        node.manager.moves.begin(KEY, node.other)
        for at in range(12, 16):
            node.append(b"%03d" % at)
            acknowledged.append(b"%03d" % at)
        node.move()
        for at in range(16, 20):
            node.append(b"%03d" % at)
            acknowledged.append(b"%03d" % at)

    probe = Node(1, config)

    def count(operation: str, path: str) -> None:
        calls[0] += 1

    probe.disk.fault = count
    life(probe, [])
    assert probe.where() == "/b"
    for seed in seeds(2):
        for at in range(seed % 3, calls[0], 3):
            node, left, acknowledged = Node(seed, config), [at], list[bytes]()

            def fault(operation: str, path: str, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise Crash

            node.disk.fault = fault
            with pytest.raises(Crash):
                life(node, acknowledged)
            node.disk.fault = None
            node.disk.crash()
            node.start()
            values = [value for _, value in read_all(node.log)]
            assert values[: len(acknowledged)] == acknowledged
            assert len(values) <= len(acknowledged) + 1
            node.append(b"after")
            was_moving = bool(node.manager.moves.moves)
            node.rest()
            assert [value for _, value in read_all(node.log)] == [*values, b"after"]
            assert node.where() == "/b" or not was_moving


def copied(steps: int, config: LogConfig = CONFIG, records: int = 60) -> Node:
    """A node whose partition is on its way, `steps` pieces of about 2 KB later."""
    node = Node(1, config)
    for at in range(records):
        node.append(b"%03d" % at)
    node.scheduler.holds_jobs = True
    node.manager.moves.begin(KEY, node.other)
    for _ in range(steps):
        due, node.scheduler._soon = node.scheduler._soon, []
        for callback in due:
            callback()
    return node


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.log.directories.moving.STEP_BYTES", 500)
    monkeypatch.setattr("kwire.log.directories.moving.CLOSE_BYTES", 100)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("stop", ["clean", "kill", "power"])
def test_a_move_goes_on_after_a_restart(stop: str) -> None:
    node = copied(4)
    begun = node.manager.moves.moves[KEY].target.log_end_offset
    assert 0 < begun < 60
    if stop == "clean":
        node.manager.shutdown(1)
    elif stop == "kill":
        node.disk.process_killed()
    else:
        node.scheduler.run_jobs()
        node.log.sync_now()
        node.disk.crash()
    node.start()
    move = node.manager.moves.moves[KEY]
    assert move.target.log_end_offset == begun or stop == "power"
    node.append(b"new")
    node.rest()
    assert node.where() == "/b"
    assert [value for _, value in read_all(node.log)] == [
        *(b"%03d" % at for at in range(60)),
        b"new",
    ]
    node.scheduler.advance(2000)
    assert node.disk.directories("/a") == []
    assert node.disk.directories("/b") == ["topic-0"]


@pytest.mark.usefixtures("small_steps")
def test_a_copy_that_differs_from_its_original_is_cut_back_to_where_they_agree() -> None:
    """The original was cut and went on in a later epoch while its copy was not open."""
    node = copied(0, records=20)
    while node.manager.moves.moves[KEY].target.log_end_offset < 15:
        node.scheduler._soon.pop(0)()
    node.manager.shutdown(1)
    directories = node.disk.directories("/b")
    node.disk.rename(f"/b/{directories[0]}", "/hidden")
    node.start()
    node.log.truncate_to(12)
    node.log.assign_epoch(1)
    for at in range(12):
        batch = client_batch(1, value=b"other %d" % at)
        node.log.append_as_leader(batch, leader_epoch=1)
        node.scheduler.turn()
    node.log.update_high_watermark(24)
    node.manager.shutdown(1)
    node.disk.rename("/hidden", f"/b/{directories[0]}")
    node.start()
    assert node.manager.moves.moves[KEY].target.log_end_offset == 12
    expected = read_all(node.log)
    node.rest()
    assert node.where() == "/b"
    assert read_all(node.log) == expected
    assert node.log.leader_epochs.entries == [(0, 0), (1, 12)]


def test_a_copy_of_another_topic_or_beside_its_original_is_removed() -> None:
    node = Node()
    node.append(b"1")
    node.manager.shutdown(1)
    unique = "0" * 32
    for path, topic_id in (
        (f"/a/topic-0.{unique}-future", TOPIC_ID),
        (f"/b/topic-0.{unique}-future", bytes(range(2, 18))),
    ):
        node.disk.make_directory(path)
        node.manager.write_partition_metadata(path, topic_id)
    node.start()
    assert node.manager.moves.moves == {}
    node.scheduler.advance(2000)
    assert node.disk.directories("/a") == ["topic-0"]
    assert node.disk.directories("/b") == []


@pytest.mark.usefixtures("small_steps")
def test_moves_copy_no_faster_than_they_may() -> None:
    node = Node()
    for at in range(100):
        node.append(b"%03d" % at)
    size_bytes = node.log.size_bytes
    moves = node.manager.moves
    moves.rate_max = 1000
    moves.begin(KEY, node.other)
    node.scheduler.turn()
    for seconds in range(1, 4):
        node.scheduler.advance(1000)
        copied_bytes = moves.moves[KEY].target.size_bytes
        assert 1000 * seconds - 600 <= copied_bytes <= 1000 * seconds + 600
    moves.rate_max = 0
    node.scheduler.advance(1000)
    stopped = moves.moves[KEY].target.size_bytes
    node.scheduler.advance(5000)
    assert moves.moves[KEY].target.size_bytes == stopped < size_bytes
    moves.rate_max = 1 << 40
    node.rest()
    assert node.where() == "/b"
