"""controller_mutation_rate, asked over TCP: who is refused, who is served and told to wait."""

from __future__ import annotations

import itertools
from typing import Any, Protocol

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Broker, Cluster, wait_for
from tests.support.wire import WireClient

THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
TIMEOUT_MS = 30_000


class Serving(Protocol):
    """A broker that runs."""

    @property
    def bootstrap(self) -> str: ...


def set_rate(client: WireClient, rate: float) -> None:
    """controller_mutation_rate of all client ids."""
    request = m.AlterClientQuotasRequest
    op = request.OpData(key="controller_mutation_rate", value=rate)
    entity = request.EntityData(entity_type="client-id", entity_name=None)
    response = client.call(request(entries=[request.EntryData(entity=[entity], ops=[op])]), 1)
    assert [one.error_code for one in response.entries] == [0], response


def ask(broker: Serving, request: Any, version: int) -> Any:
    """The answer. Each by a connection of its own: what has to wait is not read any further."""
    with WireClient(broker.bootstrap) as client:
        return client.call(request, version)


def create(broker: Serving, version: int, **partitions: int) -> tuple[list[int], int]:
    """(error codes, throttle time)."""
    shape = m.CreateTopicsRequest.CreatableTopic
    topics = [
        shape(name=name, num_partitions=count, replication_factor=1)
        for name, count in partitions.items()
    ]
    response = ask(broker, m.CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), version)
    assert all(one.error_message is None for one in response.topics)
    return [one.error_code for one in response.topics], response.throttle_time_ms


def add_partition(broker: Serving, version: int, count: int) -> tuple[list[int], int]:
    """The same for CreatePartitions."""
    shape = m.CreatePartitionsRequest.CreatePartitionsTopic
    topics = [shape(name="a", count=count, assignments=None)]
    request = m.CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    response = ask(broker, request, version)
    return [one.error_code for one in response.results], response.throttle_time_ms


def delete(broker: Serving, version: int, name: str) -> tuple[list[int], int]:
    """The same for DeleteTopics."""
    request = m.DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
    if version >= 6:
        topics = [m.DeleteTopicsRequest.DeleteTopicState(name=name)]
        request = m.DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    response = ask(broker, request, version)
    return [one.error_code for one in response.responses], response.throttle_time_ms


def test_a_debt_refuses_newer_requests_and_lets_older_ones_wait() -> None:
    with Broker() as broker, WireClient(broker.bootstrap) as admin:
        set_rate(admin, 0.01)
        # The bucket holds 0.11 tokens: the first topic empties it.
        codes, wait_ms = create(broker, 7, a=2, b=1)
        assert codes == [0, THROTTLED]
        assert 180_000 < wait_ms <= 190_000, "two partitions at one in 100 seconds"
        for answer in (
            create(broker, 6, b=1),
            add_partition(broker, 3, 3),
            delete(broker, 5, "a"),
            delete(broker, 6, "a"),
        ):
            assert answer[0] == [THROTTLED]
            assert 150_000 < answer[1] <= wait_ms
        waits = [wait_ms]
        for answer in (create(broker, 5, b=1), add_partition(broker, 2, 3), delete(broker, 4, "b")):
            assert answer[0] == [0]
            assert answer[1] > waits[-1] + 50_000, "each owes for a partition more"
            waits.append(answer[1])
        set_rate(admin, 1000.0)  # what is owed is paid at the new rate
        names = (f"t{number}" for number in itertools.count())
        wait_for(lambda: create(broker, 7, **{next(names): 1}) == ([0], 0), "the debt is paid", 60)


def test_a_client_pays_at_the_active_controller_wherever_it_asks() -> None:
    with Cluster() as cluster:
        cluster.start()
        names = (f"t{number}" for number in itertools.count())
        with WireClient(cluster[1].bootstrap) as admin:
            set_rate(admin, 0.01)
        wait_for(lambda: create(cluster[1], 7, **{next(names): 5})[0] == [THROTTLED], "a debt", 60)
        for number in (1, 2, 3):
            codes, wait_ms = create(cluster[number], 7, other=1)
            assert codes == [THROTTLED], f"by broker {number}"
            assert wait_ms > 0


def test_who_has_to_wait_is_not_read_meanwhile_and_others_are() -> None:
    with Broker() as broker, WireClient(broker.bootstrap) as other:
        set_rate(other, 1.0)
        create(broker, 7, a=41)  # eleven are free: half a minute is owed
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(name="b", num_partitions=1, replication_factor=1)
        with WireClient(broker.bootstrap) as client:
            refused = client.call(shape(topics=[topic], timeout_ms=TIMEOUT_MS), 7)
            assert refused.topics[0].error_code == THROTTLED
            assert refused.throttle_time_ms > 1000
            client.send(m.MetadataRequest(topics=[]), 12)
            for _ in range(10):
                other.cluster_id()
            client.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.socket.recv(1)
