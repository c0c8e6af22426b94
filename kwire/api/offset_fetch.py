"""OffsetFetch, versions 1-10: how far groups have consumed.

One group until v7, several from v8 on (KIP-709). No topic list (null, from v2) means everything
that is committed. What was never committed is offset -1 without an error, also of groups and
topics that do not exist. v7 has require_stable: UNSTABLE_OFFSET_COMMIT while a transaction that
commits the offset is open (KIP-447). v9 has the member id and epoch of KIP-848, v10 topic ids.
Many partitions are answered in slices, all as they were when the group was asked.
Source: KIP-447, KIP-709, KIP-848; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kwire.coordinator.group.found_offsets import FoundOffsets, FoundPartitions
from kwire.pending import Answer, Pending, as_pending, gather, then
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext
from kwire.server.sliced_response import SlicedResponse, add_topics

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
SLICE_PARTITIONS = 300
"""A slice is about 2 ms. Fewer partitions are answered at once, those of one topic together."""

Group: TypeAlias = "m.OffsetFetchRequest.OffsetFetchRequestGroup"
Topic: TypeAlias = "m.OffsetFetchRequest.OffsetFetchRequestTopics"
AnsweredGroup: TypeAlias = "m.OffsetFetchResponse.OffsetFetchResponseGroup"
FoundTopic: TypeAlias = "m.OffsetFetchResponse.OffsetFetchResponseTopics"


def handle(
    context: RequestContext, request: m.OffsetFetchRequest
) -> Answer[m.OffsetFetchResponse | SlicedResponse]:
    """See the module."""
    groups = request.groups if context.api_version >= GROUPS_FROM else [_only_group(request)]
    asked = [_AskedGroup(context, group) for group in groups]
    fetched = gather([as_pending(each.fetch(request.require_stable)) for each in asked])
    if not fetched.done:
        return then(fetched, lambda done: _answer(context, asked, done.result()))
    return _answer(context, asked, fetched.result())


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


class _AskedGroup:
    """One group of a request, and what was found of it."""

    __slots__ = ("_context", "_is_denied", "group", "is_everything", "refused")

    def __init__(self, context: RequestContext, group: Group) -> None:
        self._context = context
        self.group = group
        self.is_everything = group.topics is None
        self.refused: list[FoundTopic] = []
        """Topics that were asked for and are not told."""
        self._is_denied = not context.allows(DESCRIBE_GROUP, group.group_id)
        if not self._is_denied and group.topics is not None:
            group.topics = _readable(context, group.topics, self.refused)

    def fetch(self, require_stable: bool) -> Answer[FoundOffsets]:
        """Ask the group's coordinator."""
        if self._is_denied:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            return FoundOffsets(self.group.group_id, [], code)
        return self._context.parts.coordinators.groups.fetch_offsets(self.group, require_stable)

    def topics(self, found: FoundOffsets) -> Iterator[FoundTopic]:
        """What may be told, each made when it is taken. Of everything committed these are, by id,
        topics that exist at the time of this call, as the offsets do: a topic that is made anew
        meanwhile has another id, and none of them."""
        if found.error_code:
            return iter(())
        topics = found.topics
        if self.is_everything and self._context.api_version >= TOPIC_IDS_FROM:
            known = self._context.parts.metadata.image.topics.by_name
            topics = [
                FoundPartitions(each.name, known[each.name].topic_id, each.partitions)
                for each in topics
                if each.name in known
            ]
        return self._made(topics)

    def _made(self, topics: list[FoundPartitions]) -> Iterator[FoundTopic]:
        """Rights may be asked for later than offsets: they go by name."""
        for topic in topics:
            if not self.is_everything or self._context.sees(DESCRIBE_TOPIC, topic.name):
                yield topic.answer()
        yield from self.refused


def _answer(
    context: RequestContext, asked: list[_AskedGroup], fetched: list[Pending[FoundOffsets]]
) -> Answer[m.OffsetFetchResponse | SlicedResponse]:
    """The response, in slices where many partitions are found."""
    found = [done.result() for done in fetched]
    told = [group.topics(each) for group, each in zip(asked, found, strict=True)]
    has_groups = context.api_version >= GROUPS_FROM
    if sum(each.partition_count for each in found) > SLICE_PARTITIONS:
        response = m.OffsetFetchResponse()
        sliced = SlicedResponse(response, "groups" if has_groups else "topics", context.api_version)
        if has_groups:
            work = _groups_in_slices(found, told, sliced)
        else:  # one group, without an error
            work = add_topics(map(_flat_topic, told[0]), sliced.add, SLICE_PARTITIONS)
        made: Pending[m.OffsetFetchResponse | SlicedResponse]
        made = context.slices.run(work, lambda: sliced)
        return made
    answered = [
        m.OffsetFetchResponse.OffsetFetchResponseGroup(
            group_id=each.group_id, topics=list(topics), error_code=each.error_code
        )
        for each, topics in zip(found, told, strict=True)
    ]
    if has_groups:
        return m.OffsetFetchResponse(groups=answered)
    return _flat(context, asked[0].group, answered[0])


def _groups_in_slices(
    found: list[FoundOffsets], told: list[Iterator[FoundTopic]], response: SlicedResponse
) -> Iterator[None]:
    for each, topics in zip(found, told, strict=True):
        element = response.begin_element(
            m.OffsetFetchResponse.OffsetFetchResponseGroup(
                group_id=each.group_id, topics=[], error_code=each.error_code
            ),
            "topics",
        )
        yield from add_topics(topics, element.add, SLICE_PARTITIONS)
        element.end()


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


def _flat(context: RequestContext, group: Group, found: AnsweredGroup) -> m.OffsetFetchResponse:
    """The answer in the form of v1-7; v1 tells an error of the group at every partition."""
    shape = m.OffsetFetchResponse
    topics = found.topics
    if found.error_code and context.api_version < GROUP_ERROR_FROM:
        topics = [_refusal(x, found.error_code) for x in group.topics or ()]
    return shape(error_code=found.error_code, topics=[_flat_topic(topic) for topic in topics])


def _flat_topic(topic: FoundTopic) -> m.OffsetFetchResponse.OffsetFetchResponseTopic:
    shape = m.OffsetFetchResponse
    return shape.OffsetFetchResponseTopic(
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
