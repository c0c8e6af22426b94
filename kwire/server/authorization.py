"""The authorisation step: what an API requires, asked of the authorizer.

Each API declares its `AUTHORIZATION` (`kwire/security/requirements.py`). What concerns the request
as a whole is asked here before the handler; handlers that refuse single entries or leave some out
ask for each by the same declaration: `context.allows(READ_TOPIC, name)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kwire.protocol.structs import Struct
from kwire.security.acl import Operation, ResourceType
from kwire.security.authorizer import Authorizer
from kwire.security.requirements import Authorization, Requires
from kwire.server.context import RequestContext

OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""What can be done to a resource of a type."""

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


@dataclass(frozen=True, slots=True)
class DescribedTopics:
    """Which topics somebody may describe, for when its request is long answered."""

    authorizer: Authorizer
    principal: str
    client_host: str

    def __call__(self, topic: str) -> bool:
        return self.authorizer.authorize(self, Operation.DESCRIBE, ResourceType.TOPIC, topic)


def missing_right(
    context: RequestContext, required: Authorization, request: Struct
) -> Requires | None:
    """The first requirement that is not met for a resource which the request names."""
    for requirement in required:
        for name in requirement.resources(request):
            if not context.allows(requirement, name):
                return requirement
    return None


def authorized_operations(
    context: RequestContext,
    resource_type: ResourceType,
    name: str,
) -> int:
    """The bit field of the operations that the principal may do on a resource (KIP-430)."""
    return sum(
        1 << operation
        for operation in OPERATIONS[resource_type]
        if context.may(operation, resource_type, name)
    )
