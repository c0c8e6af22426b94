"""What a request needs to be allowed, as data: one `Requires` for each thing that is asked.

An API names its requirements in `AUTHORIZATION`; `docs/AUTHORIZATION.md` is made from them. Where
the resources are named in the request is a path: `group_id`, `topics[].name`; without one the
resource is the cluster. A null or an empty list there names no resource, and needs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Struct
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType


class Denied(Enum):
    """What becomes of a request without the right."""

    REQUEST = "the whole request is refused"
    ENTRY = "the entry is refused, others are not"
    LEFT_OUT = "what may not be seen is left out"


class Checked(Enum):
    """Who asks the authorizer."""

    BEFORE = "before the handler"
    HANDLER = "the handler"
    CONTROLLER = "the active controller"


REFUSALS: dict[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""Resource type -> the error of who may not do something to it."""


class Requires(NamedTuple):
    """The right to do `operation` to resources of a type.

    `found_in` is where the request names them; empty for the cluster, and for what only the answer
    names. `unless` is another path: the right is needed only where nothing stands there. With one
    of `instead`, on the cluster or on any resource of another type, the right itself is not needed.
    `note` says what the fields cannot.
    """

    operation: Operation
    resource_type: ResourceType
    found_in: str = ""
    denied: Denied = Denied.REQUEST
    checked: Checked = Checked.HANDLER
    unless: str = ""
    instead: tuple[Requires, ...] = ()
    message: str | None = None
    note: str = ""

    @property
    def refusal(self) -> ErrorCode:
        """The error of who lacks the right."""
        return REFUSALS[self.resource_type]

    def resources(self, request: Struct) -> list[str]:
        """The names of the resources in a request, each once."""
        if self.unless and next(values_at(request, self.unless), None) is not None:
            return []
        if not self.found_in:
            return [CLUSTER_NAME] if self.resource_type == ResourceType.CLUSTER else []
        found = (name for name in values_at(request, self.found_in) if isinstance(name, str))
        return list(dict.fromkeys(found))


Authorization = tuple[Requires, ...]
"""What an API requires; an empty one: nothing."""


def values_at(request: Struct, path: str) -> Iterator[object]:
    """What stands in a request at a path like `topics[].name`; nothing for a null."""
    name, _, rest = path.partition(".")
    value = getattr(request, name.removesuffix("[]"))
    values = value or () if name.endswith("[]") else (value,)
    for each in values:
        if each is None:
            continue
        if rest:
            yield from values_at(each, rest)
        else:
            yield each
