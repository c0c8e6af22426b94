"""A quorum of one: elects itself, commits, survives a restart."""

from __future__ import annotations

import pytest

from kwire.kraft.raft.control_records import ControlType
from kwire.kraft.raft.transitions import RoleName
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.raft_cluster import RaftCluster


@pytest.mark.parametrize("static", [False, True])
def test_leads_at_once_and_commits(static: bool) -> None:
    cluster = RaftCluster()
    node = cluster.add(1, voters=[1], static=static)
    cluster.start()
    assert node.raft is not None
    assert node.raft.role_name is RoleName.LEADER
    assert node.raft.epoch == 1
    first = node.disk.batches[0]
    kinds = [entry.type for entry in first.control]
    voters = [] if static else [ControlType.KRAFT_VERSION, ControlType.VOTERS]
    assert kinds == [ControlType.LEADER_CHANGE, *voters]
    assert node.leads_since == 1
    offset = node.append(b"one", 0)
    assert offset == len(kinds)
    assert node.applied == offset + 1
    assert node.disk.election is not None
    assert node.disk.election.leader_id == 1


def test_nothing_is_committed_before_it_is_flushed() -> None:
    cluster = RaftCluster()
    node = cluster.add(1, voters=[1], flush_at_once=False)
    cluster.start()
    assert node.applied == 0
    assert node.leads_since is None
    node.flush(0)
    assert node.leads_since == 1
    node.append(b"one", 0)
    node.append(b"two", 0)
    assert node.applied == 3
    node.flush(0)
    assert node.applied == 4, "the first flush covers what was there when it began"
    node.flush(0)
    assert node.applied == 5


def test_restart_leads_the_next_epoch() -> None:
    cluster = RaftCluster()
    node = cluster.add(1, voters=[1])
    cluster.start()
    node.append(b"one", 0)
    cluster.crash(1)
    cluster.start(1)
    assert node.raft is not None
    assert node.raft.epoch == 2
    assert [entry.type for entry in node.disk.batches[-1].control] == [ControlType.LEADER_CHANGE]
    assert [state[0] for state in node.state] == [3]


def test_only_the_leader_of_the_epoch_appends() -> None:
    cluster = RaftCluster()
    node = cluster.add(1, voters=[1, 2])
    cluster.start()
    with pytest.raises(KafkaError) as caught:
        node.append(b"one", 0)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
