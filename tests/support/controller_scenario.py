"""Requests to a controller, one after the other, as a dialogue.

`scenario()` yields (API version, request) and is sent the response: `record_answers.py` has it with
a controller-only Apache Kafka, the golden test with kwire's `Controller`. It learns broker epochs
and topic ids from the answers, so that both can follow their own. Brokers are only registered
here, none exists; where Kafka would choose at random, the requests leave it no choice.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.protocol import messages as m
from kwire.protocol import uuids

CLUSTER_ID = "a3dpcmUtcGVlci1rYWZrYQ"
Step = tuple[int, Any]
Dialogue = Generator[Step, Any, None]

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
FAR = 1 << 40


def directory(number: int) -> bytes:
    return b"directory-%06d" % number


def incarnation(number: int) -> bytes:
    return b"incarnat-%07d" % number


class Cluster:
    """What the dialogue has learnt."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.topics: dict[str, bytes] = {}


def registration(broker_id: int, life: int = 1, **changes: Any) -> Any:
    shape = m.BrokerRegistrationRequest
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": incarnation(broker_id * 100 + life),
        "listeners": [
            shape.Listener(
                name="PLAINTEXT", host="127.0.0.1", port=9000 + broker_id, security_protocol=0
            )
        ],
        "features": [
            shape.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        "rack": None,
        "log_dirs": [directory(broker_id)],
        "previous_broker_epoch": -1,
    }
    return shape(**{**fields, **changes})


def heartbeat(cluster: Cluster, broker_id: int, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "broker_epoch": cluster.epochs.get(broker_id, 7),
        "current_metadata_offset": FAR,
        "cordoned_log_dirs": [],
    }
    return m.BrokerHeartbeatRequest(**{**fields, **changes})


