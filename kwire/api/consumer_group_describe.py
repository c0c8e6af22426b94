"""ConsumerGroupDescribe, versions 0-1: consumer groups of KIP-848 with members and assignments.

Version 1 tells members of the classic protocol apart. Groups of another kind are
GROUP_ID_NOT_FOUND. Source: KIP-848, KIP-1099; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeAlias

from kwire.api.shared.described_groups import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    SLICE_MEMBERS,
    in_slices,
    shown,
    told_apart,
)
from kwire.coordinator.group.consumer.describe import Described
from kwire.pending import Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext
from kwire.server.sliced_response import SlicedResponse

VERSIONS = (0, 1)
AUTHORIZATION = (DESCRIBE_GROUP, DESCRIBE_TOPIC)
Response: TypeAlias = "m.ConsumerGroupDescribeResponse"
Group: TypeAlias = "m.ConsumerGroupDescribeResponse.DescribedGroup"
Member: TypeAlias = "m.ConsumerGroupDescribeResponse.Member"


def handle(
    context: RequestContext, request: m.ConsumerGroupDescribeRequest
) -> Response | Pending[Response | SlicedResponse]:
    """See the module."""
    allowed, denied = told_apart(context, request.group_ids)
    answer = context.parts.coordinators.groups.describe_consumer_groups(allowed)
    return in_slices(
        context,
        as_pending(answer),
        len,
        partial(_at_once, context, request, denied),
        partial(_in_slices, context, request, denied),
        lambda: SlicedResponse(
            m.ConsumerGroupDescribeResponse(groups=[]), "groups", context.api_version
        ),
    )


def error_response(context: RequestContext, error: KafkaError) -> m.ConsumerGroupDescribeResponse:
    """Nothing in the response can carry an error of the whole request."""
    return m.ConsumerGroupDescribeResponse()


def _at_once(
    context: RequestContext,
    request: m.ConsumerGroupDescribeRequest,
    denied: list[str],
    described: list[Described],
) -> Response:
    groups = shown(
        context,
        denied,
        [each.whole() for each in described],
        topics=lambda group: _topics(group.members),
        refused=_refused,
        with_operations=request.include_authorized_operations,
    )
    return m.ConsumerGroupDescribeResponse(groups=groups)


def _in_slices(
    context: RequestContext,
    request: m.ConsumerGroupDescribeRequest,
    denied: list[str],
    described: list[Described],
    response: SlicedResponse,
) -> Iterator[None]:
    response.add([_refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED) for group_id in denied])
    for each in described:
        members: list[Member] = []
        names: dict[str, None] = {}
        for member in each.members():
            members.append(member)
            if len(members) % SLICE_MEMBERS == 0:
                names |= _topics(members[-SLICE_MEMBERS:])
                yield
        names |= _topics(members[-(len(members) % SLICE_MEMBERS or SLICE_MEMBERS) :])
        (group,) = shown(
            context,
            (),
            [each.group],
            topics=lambda group, names=names: names,  # type: ignore[misc]
            refused=_refused,
            with_operations=request.include_authorized_operations,
        )
        if group is not each.group or not members:
            response.add([group])
            continue
        element = response.begin_element(group, "members")
        for begin in range(0, len(members), SLICE_MEMBERS):
            yield
            element.add(members[begin : begin + SLICE_MEMBERS])
        element.end()


def _topics(members: Iterable[Member]) -> dict[str, None]:
    names: dict[str, None] = {}
    for member in members:
        for assignment in (member.assignment, member.target_assignment):
            names.update(dict.fromkeys(x.topic_name for x in assignment.topic_partitions))
    return names


def _refused(group_id: str, code: ErrorCode, text: str | None = None) -> Group:
    return m.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=int(code), error_message=text
    )
