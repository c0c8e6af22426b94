"""DescribeShareGroupOffsets, versions 0-1: where share groups begin in their partitions (KIP-932).

No topic list means every partition that the group's state was initialized for, of topics that the
client may see: none for a group that is unknown or of another kind, which is no error. Where topics
are named, nobody asks whether there is such a group. -1 is the start offset of a partition that has
none yet, and of every one of a topic that does not exist; such topics come last, with a zero id.
Version 1 has the lag (KIP-1226): records behind the start offset that are not delivered for good,
-1 when unknown. The answer comes from the share coordinators, and the ends of partitions from their
leaders. Topics of a group without a name are INVALID_GROUP_ID (Kafka fails there with
UNKNOWN_SERVER_ERROR). Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.coordinator.group.share_requests import DescribedOffset, NamedPartition
from kwire.coordinator.replies import collect
from kwire.kraft.controller.results import text_of
from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
DESCRIBE_GROUP = Requires(
    Operation.DESCRIBE, ResourceType.GROUP, "groups[].group_id", denied=Denied.ENTRY
)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    "groups[].topics[].topic_name",
    denied=Denied.ENTRY,
    note="left out where a group is asked for all of its topics",
)
AUTHORIZATION = (DESCRIBE_GROUP, DESCRIBE_TOPIC)
NO_TOPIC_ID = bytes(16)
UNKNOWN = DescribedOffset(-1, 0, -1)

AskedGroup: TypeAlias = "m.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup"
AskedTopic: TypeAlias = "m.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic"
Group: TypeAlias = "m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup"
Partition: TypeAlias = (
    "m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition"
)
Topics = list[tuple[str, bytes, list[int]]]


def handle(
    context: RequestContext, request: m.DescribeShareGroupOffsetsRequest
) -> Answer[m.DescribeShareGroupOffsetsResponse]:
    """See the module."""
    return collect(
        [_group(context, group) for group in request.groups],
        lambda found: m.DescribeShareGroupOffsetsResponse(groups=found),
    )


def _group(context: RequestContext, group: AskedGroup) -> Pending[Group]:
    outcome: Pending[Group] = Pending()
    group_id = group.group_id
    if not context.allows(DESCRIBE_GROUP, group_id):
        outcome.complete(_failed(group_id, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
        return outcome
    if group.topics is not None:
        _describe(context, group_id, _named(context, group.topics), outcome)
        return outcome
    if not group_id:
        _describe(context, group_id, [], outcome)
        return outcome

    def known(done: Pending[Topics]) -> None:
        error = done.error()
        if error is not None:
            outcome.complete(_failed(group_id, error))
        else:
            seen = [topic for topic in done.result() if context.sees(DESCRIBE_TOPIC, topic[0])]
            _describe(context, group_id, seen, outcome)

    context.parts.coordinators.groups.share.state_topics(group_id).add_done_callback(known)
    return outcome


def _named(context: RequestContext, topics: list[AskedTopic]) -> Topics:
    """The topics that a request names, with a zero id where there is none."""
    by_name = context.parts.metadata.image.topics.by_name
    return [
        (
            topic.topic_name,
            by_name[topic.topic_name].topic_id if topic.topic_name in by_name else NO_TOPIC_ID,
            list(topic.partitions),
        )
        for topic in topics
    ]


def _describe(
    context: RequestContext, group_id: str, topics: Topics, outcome: Pending[Group]
) -> None:
    refused: Topics = []
    missing: Topics = []
    allowed: Topics = []
    for name, topic_id, partitions in topics:
        if not context.allows(DESCRIBE_TOPIC, name):
            refused.append((name, NO_TOPIC_ID, partitions))
        elif topic_id == NO_TOPIC_ID:
            missing.append((name, topic_id, partitions))
        else:
            allowed.append((name, topic_id, partitions))
    if allowed and not group_id:
        outcome.complete(_failed(group_id, KafkaError(ErrorCode.INVALID_GROUP_ID)))
        return
    asked = [
        NamedPartition(name, topic_id, index)
        for name, topic_id, indexes in allowed
        for index in indexes
    ]

    def answer(done: Pending[list[DescribedOffset]]) -> Group:
        error = done.error()
        if error is not None:
            return _failed(group_id, error)
        offsets = iter(done.result())
        shape = m.DescribeShareGroupOffsetsResponse
        described = [
            shape.DescribeShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=topic_id,
                partitions=[_partition(index, next(offsets)) for index in indexes],
            )
            for name, topic_id, indexes in allowed
        ]
        described += [
            shape.DescribeShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=topic_id,
                partitions=[_partition(index, UNKNOWN) for index in indexes],
            )
            for name, topic_id, indexes in missing
        ]
        denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        described += [
            shape.DescribeShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=topic_id,
                partitions=[_refused(index, denied) for index in indexes],
            )
            for name, topic_id, indexes in refused
        ]
        return shape.DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=described)

    found: Pending[list[DescribedOffset]] = Pending.completed([])
    if asked:
        found = context.parts.coordinators.groups.share.described_offsets(group_id, asked)
    after(found, answer).add_done_callback(lambda done: outcome.complete(done.result()))


def _partition(index: int, found: DescribedOffset) -> Partition:
    if found.error_code:
        return _refused(index, KafkaError(found.error_code, found.error_message))
    return m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=found.start_offset,
        leader_epoch=found.leader_epoch,
        lag=found.lag,
    )


def _refused(index: int, error: KafkaError) -> Partition:
    return m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=-1,
        error_code=int(error.code),
        error_message=text_of(error) or error.code.name,
    )


def _failed(group_id: str, error: Exception) -> Group:
    code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
    message = error.message if isinstance(error, KafkaError) else None
    return m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, topics=[], error_code=int(code), error_message=message
    )
