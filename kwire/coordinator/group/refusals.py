"""Responses about groups that refuse."""

from __future__ import annotations

from kwire.coordinator.errors import refusal
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

# What DescribeGroups shows of a group that it does not find.
DEAD = "Dead"


def join_error(code: ErrorCode, member_id: str = "") -> m.JoinGroupResponse:
    """A JoinGroup answer that refuses."""
    return m.JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def sync_error(code: ErrorCode) -> m.SyncGroupResponse:
    """A SyncGroup answer that refuses."""
    return m.SyncGroupResponse(error_code=code)


def not_described(group_id: str, message: str) -> m.DescribeGroupsResponse.DescribedGroup:
    """A DescribedGroup that says that there is none."""
    return m.DescribeGroupsResponse.DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=message,
        group_id=group_id,
        group_state=DEAD,
    )


def consumer_heartbeat_error(error: KafkaError) -> m.ConsumerGroupHeartbeatResponse:
    """A ConsumerGroupHeartbeat answer that refuses."""
    return m.ConsumerGroupHeartbeatResponse(error_code=refusal(error), error_message=error.message)


def described_consumer_group_error(
    group_id: str, error: KafkaError
) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
    """A group of ConsumerGroupDescribe that refuses."""
    return m.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=refusal(error), error_message=error.message
    )


def described_group_error(
    group_id: str, error: KafkaError
) -> m.DescribeGroupsResponse.DescribedGroup:
    """A DescribedGroup that refuses."""
    code = refusal(error)
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return not_described(group_id, error.message or "")
    return m.DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=code)


def deletable_group_error(
    group_id: str, code: ErrorCode, message: str | None = None
) -> m.DeleteGroupsResponse.DeletableGroupResult:
    """A DeletableGroupResult that refuses."""
    return m.DeleteGroupsResponse.DeletableGroupResult(
        group_id=group_id, error_code=code, error_message=message
    )


def offset_commit_error(request: m.OffsetCommitRequest, code: ErrorCode) -> m.OffsetCommitResponse:
    """An OffsetCommitResponse with `code` for every partition of the request."""
    response = m.OffsetCommitResponse
    return response(
        topics=[
            response.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    response.OffsetCommitResponsePartition(
                        partition_index=x.partition_index, error_code=code
                    )
                    for x in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_offset_commit_error(
    request: m.TxnOffsetCommitRequest, code: ErrorCode
) -> m.TxnOffsetCommitResponse:
    """A TxnOffsetCommitResponse with `code` for every partition of the request."""
    response = m.TxnOffsetCommitResponse
    return response(
        topics=[
            response.TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    response.TxnOffsetCommitResponsePartition(
                        partition_index=x.partition_index, error_code=code
                    )
                    for x in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
