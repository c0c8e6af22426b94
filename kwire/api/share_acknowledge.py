"""ShareAcknowledge, versions 1-2: what came of records that a member acquired (KIP-932).

A request of the member's share session, with its next epoch; -1 is the last one, after which what
the member still has is free. Types are 0 (no record there), 1 (accepted), 2 (released), 3
(rejected) and, where the request is a renewal (version 2), 4. All acknowledgements of a partition
are taken, or none. Answered when the share coordinator has them. A partition without
acknowledgements is left out of the answer. Source: KIP-932, KIP-1222; measured on Apache Kafka
4.4.
"""

from __future__ import annotations

from kwire.api.shared.share_acknowledging import (
    READ_GROUP,
    READ_TOPIC,
    Acknowledged,
    acknowledge,
    asked,
    refused,
)
from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext
from kwire.server.leader_hints import HINTED_ERRORS, LeaderHints
from kwire.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession

VERSIONS = (1, 2)
AUTHORIZATION = (READ_GROUP, READ_TOPIC)


def handle(
    context: RequestContext, request: m.ShareAcknowledgeRequest
) -> Answer[m.ShareAcknowledgeResponse]:
    """See the module."""
    group_id, member_id = request.group_id, request.member_id
    code = refused(context, group_id, member_id)
    if code:
        return m.ShareAcknowledgeResponse(error_code=int(code))
    assert group_id is not None
    assert member_id is not None
    epoch = request.share_session_epoch
    manager = context.parts.shares.partitions
    try:
        if epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = manager.sessions.resume(group_id, member_id, epoch)
    except KafkaError as error:
        return error_response(context, error)
    taken = acknowledge(
        context,
        group_id,
        member_id,
        [
            asked((topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
            for topic in request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches or not _is_known(context, topic.topic_id)
        ],
        request.is_renew_ack,
    )

    def answer(found: list[Acknowledged]) -> m.ShareAcknowledgeResponse:
        return _answer(context, session, epoch, found)

    if isinstance(taken, Pending):
        return after(taken, lambda done: answer(done.result()))
    return answer(taken)


def error_response(context: RequestContext, error: KafkaError) -> m.ShareAcknowledgeResponse:
    """An error of the whole request."""
    return m.ShareAcknowledgeResponse(error_code=int(error.code))


def _is_known(context: RequestContext, topic_id: bytes) -> bool:
    return topic_id in context.parts.metadata.image.topics.by_id


def _answer(
    context: RequestContext, session: ShareSession, epoch: int, found: list[Acknowledged]
) -> m.ShareAcknowledgeResponse:
    parts = context.parts
    if epoch == FINAL_EPOCH:
        parts.shares.partitions.release(session)
    shape = m.ShareAcknowledgeResponse
    hints: LeaderHints | None = None
    topics: dict[bytes, list[m.ShareAcknowledgeResponse.PartitionData]] = {}
    for (topic_id, index), error in found:
        said = shape.PartitionData(partition_index=index)
        topics.setdefault(topic_id, []).append(said)
        if error is None:
            continue
        said.error_code = int(error.code)
        said.error_message = error.message or None
        topic = parts.metadata.image.topics.by_id.get(topic_id)
        if said.error_code in HINTED_ERRORS and topic is not None:
            hints = hints or LeaderHints(parts.metadata.image, context.listener_name)
            leader_id, leader_epoch = hints.leader_of(topic.name, index)
            said.current_leader = shape.LeaderIdAndEpoch(
                leader_id=leader_id, leader_epoch=leader_epoch
            )
    settings = parts.shares.partitions.settings(session.group_id)
    return shape(
        acquisition_lock_timeout_ms=settings.lock_duration_ms,
        responses=[
            shape.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=[] if hints is None else hints.endpoints(shape.NodeEndpoint),
    )
