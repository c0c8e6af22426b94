"""Faults on command at a broker that runs: what is on the wire, and what is left when they end."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.testing import Broker, BrokerFailed, Cluster, FaultError, wait_until
from tests.support.wire import WireClient


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    broker.faults.clear()
    with WireClient(broker.bootstrap) as connected:
        yield connected
    broker.faults.clear()


def produce(topic: str, *partitions: int, acks: int = -1) -> m.ProduceRequest:
    shape = m.ProduceRequest
    data = [
        shape.PartitionProduceData(index=at, records=build_batch([Record(timestamp=0, value=b"v")]))
        for at in partitions
    ]
    topics = [shape.TopicProduceData(name=topic, partition_data=data)]
    return shape(acks=acks, timeout_ms=5000, topic_data=topics)


def test_an_error_of_one_partition_leaves_the_other(broker: Broker, client: WireClient) -> None:
    broker.topic("two").create(partitions=2)
    broker.faults.add("error", code="NOT_ENOUGH_REPLICAS", topic="two", partition=1)
    answered = client.call(produce("two", 0, 1), 9).responses[0].partition_responses
    assert [(one.index, one.error_code, one.base_offset) for one in answered] == [
        (0, 0, 0),
        (1, ErrorCode.NOT_ENOUGH_REPLICAS, -1),
    ]
    assert broker.topic("two").end_offsets() == {0: 1, 1: 0}


def test_metadata_of_a_topic_that_is_refused_names_the_brokers(
    broker: Broker, client: WireClient
) -> None:
    broker.topic("named").create()
    with broker.faults.add("error", api="Metadata", code="LEADER_NOT_AVAILABLE", topic="named"):
        found = client.metadata(["named"])
    assert [one.error_code for one in found.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
    assert len(found.brokers) == 1
    assert [one.error_code for one in client.metadata(["named"]).topics] == [0]


def test_half_a_frame_is_sent_behind_whole_ones(broker: Broker, client: WireClient) -> None:
    broker.faults.add("cut-reply", api="Metadata", at=9)
    client.send(m.ApiVersionsRequest(), 0)
    client.send(m.MetadataRequest(topics=[]), 1)
    received = b""
    client.socket.settimeout(10)
    while piece := client.socket.recv(100):
        received += piece
    whole = 4 + int.from_bytes(received[:4], "big")
    cut = received[whole:]
    assert len(cut) == 9
    assert int.from_bytes(cut[:4], "big") > 9


@pytest.mark.parametrize(("kind", "kept"), [("drop-request", 0), ("drop-reply", 1)])
@pytest.mark.parametrize("how", ["close", "silence"])
def test_what_is_lost(broker: Broker, client: WireClient, kind: str, kept: int, how: str) -> None:
    topic = broker.topic(f"{kind}-{how}").create()
    with broker.faults.add(kind, api="Produce", times=1, how=how) as fault:
        client.send(produce(topic.name, 0), 9)
        wait_until(lambda: fault.hits)
        if how == "close":
            client.expect_closed()
        else:
            client.send(m.ApiVersionsRequest(), 0)
            client.socket.settimeout(0.2)
            with pytest.raises(socket.timeout):
                client.socket.recv(1)
    wait_until(lambda: topic.end_offsets() == {0: kept})


def test_a_delayed_produce_is_kept_although_its_client_has_gone(broker: Broker) -> None:
    topic = broker.topic("late").create()
    with broker.faults.add("delay", api="Produce", ms=300) as fault:
        with WireClient(broker.bootstrap) as client:
            client.send(produce("late", 0), 9)
            wait_until(lambda: fault.hits)
        wait_until(lambda: topic.end_offsets() == {0: 1})


def test_acks_0_hears_of_an_error_by_the_end_of_the_connection(
    broker: Broker, client: WireClient
) -> None:
    broker.topic("unheard").create()
    broker.faults.add("error", code="MESSAGE_TOO_LARGE", api="Produce")
    client.send(produce("unheard", 0, acks=0), 9)
    client.expect_closed()


def test_a_throttled_connection_is_muted_and_told(broker: Broker, client: WireClient) -> None:
    with broker.faults.add("throttle", api="Metadata", ms=50, times=1):
        assert client.call(m.MetadataRequest(topics=[]), 9).throttle_time_ms == 50
    assert client.call(m.MetadataRequest(topics=[]), 9).throttle_time_ms == 0


def test_a_fault_that_cannot_be_right_is_refused(broker: Broker) -> None:
    with pytest.raises(FaultError, match="Heartbeat cannot carry code=MESSAGE_TOO_LARGE"):
        broker.faults.add("error", api="Heartbeat", code="MESSAGE_TOO_LARGE")
    with pytest.raises(FaultError, match="there is no partition nothing-0: create it first"):
        broker.faults.add("move-leader", topic="nothing", partition=0, to=1)
    with pytest.raises(FaultError, match="group=nobody has no members"):
        broker.faults.add("fence-member", group="nobody")
    assert broker.faults.standing() == []


def test_a_process_has_faults_where_it_is_asked_for() -> None:
    with Broker(process=True, faults=True) as broker:
        broker.topic("t").create()
        with broker.faults.add("error", api="Produce", code="NOT_ENOUGH_REPLICAS") as fault:
            with WireClient(broker.bootstrap) as client:
                answered = client.call(produce("t", 0), 9).responses[0].partition_responses
            assert answered[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert fault.hits == 1
        broker.topic("t").send("a")
        broker.lose_power()
        assert not broker.is_running
        broker.start()
        assert broker.topic("t").values() == []
    with Broker(process=True) as broker, pytest.raises(BrokerFailed, match="faults=True"):
        broker.faults.add("drop-reply")


def test_the_isr_shrinks_and_grows_again() -> None:
    with Cluster(3, config={"replica.lag.time.max.ms": 1000}) as cluster:
        topic = cluster.topic("orders").create()
        with WireClient(cluster.leader("orders").bootstrap) as client:
            with cluster.faults.add("isr-shrink", topic="orders"):
                topic.send("a")  # acknowledged once those who lag are out
                wait_until(lambda: len(client.topic("orders").partitions[0].isr_nodes) == 1)
            wait_until(lambda: len(client.topic("orders").partitions[0].isr_nodes) == 3)


def test_a_produce_that_its_log_refuses_is_told_where_the_log_starts(
    broker: Broker, client: WireClient
) -> None:
    """As Apache Kafka tells it, and as a Produce is answered that is refused for real."""
    broker.topic("starting").create().send_all(["a", "b", "c"])
    shape = m.DeleteRecordsRequest
    deleted = shape.DeleteRecordsPartition(partition_index=0, offset=2)
    topics = [shape.DeleteRecordsTopic(name="starting", partitions=[deleted])]
    client.call(shape(topics=topics, timeout_ms=5000), 2)
    broker.faults.add("error", api="Produce", code="NOT_ENOUGH_REPLICAS", topic="starting")
    (told,) = client.call(produce("starting", 0), 9).responses[0].partition_responses
    assert (told.error_code, told.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert told.log_start_offset == 2


def test_a_produce_that_fails_behind_its_append_is_told_its_offset(
    broker: Broker, client: WireClient
) -> None:
    broker.topic("appended").create().send("a")
    code = ErrorCode.REQUEST_TIMED_OUT
    broker.faults.add("error", api="Produce", code=code.name, after=True, topic="appended")
    (told,) = client.call(produce("appended", 0), 9).responses[0].partition_responses
    assert (told.error_code, told.base_offset, told.log_start_offset) == (code, 1, 0)
    assert broker.topic("appended").end_offsets() == {0: 2}


def moved_answers(
    client: WireClient, topic: str, topic_id: bytes
) -> list[m.ProduceResponse | m.FetchResponse | m.ShareFetchResponse]:
    """Of APIs and versions that name leaders beside an error."""
    fetch, share = m.FetchRequest, m.ShareFetchRequest
    fetched = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    shared = share.FetchPartition(partition_index=0)
    consumer = fetch(
        max_wait_ms=0, topics=[fetch.FetchTopic(topic_id=topic_id, partitions=[fetched])]
    )
    member = share(
        group_id="g",
        member_id="A" * 22,
        share_session_epoch=0,
        max_records=1,
        batch_size=1,
        topics=[share.FetchTopic(topic_id=topic_id, partitions=[shared])],
    )
    asked = ((produce(topic, 0), 12), (consumer, 17), (member, 1))
    return [client.call(request, version) for request, version in asked]


def test_a_moved_leader_is_named_beside_the_error(broker: Broker, client: WireClient) -> None:
    """KIP-951: answers on command had no leader; Apache Kafka's have (`move-leader` too)."""
    broker.topic("hinted").create()
    topic_id = client.topic_id("hinted")
    leader = client.topic("hinted").partitions[0]
    host, port = client.brokers()[leader.leader_id]
    with broker.faults.add("leader-moved", topic="hinted"):
        answers = moved_answers(client, "hinted", topic_id)
        older = client.call(produce("hinted", 0), 9)
    for answer in answers:
        (topic,) = answer.responses
        (told,) = getattr(topic, "partition_responses", None) or topic.partitions
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert told.current_leader.leader_id == leader.leader_id
        assert told.current_leader.leader_epoch == leader.leader_epoch
        (endpoint,) = answer.node_endpoints
        assert (endpoint.node_id, endpoint.host, endpoint.port) == (leader.leader_id, host, port)
    assert answers[2].acquisition_lock_timeout_ms == 30_000
    assert older.responses[0].partition_responses[0].error_code == 6


