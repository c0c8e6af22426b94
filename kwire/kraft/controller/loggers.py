"""The BROKER_LOGGER resource of IncrementalAlterConfigs: a node's own log levels (KIP-412).

Nothing of it is in the metadata: the node that the request reached, broker or controller, checks
and changes its own loggers. Codes and texts measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.config import loggers
from kwire.config.validate import APPEND, DELETE, SET, SUBTRACT
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


def alter_loggers(
    node_id: int,
    resource: m.IncrementalAlterConfigsRequest.AlterConfigsResource,
    validate_only: bool,
) -> None:
    """Apply a resource's changes to this node's loggers, all or none. Raises KafkaError."""
    _check_name(node_id, resource.resource_name)
    changes: list[tuple[str, str | None]] = []
    for config in resource.configs:
        operation = config.config_operation
        if operation in (APPEND, SUBTRACT):
            verb = "APPEND" if operation == APPEND else "SUBTRACT"
            raise _invalid(f"{verb} operation is not allowed for the BROKER_LOGGER resource")
        if operation not in (SET, DELETE):
            raise _invalid(
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
            )
        level = config.value if operation == SET else None
        loggers.check_change(config.name, level)
        changes.append((config.name, level))
    if not validate_only:
        for logger_name, level in changes:
            loggers.change(logger_name, level)


def _check_name(node_id: int, name: str) -> None:
    try:
        wanted = int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if wanted != node_id:
        raise _invalid(f"Unexpected node id. Expected {node_id}, but received {wanted}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
