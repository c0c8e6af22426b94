"""Groups whose members have topics assigned, as somebody may see them: all of a group, or nothing.

Measured on Apache Kafka 4.4: one topic that the caller may not describe hides the whole group.
Groups with many members are answered in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from kwire.pending import Answer, Pending, then
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import authorized_operations
from kwire.server.context import RequestContext
from kwire.server.sliced_response import SlicedResponse

DESCRIBE_GROUP = Requires(
    Operation.DESCRIBE, ResourceType.GROUP, "group_ids[]", denied=Denied.ENTRY
)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    denied=Denied.ENTRY,
    note="every topic that is assigned to a member",
)
HIDDEN_TOPICS_TEXT = (
    "The group has described topic(s) that the client is not authorized to describe."
)
SLICE_MEMBERS = 200
"""Described or encoded in one turn of the loop: about a millisecond. Fewer are answered at once."""


class DescribedGroup(Protocol):
    """One group of a response."""

    group_id: str
    error_code: int
    authorized_operations: int


D = TypeVar("D")
R = TypeVar("R")
G = TypeVar("G", bound=DescribedGroup)
Refused = Callable[[str, ErrorCode, str | None], G]
"""(group id, code, text) -> the entry of a group that is not described."""


def told_apart(context: RequestContext, group_ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """-> (those that may be described, those that may not)."""
    allowed: list[str] = []
    denied: list[str] = []
    for group_id in group_ids:
        (allowed if context.allows(DESCRIBE_GROUP, group_id) else denied).append(group_id)
    return allowed, denied


def shown(
    context: RequestContext,
    denied: Sequence[str],
    described: Sequence[G],
    *,
    topics: Callable[[G], Iterable[str]],
    refused: Refused[G],
    with_operations: bool,
) -> list[G]:
    """The entries of a response. `topics(group)` are those that its members have."""
    groups = [refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED, None) for group_id in denied]
    for group in described:
        if not all(context.allows(DESCRIBE_TOPIC, name) for name in topics(group)):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            group = refused(group.group_id, code, HIDDEN_TOPICS_TEXT)
        elif with_operations and group.error_code == 0:
            group.authorized_operations = authorized_operations(
                context, ResourceType.GROUP, group.group_id
            )
        groups.append(group)
    return groups


def in_slices(
    context: RequestContext,
    found: Pending[list[D]],
    members: Callable[[D], int],
    at_once: Callable[[list[D]], R],
    slices: Callable[[list[D], SlicedResponse], Iterator[None]],
    empty: Callable[[], SlicedResponse],
) -> R | Pending[R | SlicedResponse]:
    """The answer to what is described, in slices where all have many `members`: `slices` fills
    what `empty` gives."""

    def is_long(described: list[D]) -> bool:
        return sum(map(members, described)) > SLICE_MEMBERS

    def answer(done: Pending[list[D]]) -> Answer[R | SlicedResponse]:
        described = done.result()
        if not is_long(described):
            return at_once(described)
        response = empty()
        return context.slices.run(slices(described, response), lambda: response)

    if found.done and not is_long(found.result()):
        return at_once(found.result())
    return then(found, answer)
