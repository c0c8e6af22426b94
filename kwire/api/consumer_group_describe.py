"""ConsumerGroupDescribe, versions 0-1: consumer groups of KIP-848 with members and assignments.

Version 1 tells members of the classic protocol apart. Groups of another kind are
GROUP_ID_NOT_FOUND. Source: KIP-848, KIP-1099; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from kwire.api.shared.described_groups import DESCRIBE_GROUP, DESCRIBE_TOPIC, shown, told_apart
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION = (DESCRIBE_GROUP, DESCRIBE_TOPIC)
Response: TypeAlias = "m.ConsumerGroupDescribeResponse"
Group: TypeAlias = "m.ConsumerGroupDescribeResponse.DescribedGroup"

# Members that one turn of the loop describes at most: about a millisecond.
MEMBERS_PER_TURN_MAX = 200


def handle(
    context: RequestContext, request: m.ConsumerGroupDescribeRequest
) -> Answer[m.ConsumerGroupDescribeResponse]:
    """See the module."""
    allowed, denied = told_apart(context, request.group_ids)
    answer = context.parts.coordinators.groups.describe_consumer_groups(allowed)
    pending = as_pending(answer)
    if pending.done and not _is_large(pending.result()):
        return _response(context, request, denied, pending.result())
    return _in_turns(context, pending, lambda found: _response(context, request, denied, found))


def error_response(context: RequestContext, error: KafkaError) -> m.ConsumerGroupDescribeResponse:
    """Nothing in the response can carry an error of the whole request."""
    return m.ConsumerGroupDescribeResponse()


def _is_large(described: list[Group]) -> bool:
    return sum(len(group.members) for group in described) > MEMBERS_PER_TURN_MAX


def _in_turns(
    context: RequestContext,
    pending: Pending[list[Group]],
    respond: Callable[[list[Group]], Response],
) -> Pending[Response]:
    """The response to what is described; a large one in a turn of the loop of its own, and another
    one for its encoding: a thousand members with their partitions take milliseconds of each."""
    outcome: Pending[Response] = Pending(pending.cancel)
    loop = context.parts.loop

    def answer(described: list[Group]) -> None:
        try:
            response = respond(described)
        except Exception as error:
            outcome.fail(error)
            return
        if _is_large(described):
            loop.call_soon(partial(_complete, outcome, response))
        else:
            outcome.complete(response)

    def settle(done: Pending[list[Group]]) -> None:
        error = done.error()
        if error is not None:
            outcome.fail(error)
        elif _is_large(done.result()):
            loop.call_soon(partial(answer, done.result()))
        else:
            answer(done.result())

    pending.add_done_callback(settle)
    return outcome


def _complete(outcome: Pending[Response], response: Response) -> None:
    outcome.complete(response)


def _response(
    context: RequestContext,
    request: m.ConsumerGroupDescribeRequest,
    denied: list[str],
    described: list[Group],
) -> Response:
    groups = shown(
        context,
        denied,
        described,
        topics=_topics,
        refused=_refused,
        with_operations=request.include_authorized_operations,
    )
    return m.ConsumerGroupDescribeResponse(groups=groups)


def _topics(group: Group) -> list[str]:
    names: dict[str, None] = {}
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            names.update(dict.fromkeys(x.topic_name for x in assignment.topic_partitions))
    return list(names)


def _refused(group_id: str, code: ErrorCode, text: str | None = None) -> Group:
    return m.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=int(code), error_message=text
    )
