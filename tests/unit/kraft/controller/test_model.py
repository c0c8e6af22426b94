"""Random histories: the log alone decides what a controller knows.

After every step a second controller that only replays the log equals the live one, image and
indexes; snapshots give the same again; a controller that loses what was not committed goes on from
what was. What a partition may look like is checked after every step too.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.controller import Controller
from kwire.kraft.images.topics import NO_LEADER
from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench, directory

BROKERS = (1, 2, 3, 4, 5)
NAMES = ("a", "b", "c.d", "c_d", "e")
STEPS = 220


class History(ControllerBench):
    """A controller under random requests."""

    def __init__(self, seed: int, features: dict[str, int] | None) -> None:
        self.ends: list[int] = []
        self.cordoned = 0
        super().__init__(seed=seed, features=features)
        self.chance = random.Random(seed)
        self.lives: dict[int, int] = {}
        self.follower = Controller(self.config, SeededRandom(99))
        self.followed = 0
        self.elr = self.image.features.elr_enabled

    def step(self) -> str:
        actions = (
            self._register, self._heartbeat, self._heartbeat, self._heartbeat, self._create,
            self._delete, self._grow, self._alter_isr, self._alter_isr, self._alter_isr,
            self._reassign, self._elect, self._configure, self._assign, self._pass_time,
            self._unregister, self._producer_ids, self._lose_uncommitted,
        )  # fmt: skip
        action = self.chance.choice(actions)
        action()
        return action.__name__

    def _register(self) -> None:
        broker_id = self.chance.choice(BROKERS)
        life = self.lives.get(broker_id, 0) + self.chance.choice((0, 1, 1))
        previous = self.chance.choice((-1, self.epochs.get(broker_id, -1)))
        many = broker_id >= 4
        dirs = [directory(broker_id, n) for n in range(2 if many else 1)]
        answer = self.register(
            broker_id, life, previous_broker_epoch=previous, log_dirs=dirs,
            rack=self.chance.choice((None, "r1", "r2")),
        )  # fmt: skip
        if answer.error_code == 0:
            self.lives[broker_id] = life

    def _heartbeat(self) -> None:
        broker_id = self.chance.choice(BROKERS)
        kind = self.chance.random()
        offline = []
        if broker_id >= 4 and self.chance.random() < 0.1:
            offline = [directory(broker_id, self.chance.randrange(2))]
        self.heartbeat(
            broker_id,
            want_fence=kind < 0.1,
            want_shut_down=0.05 < kind < 0.2,
            current_metadata_offset=len(self.log) - self.chance.choice((0, 0, 0, 30)),
            offline_log_dirs=offline,
            cordoned_log_dirs=self._some_directories(broker_id),
        )

    def _some_directories(self, broker_id: int) -> list[bytes] | None:
        """Directories to cordon, now and then all that a broker has."""
        if self.chance.random() < 0.6:
            return None
        return [directory(broker_id, number) for number in range(2) if self.chance.random() < 0.4]

    def _all_cordoned(self) -> set[int]:
        """Brokers that are to get no new replicas, by looking at each directory."""
        return {
            broker.broker_id
            for broker in self.image.brokers.values()
            if broker.cordoned_directories
            and broker.directories
            and set(broker.directories) <= set(broker.cordoned_directories)
        }

    def _create(self) -> None:
        configs = {}
        if self.chance.random() < 0.3:
            configs["min_insync_replicas"] = str(self.chance.randrange(1, 4))
        if self.chance.random() < 0.3:
            configs["unclean_leader_election_enable"] = self.chance.choice(("true", "false"))
        self.create(
            self.chance.choice(NAMES),
            partitions=self.chance.randrange(1, 4),
            factor=self.chance.randrange(1, 4),
            configs=configs,
        )

    def _some_topic(self) -> Any:
        topics = self.image.topics.by_name
        return topics[self.chance.choice(sorted(topics))] if topics else None

    def _delete(self) -> None:
        topic = self._some_topic()
        if topic is not None and self.chance.random() < 0.4:
            self.call(m.DeleteTopicsRequest(
                topics=[m.DeleteTopicsRequest.DeleteTopicState(topic_id=topic.topic_id)],
                timeout_ms=1000,
            ))  # fmt: skip

    def _grow(self) -> None:
        topic = self._some_topic()
        if topic is not None and len(topic.partitions) < 5:
            shape = m.CreatePartitionsRequest
            count = len(topic.partitions) + 1
            wanted = [shape.CreatePartitionsTopic(name=topic.name, count=count, assignments=None)]
            self.call(shape(topics=wanted, timeout_ms=1000))

    def _alter_isr(self) -> None:
        topic = self._some_topic()
        if topic is None:
            return
        index = self.chance.choice(sorted(topic.partitions))
        partition = topic.partitions[index]
        if partition.leader == NO_LEADER:
            return
        isr = [r for r in partition.replicas if r == partition.leader or self.chance.random() < 0.6]
        recovery = 0 if len(isr) > 1 else partition.leader_recovery_state
        self.alter_isr(topic.name, index, isr, leader_recovery_state=recovery)

    def _reassign(self) -> None:
        topic = self._some_topic()
        if topic is None:
            return
        shape = m.AlterPartitionReassignmentsRequest
        index = self.chance.choice(sorted(topic.partitions))
        replicas = None
        if self.chance.random() < 0.7:
            replicas = self.chance.sample(BROKERS, self.chance.randrange(1, 4))
        moved = [shape.ReassignablePartition(partition_index=index, replicas=replicas)]
        self.call(shape(topics=[shape.ReassignableTopic(name=topic.name, partitions=moved)]))

    def _elect(self) -> None:
        kind = self.chance.choice((0, 1))
        self.call(m.ElectLeadersRequest(election_type=kind, topic_partitions=None))

    def _configure(self) -> None:
        topic = self._some_topic()
        if topic is None:
            return
        shape = m.IncrementalAlterConfigsRequest
        key, value = self.chance.choice((
            ("min.insync.replicas", "2"), ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "true"), ("retention.ms", "5"),
        ))  # fmt: skip
        operation = self.chance.choice((0, 0, 1))
        op = shape.AlterableConfig(name=key, config_operation=operation, value=value)
        self.call(shape(resources=[
            shape.AlterConfigsResource(resource_type=2, resource_name=topic.name, configs=[op])
        ]))  # fmt: skip

    def _assign(self) -> None:
        topic = self._some_topic()
        if topic is None:
            return
        shape = m.AssignReplicasToDirsRequest
        broker_id = self.chance.choice((4, 5))
        partitions = [shape.PartitionData(partition_index=i) for i in sorted(topic.partitions)]
        topics = [shape.TopicData(topic_id=topic.topic_id, partitions=partitions)]
        chosen = directory(broker_id, self.chance.randrange(3))
        self.call(shape(
            broker_id=broker_id, broker_epoch=self.epochs.get(broker_id, -1),
            directories=[shape.DirectoryData(id=chosen, topics=topics)],
        ))  # fmt: skip

    def _pass_time(self) -> None:
        self.expire(self.now_ms + self.chance.choice((100, 600, 5_000, 310_000)))

    def _unregister(self) -> None:
        if self.chance.random() < 0.2:
            self.call(m.UnregisterBrokerRequest(broker_id=self.chance.choice(BROKERS)))

    def _producer_ids(self) -> None:
        broker_id = self.chance.choice(BROKERS)
        epoch = self.epochs.get(broker_id, -1)
        self.call(m.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch))

    def _lose_uncommitted(self) -> None:
        """The last appends fail: the controller begins anew from what was committed."""
        if not self.ends or self.chance.random() > 0.3:
            return
        # Answers are appended and lost as a whole; the bootstrap transaction is never lost.
        lost = self.chance.randrange(1, 4)
        del self.log[self.ends[max(len(self.ends) - lost, 0)] :]
        self.ends = [end for end in self.ends if end < len(self.log)]
        self.controller.discard()
        for offset, (record, _) in enumerate(self.log):
            self.controller.replay(record, offset, 1)
        assert self.controller.activate(self.now_ms, len(self.log), 2, None, False) == []
        self.follower = Controller(self.config, SeededRandom(98))
        self.followed = 0
        self.epochs = {b.broker_id: b.epoch for b in self.image.brokers.values()}

    def append(self, records: list[tuple[Any, int]]) -> None:
        for record, _ in records:
            if isinstance(record, m.PartitionRecord):
                assert not self._all_cordoned() & set(record.replicas), record
            if isinstance(record, m.BrokerRegistrationChangeRecord):
                self.cordoned += record.cordoned_log_dirs is not None
        if records and self.log:
            self.ends.append(len(self.log))
        super().append(records)

    def check(self) -> None:
        for offset in range(self.followed, len(self.log)):
            self.follower.replay(self.log[offset][0], offset, 1)
        self.followed = len(self.log)
        assert self.follower.image == self.controller.image
        assert self.follower.index.state() == self.controller.index.state()
        topics = self.image.topics
        assert topics.partition_count == sum(len(t.partitions) for t in topics)
        assert list(topics.by_name) == [t.name for t in topics.by_id.values()]
        for topic in topics:
            for partition in topic.partitions.values():
                self._check_partition(topic, partition)

    def check_index(self) -> None:
        """The indexes say what looking at every partition says."""
        index = self.controller.index
        partitions = {
            (topic.topic_id, i): p
            for topic in self.image.topics
            for i, p in topic.partitions.items()
        }

        def those(wanted: Any) -> list[Any]:
            return sorted(key for key, p in partitions.items() if wanted(p))

        for broker_id in BROKERS:
            assert index.in_isr(broker_id) == those(lambda p, b=broker_id: b in p.isr)
            assert index.in_elr(broker_id) == those(lambda p, b=broker_id: b in p.elr)
            leads = bool(those(lambda p, b=broker_id: p.leader == b))
            assert index.leads_any(broker_id) == leads
            for number in range(3):
                chosen = directory(broker_id, number)
                assert index.in_directory(chosen) == those(lambda p, d=chosen: d in p.directories)
        assert index.without_leader() == those(lambda p: p.leader == NO_LEADER)
        assert sorted(index.reassigning) == those(lambda p: p.adding or p.removing)
        assert sorted(index.imbalanced) == those(lambda p: p.leader != p.replicas[0])
        owners = {d: b.broker_id for b in self.image.brokers.values() for d in b.directories}
        assert index.directory_owner == owners
        assert set(index.registration_offsets) == set(self.image.brokers)
        named = {t.name: t.name.replace(".", "_") for t in self.image.topics}
        for name in NAMES:
            unified = name.replace(".", "_")
            colliding = [n for n, u in named.items() if u == unified and ("_" in u)]
            assert index.colliding_topic(name) == (min(colliding) if colliding else None)

    def _check_partition(self, topic: Any, p: Any) -> None:
        shown = f"{topic.name}: {p}"
        replicas = set(p.replicas)
        assert len(replicas) == len(p.replicas) == len(p.directories), shown
        for part in (p.isr, p.elr, p.adding, p.removing):
            assert len(set(part)) == len(part), shown
            assert set(part) <= replicas, shown
        assert not set(p.isr) & set(p.elr), shown
        assert self.elr or not p.elr, shown
        if p.leader == NO_LEADER:
            assert self.elr or p.isr, shown
        else:
            assert p.leader in p.isr, shown
            assert not self.image.brokers[p.leader].fenced, shown
        # Giving a reassignment up uncleanly may leave a fenced replica as the only one in sync.
        if self.elr and not self.controller.state.unclean_election_enabled(topic.name):
            assert not [b for b in p.isr if self.image.brokers[b].fenced], shown


FEATURES = {
    "elr": None,
    "no elr": {"metadata.version": 33, "group.version": 1},
    "3.9": {"metadata.version": 21},
    "3.4": {"metadata.version": 8},
}


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("seed", range(8))
def test_a_controller_is_what_its_log_says(features: str, seed: int) -> None:
    history = History(seed, FEATURES[features])
    for number in range(STEPS):
        epochs = {
            (t.topic_id, i): (p.leader_epoch, p.partition_epoch)
            for t in history.image.topics
            for i, p in t.partitions.items()
        }
        action = history.step()
        try:
            history.check()
            if action != "_lose_uncommitted":
                for (topic_id, index), (leader, partition) in epochs.items():
                    topic = history.image.topics.by_id.get(topic_id)
                    if topic is not None:
                        now = topic.partitions[index]
                        assert now.leader_epoch >= leader
                        assert now.partition_epoch >= partition
            if number % 7 == 0:
                history.check_index()
            if number % 20 == 0:
                _check_snapshot(history)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, step {number} {action}: {error}") from error
    assert bool(history.cordoned) is history.image.features.metadata_version.cordoned_log_dirs


def _check_snapshot(history: History) -> None:
    loaded = Controller(history.config, SeededRandom(3))
    records = [record for record, _ in history.image.to_records()]
    loaded.load(records, len(history.log) - 1)
    assert loaded.image == history.image
    loaded.index.registration_offsets = dict(history.controller.index.registration_offsets)
    assert loaded.index.state() == history.controller.index.state()


@pytest.mark.parametrize("seed", range(4))
def test_handling_a_request_changes_nothing_before_its_records_are_replayed(seed: int) -> None:
    history = History(seed, None)
    before: dict[str, Any] = {}

    original = history.controller.handle

    def handle(request: Any, context: Any, now_ms: int) -> Any:
        before["image"] = history.image.to_records()
        before["index"] = repr(history.controller.index.state())
        result = original(request, context, now_ms)
        assert history.image.to_records() == before["image"]
        assert repr(history.controller.index.state()) == before["index"]
        return result

    history.controller.handle = handle  # type: ignore[method-assign]
    for _ in range(60):
        history.step()
    assert before


def test_one_seed_gives_one_history() -> None:
    logs = []
    for _ in range(2):
        history = History(5, None)
        for _ in range(80):
            history.step()
        logs.append([repr(pair) for pair in history.log])
    assert logs[0] == logs[1]
