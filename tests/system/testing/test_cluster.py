"""`kwire.testing.Cluster`: brokers that are killed and parted one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.client.errors import ClientError
from kwire.testing import BrokerFailed, Cluster, wait_until


@pytest.fixture(scope="module", params=[False, True], ids=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(process=request.param) as cluster:
        yield cluster


def _leader_id(cluster: Cluster, topic: str) -> int:
    try:
        return cluster.leader(topic).node_id
    except BrokerFailed:
        return 0


def test_another_broker_leads_once_the_leader_is_killed(cluster: Cluster) -> None:
    topic = cluster.topic("killed").create(config={"min.insync.replicas": 2})
    topic.send("a")
    leader = cluster.leader("killed")
    leader.kill()
    wait_until(lambda: _leader_id(cluster, "killed") not in (0, leader.node_id), timeout_s=60)
    topic.send("b")
    leader.start()
    topic.assert_records("a", "b")


def test_another_broker_leads_once_the_leader_is_cut_off(cluster: Cluster) -> None:
    topic = cluster.topic("parted").create(config={"min.insync.replicas": 2})
    topic.send("a")
    leader = cluster.leader("parted")
    cluster.partition(leader.node_id)
    wait_until(lambda: _leader_id(cluster, "parted") not in (0, leader.node_id), timeout_s=60)
    cluster.heal()
    wait_until(lambda: _sent(cluster, "b"), timeout_s=60)
    assert topic.values()[:2] == [b"a", b"b"]


def _sent(cluster: Cluster, value: str) -> bool:
    try:
        cluster.topic("parted").send(value)
    except ClientError:
        return False
    return True


def test_what_does_not_exist_is_refused_by_name(cluster: Cluster) -> None:
    with pytest.raises(KeyError, match="broker 7: there are 1, 2, 3"):
        cluster.partition(1, 7)
    with pytest.raises(ValueError, match="cannot be cut off from itself"):
        cluster.partition(1, 1)
    with pytest.raises(
        BrokerFailed, match=r"nothing-0 has no leader \(no broker knows it: create it first\)"
    ):
        cluster.leader("nothing")
    with pytest.raises(ValueError, match="brokers=0: accepted are 1 to 9"):
        Cluster(0)


def test_brokers_that_are_named_are_ended_and_paused(cluster: Cluster) -> None:
    topic = cluster.topic("kept").create()
    topic.send("a")
    cluster.kill(1)
    assert [broker.is_running for broker in cluster] == [False, True, True]
    cluster.start(1)
    cluster.restart(1)
    assert all(broker.is_running for broker in cluster)
    cluster.pause(1, 2)
    assert [broker.is_paused for broker in cluster] == [True, True, False]
    cluster.resume(1)
    assert [broker.is_paused for broker in cluster] == [False, True, False]
    cluster.resume()
    topic.assert_records("a")
    with pytest.raises(KeyError, match="broker 7: there are 1, 2, 3"):
        cluster.restart(7)


def test_all_brokers_are_ended_and_paused() -> None:
    with Cluster(1) as cluster:
        topic = cluster.topic("kept").create()
        topic.send("a")
        cluster.pause()
        assert cluster[1].is_paused
        cluster.kill()
        cluster.pause()  # of none
        assert not cluster[1].is_running
        cluster.start()
        cluster.restart()
        topic.assert_records("a")
        assert cluster.topics() == ["kept"]
