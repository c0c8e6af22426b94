"""OffsetCommit, versions 2-10: store how far a group has consumed.

From within the group (member id and generation, or KIP-848 epoch) or from outside (generation -1,
no member id) for a group that has no members, which is made if there is none. Topics go by name
until v9 and by id in v10 (KIP-848); unknown ones are refused one by one. Many partitions are made
in slices and committed together. v2-4 may give a retention time. v9 says GROUP_ID_NOT_FOUND where
older versions say ILLEGAL_GENERATION. Source: KIP-211, KIP-345, KIP-848; measured on Apache Kafka
4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.plain.commits import PlainCommits
from kwire.api.shared.commits_in_slices import AskedPartitions, commit_in_slices
from kwire.api.shared.committed_topics import READ_TOPIC, TopicSorter
from kwire.coordinator.group.made_offsets import are_many
from kwire.coordinator.group.refusals import offset_commit_error
from kwire.coordinator.replies import convert_all
from kwire.pending import Answer, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (2, 10)
WAITS_FOR_WRITES = False
AUTHORIZATION = (
    Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),
    READ_TOPIC,
)
TOPIC_IDS_FROM = 10
plain_road = PlainCommits

Asked: TypeAlias = "m.OffsetCommitRequest.OffsetCommitRequestTopic"
Refused: TypeAlias = "m.OffsetCommitResponse.OffsetCommitResponseTopic"
Sorter: TypeAlias = "TopicSorter[Asked, Refused]"


def handle(
    context: RequestContext, request: m.OffsetCommitRequest
) -> Answer[m.OffsetCommitResponse]:
    """See the module."""
    asked = AskedPartitions(request.topics) if are_many(request.topics) else None
    sorter = TopicSorter(context, _refusal, by_id=context.api_version >= TOPIC_IDS_FROM)
    request.topics = sorter.pass_topics(request.topics)
    if not request.topics:
        return m.OffsetCommitResponse(topics=sorter.merge([]))
    groups = context.parts.coordinators.groups
    if asked is None:
        answer = groups.commit_offsets(request, context.api_version)
        return _decided(context, sorter, answer)
    made = groups.make_commit(request)

    def decide() -> Answer[m.OffsetCommitResponse]:
        return _decided(context, sorter, groups.commit_made(request, context.api_version, made))

    def ask_again() -> Answer[m.OffsetCommitResponse]:
        request.topics = asked.restored()
        return handle(context, request)

    return commit_in_slices(context, request.topics, made, decide, ask_again)


def error_response(context: RequestContext, error: KafkaError) -> m.OffsetCommitResponse:
    """No topics: the request is not at hand any more."""
    return m.OffsetCommitResponse(topics=[])


def denied_response(
    context: RequestContext, request: m.OffsetCommitRequest, error: KafkaError
) -> m.OffsetCommitResponse:
    """The code at every partition."""
    return offset_commit_error(request, error.code)


def _decided(
    context: RequestContext, sorter: Sorter, answer: Answer[m.OffsetCommitResponse]
) -> Answer[m.OffsetCommitResponse]:
    # What the commit does is done: the connection's next request, if it has sent one, sees it.
    context.let_next_start()
    if not sorter.refused_any:
        return answer
    return convert_all(as_pending(answer), lambda done: _merged(sorter, done.result()))


def _refusal(topic: Asked, indexes: list[int], code: ErrorCode) -> Refused:
    """The topic of the response that refuses these partitions."""
    shape = m.OffsetCommitResponse.OffsetCommitResponsePartition
    return m.OffsetCommitResponse.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[shape(partition_index=index, error_code=code) for index in indexes],
    )


def _merged(sorter: Sorter, response: m.OffsetCommitResponse) -> m.OffsetCommitResponse:
    response.topics = sorter.merge(response.topics)
    return response
