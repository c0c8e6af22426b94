"""ShareGroupDescribe, version 1: share groups with members and what they read.

Groups of another kind are GROUP_ID_NOT_FOUND. Where the feature share.version is off every group
is UNSUPPORTED_VERSION. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.shared.described_groups import DESCRIBE_GROUP, DESCRIBE_TOPIC, shown, told_apart
from kwire.api.shared.share_groups import check_share_groups
from kwire.coordinator.replies import convert_all
from kwire.pending import Answer, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext

VERSIONS = (1, 1)
AUTHORIZATION = (DESCRIBE_GROUP, DESCRIBE_TOPIC)
Group: TypeAlias = "m.ShareGroupDescribeResponse.DescribedGroup"


def handle(
    context: RequestContext, request: m.ShareGroupDescribeRequest
) -> Answer[m.ShareGroupDescribeResponse]:
    """See the module."""
    try:
        check_share_groups(context)
    except KafkaError as error:
        code = ErrorCode(error.code)
        return m.ShareGroupDescribeResponse(
            groups=[_refused(group_id, code) for group_id in request.group_ids]
        )
    allowed, denied = told_apart(context, request.group_ids)
    answer = context.parts.coordinators.groups.share.describe(allowed)
    return convert_all(
        as_pending(answer), lambda done: _response(context, request, denied, done.result())
    )


def error_response(context: RequestContext, error: KafkaError) -> m.ShareGroupDescribeResponse:
    """Nothing in the response can carry an error of the whole request."""
    return m.ShareGroupDescribeResponse()


def _response(
    context: RequestContext,
    request: m.ShareGroupDescribeRequest,
    denied: list[str],
    described: list[Group],
) -> m.ShareGroupDescribeResponse:
    groups = shown(
        context,
        denied,
        described,
        topics=_topics,
        refused=_refused,
        with_operations=request.include_authorized_operations,
    )
    return m.ShareGroupDescribeResponse(groups=groups)


def _topics(group: Group) -> list[str]:
    names: dict[str, None] = {}
    for member in group.members:
        names.update(dict.fromkeys(x.topic_name for x in member.assignment.topic_partitions))
    return list(names)


def _refused(group_id: str, code: ErrorCode, text: str | None = None) -> Group:
    return m.ShareGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=int(code), error_message=text
    )
