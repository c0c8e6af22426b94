"""A random dialogue with Kafka's controller and kwire's, step by step (needs a JVM).

`KWIRE_SEED` and `KWIRE_STEPS` choose another one. Every answer is compared, in the end the metadata
logs. Brokers exist only as registrations; topics are placed by the requests, since Kafka's own
placement is random.
"""

from __future__ import annotations

import os
import pathlib
import random
from typing import Any

import pytest

from kwire.kraft.controller.partition_change import PartitionChange
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.kraft.images.topics import NO_LEADER
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import decode_record
from tests.support.admin_scenario import Connection
from tests.support.controller_compare import Side, is_kafkas_own, record_runs
from tests.support.controllers import ControllerBench, directory, make_config
from tests.support.kafka import running_kafka

CLUSTER_ID = "a3dpcmUtcGVlci1rYWZrYQ"
BROKERS = (101, 102, 103, 104)
NAMES = ("alpha", "beta", "gam.ma", "gam_ma", "delta")
SESSION_MS = 600_000


class KafkaFailed(Exception):
    """Kafka's controller answered UNKNOWN_SERVER_ERROR: a fault of its own, not to be followed."""


def kafkas_elr(change: Any) -> None:
    """`PartitionChange._populate_elr` without what kwire does better.

    Kafka 4.4 leaves replicas that a reassignment took away among the eligible leaders. When such a
    broker is given the partition again, empty, it may be elected cleanly.
    """
    if not change._elr_enabled:
        return
    if len(change.isr) >= change._min_isr:
        change._elr = []
        return
    candidates = sorted({*change._elr, *change._partition.isr})
    gone = (*change.isr, *change.unclean_shutdown_replicas)
    change._elr = [replica for replica in candidates if replica not in gone]


