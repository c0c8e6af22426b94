"""Kafka's ACL codes for operations and resource types, and what a principal may do."""

from __future__ import annotations

from kwire.server.context import RequestContext

READ = 3
WRITE = 4
CREATE = 5
DELETE = 6
ALTER = 7
DESCRIBE = 8
CLUSTER_ACTION = 9
DESCRIBE_CONFIGS = 10
ALTER_CONFIGS = 11
IDEMPOTENT_WRITE = 12

TOPIC = 2
GROUP = 3
CLUSTER = 4
TRANSACTIONAL_ID = 5

CLUSTER_NAME = "kafka-cluster"

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
