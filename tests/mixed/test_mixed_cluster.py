"""One cluster of kwire and Apache Kafka brokers, over the ordinary protocol, either one in control.

Kafka's own admin tools run against both. The segment files of a partition are the same bytes on
both sides, whoever led when they were written.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.history import QUICK, Writer, check
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode
from tests.support.wire import WireClient

pytest.importorskip("confluent_kafka")

PARTITIONS = 4


@pytest.fixture(scope="module", params=["kwire controls", "Kafka controls"])
def cluster(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Node 1 is broker and controller, node 2 a broker of the other kind."""
    kafka_libs()
    kafka = 1 if request.param == "Kafka controls" else 2
    root = tmp_path_factory.mktemp("mixed")
    # A JVM that starts takes its time: no session ends meanwhile.
    settings = {"min.insync.replicas": 1, "broker.session.timeout.ms": 9000}
    with Cluster(
        root, combined=(1,), brokers=(2,), kinds={kafka: KafkaNode}, settings=settings
    ) as cluster:
        cluster.start()
        yield cluster


def call(cluster: Cluster, node: int, request: Any, version: int) -> Any:
    with WireClient(f"127.0.0.1:{cluster[node].port}") as client:
        return client.call(request, version)


def create(cluster: Cluster, topic: str) -> None:
    request = m.CreateTopicsRequest
    answer = call(
        cluster,
        2,  # forwarded, whoever controls
        request(
            topics=[
                request.CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=2)
            ],
            timeout_ms=10_000,
        ),
        5,
    )
    assert answer.topics[0].error_code == 0, answer


def partitions(cluster: Cluster, topic: str) -> dict[int, Any]:
    """Index -> partition, as every node tells it; {} while they disagree or the topic is new."""
    told = []
    for node in cluster.nodes:
        request = m.MetadataRequest(
            topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
        )
        answer = call(cluster, node, request, 9).topics[0]
        told.append({p.partition_index: p for p in answer.partitions})
    if any(
        {i: (p.leader_id, p.leader_epoch) for i, p in view.items()}
        != {i: (p.leader_id, p.leader_epoch) for i, p in told[0].items()}
        for view in told
    ):
        return {}
    return told[0]


def wait_led_by(cluster: Cluster, topic: str, leader: int) -> None:
    def led() -> bool:
        found = partitions(cluster, topic)
        return bool(found) and all(
            p.leader_id == leader and sorted(p.isr_nodes) == [1, 2] for p in found.values()
        )

    wait_for(led, f"{topic} led by {leader} with both in sync")


def lead(cluster: Cluster, topic: str, leader: int) -> None:
    """Make one node the preferred leader of all partitions, and elect it."""
    reassign, elect = m.AlterPartitionReassignmentsRequest, m.ElectLeadersRequest
    wait_for(lambda: partitions(cluster, topic), f"{topic} is known")
    indexes = sorted(partitions(cluster, topic))
    answer = call(
        cluster,
        2,
        reassign(
            timeout_ms=10_000,
            topics=[
                reassign.ReassignableTopic(
                    name=topic,
                    partitions=[
                        reassign.ReassignablePartition(
                            partition_index=index, replicas=[leader, 3 - leader]
                        )
                        for index in indexes
                    ],
                )
            ],
        ),
        0,
    )
    assert answer.error_code == 0, answer

    def elected() -> bool:
        call(
            cluster,
            2,
            elect(
                election_type=0,
                topic_partitions=[elect.TopicPartitions(topic=topic, partitions=indexes)],
                timeout_ms=10_000,
            ),
            2,
        )
        found = partitions(cluster, topic)
        return bool(found) and all(p.leader_id == leader for p in found.values())

    wait_for(elected, f"{topic} led by {leader}")
    wait_led_by(cluster, topic, leader)


def segment(cluster: Cluster, node: int, topic: str, index: int) -> bytes:
    return (cluster[node].data / f"{topic}-{index}" / f"{0:020d}.log").read_bytes()


def wait_same_files(cluster: Cluster, topic: str) -> None:
    def same() -> bool:
        files = [[segment(cluster, n, topic, i) for i in range(PARTITIONS)] for n in cluster.nodes]
        return files[0] == files[1] and all(files[0])

    wait_for(same, f"the same bytes of {topic} on both nodes")


def test_replicas_are_the_same_bytes_whoever_leads(cluster: Cluster) -> None:
    create(cluster, "bytes")
    with Writer(cluster.bootstrap, "bytes", PARTITIONS) as writer:
        for leader in (1, 2, 1):
            lead(cluster, "bytes", leader)
            writer.wait_acknowledged()
    assert not writer.failed
    check(cluster.bootstrap, "bytes", writer)
    wait_same_files(cluster, "bytes")


