"""DescribeQuorum, versions 0-2 (KIP-595, KIP-836, KIP-853).

Answered by the leader: voters and observers with their end offsets and, as wall-clock time, when
they last fetched and were last caught up; -1 where there was none. Version 2 adds directory ids
and the voters' listeners.
"""

from __future__ import annotations

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import common
from kwire.kraft.raft.roles.leader import Leader, Replica
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID
from kwire.kraft.raft.voters import VoterNode
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

DIRECTORY_ID_VERSION = 2
NOT_LEADER = (
    "For requests intended only for the leader, this error indicates that the broker is not the "
    "current leader. For requests intended for any replica, this error indicates that the broker "
    "is not a replica of the topic partition."
)


def handle(raft: RaftState, message: msg.Request[m.DescribeQuorumRequest], now_ms: int) -> None:
    response = m.DescribeQuorumResponse
    request = message.request
    if common.only_partition(request.topics) is None:
        topics = [
            response.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    response.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message="This server does not host this topic-partition.",
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        common.reply(raft, message, response(topics=topics))
        return
    leader = raft.leader()
    if leader is None:
        partition = response.PartitionData(
            partition_index=METADATA_PARTITION,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            error_message=NOT_LEADER,
        )
        nodes: list[m.DescribeQuorumResponse.Node] = []
    else:
        partition = _describe(raft, leader, message, now_ms)
        nodes = []
        if message.version >= DIRECTORY_ID_VERSION:
            nodes = [_node(node) for node in raft.voters.voters.nodes]
    common.reply(
        raft,
        message,
        response(
            topics=[response.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            nodes=nodes,
        ),
    )


def _describe(
    raft: RaftState,
    leader: Leader,
    message: msg.Request[m.DescribeQuorumRequest],
    now_ms: int,
) -> m.DescribeQuorumResponse.PartitionData:
    leader.forget_lost_observers(now_ms)
    response = m.DescribeQuorumResponse

    def wall_ms(loop_ms: int) -> int:
        return -1 if loop_ms < 0 else message.wall_ms - (now_ms - loop_ms)

    def replica(state: Replica) -> m.DescribeQuorumResponse.ReplicaState:
        local = state.key.id == raft.config.node_id
        return response.ReplicaState(
            replica_id=state.key.id,
            replica_directory_id=state.key.directory_or_zero
            if message.version >= DIRECTORY_ID_VERSION
            else ZERO_UUID,
            log_end_offset=raft.log.end_offset if local else state.end_offset,
            last_fetch_timestamp=message.wall_ms if local else wall_ms(state.last_fetch_ms),
            last_caught_up_timestamp=message.wall_ms if local else wall_ms(state.last_caught_up_ms),
        )

    return response.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=ErrorCode.NONE,
        leader_id=raft.config.node_id,
        leader_epoch=leader.epoch,
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        current_voters=[replica(state) for state in leader.voters.values()],
        observers=[replica(state) for state in leader.observers.values()],
    )


def _node(node: VoterNode) -> m.DescribeQuorumResponse.Node:
    response = m.DescribeQuorumResponse
    return response.Node(
        node_id=node.key.id,
        listeners=[
            response.Listener(name=e.name, host=e.host, port=e.port) for e in node.endpoints
        ],
    )