def register(cluster: Cluster, broker_id: int, life: int = 1, **changes: Any) -> Dialogue:
    """Register a broker and have it unfenced."""
    answer = yield 4, registration(broker_id, life, **changes)
    cluster.epochs[broker_id] = answer.broker_epoch
    yield 2, heartbeat(cluster, broker_id)


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    assigned: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> Any:
    shape = m.CreateTopicsRequest
    return shape.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            shape.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assigned or {}).items()
        ],
        configs=[
            shape.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(cluster: Cluster, *topics: Any, version: int = 7, **fields: Any) -> Dialogue:
    request = m.CreateTopicsRequest(topics=list(topics), timeout_ms=10000, **fields)
    answer = yield version, request
    if not fields.get("validate_only"):
        for created in answer.topics:
            if created.error_code == 0:
                cluster.topics[created.name] = created.topic_id


def scenario() -> Dialogue:
    cluster = Cluster()
    for part in (
        registrations,
        heartbeats,
        creating_topics,
        deleting_topics,
        growing_topics,
        altering_configs,
        replacing_configs,
        leaders_and_isr,
        new_lives,
        reassigning,
        electing,
        directories,
        quotas,
        credentials,
        acls,
        features,
        controllers,
        shutting_down,
        unregistering,
        producer_ids,
    ):
        yield from part(cluster)


def registrations(cluster: Cluster) -> Dialogue:
    """Every reason to refuse a broker, and one that is taken."""
    feature = m.BrokerRegistrationRequest.Feature
    yield 4, registration(101, cluster_id="wrong")
    yield 4, registration(101, log_dirs=[])
    yield 4, registration(101, log_dirs=[uuids.ZERO])
    yield 4, registration(101, log_dirs=[bytes(15) + b"\x63"])
    yield 4, registration(101, log_dirs=[directory(1), directory(1)])
    yield 4, registration(101, features=[])
    short = [feature(name="metadata.version", min_supported_version=7, max_supported_version=20)]
    yield 4, registration(101, features=short)
    alone = [feature(name="metadata.version", min_supported_version=7, max_supported_version=33)]
    yield 4, registration(101, features=alone)
    yield 4, registration(101, is_migrating_zk_broker=True)
    answer = yield 4, registration(101)
    cluster.epochs[101] = answer.broker_epoch
    yield 4, registration(102, log_dirs=[directory(101)])
    yield 4, registration(101, rack="again")
    yield 4, registration(101, life=2)
    answer = yield 3, registration(101, life=3)
    cluster.epochs[101] = answer.broker_epoch


def heartbeats(cluster: Cluster) -> Dialogue:
    """Fencing and unfencing; a broker whose session is valid keeps its id."""
    yield 2, heartbeat(cluster, 999)
    yield 2, heartbeat(cluster, 101, broker_epoch=1)
    yield 2, heartbeat(cluster, 101, current_metadata_offset=0)
    yield 2, heartbeat(cluster, 101, want_fence=True)
    yield 1, heartbeat(cluster, 101, cordoned_log_dirs=None)
    yield 2, heartbeat(cluster, 101)
    yield 4, registration(101, life=4)
    yield 4, registration(101, life=3, rack="r1")
    yield 2, heartbeat(cluster, 101, want_fence=True)
    yield 2, heartbeat(cluster, 101)
    yield 0, heartbeat(cluster, 101, cordoned_log_dirs=None)
    yield from register(cluster, 102)
    yield from register(cluster, 103)
    answer = yield 4, registration(104)
    cluster.epochs[104] = answer.broker_epoch


def creating_topics(cluster: Cluster) -> Dialogue:
    """Codes, texts and places of CreateTopics."""
    one = {0: [101]}
    yield from create(cluster, topic("one", assigned=one), topic("two", 2, 1, assigned=one))
    bad_names = ["", ".", "..", "a b", "a" * 250, "käse", "__cluster_metadata", "a/b"]
    yield from create(cluster, *(topic(name, 1, 1) for name in bad_names))
    yield from create(cluster, topic("one", 1, 1), topic("twice", 1, 1), topic("twice", 1, 1))
    yield from create(
        cluster,
        topic("p0", 0, 1),
        topic("p-2", -2, 1),
        topic("r0", 1, 0),
        topic("r-2", 1, -2),
        topic("both0", 0, 0),
        topic("r9", 1, 9),
        topic("r9p9", 9, 9),
    )
    yield from create(
        cluster,
        topic("m1", 2, -1, assigned=one),
        topic("m2", -1, 1, assigned=one),
        topic("m3", assigned={0: []}),
        topic("m4", assigned={0: [101, 101]}),
        topic("m5", assigned={0: [101, 777]}),
        topic("m6", assigned={0: [101], 2: [101]}),
        topic("m7", assigned={1: [101]}),
        topic("m8", assigned={0: [101, 102], 1: [101]}),
        topic("m9", assigned={0: [104]}),
        topic("m10", assigned={0: [104, 101]}),
        topic("m11", assigned={0: [103, 102, 101], 1: [101, 102, 103]}),
    )
    yield from create(
        cluster,
        topic("c1", assigned=one, no_such_config="1"),
        topic("c2", assigned=one, retention_ms="abc"),
        topic("c3", assigned=one, retention_ms=None),
        topic("c4", assigned=one, retention_ms=None, segment_ms=None),
        topic("c5", assigned=one, retention_ms="1000", min_insync_replicas="2"),
        topic("c6", assigned=one, cleanup_policy="compact,delete", segment_bytes="1048576"),
        topic("c7", assigned=one, min_insync_replicas="0"),
    )
    yield from create(cluster, topic("x.y", assigned=one), topic("x_y", assigned=one))
    yield from create(cluster, topic("x_y", assigned=one), topic("x.y.z", assigned=one))
    yield from create(cluster, topic("x_y.z", assigned=one), topic("x_y_z", assigned=one))
    yield from create(cluster, topic("dry", assigned=one), topic("dry2", 0, 1), validate_only=True)
    yield from create(cluster, topic("dry", assigned=one), version=2)
    yield from create(cluster, topic("v4", assigned=one), topic("v4b", 1, 77), version=4)
    yield from create(cluster, topic("many", 10001, 1))
    yield from create(cluster, topic("many", 6000, 1), topic("many2", 6000, 1))
    yield from create(cluster)


def deleting_topics(cluster: Cluster) -> Dialogue:
    """By name and by id."""
    shape = m.DeleteTopicsRequest
    state = shape.DeleteTopicState
    yield 1, shape(timeout_ms=9000, topic_names=["c5", "nosuch", "dry", "dry"])
    yield 5, shape(timeout_ms=9000, topic_names=["v4", "nosuch", ""])
    unknown = b"\x01" * 16
    yield (
        6,
        shape(
            timeout_ms=9000,
            topics=[
                state(name="c6"),
                state(topic_id=cluster.topics["m10"]),
                state(topic_id=unknown),
                state(name="nosuch"),
                state(),
                state(name="one", topic_id=cluster.topics["one"]),
            ],
        ),
    )
    yield 6, shape(timeout_ms=9000, topics=[state(topic_id=unknown), state(topic_id=unknown)])
    yield (
        6,
        shape(timeout_ms=9000, topics=[state(name="x.y"), state(topic_id=cluster.topics["x.y"])]),
    )
    yield 6, shape(timeout_ms=9000, topics=[state(name="x.y"), state(name="x.y")])
    yield 6, shape(timeout_ms=9000, topics=[])
    yield 6, shape(timeout_ms=0, topics=[state(name="one"), state(topic_id=unknown)])
    yield 1, shape(timeout_ms=0, topic_names=["one"])
    none = m.CreateTopicsRequest(topics=[topic("late", assigned={0: [101]})], timeout_ms=0)
    yield 7, none
    yield from create(cluster, topic("x_y", assigned={0: [101]}))


def growing_topics(cluster: Cluster) -> Dialogue:
    """CreatePartitions."""
    shape = m.CreatePartitionsRequest
    assignment = shape.CreatePartitionsAssignment

    def grow(name: str, count: int, *replicas: list[int]) -> Any:
        return shape.CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=[assignment(broker_ids=ids) for ids in replicas] if replicas else None,
        )

    yield from create(cluster, topic("grow", assigned={0: [101, 102]}), topic("dry", 1, 3))
    yield 3, shape(timeout_ms=9000, topics=[grow("nosuch", 2), grow("grow", 1), grow("grow2", 1)])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 0)])
    yield 3, shape(timeout_ms=0, topics=[grow("grow", 0), grow("nosuch", 3)])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 1)])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 3, [101, 102])])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 2, [101])])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 2, [101, 101])])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 2, [101, 777])])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 2, [])])
    yield 3, shape(timeout_ms=9000, topics=[grow("m9", 2, [104])])
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 2, [102, 101])], validate_only=True)
    yield 0, shape(timeout_ms=9000, topics=[grow("grow", 3, [102, 101], [103, 101])])
    yield (
        3,
        shape(timeout_ms=9000, topics=[grow("grow", 5, [103, 104]), grow("grow", 6, [102, 101])]),
    )
    yield 3, shape(timeout_ms=9000, topics=[grow("grow", 4, [103, 104])])
    yield 3, shape(timeout_ms=9000, topics=[grow("one", 20000)])


