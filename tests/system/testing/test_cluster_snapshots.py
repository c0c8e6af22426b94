"""The state of a cluster: kept of all brokers at one moment, and come back to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from kwire.testing import BrokerFailed, Cluster, Topic, wait_until

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


def test_two_futures_of_a_cluster(cluster: Cluster) -> None:
    """Neither hears of the other: addresses in the copied metadata are those of the fork."""
    cluster.reset()
    orders = cluster.topic("orders").create(partitions=3, config={"min.insync.replicas": 2})
    orders.send_all([(f"k{number}", f"v{number}") for number in range(30)])
    commit(cluster, 1)
    cluster.partition(3)
    with cluster.fork() as other:
        ports = {broker.bootstrap for broker in (*cluster, *other)}
        assert len(ports) == 6
        cluster.heal()
        elsewhere = other.topic("orders")
        elsewhere.send("there", key="k1")
        commit(other, 2)
        orders.send("here", key="k1")
        assert values_of(elsewhere) == sorted([*first_values(), b"there"])
        assert values_of(orders) == sorted([*first_values(), b"here"])
        assert (committed(cluster), committed(other)) == (1, 2)
        for broker in cluster:
            broker.kill()
        elsewhere.send("alone", key="k2")  # all three in sync, none of them of the first
        other[1].kill()
        elsewhere.send("of two", key="k3")
        assert len(elsewhere.records()) == 33
        told = other.log_text()
        assert all(port not in told for port in (one.bootstrap for one in cluster))
    cluster.start()
    whole = sorted([*first_values(), b"here"])
    wait_until(lambda: values_of(orders) == whole, "the high watermark of before", timeout_s=WAIT_S)


def test_a_fork_of_a_cluster_in_a_coroutine() -> None:
    async def fork() -> None:
        async with Cluster(1) as cluster:
            await asyncio.to_thread(cluster.topic("orders").send, "past")
            async with await asyncio.to_thread(cluster.fork) as other:
                assert await asyncio.to_thread(other.topic("orders").values) == [b"past"]
            assert not other[1].is_running

    asyncio.run(fork())


def test_reset_leaves_a_cluster_nothing_but_its_addresses(cluster: Cluster) -> None:
    address = cluster.bootstrap
    cluster.topic("before").send("a")
    taken = cluster.snapshot()
    cluster[2].kill()
    cluster.partition(1, 3)
    cluster.reset()
    assert cluster.bootstrap == address
    assert all(broker.is_running for broker in cluster)
    with pytest.raises(BrokerFailed, match="before-0 has no leader"):
        cluster.leader("before")
    cluster.topic("after").create(config={"min.insync.replicas": 3}).send("b")
    cluster.restore(taken)
    assert cluster.topic("before").values() == [b"a"]
    assert cluster.topic("after").values() == []


def test_a_cluster_begins_with_the_state_of_another(cluster: Cluster) -> None:
    if cluster[1].runner.links:
        cluster.topic("kept").send("a")
        with cluster.snapshot() as taken, Cluster() as other:
            other.restore(taken)
            other.topic("kept").send("b")
            assert other.topic("kept").values() == [b"a", b"b"]
        assert cluster.topic("kept").values() == [b"a"]


def test_a_snapshot_that_a_cluster_cannot_have_is_refused(cluster: Cluster) -> None:
    taken = cluster.snapshot()
    with Cluster(1) as other:
        with pytest.raises(BrokerFailed, match="is of 3 brokers, the cluster has 1"):
            other.restore(taken)
        with pytest.raises(TypeError, match="expected what the snapshot"):
            other.restore("yesterday")  # type: ignore[arg-type]
        assert other[1].is_running
    taken.close()
    with pytest.raises(BrokerFailed, match="the snapshot is closed"):
        cluster.restore(taken)
    assert cluster[1].is_running


def first_values() -> list[bytes]:
    return [b"v%d" % number for number in range(30)]


def values_of(topic: Topic) -> list[bytes]:
    return sorted(record.value or b"" for record in topic.records())
