"""The state of a cluster: kept of all brokers at one moment, and come back to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from kwire.testing import BrokerFailed, Cluster, wait_until

WAIT_S = 60.0


@pytest.fixture(scope="module", params=[False, True], ids=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(process=request.param) as cluster:
        yield cluster


def commit(cluster: Cluster, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def committed(cluster: Cluster) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    found = consumer.committed([TopicPartition("orders", 0)], timeout=WAIT_S)
    consumer.close()
    return int(found[0].offset)


def test_a_state_that_was_kept_comes_back_while_brokers_are_killed_paused_and_parted(
    cluster: Cluster,
) -> None:
    address, orders = cluster.bootstrap, cluster.topic("orders")
    orders.create(partitions=3, config={"min.insync.replicas": 2})
    orders.send_all([(f"k{number}", f"v{number}") for number in range(30)])
    commit(cluster, 1)
    before = sorted(record.value or b"" for record in orders.records())
    ends = orders.end_offsets()
    with cluster.snapshot() as taken:
        orders.send("later", key="k1")
        commit(cluster, 2)
        cluster.topic("other").create()
        cluster[1].kill()
        cluster[2].pause()
        cluster.partition(3)
        cluster.restore(taken)
        assert cluster.bootstrap == address
        assert all(broker.is_running for broker in cluster)
        wait_until(lambda: orders.end_offsets() == ends, WAIT_S)
        assert sorted(record.value or b"" for record in orders.records()) == before
        assert committed(cluster) == 1
        with pytest.raises(BrokerFailed):
            cluster.leader("other")
        orders.send("again", key="k1")
        assert len(orders.records()) == len(before) + 1


def test_a_paused_broker_is_paused_after_a_snapshot_too(cluster: Cluster) -> None:
    cluster[3].pause()
    with cluster.snapshot():
        assert cluster[3].is_paused
        assert not cluster[1].is_paused
    cluster[3].resume()


def test_a_snapshot_of_another_cluster_is_refused(cluster: Cluster) -> None:
    taken = cluster.snapshot()
    with Cluster(1) as other:
        with pytest.raises(BrokerFailed, match="of another cluster, whose addresses are part"):
            other.restore(taken)
        with pytest.raises(TypeError, match="expected what snapshot"):
            other.restore("yesterday")  # type: ignore[arg-type]
        assert other[1].is_running
    taken.close()
    with pytest.raises(BrokerFailed, match="the snapshot is closed"):
        cluster.restore(taken)
    assert cluster[1].is_running
