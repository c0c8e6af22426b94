"""Three drivers on real files, a small network and a small loop whose time the test moves."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.driver_cluster import IDS, Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_elects_and_replicates(cluster: Cluster) -> None:
    cluster.start(*IDS)
    node = cluster.wait_active()
    reply = node.write("one")
    cluster.loop.run_until(lambda: reply.done)
    assert reply.error() is None
    cluster.wait_same()
    for other in cluster.nodes.values():
        assert other.image.config(2, "one") == {"retention.ms": "1"}
        assert other.image == other.controller.image
        assert not other.errors
    assert sum(other.driver.is_active for other in cluster.nodes.values()) == 1


def test_a_node_of_another_cluster_is_told_of_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits for a leader for ever, and nobody else says why."""
    cluster.start(*IDS[1:])
    cluster.wait_active()
    stranger = IDS[0]
    cluster.start(stranger, cluster_id="another")
    end_ms = cluster.loop.now_ms + 15_000
    cluster.loop.run_until(lambda: cluster.loop.now_ms > end_ms)
    told = [line.getMessage() for line in caplog.records if "another cluster" in line.message]
    assert {line.split(" belongs")[0] for line in told}
    assert len(told) == len(set(told))
    assert "(another)" in " ".join(told)


def test_the_leader_dies(cluster: Cluster) -> None:
    cluster.start(*IDS)
    first = cluster.wait_active()
    reply = first.write("before")
    cluster.loop.run_until(lambda: reply.done)
    cluster.kill(first.id)
    second = cluster.wait_active()
    assert second.driver.epoch > first.driver.epoch
    assert second.image.config(2, "before")
    reply = second.write("after")
    cluster.loop.run_until(lambda: reply.done)
    cluster.start(first.id)
    cluster.wait_same()
    assert cluster.nodes[first.id].image.config(2, "after")


def test_a_cut_off_leader_refuses_what_it_could_not_commit(cluster: Cluster) -> None:
    cluster.start(*IDS)
    first = cluster.wait_active()
    others = [node_id for node_id in IDS if node_id != first.id]
    cluster.cut = {(first.id, n) for n in others} | {(n, first.id) for n in others}
    lost = first.write("lost")
    cluster.loop.run_until(lambda: lost.done)
    error = lost.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_CONTROLLER
    assert not first.controller.image.config(2, "lost"), "the working state was discarded"
    cluster.loop.run_until(lambda: (node := cluster.active()) is not None and node.id != first.id)
    second = cluster.wait_active()
    kept = second.write("kept")
    cluster.loop.run_until(lambda: kept.done)
    cluster.cut = set()
    cluster.wait_same()
    assert first.image.config(2, "kept")
    assert not first.image.config(2, "lost")
    assert first.image == first.controller.image


