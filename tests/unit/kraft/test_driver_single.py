"""A quorum of one on real files: format, lead, append, commit, snapshot, open again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.state import MAX_RECORDS_PER_USER_OPERATION
from kwire.kraft.images.image_publisher import ImagePublisher
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.kraft.raft import RaftConfig
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.types import BOOTSTRAP_SNAPSHOT, Endpoint, OffsetAndEpoch, ReplicaKey
from kwire.kraft.raft.voters import VoterNode, VoterSet
from kwire.kraft.raft_driver import RaftDriver
from kwire.kraft.snapshots.content import build_snapshot
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.kraft.snapshots.policy import SnapshotPolicy
from kwire.log.files import SystemFiles
from kwire.log.scheduling import ImmediateScheduler
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch

DIRECTORY_ID = bytes(range(16))
ENDPOINT = Endpoint("CONTROLLER", "127.0.0.1", 9093)
VOTERS = VoterSet([VoterNode(ReplicaKey(1, DIRECTORY_ID), (ENDPOINT,), 0, 1)])


class StillClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_000
        self.seconds = 0.0

    def wall_ms(self) -> int:
        return self.wall

    def time(self) -> float:
        return self.seconds


class LateScheduler(ImmediateScheduler):
    """Jobs finish only when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Any, Pending[Any]]] = []
        self.held = False

    def run(self, job: Any) -> Pending[Any]:
        if not self.held:
            return super().run(job)
        pending: Pending[Any] = Pending()
        self.jobs.append((job, pending))
        return pending

    def finish(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job, pending in jobs:
            pending.complete(job())


class TurningScheduler(LateScheduler):
    """What comes in a later turn comes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.soon: list[Any] = []

    def call_soon(self, callback: Any) -> object:
        self.soon.append(callback)
        return None

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()

    def turns(self) -> None:
        while self.soon:
            self.turn()


class NoNetwork:
    """A node that is alone."""

    def send(self, node: int, api_key: int, request: Any, **_: Any) -> Pending[Any]:
        raise AssertionError(f"a request to {node}")

    def disconnect(self, node_id: int) -> None:
        pass


class TopicController:
    """The smallest controller: a request is the name of a topic, the answer how many there are;
    several names are a request that takes a turn of the loop for each."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.active_epoch = -1
        self.is_active = False
        self.started_with: Any = None
        self.left: list[Any] = []

    def handle(self, request: Any, context: Any, now_ms: int) -> tuple[list[Any], Any]:
        if not self.is_active:
            return [], "not the controller"
        if request is None:
            return [], len(self.topics)
        record = m.TopicRecord(name=request, topic_id=bytes(15) + bytes([len(self.topics) + 1]))
        return [(record, 0)], len(self.topics) + 1

    def begun(self) -> list[Any]:
        left, self.left = self.left, []
        return left

    def slices(self, request: Any, context: Any, now_ms: int = 0) -> Any:
        return self.create_all(request) if self.is_active and isinstance(request, tuple) else None

    def create_all(self, names: tuple[str, ...]) -> Any:
        for name in names:
            yield self.handle(name, None, 0)[0]
        return len(self.topics)

    def wrote(self, now_ms: int) -> None:
        pass

    def replay(self, record: Any, offset: int, epoch: int | None = None) -> None:
        if type(record).NAME == "TopicRecord":
            self.topics.append(record.name)

    def load(self, records: list[Any], offset: int, epoch: int = 0) -> None:
        self.discard()
        for record in records:
            self.replay(record, offset)

    def discard(self) -> None:
        self.topics = []

    def activate(
        self,
        now_ms: int,
        next_offset: int,
        epoch: int,
        bootstrap: Any,
        is_empty: bool,
        leader_heard: Any,
    ) -> list[Any]:
        self.is_active = True
        self.started_with = (epoch, bootstrap, is_empty)
        return list(bootstrap or [])

    def deactivate(self) -> None:
        self.is_active = False

    def deadline_ms(self) -> int | None:
        return None


class Node:
    """A node over `root`, opened anew by every instance."""

    def __init__(
        self,
        root: Path,
        scheduler: ImmediateScheduler | None = None,
        policy: SnapshotPolicy | None = None,
    ) -> None:
        self.clock = StillClock()
        self.controller = TopicController()
        self.publisher = ImagePublisher()
        self.leaders: list[tuple[int | None, int]] = []
        self.errors: list[Exception] = []
        self.scheduler = scheduler or ImmediateScheduler()
        metadata_log = MetadataLog.open(
            str(root), metadata_log_config(), self.clock, scheduler=self.scheduler
        )
        self.driver = RaftDriver(
            RaftConfig(1, DIRECTORY_ID, "cluster", endpoints=(ENDPOINT,)),
            metadata_log,
            sender=NoNetwork(),
            loop=self.clock,
            scheduler=self.scheduler,
            clock=self.clock,
            random=SeededRandom(1),
            controller=self.controller,
            policy=policy,
            on_fatal=self.errors.append,
        )
        self.driver.add_listener(self.publisher)
        self.driver.snapshotter.source = self.publisher
        self.driver.on_leader_change(lambda leader, epoch: self.leaders.append((leader, epoch)))
        self.driver.start()

    def create(self, name: str | tuple[str, ...] | None) -> Pending[Any]:
        assert self.driver.runner is not None
        return self.driver.runner.handle(name, ControllerContext())

    def topics(self) -> list[str]:
        return sorted(self.publisher.image.topics.by_name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A formatted directory."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    batches = build_snapshot(
        [(m.FeatureLevelRecord(name="metadata.version", feature_level=33), 0)],
        epoch=0,
        clock=StillClock(),
        last_timestamp_ms=1,
        kraft_version=1,
        voters=VOTERS,
    )
    SnapshotFiles(SystemFiles(), str(directory)).write(BOOTSTRAP_SNAPSHOT, batches)
    return tmp_path


def test_leads_and_answers_when_committed(root: Path) -> None:
    node = Node(root)
    assert node.leaders[-1] == (1, 1)
    epoch, bootstrap, is_empty = node.controller.started_with
    assert (epoch, is_empty) == (1, True)
    assert [record.name for record, _ in bootstrap] == ["metadata.version"]
    assert node.create("one").result() == 1
    assert node.topics() == ["one"]
    assert node.driver.feed.next_offset == 5
    node.driver.stop()
    assert not node.errors


def test_an_answer_waits_for_the_flush(root: Path) -> None:
    scheduler = LateScheduler()
    node = Node(root, scheduler)
    scheduler.held = True
    first, reading = node.create("one"), node.create(None)
    assert not first.done
    assert not reading.done, "an answer must not tell what is not committed"
    assert node.topics() == []
    second = node.create("two")
    scheduler.finish()
    assert first.result() == 1
    assert reading.result() == 1
    assert not second.done, "the flush began before the second append"
    scheduler.finish()
    assert second.result() == 2
    assert node.topics() == ["one", "two"]


def test_a_large_request_takes_turns_and_others_go_on_between_them(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    large, other = node.create(("a1", "a2", "a3")), node.create(("b1",))
    small = node.create("c")
    seen = []
    while scheduler.soon:
        seen.append(list(node.controller.topics))
        scheduler.turn()
    assert seen == [
        ["c"],
        ["c", "a1"],
        ["c", "a1", "b1"],
        ["c", "a1", "b1", "a2"],
        ["c", "a1", "b1", "a2"],
        ["c", "a1", "b1", "a2", "a3"],
    ]
    assert (small.result(), other.result(), large.result()) == (1, 4, 5)
    assert node.topics() == ["a1", "a2", "a3", "b1", "c"]
    node.driver.stop()
    assert Node(root).topics() == ["a1", "a2", "a3", "b1", "c"]


def test_a_large_request_is_answered_when_all_of_it_is_committed(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    scheduler.held = True
    large = node.create(("a1", "a2"))
    scheduler.turns()
    scheduler.finish()
    assert node.topics() == ["a1"], "the flush began before the second append"
    assert not large.done
    scheduler.turns()
    scheduler.finish()
    assert large.result() == 2


def test_what_an_answered_request_leaves_is_done_behind_its_answer(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    large = node.create(("a1", "a2"))
    node.controller.left = [node.controller.create_all(("b1", "b2"))]
    for _ in range(3):
        scheduler.turn()
    assert large.result() == 2
    assert node.topics() == ["a1", "a2"]
    scheduler.turns()
    assert node.topics() == ["a1", "a2", "b1", "b2"]


def test_a_large_request_ends_with_the_leadership(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    lost = [node.create(("a1", "a2")), node.create(("b1", "b2"))]
    scheduler.turn()
    assert node.controller.topics == ["a1"]
    node.driver.step(msg.Resign(1))
    for each in lost:
        error = each.error()
        assert isinstance(error, KafkaError)
        assert error.code == ErrorCode.NOT_CONTROLLER
    end_offset = node.driver.raft.log.end_offset
    scheduler.turns()
    assert node.driver.raft.log.end_offset == end_offset, "the rest is not written"
    assert node.controller.topics == node.topics() == []
    assert not node.errors


def test_what_a_large_request_has_committed_stays_when_the_leadership_is_lost(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    lost = node.create(("a1", "a2", "a3", "a4"))
    scheduler.turn()
    scheduler.turn()
    assert node.topics() == ["a1"]
    node.driver.step(msg.Resign(1))
    error = lost.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_CONTROLLER
    scheduler.turns()
    assert node.topics() == node.controller.topics == ["a1"]
    node.driver.stop()
    kept = Node(root).topics()
    assert kept == ["a1", "a2"], "what is in the log is committed by the next leader"


def test_all_records_of_a_request_are_one_batch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(root)
    count = MAX_RECORDS_PER_USER_OPERATION
    record = m.NoOpRecord()
    monkeypatch.setattr(node.controller, "handle", lambda *_: ([(record, 0)] * count, count))
    start = node.driver.raft.log.end_offset
    assert node.create("many").result() == count
    batches = node.driver.metadata_log.read_batches(start, start + count)
    assert [len(batch.records) for batch in batches] == [count]


def test_a_large_request_that_fails_fails_alone(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    wrong: Any = ("a1", 7)
    failing, other = node.create(wrong), node.create(("b1", "b2"))
    scheduler.turns()
    assert failing.error() is not None
    assert other.result() == 3


def test_others_go_on_when_whoever_takes_an_answer_fails(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()

    def fail(_: object) -> None:
        raise ValueError("no place for an answer")

    node.create(("a1", "a2")).add_done_callback(fail)
    waiting = node.create(("b1", "b2"))
    with pytest.raises(ValueError, match="no place"):
        scheduler.turns()
    later = node.create(("c1",))
    scheduler.turns()
    assert (waiting.result(), later.result()) == (4, 5)


def test_a_turn_does_one_slice_also_after_the_leadership_was_lost_and_won(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    lost = node.create(("a1", "a2", "a3"))
    runner = node.driver.runner
    assert runner is not None
    runner.resign()
    assert lost.error() is not None
    runner.claim(node.driver.raft.epoch)
    later = node.create(("b1", "b2", "b3"))
    while scheduler.soon:
        before = len(node.controller.topics)
        scheduler.turn()
        assert len(node.controller.topics) <= before + 1
    assert later.result() == 3
    assert node.controller.topics == ["b1", "b2", "b3"]


def test_a_large_request_is_done_when_nobody_waits_for_it_any_more(root: Path) -> None:
    scheduler = TurningScheduler()
    node = Node(root, scheduler)
    scheduler.turns()
    gone = node.create(("a1", "a2", "a3"))
    scheduler.turn()
    gone.cancel()
    scheduler.turns()
    assert node.topics() == ["a1", "a2", "a3"]


def test_resignation_refuses_and_reloads(root: Path) -> None:
    scheduler = LateScheduler()
    node = Node(root, scheduler)
    node.create("committed")
    scheduler.held = True
    lost = node.create("lost")
    node.driver.step(msg.Resign(1))
    assert isinstance(lost.error(), KafkaError)
    assert lost.error().code == ErrorCode.NOT_CONTROLLER  # type: ignore[union-attr]
    assert node.controller.topics == ["committed"]
    assert not node.controller.is_active
    assert node.create("later").result() == "not the controller"


def test_reopens_with_everything_that_was_committed(root: Path) -> None:
    node = Node(root)
    for index in range(20):
        node.create(f"topic-{index}")
    node.driver.stop()
    again = Node(root)
    assert again.driver.epoch == 2
    assert len(again.topics()) == 20
    assert len(again.controller.topics) == 20
    assert again.controller.started_with == (2, None, False)
    assert again.create("more").result() == 21


def test_a_snapshot_replaces_the_log(root: Path) -> None:
    node = Node(root)
    for index in range(5):
        node.create(f"topic-{index}")
    assert node.driver.snapshotter.take()
    snapshot = node.driver.raft.log.latest_snapshot
    assert snapshot == OffsetAndEpoch(9, 1)
    path = root / "__cluster_metadata-0" / "00000000000000000009-0000000001.checkpoint"
    assert oct(os.stat(path).st_mode & 0o777) == "0o400"
    node.create("after")
    node.driver.step(msg.DeletePrefix(snapshot))
    assert node.driver.raft.log.start_offset == 9
    node.driver.stop()
    again = Node(root)
    assert again.topics() == ["after", *(f"topic-{index}" for index in range(5))]
    assert again.driver.raft.voters.voters == VOTERS
    assert again.controller.topics[-1] == "after"
    assert not again.errors


def test_a_kill_in_the_middle_loses_only_what_nobody_was_told(root: Path) -> None:
    scheduler = LateScheduler()
    node = Node(root, scheduler)
    node.create("one")
    scheduler.held = True
    node.create("two")
    # The first node is never stopped: its files are as a kill leaves them.
    again = Node(root)
    assert "one" in again.topics()
    assert not again.errors


def test_a_failed_write_stops_the_node(root: Path) -> None:
    node = Node(root)
    node.driver.fail(OSError("disk"))
    assert len(node.errors) == 1
    assert node.create("late").result() == "not the controller"


def test_snapshots_come_by_size_and_go_by_retention(root: Path) -> None:
    policy = SnapshotPolicy(bytes_between=700, interval_ms=0, retention_bytes=2500)
    node = Node(root, policy=policy)
    for index in range(40):
        node.create(f"topic-{index}")
    log = node.driver.raft.log
    assert len(log.snapshots) > 3
    assert log.start_offset == 0
    newest = log.latest_snapshot
    node.driver.snapshotter.clean()
    assert log.start_offset > 0
    assert log.latest_snapshot == newest
    assert log.snapshots[0].offset == log.start_offset
    names = sorted(path.name for path in (root / "__cluster_metadata-0").glob("*.checkpoint"))
    assert len(names) == len(log.snapshots)
    node.driver.stop()
    again = Node(root, policy=policy)
    assert len(again.topics()) == 40
    assert not again.errors


def test_stored_snapshots_are_looked_at_once(root: Path) -> None:
    """A hundred of them may be kept, and each is looked at in the same turn of the loop."""
    node = Node(root, policy=SnapshotPolicy(bytes_between=700, interval_ms=0))
    for index in range(40):
        node.create(f"topic-{index}")
    looked: list[OffsetAndEpoch] = []
    original = node.driver.snapshot_facts

    def facts(snapshot: OffsetAndEpoch) -> tuple[int, int]:
        looked.append(snapshot)
        return original(snapshot)

    node.driver.snapshot_facts = facts  # type: ignore[method-assign]
    stored = list(node.driver.raft.log.snapshots)
    node.driver.snapshotter.clean()
    node.driver.snapshotter.clean()
    assert looked == stored


def test_an_interval_takes_a_snapshot_of_what_is_new(root: Path) -> None:
    node = Node(root, policy=SnapshotPolicy(interval_ms=1000))
    node.create("one")
    assert len(node.driver.raft.log.snapshots) == 1
    node.clock.seconds += 1
    node.create("two")
    assert len(node.driver.raft.log.snapshots) == 2


def test_a_record_of_the_future_stops_the_node_in_one_line(root: Path) -> None:
    node = Node(root)
    node.create("one")
    record = Record(0, 1, None, bytes([1, 0xE7, 0x07, 0]), [])
    batch = build_batch([record], base_offset=node.driver.raft.log.end_offset, leader_epoch=1)
    node.driver.metadata_log.append_batch(node.driver.raft.log.end_offset, 1, batch, 1)
    node.driver.metadata_log.flush()
    again = Node(root)
    assert len(again.errors) == 1
    assert "\n" not in str(again.errors[0])
    assert not again.controller.is_active