class Dialogue:
    """One history, told to both; what is chosen comes from kwire's side, ids from each's own."""

    def __init__(self, connection: Connection, seed: int) -> None:
        self.kafka = connection
        self.chance = random.Random(seed)
        config = make_config(
            cluster_id=CLUSTER_ID, session_timeout_ms=SESSION_MS, has_authorizer=True
        )
        self.bench = ControllerBench(config=config)
        self.bench.call(m.ControllerRegistrationRequest(controller_id=1, incarnation_id=b"i" * 16))
        self.kafkas, self.ours = Side(), Side()
        self.epochs: dict[int, tuple[int, int]] = {}  # broker id -> (Kafka's, kwire's)
        self.ids: dict[str, tuple[bytes, bytes]] = {}

    def ask(self, version: int, build: Any) -> tuple[Any, Any]:
        """Send `build(0)` to Kafka and `build(1)` to kwire; both answers, which must be equal."""
        requests = build(0), build(1)
        theirs = self.kafka.call(version, requests[0])
        if getattr(theirs, "error_code", 0) == -1:
            raise KafkaFailed
        mine = self.bench.call(requests[1], version)
        self.kafkas.learn(requests[0], theirs)
        self.ours.learn(requests[1], mine)
        shown = self.kafkas.plain(theirs), self.ours.plain(mine)
        assert shown[0] == shown[1], f"{requests[1]}\n Kafka {shown[0]}\n kwire {shown[1]}"
        return theirs, mine

    def step(self) -> None:
        actions = (
            self.register, self.beat, self.beat, self.beat, self.create, self.create, self.delete,
            self.grow, self.isr, self.isr, self.isr, self.isr, self.move, self.elect, self.set,
            self.assign, self.unregister,
        )  # fmt: skip
        self.chance.choice(actions)()

    def epoch(self, broker_id: int, side: int) -> int:
        return self.epochs.get(broker_id, (-1, -1))[side]

    def topic_id(self, name: str, side: int) -> bytes:
        return self.ids.get(name, (b"\x09" * 16, b"\x09" * 16))[side]

    def register(self) -> None:
        broker_id = self.chance.choice(BROKERS)
        life, previous = self.chance.randrange(1, 3), self.chance.random() < 0.5
        count = 2 if broker_id == 104 else 1
        rack = self.chance.choice((None, "a"))

        def build(side: int) -> Any:
            shape = m.BrokerRegistrationRequest
            return shape(
                broker_id=broker_id, cluster_id=CLUSTER_ID,
                incarnation_id=b"life%04d%08d" % (broker_id, life), rack=rack,
                listeners=[
                    shape.Listener(name="PLAINTEXT", host="h", port=1, security_protocol=0)
                ],
                features=[
                    shape.Feature(name=n, min_supported_version=low, max_supported_version=high)
                    for n, (low, high) in SUPPORTED_FEATURES.items()
                ],
                log_dirs=[directory(broker_id, n) for n in range(count)],
                previous_broker_epoch=self.epoch(broker_id, side) if previous else -1,
            )  # fmt: skip

        theirs, mine = self.ask(4, build)
        if mine.error_code == 0:
            self.epochs[broker_id] = (theirs.broker_epoch, mine.broker_epoch)

    def beat(self) -> None:
        broker_id = self.chance.choice(BROKERS)
        fence = self.chance.random() < 0.15
        caught_up = self.chance.random() < 0.9
        offline = []
        if broker_id == 104 and self.chance.random() < 0.05:
            offline = [directory(104, self.chance.randrange(2))]
        cordoned = None
        if self.chance.random() < 0.3:
            cordoned = [directory(broker_id, n) for n in range(2) if self.chance.random() < 0.3]
        self.ask(2, lambda side: m.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=self.epoch(broker_id, side), want_fence=fence,
            current_metadata_offset=1 << 40 if caught_up else 0, offline_log_dirs=offline,
            cordoned_log_dirs=cordoned,
        ))  # fmt: skip

    def create(self) -> None:
        name = self.chance.choice(NAMES)
        factor = self.chance.randrange(1, 4)
        placed = [self.chance.sample(BROKERS, factor) for _ in range(self.chance.randrange(1, 4))]
        configs = {}
        if self.chance.random() < 0.4:
            configs["min.insync.replicas"] = self.chance.choice("123")
        if self.chance.random() < 0.3:
            configs["unclean.leader.election.enable"] = self.chance.choice(("true", "false"))
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1,
            assignments=[
                shape.CreatableReplicaAssignment(partition_index=i, broker_ids=ids)
                for i, ids in enumerate(placed)
            ],
            configs=[shape.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
        )  # fmt: skip
        theirs, mine = self.ask(7, lambda side: shape(topics=[topic], timeout_ms=9000))
        if mine.topics[0].error_code == 0:
            self.ids[name] = (theirs.topics[0].topic_id, mine.topics[0].topic_id)

    def has_eligible(self, name: str) -> bool:
        """Whether a partition of the topic, or of any for "", has eligible leaders out of sync.

        When those go with the topic or by a ClearElrRecord, Kafka 4.4 leaves them in its index:
        later it fails, or repeats a change.
        """
        topics = self.bench.image.topics.by_name
        chosen = topics.values() if not name else [topics[name]] if name in topics else []
        return any(p.elr for topic in chosen for p in topic.partitions.values())

    def delete(self) -> None:
        name = self.chance.choice(NAMES)
        if self.chance.random() < 0.4 and not self.has_eligible(name):
            shape = m.DeleteTopicsRequest
            self.ask(6, lambda side: shape(
                topics=[shape.DeleteTopicState(topic_id=self.topic_id(name, side))],
                timeout_ms=9000,
            ))  # fmt: skip

    def grow(self) -> None:
        name = self.chance.choice(NAMES)
        topic = self.bench.image.topics.by_name.get(name)
        have = 1 if topic is None else len(topic.partitions)
        ids = self.chance.sample(BROKERS, self.chance.randrange(1, 4))
        factors = {} if topic is None else {len(p.replicas) for p in topic.partitions.values()}
        if len(factors) > 1:
            return  # Kafka compares with whichever partition its map gives first
        shape = m.CreatePartitionsRequest
        assignment = shape.CreatePartitionsAssignment(broker_ids=ids)
        wanted = shape.CreatePartitionsTopic(name=name, count=have + 1, assignments=[assignment])
        self.ask(3, lambda side: shape(topics=[wanted], timeout_ms=9000))

    def some_partition(self) -> tuple[Any, int, Any] | None:
        topics = self.bench.image.topics.by_name
        if not topics:
            return None
        topic = topics[self.chance.choice(sorted(topics))]
        index = self.chance.choice(sorted(topic.partitions))
        return topic, index, topic.partitions[index]

    def isr(self) -> None:
        found = self.some_partition()
        if found is None or found[2].leader == NO_LEADER:
            return
        topic, index, p = found
        isr = [r for r in p.replicas if r == p.leader or self.chance.random() < 0.7]
        behind = self.chance.random() < 0.1
        recovery = self.chance.choice((p.leader_recovery_state, 0))
        shape = m.AlterPartitionRequest

        def build(side: int) -> Any:
            states = [shape.BrokerState(broker_id=b, broker_epoch=self.epoch(b, side)) for b in isr]
            part = shape.PartitionData(
                partition_index=index, leader_epoch=p.leader_epoch,
                partition_epoch=p.partition_epoch - behind, leader_recovery_state=recovery,
                new_isr_with_epochs=states,
            )  # fmt: skip
            data = shape.TopicData(topic_id=self.topic_id(topic.name, side), partitions=[part])
            return shape(broker_id=p.leader, broker_epoch=self.epoch(p.leader, side), topics=[data])

        self.ask(3, build)

    def move(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, _ = found
        replicas = None
        if self.chance.random() < 0.75:
            replicas = self.chance.sample(BROKERS, self.chance.randrange(1, 4))
        keep = self.chance.random() < 0.3
        shape = m.AlterPartitionReassignmentsRequest
        part = shape.ReassignablePartition(partition_index=index, replicas=replicas)
        wanted = shape.ReassignableTopic(name=topic.name, partitions=[part])
        self.ask(1, lambda side: shape(topics=[wanted], allow_replication_factor_change=not keep))
        self.ask(0, lambda side: m.ListPartitionReassignmentsRequest(topics=None))

    def elect(self) -> None:
        found = self.some_partition()
        if found is not None:
            kind = self.chance.choice((0, 1))
            shape = m.ElectLeadersRequest
            wanted = shape.TopicPartitions(topic=found[0].name, partitions=[found[1]])
            self.ask(2, lambda side: shape(election_type=kind, topic_partitions=[wanted]))

    def set(self) -> None:
        name = self.chance.choice((*NAMES, ""))
        kind = 2 if name else 4
        key, value = self.chance.choice((
            ("min.insync.replicas", "2"), ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "true"), ("unclean.leader.election.enable", "false"),
        ))  # fmt: skip
        operation = self.chance.choice((0, 0, 1))
        if key == "min.insync.replicas" and self.has_eligible(name):
            return
        shape = m.IncrementalAlterConfigsRequest
        op = shape.AlterableConfig(name=key, config_operation=operation, value=value)
        resource = shape.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[op])
        self.ask(1, lambda side: shape(resources=[resource]))

    def assign(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, _ = found
        broker_id = self.chance.choice(BROKERS)
        chosen = directory(broker_id, self.chance.randrange(3))
        shape = m.AssignReplicasToDirsRequest

        def build(side: int) -> Any:
            part = shape.PartitionData(partition_index=index)
            data = shape.TopicData(topic_id=self.topic_id(topic.name, side), partitions=[part])
            wanted = shape.DirectoryData(id=chosen, topics=[data])
            epoch = self.epoch(broker_id, side)
            return shape(broker_id=broker_id, broker_epoch=epoch, directories=[wanted])

        self.ask(0, build)

    def unregister(self) -> None:
        if self.chance.random() < 0.1:
            broker_id = self.chance.choice(BROKERS)
            self.ask(0, lambda side: m.UnregisterBrokerRequest(broker_id=broker_id))


def _metadata_log(folder: pathlib.Path) -> list[Any]:
    from kwire.protocol.records import iterate_headers, read_batch

    records = []
    for file in sorted(folder.glob("*.log")):
        buffer = file.read_bytes()
        for position, header in iterate_headers(buffer):
            if not header.is_control:
                values = [bytes(r.value or b"") for r in read_batch(buffer, position)]
                records += [decode_record(value) for value in values]
    return records


def test_both_controllers_tell_one_history(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartitionChange, "_populate_elr", kafkas_elr)
    seed = int(os.environ.get("KWIRE_SEED", "1"))
    steps = int(os.environ.get("KWIRE_STEPS", "400"))
    properties = {
        "broker.session.timeout.ms": str(SESSION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.leader.rebalance.enable": "false",
    }
    with running_kafka(tmp_path, properties, controller_only=True) as bootstrap:
        host, _, port = bootstrap.rpartition(":")
        dialogue = Dialogue(Connection(f"{host}:{int(port) + 1}"), seed)
        for number in range(steps):
            try:
                dialogue.step()
            except KafkaFailed:
                break
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {number}: {error}") from error
        dialogue.kafka.close()
    theirs = _metadata_log(tmp_path / "node-1" / "data" / "__cluster_metadata-0")
    theirs = [pair for pair in theirs if not is_kafkas_own(pair[0])]
    ours = [pair for pair in dialogue.bench.log if not is_kafkas_own(pair[0])]
    for expected, got in zip(record_runs(theirs, Side()), record_runs(ours, Side())):
        assert got == expected
    assert len(ours) == len(theirs)
