"""A controller that stands by said that none was active, though it knew which one was; answers
about the quorum said nothing. The texts are Apache Kafka 4.4's."""

from __future__ import annotations

from pathlib import Path

from kwire.kraft.controller.context import ControllerContext
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.driver_cluster import IDS, Cluster


def test_it_says_who_leads(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start(*IDS)
    leader = cluster.wait_active()
    cluster.wait_same()
    follower = next(node for node in cluster.nodes.values() if node is not leader)
    runner = follower.driver.runner
    assert runner is not None
    asked = runner.handle(m.UnregisterBrokerRequest(broker_id=9), ControllerContext())
    answer = asked.result()
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert answer.error_message == f"The active controller appears to be node {leader.id}."
    shape = m.DescribeQuorumRequest
    topic = shape.TopicData(
        topic_name="__cluster_metadata", partitions=[shape.PartitionData(partition_index=0)]
    )
    quorum = follower.driver.request(shape(topics=[topic]), 2, listener="CONTROLLER").result()
    (partition,) = quorum.topics[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.error_message.startswith("For requests intended only for the leader, ")
    added = m.AddRaftVoterRequest(cluster_id=None, voter_id=9)
    refused = follower.driver.request(added, 1, listener="CONTROLLER").result()
    assert (refused.error_code, refused.error_message) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