def test_a_broker_that_was_killed_catches_up(cluster: Cluster) -> None:
    create(cluster, "gone")
    with Writer(cluster.bootstrap, "gone", PARTITIONS) as writer:
        writer.wait_acknowledged()
        cluster[2].kill()
        writer.wait_acknowledged()
        cluster[2].start()
        cluster[2].wait_ready()
        lead(cluster, "gone", 2)
        writer.wait_acknowledged()
    assert not writer.failed
    check(cluster.bootstrap, "gone", writer)
    wait_same_files(cluster, "gone")


def committed(consumer: Any, topic: str) -> int:
    """What the group has committed; -1 while the client still asks the last coordinator."""
    from confluent_kafka import KafkaException, TopicPartition

    try:
        return int(consumer.committed([TopicPartition(topic, 0)], 30)[0].offset)
    except KafkaException:
        return -1


def test_coordinators_move_in_the_middle_of_a_transaction(cluster: Cluster) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    create(cluster, "money")
    common = {"bootstrap.servers": cluster.bootstrap, **QUICK}
    producer = Producer({**common, "transactional.id": "mover"})
    consumer = Consumer({**common, "group.id": "mover", "enable.auto.commit": False})
    producer.init_transactions(60)
    consumer.committed([TopicPartition("money", 0)], 30)  # creates the internal topics
    internal = ("__consumer_offsets", "__transaction_state")

    def move(leader: int) -> None:
        for topic in internal:
            lead(cluster, topic, leader)

    for number in range(4):
        start, middle = (1, 2) if number < 2 else (2, 1)
        move(start)
        producer.begin_transaction()
        producer.produce("money", b"a%d" % number, partition=0)
        producer.flush(30)
        move(middle)
        producer.produce("money", b"b%d" % number, partition=1)
        offsets = [TopicPartition("money", 0, number + 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
        move(start)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    wait_for(lambda: committed(consumer, "money") == 3, "the offset of the last commit")
    reader = Consumer({**common, "group.id": "r", "isolation.level": "read_committed"})
    reader.assign([TopicPartition("money", 0, 0), TopicPartition("money", 1, 0)])
    values: list[bytes] = []

    def read() -> bool:
        message = reader.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) == 4

    wait_for(read, "what was committed")
    assert sorted(values) == [b"a0", b"a2", b"b0", b"b2"]
    consumer.close()
    reader.close()


def tool(cluster: Cluster, name: str, *arguments: str) -> str:
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*"]
    command += [f"org.apache.kafka.tools.{name}", "--bootstrap-server", cluster.bootstrap]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafka_tools_see_the_quorum_and_move_partitions(cluster: Cluster, tmp_path: Path) -> None:
    status = tool(cluster, "MetadataQuorumCommand", "describe", "--status")
    assert status.split("LeaderId:")[1].split()[0] == "1"
    assert len(tool(cluster, "MetadataQuorumCommand", "describe", "--replication").splitlines()) > 2
    create(cluster, "moved")
    plan = tmp_path / "plan.json"
    plan.write_text(
        '{"version":1,"partitions":['
        + ",".join(f'{{"topic":"moved","partition":{i},"replicas":[2]}}' for i in range(PARTITIONS))
        + "]}"
    )
    command = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(plan))
    tool(cluster, *command, "--execute")
    wait_for(
        lambda: "still in progress" not in tool(cluster, *command, "--verify"),
        "the reassignment to end",
    )
    assert all(p.replica_nodes == [2] for p in partitions(cluster, "moved").values())
    wait_for(
        lambda: not list(cluster[1].data.glob("moved-?")), "the files of the moved replicas gone"
    )
    elected = tool(
        cluster, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
    )
    assert "Error" not in elected


def test_a_broker_whose_directories_are_cordoned_gets_no_replica(cluster: Cluster) -> None:
    """The broker tells by heartbeat, the controller of the other kind places (KIP-1066)."""

    def cordon(operation: int) -> None:
        shape = m.IncrementalAlterConfigsRequest
        config = shape.AlterableConfig(
            name="cordoned.log.dirs", config_operation=operation, value="*"
        )
        resource = shape.AlterConfigsResource(resource_type=4, resource_name="2", configs=[config])
        answer = call(cluster, 2, shape(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer

    def refusal(factor: int) -> tuple[int, str | None]:
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(name="cordon", num_partitions=1, replication_factor=factor)
        request = shape(topics=[topic], timeout_ms=10_000, validate_only=True)
        result = call(cluster, 2, request, 5).topics[0]
        return result.error_code, result.error_message

    cordon(0)
    try:
        wait_for(lambda: refusal(2)[0] != 0, "broker 2 is cordoned")
        assert refusal(2)[1] == (
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot"
            " be reached because only 1 broker(s) are registered or some brokers have all their log"
            " directories cordoned."
        )
        assert refusal(1)[0] == 0
    finally:
        cordon(1)
    wait_for(lambda: refusal(2)[0] == 0, "broker 2 takes replicas again")
