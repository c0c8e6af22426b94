"""OffsetFetch, versions 1-10: how far groups have consumed.

One group until v7, several from v8 on (KIP-709). No topic list (null, from v2) means everything
that is committed. What was never committed is offset -1 without an error, also of groups and
topics that do not exist. v7 has require_stable: UNSTABLE_OFFSET_COMMIT while a transaction that
commits the offset is open (KIP-447). v9 has the member id and epoch of KIP-848, v10 topic ids.
Source: KIP-447, KIP-709, KIP-848; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.coordinator.replies import collect, convert_all
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 10)
DESCRIBE_GROUP = Requires(
    Operation.DESCRIBE,
    ResourceType.GROUP,
    "groups[].group_id",
    denied=Denied.ENTRY,
    note="group_id to version 7",
)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    "groups[].topics[].name",
    denied=Denied.ENTRY,
    note="left out where a group is asked for all of its topics",
)
AUTHORIZATION = (DESCRIBE_GROUP, DESCRIBE_TOPIC)
GROUP_ERROR_FROM = 2
GROUPS_FROM = 8
TOPIC_IDS_FROM = 10

Group: TypeAlias = "m.OffsetFetchRequest.OffsetFetchRequestGroup"
Topic: TypeAlias = "m.OffsetFetchRequest.OffsetFetchRequestTopics"
FoundGroup: TypeAlias = "m.OffsetFetchResponse.OffsetFetchResponseGroup"
FoundTopic: TypeAlias = "m.OffsetFetchResponse.OffsetFetchResponseTopics"


def handle(context: RequestContext, request: m.OffsetFetchRequest) -> Answer[m.OffsetFetchResponse]:
    """See the module."""
    groups = request.groups if context.api_version >= GROUPS_FROM else [_only_group(request)]
    answers = [_fetch(context, group, request.require_stable) for group in groups]
    pendings = [as_pending(x) for x in answers]
    if context.api_version >= GROUPS_FROM:
        return collect(pendings, lambda found: m.OffsetFetchResponse(groups=found))
    return collect(pendings, lambda found: _flat(context, groups[0], found[0]))


def error_response(context: RequestContext, error: KafkaError) -> m.OffsetFetchResponse:
    """The code where the version has a place for it."""
    return m.OffsetFetchResponse(error_code=error.code)


def _only_group(request: m.OffsetFetchRequest) -> Group:
    """The group of a request of v1-7 in the form of v8."""
    shape = m.OffsetFetchRequest
    topics = None
    if request.topics is not None:
        topics = [
            shape.OffsetFetchRequestTopics(name=x.name, partition_indexes=x.partition_indexes)
            for x in request.topics
        ]
    return shape.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _fetch(context: RequestContext, group: Group, require_stable: bool) -> Answer[FoundGroup]:
    """The OffsetFetchResponseGroup of one group, or a Pending of it."""
    if not context.allows(DESCRIBE_GROUP, group.group_id):
        return m.OffsetFetchResponse.OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
        )
    refused: list[FoundTopic] = []
    everything = group.topics is None
    if group.topics is not None:
        group.topics = _readable(context, group.topics, refused)
    answer = context.parts.coordinators.groups.fetch_offsets(group, require_stable)
    pending = as_pending(answer)

    def finish(done: Pending[FoundGroup]) -> FoundGroup:
        found = done.result()
        if found.error_code != ErrorCode.NONE:
            return found
        if everything:
            found.topics = _visible(context, found.topics)
        found.topics += refused
        return found

    return convert_all(pending, finish)


def _readable(
    context: RequestContext, topics: list[Topic], refused: list[FoundTopic]
) -> list[Topic]:
    """The topics that may be told of, by name; the others go to `refused` with an error."""
    passed = []
    by_id = context.api_version >= TOPIC_IDS_FROM
    for topic in topics:
        if by_id:
            known = context.parts.metadata.image.topics.by_id.get(topic.topic_id)
            if known is None:
                refused.append(_refusal(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            topic.name = known.name
        if context.allows(DESCRIBE_TOPIC, topic.name):
            passed.append(topic)
        else:
            refused.append(_refusal(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return passed


def _visible(context: RequestContext, topics: list[FoundTopic]) -> list[FoundTopic]:
    """Of everything committed, the topics that may be told of; by id only those that exist."""
    visible = [x for x in topics if context.sees(DESCRIBE_TOPIC, x.name)]
    if context.api_version < TOPIC_IDS_FROM:
        return visible
    known = context.parts.metadata.image.topics.by_name
    visible = [x for x in visible if x.name in known]
    for topic in visible:
        topic.topic_id = known[topic.name].topic_id
    return visible


def _refusal(topic: Topic, code: int) -> FoundTopic:
    shape = m.OffsetFetchResponse
    return shape.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            shape.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _flat(context: RequestContext, group: Group, found: FoundGroup) -> m.OffsetFetchResponse:
    """The answer in the form of v1-7; v1 tells an error of the group at every partition."""
    shape = m.OffsetFetchResponse
    topics = found.topics
    if found.error_code and context.api_version < GROUP_ERROR_FROM:
        topics = [_refusal(x, found.error_code) for x in group.topics or ()]
    return shape(
        error_code=found.error_code,
        topics=[
            shape.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    shape.OffsetFetchResponsePartition(
                        partition_index=x.partition_index,
                        committed_offset=x.committed_offset,
                        committed_leader_epoch=x.committed_leader_epoch,
                        metadata=x.metadata,
                        error_code=x.error_code,
                    )
                    for x in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