@pytest.mark.parametrize("name", ["read", "read_batches"])
def test_a_leader_that_is_cut_off_and_short_of_memory_goes_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It read its snapshot or log anew to forget what it could not commit, and ended for that."""
    cluster.start(*IDS)
    first = cluster.wait_active()
    reply = first.write("before")
    cluster.loop.run_until(lambda: reply.done)
    if name == "read":
        assert first.driver.snapshotter.take()
        cluster.loop.run_until(lambda: first.driver.raft.log.latest_snapshot[0] > 0)
    others = [node_id for node_id in IDS if node_id != first.id]
    cluster.cut = {(first.id, n) for n in others} | {(n, first.id) for n in others}
    asked: list[str] = []

    def short(*args: Any) -> Any:
        asked.append(name)
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    lost = first.write("lost")
    with monkeypatch.context() as patched:
        patched.setattr(first.log.snapshots if name == "read" else first.log, name, short)
        cluster.loop.run_until(lambda: lost.done)
    assert asked
    assert not first.errors
    assert not first.controller.image.config(2, "lost"), "the working state was discarded"
    assert first.controller.image == first.image
    cluster.wait_active()
    cluster.cut = set()
    cluster.wait_same()
    assert first.image == first.controller.image


def test_a_replica_knows_when_it_had_all_that_was_committed(cluster: Cluster) -> None:
    cluster.start(*IDS)
    leader = cluster.wait_active()
    cluster.wait_same()
    behind = next(node for node in cluster.nodes.values() if node is not leader)
    cluster.loop.run_until(lambda: behind.driver.complete is not None)
    others = [node_id for node_id in IDS if node_id != behind.id]
    cluster.cut = {(behind.id, n) for n in others} | {(n, behind.id) for n in others}
    cluster.loop.run_for(200)  # what is under way arrives
    cut_ms = behind.driver.now_ms
    reply = leader.write("later")
    cluster.loop.run_until(lambda: reply.done)
    cluster.loop.run_for(5000)
    offset, at_ms = behind.driver.complete or (0, 0)
    assert at_ms <= cut_ms
    assert offset <= behind.image.offset + 1
    told = cluster.wait_active().driver.complete
    assert told is not None
    assert told[0] > offset
    assert told[1] == behind.driver.now_ms, "who leads knows it at any time"
    cluster.cut = set()
    cluster.loop.run_until(lambda: (behind.driver.complete or (0, 0))[1] > cut_ms)
    assert (behind.driver.complete or (0, 0))[0] >= told[0]
    assert behind.image.config(2, "later")


def test_a_stopping_leader_hands_over_at_once(cluster: Cluster) -> None:
    cluster.start(*IDS)
    first = cluster.wait_active()
    cluster.wait_same()
    before_ms = cluster.loop.now_ms
    stopped = first.driver.stop()
    cluster.loop.run_until(lambda: stopped.done)
    del cluster.nodes[first.id]
    cluster.wait_active()
    assert cluster.loop.now_ms - before_ms < 500, "no time-out was waited for"


def test_a_follower_loads_a_snapshot(cluster: Cluster) -> None:
    cluster.start(*IDS)
    leader = cluster.wait_active()
    victim = next(node_id for node_id in IDS if node_id != leader.id)
    cluster.kill(victim)
    for index in range(5):
        reply = leader.write(f"topic{index}")
        cluster.loop.run_until(lambda reply=reply: reply.done)
    assert leader.driver.snapshotter.take()
    cluster.loop.run_until(lambda: leader.driver.raft.log.latest_snapshot[0] > 0)
    leader.driver.step(msg.DeletePrefix(leader.driver.raft.log.latest_snapshot))
    cluster.start(victim)
    cluster.wait_same()
    node = cluster.nodes[victim]
    assert node.driver.raft.log.start_offset > 0
    assert node.image.config(2, "topic4")
    assert node.image == leader.image
    assert node.controller.image == leader.controller.image
    # The same once more from its files.
    stopped = node.driver.stop()
    cluster.loop.run_until(lambda: stopped.done)
    cluster.start(victim)
    cluster.wait_same()
    assert cluster.nodes[victim].image == leader.image


def test_a_snapshot_that_no_descriptor_is_left_for_comes_later(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the leader, which is to read a piece of it, nor the follower, which is to load it,
    stops for that."""
    cluster.start(*IDS)
    leader = cluster.wait_active()
    victim = next(node_id for node_id in IDS if node_id != leader.id)
    cluster.kill(victim)
    reply = leader.write("topic")
    cluster.loop.run_until(lambda: reply.done)
    assert leader.driver.snapshotter.take()
    cluster.loop.run_until(lambda: leader.driver.raft.log.latest_snapshot[0] > 0)
    leader.driver.step(msg.DeletePrefix(leader.driver.raft.log.latest_snapshot))
    refused = {"read_piece": 0, "read": 0}

    def short_once(snapshots: SnapshotFiles, name: str) -> None:
        read = getattr(snapshots, name)

        def now_and_then(*args: Any) -> Any:
            refused[name] += 1
            if refused[name] == 1:
                raise OSError(errno.EMFILE, "too many open files")
            return read(*args)

        monkeypatch.setattr(snapshots, name, now_and_then)

    short_once(leader.log.snapshots, "read_piece")
    cluster.start(victim)
    cluster.loop.run_until(lambda: refused["read_piece"] > 0)
    node = cluster.nodes[victim]
    load = node.driver.feed.load_snapshot

    def short_load(snapshot: OffsetAndEpoch) -> None:
        monkeypatch.setattr(node.driver.feed, "load_snapshot", load)
        short_once(node.log.snapshots, "read")
        load(snapshot)

    monkeypatch.setattr(node.driver.feed, "load_snapshot", short_load)
    cluster.wait_same()
    assert refused["read"] > 1
    assert not leader.errors
    assert not node.errors
    assert node.image == leader.image
    assert node.driver.waits_for == ""


def test_a_new_controller_joins_by_itself(cluster: Cluster) -> None:
    cluster.start(*IDS)
    leader = cluster.wait_active()
    cluster.start(4, auto_join=True)
    cluster.loop.run_until(lambda: leader.driver.raft.voters.voters.ids == [1, 2, 3, 4])
    cluster.wait_same()
    assert cluster.nodes[4].driver.raft.is_voter


def test_idle_traffic_is_bounded(cluster: Cluster) -> None:
    """An idle quorum sends a Fetch each half second and a NoOpRecord's worth, no busy loop."""
    cluster.start(*IDS)
    cluster.wait_active()
    cluster.wait_same()
    cluster.sent = 0
    cluster.loop.run_for(10_000)
    assert cluster.sent < 200
    assert all(not node.errors for node in cluster.nodes.values())