def test_an_old_fetch_of_offsets_is_refused_where_kafka_refuses_it(
    broker: Broker, client: WireClient
) -> None:
    """Below version 2 there is no error of the whole response: each partition has it."""
    shape = m.OffsetFetchRequest
    topic = shape.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    broker.faults.add("coordinator-moved", group="old")
    told = client.call(shape(group_id="old", topics=[topic]), 1).topics[0].partitions[0]
    assert (told.error_code, told.committed_offset) == (ErrorCode.NOT_COORDINATOR, -1)


def test_a_broker_that_is_not_there_has_no_faults(broker: Broker) -> None:
    with pytest.raises(FaultError, match=r"broker=77 is no broker of this cluster; accepted: 1"):
        broker.faults.add("delay", ms=5, broker=77)
    with pytest.raises(FaultError, match="broker=77 is no broker of this cluster"):
        broker.faults.add("fence-producer", transactional_id="t", broker=77)


def test_a_fault_that_acts_once_acts_at_the_broker_it_names() -> None:
    with Cluster(2) as cluster:
        topic = cluster.topic("moving").create()
        leader = cluster.leader("moving").node_id
        cluster.faults.add("move-leader", topic="moving", partition=0, to=3 - leader, broker=2)
        assert cluster.leader("moving").node_id == 3 - leader
        topic.send("a")


