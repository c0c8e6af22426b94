"""The share coordinator beside a plain model, with a high watermark that lags; what is pruned."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwire.coordinator import loading
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.coordinator.share.operations import STALE_LEADER_MS
from kwire.coordinator.share.service import ShareCoordinator
from kwire.coordinator.share.shard import ShareCoordinatorSettings
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import iterate_headers, read_records
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    StateBatch,
    WritePartition,
)
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog
from tests.support.persister import MemoryPersister

TOPICS = {b"a" * 16: 4, b"b" * 16: 2}
GROUPS = ("g", "h")


class StartedLog(MemoryLog):
    """A log whose start moves: records in front of it are not read, whole batches gone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.starts: dict[int, int] = {}
        self.deletions: list[tuple[int, int]] = []

    def delete_records(self, partition: int, offset: int) -> Pending[None]:
        assert offset <= self.high_watermark(partition)
        self.deletions.append((partition, offset))
        self.starts[partition] = offset
        self.batches[partition] = [
            batch
            for batch in self.batches[partition]
            if next(iter(iterate_headers(batch)))[1].next_offset > offset
        ]
        return Pending.completed(None)

    def start_offset(self, partition: int) -> int:
        return self.starts.get(partition, 0)


class World:
    """A coordinator of `partitions` partitions, all led from the beginning."""

    def __init__(self, *, partitions: int = 3, lagging: bool = False, **settings: Any) -> None:
        self.loop = ManualLoop()
        self.log = StartedLog(lagging=lagging)
        self.topics = dict(TOPICS)
        self.complete_ms = 1 << 60  # when the metadata was known to be complete
        self.is_enabled = True
        self.settings = ShareCoordinatorSettings(**settings)
        self.partitions = partitions
        self.coordinator = self.fresh()
        self.epoch = 0
        self.load()

    def fresh(self) -> ShareCoordinator:
        coordinator = ShareCoordinator(
            settings=self.settings,
            partition_count=lambda: self.partitions,
            partitions_of=self.topics.get,
            has_all_of=lambda now_ms: self.complete_ms >= now_ms,
            partition_log=self.log,
            delete_records=self.log.delete_records,
            is_enabled=lambda: self.is_enabled,
            loop=self.loop,
            clock=ManualClock(self.loop),
        )
        self.log.listener = coordinator.runtime.high_watermark_advanced
        return coordinator

    def load(self) -> None:
        self.epoch += 1
        for partition in range(self.partitions):
            self.coordinator.load(partition, self.epoch)
        self.loop.run()

    def reloaded(self) -> ShareCoordinator:
        """A coordinator of what is in the log, as another broker has it."""
        coordinator, self.coordinator = self.coordinator, self.fresh()
        self.load()
        loaded, self.coordinator = self.coordinator, coordinator
        loaded._pruning.close()
        self.log.listener = coordinator.runtime.high_watermark_advanced
        return loaded

    def answer(self, pending: Pending[Any]) -> Any:
        self.loop.run()
        self.log.commit_all()
        return pending.result()


def hard_state(coordinator: ShareCoordinator) -> list[Any]:
    found = []
    for partition in coordinator.runtime.partitions():
        shard = coordinator.runtime.shard(partition)
        assert shard is not None
        found.append(
            (
                {key: x._replace(state_batches=list(x.state_batches))
                 for key, x in shard.states.items()},
                shard.leader_epochs, shard.state_epochs, shard.update_counts,
                shard.last_redundant_offset(),
            )
        )  # fmt: skip
    return found


def drawn(rng: random.Random, asked_of: str, topic_id: bytes, partition: int) -> Any:
    if asked_of == "initialize":
        return InitializePartition(topic_id, partition, rng.randrange(3), rng.choice((-1, 0, 5)))
    if asked_of in ("read", "read_summary"):
        return PartitionEpoch(topic_id, partition, rng.randrange(4))
    if asked_of == "delete":
        return PartitionId(topic_id, partition)
    batches = []
    for _ in range(rng.randrange(3)):
        first = rng.randrange(30)
        batches.append(
            StateBatch(first, first + rng.randrange(8), rng.choice((0, 2, 4)), rng.randrange(3))
        )
    return WritePartition(
        topic_id, partition, rng.randrange(3), rng.randrange(4),
        rng.choice((-1, rng.randrange(25))), rng.randrange(-1, 5), batches,
    )  # fmt: skip


