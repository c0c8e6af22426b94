"""A Fetch acknowledges: whoever may be counted among the voters sends none before its flush."""

from __future__ import annotations

from kwire.protocol import messages as m
from tests.support.raft_cluster import RaftCluster


def fetches(cluster: RaftCluster, node_id: int) -> list[int]:
    """Offsets of the Fetches of a node that are on the way."""
    return [
        flight.body.topics[0].partitions[0].fetch_offset
        for flight in cluster.network
        if flight.source == node_id
        and not flight.is_response
        and flight.body.API_KEY == m.FetchRequest.API_KEY
    ]


def test_a_restarted_voter_that_knows_no_leader_flushes_before_it_asks() -> None:
    """Found by the seeded runs: it asked a bootstrap server that was the leader, and counted."""
    cluster = RaftCluster()
    for node_id in (1, 2, 3):
        cluster.add(node_id, voters=[1, 2, 3])
    cluster.start()
    cluster.run_until(lambda: bool(cluster.leaders()))
    cluster.run(100)
    leader = cluster.leader()
    node = next(node for node in cluster.nodes.values() if node is not leader)
    leader.append(b"one", cluster.now_ms)
    cluster.settle()
    node.flush_at_once = False
    cluster.crash(node.id)
    assert node.disk.election is not None
    node.disk.election = node.disk.election._replace(leader_id=None, voted=None)
    cluster.start(node.id)
    assert node.raft is not None
    node.raft.log.flushed_offset = 0
    cluster.network.clear()
    node.raft.requests.reset_all()
    cluster.run_until(lambda: node.flushes or bool(fetches(cluster, node.id)), 5_000)
    assert node.flushes
    assert not fetches(cluster, node.id)
    node.flush(cluster.now_ms)
    cluster.collect()
    assert fetches(cluster, node.id) == [node.raft.log.end_offset]


def test_an_observer_that_can_be_a_voter_flushes_too() -> None:
    """The leader may have added it to the voters before it knows."""
    cluster = RaftCluster()
    cluster.add(1, voters=[1])
    observer = cluster.add(2, bootstrap=[1], formatted=False, flush_at_once=False)
    cluster.start()
    cluster.run_until(lambda: observer.disk.end_offset > 0)
    cluster.settle()
    assert observer.flushes
    assert not fetches(cluster, 2)


def test_a_broker_fetches_on_at_once() -> None:
    """It never votes: nothing depends on what it has on disk."""
    cluster = RaftCluster()
    cluster.add(1, voters=[1])
    broker = cluster.add(2, bootstrap=[1], formatted=False, flush_at_once=False, can_be_voter=False)
    cluster.start()
    cluster.run_until(lambda: broker.disk.end_offset > 0)
    assert cluster.nodes[1].raft is not None
    cluster.run_until(lambda: broker.applied == cluster.nodes[1].applied)
