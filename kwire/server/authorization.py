"""What a principal may do with a resource, and what can be done with it at all."""

from __future__ import annotations

from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.server.context import RequestContext

__all__ = [
    "ALTER",
    "ALTER_CONFIGS",
    "CLUSTER",
    "CLUSTER_ACTION",
    "CLUSTER_NAME",
    "CLUSTER_OPERATIONS",
    "CREATE",
    "DELETE",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "GROUP",
    "GROUP_OPERATIONS",
    "IDEMPOTENT_WRITE",
    "INTERNAL_TOPICS",
    "READ",
    "TOPIC",
    "TOPIC_OPERATIONS",
    "TRANSACTIONAL_ID",
    "WRITE",
    "authorized_operations",
]

READ = Operation.READ
WRITE = Operation.WRITE
CREATE = Operation.CREATE
DELETE = Operation.DELETE
ALTER = Operation.ALTER
DESCRIBE = Operation.DESCRIBE
CLUSTER_ACTION = Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS = Operation.DESCRIBE_CONFIGS
ALTER_CONFIGS = Operation.ALTER_CONFIGS
IDEMPOTENT_WRITE = Operation.IDEMPOTENT_WRITE

TOPIC = ResourceType.TOPIC
GROUP = ResourceType.GROUP
CLUSTER = ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

TOPIC_OPERATIONS = (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
GROUP_OPERATIONS = (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS = (
    CREATE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
)

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def authorized_operations(
    context: RequestContext, operations: tuple[int, ...], resource_type: int, name: str
) -> int:
    """The bit field of the operations that the principal may do on a resource (KIP-430)."""
    return sum(
        1 << operation
        for operation in operations
        if context.authorize(operation, resource_type, name)
    )
