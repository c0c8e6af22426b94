"""Groups whose members have topics assigned, as somebody may see them: all of a group, or nothing.

Measured on Apache Kafka 4.4: one topic that the caller may not describe hides the whole group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import authorized_operations
from kwire.server.context import RequestContext

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


class DescribedGroup(Protocol):
    """One group of a response."""

    group_id: str
    error_code: int
    authorized_operations: int


G = TypeVar("G", bound=DescribedGroup)
Refused = Callable[[str, ErrorCode, str | None], G]
"""(group id, code, text) -> the entry of a group that is not described."""


def told_apart(context: RequestContext, group_ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """-> (those that may be described, those that may not)."""
    denied = [group_id for group_id in group_ids if not context.allows(DESCRIBE_GROUP, group_id)]
    return [group_id for group_id in group_ids if group_id not in denied], denied


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