def plain(results: list[Any]) -> list[Any]:
    """Results as the model gives them: codes without texts, batches as a list."""
    return [
        (type(x).__name__, *x[:3], *(list(y) if isinstance(y, tuple) else y for y in x[4:]))
        for x in results
    ]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_history_is_answered_as_a_plain_model_answers_it(seed: int) -> None:
    rng = random.Random(seed)
    world = World(lagging=True, snapshot_update_records_per_snapshot=rng.choice((0, 1, 3, 500)))
    model = MemoryPersister()
    waiting: list[tuple[Any, Any]] = []
    names = ["initialize", "read", "write", "write", "write", "write", "read_summary", "delete"]
    for step in range(300):
        name = rng.choice(names if rng.random() < 0.5 else names[2:7])
        topic_id = rng.choice(list(TOPICS))
        asked = [
            drawn(rng, name, topic_id, index)
            for index in rng.sample(range(TOPICS[topic_id]), rng.randrange(1, 3))
        ]
        group = rng.choice(GROUPS)
        expected = getattr(model, name)(group, asked).result()
        waiting.append((getattr(world.coordinator, name)(group, asked), expected))
        if rng.random() < 0.3:
            world.loop.run()
        if rng.random() < 0.3:
            partition = rng.randrange(world.partitions)
            end = world.log.end_offset(partition)
            world.log.commit(partition, rng.randrange(end + 1))
        if step % 60 == 59:
            world.loop.advance(1)
            world.log.commit_all()
            for pending, answer in waiting:
                assert plain(pending.result()) == plain(answer)
            waiting.clear()
            assert hard_state(world.reloaded()) == hard_state(world.coordinator)


def test_writes_of_one_turn_share_a_batch() -> None:
    world = World(partitions=1)
    asked = [InitializePartition(b"a" * 16, index, 0, 0) for index in range(4)]
    pendings = [world.coordinator.initialize(group, asked) for group in GROUPS]
    for pending in pendings:
        assert [x.error_code for x in world.answer(pending)] == [0] * 4
    assert len(world.log.batches[0]) == 1
    assert len(list(read_records(bytes(world.log.batches[0][0])))) == 8


def initialized(world: World, group: str = "g", partition: int = 0, at: int = 0) -> None:
    asked = [InitializePartition(b"a" * 16, partition, 0, at)]
    assert world.answer(world.coordinator.initialize(group, asked))[0].error_code == 0


def written(world: World, offset: int, group: str = "g", partition: int = 0) -> None:
    batch = StateBatch(offset, offset, 2, 1)
    asked = [WritePartition(b"a" * 16, partition, 0, 0, offset, 0, [batch])]
    assert world.answer(world.coordinator.write(group, asked))[0].error_code == 0


def test_records_in_front_of_the_oldest_last_snapshot_are_deleted() -> None:
    world = World(partitions=1, snapshot_update_records_per_snapshot=2, prune_interval_ms=1000)
    initialized(world)
    initialized(world, "h")
    for offset in range(1, 8):
        written(world, offset)
    world.loop.advance(1000)
    assert world.log.deletions == [(0, 1)]  # "h" has its snapshot there
    for offset in range(1, 4):
        written(world, offset, "h")
    world.loop.advance(1000)
    shard = world.coordinator.runtime.shard(0)
    assert shard is not None
    assert world.log.deletions[1:] == [(0, shard.last_redundant_offset())]
    assert hard_state(world.reloaded())[0][0] == hard_state(world.coordinator)[0][0]
    world.loop.advance(3000)
    assert len(world.log.deletions) == 2  # nothing new to delete


def test_a_share_partition_that_nobody_writes_to_gets_a_new_snapshot() -> None:
    world = World(
        partitions=1, cold_partition_snapshot_interval_ms=5000, prune_interval_ms=100_000_000
    )
    initialized(world)
    initialized(world, "h", at=7)
    world.loop.advance(4999)
    assert world.log.end_offset(0) == 2
    world.loop.advance(1)
    assert world.log.end_offset(0) == 4
    world.loop.advance(20_000)
    assert world.log.end_offset(0) == 4  # all of them are cold
    initialized(world)
    world.loop.advance(5000)
    shard = world.coordinator.runtime.shard(0)
    assert shard is not None
    assert {key.group_id: x.snapshot_epoch for key, x in shard.states.items()} == {"g": 3, "h": 2}


def test_nothing_is_pruned_where_the_cluster_has_no_share_groups() -> None:
    world = World(
        partitions=1,
        snapshot_update_records_per_snapshot=0,
        prune_interval_ms=1000,
        cold_partition_snapshot_interval_ms=1000,
    )
    initialized(world)
    written(world, 1)
    world.is_enabled = False
    world.loop.advance(10_000)
    assert world.log.deletions == []
    assert world.log.end_offset(0) == 2


def test_a_deletion_that_fails_is_tried_again() -> None:
    world = World(partitions=1, snapshot_update_records_per_snapshot=0, prune_interval_ms=1000)
    refused = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), KafkaError(ErrorCode.NOT_COORDINATOR)]
    delete = world.log.delete_records
    world.coordinator._pruning._delete_records = lambda partition, offset: (
        Pending.failed(refused.pop()) if refused else delete(partition, offset)
    )
    initialized(world)
    written(world, 1)
    world.loop.advance(3000)
    assert world.log.deletions == [(0, 1)]