END: dict[str, Callable[[Broker], object]] = {
    "stopped": Broker.stop,
    "killed": Broker.kill,
    "restarted": Broker.restart,
    "paused": Broker.pause,
    "lost": Broker.lose_power,
    "reset": Broker.reset,
}


@pytest.mark.parametrize("how", END)
@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "left"])
def test_what_a_fault_has_met_is_known_behind_the_life_of_its_broker(
    how: str, is_removed: bool
) -> None:
    """It was an error of a closed loop, and 0 once it was removed; of a paused one it took long."""
    with Broker() as broker:
        fault = broker.faults.add("delay", api="Produce", ms=1)
        _produce_one(broker)
        END[how](broker)
        if is_removed:
            fault.remove()
        assert fault.hits == 1
        fault.remove()
        assert fault.hits == 1
        if how == "paused":
            with pytest.raises(BrokerFailed, match="a broker that is paused takes no faults"):
                broker.faults.add("delay", ms=1)


def test_a_fault_of_a_process_that_has_ended_says_that_nobody_knows_what_it_has_met() -> None:
    with Broker(process=True, faults=True) as broker:
        with broker.faults.add("delay", api="Produce", ms=1) as fault:
            _produce_one(broker)
            assert fault.hits == 1
            broker.kill()
        with pytest.raises(BrokerFailed, match="fault 1 has met is not known: its broker does not"):
            assert fault.hits
        broker.start().pause()
        with pytest.raises(BrokerFailed, match="broker is paused and takes no faults"):
            broker.faults.add("delay", ms=1)


def _produce_one(broker: Broker) -> None:
    broker.topic("t").create()
    with WireClient(broker.bootstrap) as client:
        client.call(produce("t", 0), 11)
