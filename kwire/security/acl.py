"""Kafka's numbers of operations and of types of resources, as they stand in ACLs and requests.

Source: AclOperation and ResourceType of Apache Kafka 4.4.
"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """AclOperation. UNKNOWN, ANY and ALL stand in ACLs and filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """ResourceType of an ACL (not that of a config). UNKNOWN and ANY stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