def test_topics_that_are_deleted_take_their_state_with_them() -> None:
    world = World()
    initialized(world)
    asked = [InitializePartition(b"b" * 16, 1, 0, 0)]
    world.answer(world.coordinator.initialize("g", asked))
    del world.topics[b"b" * 16]
    world.coordinator.topics_deleted([b"b" * 16])
    world.loop.run()
    left = [key for states, *_ in hard_state(world.coordinator) for key in states]
    assert [key.topic_id for key in left] == [b"a" * 16]
    assert hard_state(world.reloaded()) == hard_state(world.coordinator)


def test_state_of_a_deleted_topic_goes_where_it_was_led_elsewhere_meanwhile() -> None:
    """It stayed: the partition was loaded here after the topic's deletion was heard."""
    world = World(partitions=1)
    initialized(world)
    world.coordinator.unload(0)
    world.coordinator.topics_deleted([b"a" * 16])
    world.coordinator.load(0, 1)
    world.loop.run()
    assert not hard_state(world.coordinator)[0][0]


def test_state_of_a_topic_goes_that_nobody_saw_go() -> None:
    """Its deletion came while no broker led the partition. What is missing once may be new."""
    world = World(partitions=1, cold_partition_snapshot_interval_ms=1000)
    initialized(world)
    count = world.topics.pop(b"a" * 16)
    world.loop.advance(1100)
    world.topics[b"a" * 16] = count
    world.loop.advance(1000)
    del world.topics[b"a" * 16]
    world.loop.advance(1000)
    assert hard_state(world.coordinator)[0][0]
    world.loop.advance(1000)
    assert not hard_state(world.coordinator)[0][0]


def test_state_of_a_topic_stays_that_the_metadata_is_yet_to_tell_of() -> None:
    """It went after two rounds: this broker's metadata stood still for longer than that."""
    world = World(partitions=1, cold_partition_snapshot_interval_ms=1000)
    initialized(world)
    count = world.topics.pop(b"a" * 16)
    world.complete_ms = world.loop.now_ms + 1000 + STALE_LEADER_MS - 1
    world.loop.advance(3 * STALE_LEADER_MS)
    assert hard_state(world.coordinator)[0][0]
    world.topics[b"a" * 16] = count
    world.complete_ms = 1 << 60
    world.loop.advance(3 * STALE_LEADER_MS)
    assert hard_state(world.coordinator)[0][0]


def test_state_of_deleted_topics_goes_when_that_was_refused_at_first() -> None:
    """It stayed: a topic is deleted once."""
    world = World(partitions=1)
    initialized(world)
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    world.coordinator.topics_deleted([b"a" * 16])
    world.loop.advance(3 * RETRY_MS)
    world.log.refuse = None
    assert hard_state(world.coordinator)[0][0]
    world.loop.advance(RETRY_MS)
    assert not hard_state(world.coordinator)[0][0]


def test_what_is_not_led_here_is_not_coordinated_here() -> None:
    world = World(partitions=1)
    initialized(world)
    world.coordinator.unload(0, 1)
    for pending in (
        world.coordinator.read("g", [PartitionEpoch(b"a" * 16, 0, 0)]),
        world.coordinator.write("g", [WritePartition(b"a" * 16, 0, 0, 0, 0, 0, ())]),
    ):
        found: Any = pending.result()[0]
        assert found.error_code == ErrorCode.NOT_COORDINATOR
        assert found.error_message.startswith("Unable to ")


@pytest.mark.parametrize(
    ("refused", "answered"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_what_the_log_refuses_is_not_said_to_be_kept(
    refused: ErrorCode, answered: ErrorCode
) -> None:
    world = World(partitions=1)
    initialized(world)
    world.log.refuse = refused
    asked = [WritePartition(b"a" * 16, 0, 0, 0, 9, 0, ())]
    assert world.answer(world.coordinator.write("g", asked))[0].error_code == answered
    world.log.refuse = None
    world.loop.advance(10_000)
    summary = [PartitionEpoch(b"a" * 16, 0, -1)]
    assert world.answer(world.coordinator.read_summary("g", summary))[0].start_offset == 0


def test_a_long_log_is_replayed_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update has what changed alone: the last record of a key is not all that counts."""
    monkeypatch.setattr(loading, "REPLAYED_MAX", 0)
    world = World(partitions=1)
    initialized(world)
    for offset in range(0, 60, 2):
        batch = StateBatch(offset, offset, 2, 1)
        asked = [WritePartition(b"a" * 16, 0, 0, 0, 0, 0, [batch])]
        assert world.answer(world.coordinator.write("g", asked))[0].error_code == 0
    loaded = hard_state(world.reloaded())
    assert loaded == hard_state(world.coordinator)
    [state] = loaded[0][0].values()
    assert len(state.state_batches) == 30