def altering_configs(cluster: Cluster) -> Dialogue:
    """IncrementalAlterConfigs at the controller."""
    shape = m.IncrementalAlterConfigsRequest

    def resource(kind: int, name: str, *ops: tuple[str, int, str | None]) -> Any:
        return shape.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                shape.AlterableConfig(name=key, config_operation=op, value=value)
                for key, op, value in ops
            ],
        )

    set_, delete, append, subtract = range(4)
    yield (
        1,
        shape(
            resources=[
                resource(TOPIC, "one", ("retention.ms", set_, "1000"), ("segment.ms", set_, "9")),
                resource(TOPIC, "nosuch", ("retention.ms", set_, "1000")),
                resource(TOPIC, "", ("retention.ms", set_, "1000")),
                resource(TOPIC, "a b", ("retention.ms", set_, "1000")),
                resource(99, "one", ("retention.ms", set_, "1000")),
                resource(LOGGER, "1", ("root", set_, "NOPE")),
            ]
        ),
    )
    yield 1, shape(resources=[resource(TOPIC, "one", ("retention.ms", set_, "1000"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("cleanup.policy", append, "compact"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("cleanup.policy", append, "compact"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("cleanup.policy", subtract, "delete"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("retention.ms", append, "5"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("nosuch", append, "5"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("nosuch", delete, None))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("retention.ms", delete, None))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("retention.ms", set_, "x"))])
    yield 1, shape(resources=[resource(TOPIC, "one", ("flush.ms", set_, "77"))], validate_only=True)
    yield 1, shape(resources=[resource(TOPIC, "m11", ("min.insync.replicas", set_, "2"))])
    yield 1, shape(resources=[resource(TOPIC, "m11", ("min.insync.replicas", set_, "2"))])
    yield 1, shape(resources=[resource(BROKER, "", ("min.insync.replicas", delete, None))])
    yield 1, shape(resources=[resource(BROKER, "", ("min.insync.replicas", set_, "1"))])
    yield 1, shape(resources=[resource(BROKER, "101", ("min.insync.replicas", set_, "1"))])
    yield 1, shape(resources=[resource(BROKER, "101", ("log.cleaner.threads", set_, "2"))])
    yield 1, shape(resources=[resource(BROKER, "101", ("log.cleaner.threads", set_, "2"))])
    yield 1, shape(resources=[resource(BROKER, "777", ("log.cleaner.threads", set_, "2"))])
    yield 1, shape(resources=[resource(BROKER, "abc", ("log.cleaner.threads", set_, "2"))])
    yield 1, shape(resources=[resource(BROKER, "-1", ("log.cleaner.threads", set_, "2"))])
    yield 1, shape(resources=[resource(METRICS, "m", ("interval.ms", set_, "1000"))])
    yield 1, shape(resources=[resource(METRICS, "m", ("interval.ms", set_, "1"))])
    yield 1, shape(resources=[resource(METRICS, "m", ("nosuch", set_, "1"))])
    yield 1, shape(resources=[resource(GROUP, "g", ("consumer.session.timeout.ms", set_, "50000"))])
    yield 1, shape(resources=[resource(GROUP, "", ("consumer.session.timeout.ms", set_, "50000"))])
    yield 1, shape(resources=[resource(GROUP, "g", ("nosuch", set_, "50000"))])
    twice = resource(TOPIC, "one", ("flush.ms", set_, "77"))
    yield 0, shape(resources=[twice])


def replacing_configs(cluster: Cluster) -> Dialogue:
    """AlterConfigs at the controller."""
    shape = m.AlterConfigsRequest

    def resource(kind: int, name: str, **configs: str) -> Any:
        return shape.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                shape.AlterableConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )

    yield 2, shape(resources=[resource(TOPIC, "one", retention_ms="5000")])
    yield 2, shape(resources=[resource(TOPIC, "one", retention_ms="x")])
    yield 2, shape(resources=[resource(TOPIC, "nosuch", retention_ms="5")])
    yield 1, shape(resources=[resource(TOPIC, "one")], validate_only=True)
    yield 0, shape(resources=[resource(TOPIC, "one")])
    yield 2, shape(resources=[resource(BROKER, "101")])
    yield 2, shape(resources=[resource(BROKER, "")])
    yield 2, shape(resources=[resource(TOPIC, "m11")])


def leaders_and_isr(cluster: Cluster) -> Dialogue:
    """AlterPartition, and what fencing does to leaders, ISR and eligible leader replicas."""
    yield from create(
        cluster,
        topic("isr", assigned={0: [101, 102, 103]}, min_insync_replicas="2"),
        topic("unclean", assigned={0: [102, 103]}, unclean_leader_election_enable="true"),
    )
    shape = m.AlterPartitionRequest

    def alter(
        name: str, index: int, leader: int, isr: list[int], version: int = 3, **changes: Any
    ) -> Step:
        fields: dict[str, Any] = {
            "partition_index": index,
            "leader_epoch": 0,
            "partition_epoch": 0,
            "leader_recovery_state": 0,
        }
        fields.update(changes)
        if version >= 3:
            fields["new_isr_with_epochs"] = [
                shape.BrokerState(broker_id=b, broker_epoch=cluster.epochs.get(b, -1)) for b in isr
            ]
        else:
            fields["new_isr"] = isr
        topic_id = cluster.topics.get(name, b"\x05" * 16)
        return version, shape(
            broker_id=leader,
            broker_epoch=cluster.epochs.get(leader, 1),
            topics=[shape.TopicData(topic_id=topic_id, partitions=[shape.PartitionData(**fields)])],
        )

    yield alter("isr", 0, 999, [101])
    yield alter("nosuch", 0, 101, [101])
    yield alter("isr", 7, 101, [101])
    yield alter("isr", 0, 101, [101], leader_epoch=5)
    yield alter("isr", 0, 101, [101], partition_epoch=5)
    yield alter("isr", 0, 102, [102])
    yield alter("isr", 0, 101, [102])
    yield alter("isr", 0, 101, [101, 101])
    yield alter("isr", 0, 101, [101, 104])
    yield alter("isr", 0, 101, [101, 102], leader_recovery_state=1)
    yield alter("isr", 0, 101, [101], leader_recovery_state=1)
    yield alter("isr", 0, 101, [101, 102])
    yield alter("isr", 0, 101, [101, 102], partition_epoch=0)
    yield alter("isr", 0, 101, [101], partition_epoch=1)
    yield alter("isr", 0, 101, [102, 101], version=2, partition_epoch=2)
    yield alter("isr", 0, 101, [101], partition_epoch=3)
    yield 2, heartbeat(cluster, 101, want_fence=True)
    yield alter("isr", 0, 102, [102], leader_epoch=1, partition_epoch=4)
    yield 2, heartbeat(cluster, 102, want_fence=True)
    yield 2, heartbeat(cluster, 103, want_fence=True)
    yield 2, heartbeat(cluster, 103)
    yield 2, heartbeat(cluster, 101)
    yield 2, heartbeat(cluster, 102)
    # While its session lasts, nobody else may be 102.
    yield 4, registration(102, life=2)


def new_lives(cluster: Cluster) -> Dialogue:
    """A broker that nothing was heard of comes back: stopped cleanly, or not."""
    answer = yield 4, registration(106)
    cluster.epochs[106] = answer.broker_epoch
    answer = yield 4, registration(106, life=2, previous_broker_epoch=answer.broker_epoch)
    cluster.epochs[106] = answer.broker_epoch
    yield 4, registration(106, life=3)


def reassigning(cluster: Cluster) -> Dialogue:
    """Moves, their end and their cancellation."""
    yield from create(
        cluster, topic("move", assigned={0: [101, 102], 1: [102, 101], 2: [101, 102]})
    )
    shape = m.AlterPartitionReassignmentsRequest

    def move(version: int, name: str, *moves: tuple[int, list[int] | None], **fields: Any) -> Step:
        return version, shape(
            topics=[
                shape.ReassignableTopic(
                    name=name,
                    partitions=[
                        shape.ReassignablePartition(partition_index=index, replicas=replicas)
                        for index, replicas in moves
                    ],
                )
            ],
            **fields,
        )

    listing = m.ListPartitionReassignmentsRequest
    yield move(1, "nosuch", (0, [101]))
    yield move(1, "move", (9, [101]))
    yield move(1, "move", (0, None))
    yield move(1, "move", (0, []))
    yield move(1, "move", (0, [101, 101]))
    yield move(1, "move", (0, [101, 777]))
    yield move(1, "move", (0, [101, -1]))
    yield move(1, "move", (0, [101]), allow_replication_factor_change=False)
    yield move(1, "move", (0, [101, 102]))
    yield move(1, "move", (0, [101, 103]), timeout_ms=0)
    yield move(0, "move", (0, [102, 103]), (1, [103, 101]), (2, [103, 104]))
    yield 0, listing(topics=None)
    wanted = listing.ListPartitionReassignmentsTopics
    yield 0, listing(topics=[wanted(name="move", partition_indexes=[0, 9]), wanted(name="no")])
    yield 0, listing(topics=[])
    yield move(1, "move", (0, [103, 102, 101]), allow_replication_factor_change=False)
    yield move(1, "move", (1, None))
    alter = m.AlterPartitionRequest
    leader = 101
    yield (
        3,
        alter(
            broker_id=leader,
            broker_epoch=cluster.epochs[leader],
            topics=[
                alter.TopicData(
                    topic_id=cluster.topics["move"],
                    partitions=[
                        alter.PartitionData(
                            partition_index=0,
                            leader_epoch=0,
                            partition_epoch=1,
                            new_isr_with_epochs=[
                                alter.BrokerState(broker_id=b, broker_epoch=cluster.epochs[b])
                                for b in (101, 102, 103)
                            ],
                        )
                    ],
                )
            ],
        ),
    )
    yield move(1, "move", (2, None))
    yield 0, listing(topics=None)


def electing(cluster: Cluster) -> Dialogue:
    """ElectLeaders."""
    yield from create(cluster, topic("elect", assigned={0: [102, 101], 1: [101, 102]}))
    shape = m.ElectLeadersRequest

    def elect(version: int, kind: int, *partitions: tuple[str, list[int]]) -> Step:
        return version, shape(
            election_type=kind,
            topic_partitions=[
                shape.TopicPartitions(topic=name, partitions=indexes)
                for name, indexes in partitions
            ],
        )

    yield elect(2, 0, ("elect", [0, 1, 9]), ("nosuch", [0]))
    yield elect(2, 1, ("elect", [0, 1]))
    late = [shape.TopicPartitions(topic="elect", partitions=[0])]
    yield 2, shape(topic_partitions=late, timeout_ms=0)
    yield elect(2, 7, ("elect", [0]))
    yield 2, heartbeat(cluster, 102, want_fence=True)
    yield elect(2, 0, ("elect", [0]))
    yield 2, heartbeat(cluster, 102)
    yield elect(2, 0, ("elect", [0]))
    alter = m.AlterPartitionRequest
    yield (
        3,
        alter(
            broker_id=101,
            broker_epoch=cluster.epochs[101],
            topics=[
                alter.TopicData(
                    topic_id=cluster.topics["elect"],
                    partitions=[
                        alter.PartitionData(
                            partition_index=0,
                            leader_epoch=1,
                            partition_epoch=1,
                            new_isr_with_epochs=[
                                alter.BrokerState(broker_id=b, broker_epoch=cluster.epochs[b])
                                for b in (101, 102)
                            ],
                        )
                    ],
                )
            ],
        ),
    )
    yield elect(1, 0, ("elect", [0]))
    yield 0, shape(topic_partitions=[shape.TopicPartitions(topic="elect", partitions=[0])])


def directories(cluster: Cluster) -> Dialogue:
    """Brokers with several log directories."""
    yield from register(cluster, 105, log_dirs=[directory(1051), directory(1052)], rack="east")
    yield from create(
        cluster, topic("dirs", assigned={0: [105, 101], 1: [105, 103], 2: [105, 102]})
    )
    shape = m.AssignReplicasToDirsRequest
    topic_id = cluster.topics["dirs"]

    def assign(directory_id: bytes, *indexes: int, **changes: Any) -> Step:
        fields: dict[str, Any] = {
            "broker_id": 105,
            "broker_epoch": cluster.epochs[105],
            "directories": [
                shape.DirectoryData(
                    id=directory_id,
                    topics=[
                        shape.TopicData(
                            topic_id=topic_id,
                            partitions=[
                                shape.PartitionData(partition_index=index) for index in indexes
                            ],
                        )
                    ],
                )
            ],
        }
        return 0, shape(**{**fields, **changes})

    yield assign(directory(1051), 0, 1, 9)
    yield assign(directory(1051), 0)
    yield assign(directory(1052), 2)
    yield assign(directory(1051), 0, broker_epoch=3)
    yield assign(
        directory(1051),
        0,
        broker_id=103,
        broker_epoch=cluster.epochs[103],
    )
    yield 2, heartbeat(cluster, 105, offline_log_dirs=[directory(1051)])
    yield 2, heartbeat(cluster, 105, offline_log_dirs=[directory(1051)])
    yield assign(directory(1059), 2)
    yield 2, heartbeat(cluster, 105, cordoned_log_dirs=[directory(1052)])
    yield 2, heartbeat(cluster, 105, cordoned_log_dirs=[directory(1052)])
    yield 2, heartbeat(cluster, 105, cordoned_log_dirs=None)
    yield 2, heartbeat(cluster, 105, cordoned_log_dirs=[])


def quotas(cluster: Cluster) -> Dialogue:
    """AlterClientQuotas."""
    shape = m.AlterClientQuotasRequest

    def entry(entity: Sequence[tuple[str, str | None]], **ops: float | None) -> Any:
        return shape.EntryData(
            entity=[shape.EntityData(entity_type=k, entity_name=n) for k, n in entity],
            ops=[
                shape.OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in ops.items()
            ],
        )

    user, client, ip = [("user", "u")], [("client-id", "c")], [("ip", "10.0.0.1")]
    yield 1, shape(entries=[entry(user, producer_byte_rate=1000.0, request_percentage=12.5)])
    yield 1, shape(entries=[entry(user, producer_byte_rate=1000.0)])
    yield 1, shape(entries=[entry(user + client, consumer_byte_rate=5.0)])
    yield 1, shape(entries=[entry([("user", None)], consumer_byte_rate=5.0)])
    yield 1, shape(entries=[entry(ip, connection_creation_rate=5.0)])
    yield 1, shape(entries=[entry(ip, producer_byte_rate=5.0)])
    yield 1, shape(entries=[entry(ip + user, connection_creation_rate=5.0)])
    yield 1, shape(entries=[entry([("ip", None)], connection_creation_rate=7.0)])
    yield 1, shape(entries=[entry([], producer_byte_rate=5.0)])
    yield 1, shape(entries=[entry([("group", "g")], producer_byte_rate=5.0)])
    yield 1, shape(entries=[entry([("user", "")], producer_byte_rate=5.0)])
    yield 1, shape(entries=[entry(user, nosuch=5.0)])
    yield 1, shape(entries=[entry(user, producer_byte_rate=-1.0)])
    yield 1, shape(entries=[entry(user, producer_byte_rate=1.5)])
    yield 1, shape(entries=[entry(user, producer_byte_rate=float("inf"))])
    yield 1, shape(entries=[entry(ip, connection_creation_rate=3e9)])
    yield 1, shape(entries=[entry(user, producer_byte_rate=7.0)], validate_only=True)
    yield 1, shape(entries=[entry(user, producer_byte_rate=None, consumer_byte_rate=None)])
    yield 0, shape(entries=[entry(user, producer_byte_rate=None)])
    yield 1, shape(entries=[entry([("ip", "no such host")], connection_creation_rate=1.0)])


def credentials(cluster: Cluster) -> Dialogue:
    """AlterUserScramCredentials."""
    shape = m.AlterUserScramCredentialsRequest

    def upsert(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
        return shape.ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=b"salt",
            salted_password=b"p" * (32 if mechanism == 1 else 64),
        )

    def delete(name: str, mechanism: int = 1) -> Any:
        return shape.ScramCredentialDeletion(name=name, mechanism=mechanism)

    yield 0, shape(upsertions=[upsert("a"), upsert("b", 2)])
    yield 0, shape(upsertions=[upsert("a"), upsert("a", 2)])
    yield 0, shape(upsertions=[upsert(""), upsert("x", 9), upsert("y", 0)])
    yield 0, shape(upsertions=[upsert("lo", 1, 4095), upsert("hi", 1, 16385)])
    yield 0, shape(upsertions=[upsert("hi", 1, 16384)])
    yield 0, shape(deletions=[delete("nosuch"), delete("a", 2), delete("b", 7)])
    yield 0, shape(deletions=[delete("a")], upsertions=[upsert("a")])
    yield 0, shape(deletions=[delete("a"), delete("b", 2)], upsertions=[upsert("c")])
    yield 0, shape()


def acls(cluster: Cluster) -> Dialogue:
    """CreateAcls and DeleteAcls."""
    shape = m.CreateAclsRequest

    def creation(**changes: Any) -> Any:
        fields = {
            "resource_type": 2,
            "resource_name": "t",
            "resource_pattern_type": 3,
            "principal": "User:u",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        return shape.AclCreation(**{**fields, **changes})

    yield 3, shape(creations=[creation(), creation()])
    yield 3, shape(creations=[creation()])
    yield 1, shape(creations=[creation(resource_name="v1")])
    yield (
        3,
        shape(
            creations=[
                creation(resource_type=4, resource_name="nope"),
                creation(resource_type=4, resource_name="kafka-cluster", operation=9),
                creation(resource_name=""),
                creation(principal="nocolon"),
                creation(host="10.0.0.0/8"),
                creation(host="10.0.0.0/99"),
                creation(host="bad/8"),
                creation(host=""),
                creation(resource_type=3, resource_name="g", resource_pattern_type=4),
                creation(permission_type=2, operation=2),
            ]
        ),
    )
    delete = m.DeleteAclsRequest

    def wanted(**changes: Any) -> Any:
        fields = {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }
        return delete.DeleteAclsFilter(**{**fields, **changes})

    yield 3, delete(filters=[wanted(resource_name_filter="nosuch")])
    yield 3, delete(filters=[wanted(host_filter="10.0.0.0/8")])
    yield (
        3,
        delete(
            filters=[
                wanted(resource_type_filter=3, resource_name_filter="gg", pattern_type_filter=2)
            ]
        ),
    )
    yield 3, delete(filters=[wanted(resource_type_filter=2), wanted(resource_type_filter=2)])
    yield 1, delete(filters=[wanted(resource_type_filter=4, pattern_type_filter=3)])


def features(cluster: Cluster) -> Dialogue:
    """UpdateFeatures."""
    shape = m.UpdateFeaturesRequest

    def update(version: int, *wanted: tuple[str, int, int], validate_only: bool = False) -> Step:
        return version, shape(
            feature_updates=[
                shape.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                for name, level, kind in wanted
            ],
            validate_only=validate_only,
        )

    yield update(1, ("group.version", 1, 1))
    yield update(1, ("group.version", 0, 1))
    yield update(1, ("group.version", 0, 2), validate_only=True)
    yield update(1, ("group.version", 0, 2))
    yield update(1, ("group.version", 1, 2))
    yield update(1, ("group.version", 1, 1), ("share.version", 9, 1))
    yield update(1, ("group.version", 1, 1))
    yield update(1, ("group.version", -1, 2))
    yield update(1, ("group.version", 1, 0))
    yield update(1, ("nosuch.version", 1, 1))
    yield update(1, ("nosuch.version", 0, 2))
    yield update(1, ("metadata.version", 32, 2))
    yield update(1, ("metadata.version", 32, 3))
    yield update(1, ("metadata.version", 33, 1))
    yield update(1, ("metadata.version", 99, 1))
    yield update(1, ("metadata.version", 6, 2))
    yield update(2, ("share.version", 1, 2), ("share.version", 1, 2))
    yield update(2, ("share.version", 7, 1))
    yield update(2, ("share.version", 2, 1))
    yield update(1, ("kraft.version", 0, 2))
    yield update(1, ("eligible.leader.replicas.version", 1, 1))
    yield update(1)


def controllers(cluster: Cluster) -> Dialogue:
    """Another controller registers and is unregistered."""
    shape = m.ControllerRegistrationRequest
    yield (
        0,
        shape(
            controller_id=90,
            incarnation_id=incarnation(90),
            listeners=[
                shape.Listener(name="CONTROLLER", host="127.0.0.1", port=9990, security_protocol=0)
            ],
            features=[
                shape.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
        ),
    )
    yield 0, m.UnregisterControllerRequest(controller_id=91)
    yield 0, m.UnregisterControllerRequest(controller_id=1)
    yield 0, m.UnregisterControllerRequest(controller_id=90)


def shutting_down(cluster: Cluster) -> Dialogue:
    """Controlled shutdown: leaders move first, then the others must have read of it."""
    yield from create(
        cluster,
        topic("down", assigned={0: [101, 102], 1: [102, 101]}),
        topic("alone", assigned={0: [101]}),
    )
    yield 2, heartbeat(cluster, 101, want_shut_down=True)
    yield 2, heartbeat(cluster, 101, want_shut_down=True)
    for broker_id in (102, 103, 105):
        yield 2, heartbeat(cluster, broker_id, current_metadata_offset=1)
    yield 2, heartbeat(cluster, 101, want_shut_down=True)
    for broker_id in (102, 103, 105):
        yield 2, heartbeat(cluster, broker_id)
    yield 2, heartbeat(cluster, 101, want_shut_down=True)
    yield 2, heartbeat(cluster, 101, want_shut_down=True)
    yield 2, heartbeat(cluster, 104, want_shut_down=True)
    yield 2, heartbeat(cluster, 105, want_fence=True, want_shut_down=True)


def unregistering(cluster: Cluster) -> Dialogue:
    """UnregisterBroker."""
    yield 0, m.UnregisterBrokerRequest(broker_id=777)
    yield 0, m.UnregisterBrokerRequest(broker_id=104)
    yield 0, m.UnregisterBrokerRequest(broker_id=103)


def producer_ids(cluster: Cluster) -> Dialogue:
    """AllocateProducerIds."""
    shape = m.AllocateProducerIdsRequest
    yield 0, shape(broker_id=777, broker_epoch=1)
    yield 0, shape(broker_id=102, broker_epoch=cluster.epochs[102] - 1)
    yield 0, shape(broker_id=102, broker_epoch=cluster.epochs[102])
    yield 0, shape(broker_id=102, broker_epoch=cluster.epochs[102])
