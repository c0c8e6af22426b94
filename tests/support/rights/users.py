"""The users of the rights scenario: each has one right, or a few that some API asks for together.

All grants are for names that begin with `ok`; `everything` has them for all names. Passwords are
the names. `admin` is a super user.
"""

from __future__ import annotations

from kwire.protocol import messages as m
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType

PREFIX = "ok"
LITERAL, PREFIXED, ALLOW = 3, 4, 3
ADMIN = "admin"
OWNER = "owner"
"""Owns a delegation token, and may do nothing else."""

SINGLE: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.ALTER, Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.DELETE,
    ),
    ResourceType.GROUP: (
        Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
        Operation.DELETE,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}  # fmt: skip

Right = tuple[ResourceType, Operation]


def user_of(right: Right) -> str:
    """`topic-read`."""
    kind, operation = right
    return f"{kind.name}-{operation.name}".lower()


def _rights() -> dict[str, tuple[Right, ...]]:
    topic, group, txn = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
    users: dict[str, tuple[Right, ...]] = {"none": ()}
    for kind, operations in SINGLE.items():
        for operation in operations:
            users[user_of((kind, operation))] = ((kind, operation),)
    read_group, read_topic = (group, Operation.READ), (topic, Operation.READ)
    write_txn, write_topic = (txn, Operation.WRITE), (topic, Operation.WRITE)
    users["group-and-topic"] = (read_group, read_topic)
    users["txn-and-topic"] = (write_txn, write_topic)
    users["txn-and-group"] = (write_txn, read_group)
    users["txn-and-group-and-topic"] = (write_txn, read_group, read_topic)
    users["group-delete-and-topic-read"] = ((group, Operation.DELETE), read_topic)
    users["topic-create-and-configs"] = (
        (topic, Operation.CREATE),
        (topic, Operation.DESCRIBE_CONFIGS),
    )
    describe_topic = (topic, Operation.DESCRIBE)
    users["topic-create-and-describe"] = ((topic, Operation.CREATE), describe_topic)
    users["cluster-create-and-topic-describe"] = (
        (ResourceType.CLUSTER, Operation.CREATE),
        describe_topic,
    )
    users["everything"] = tuple((kind, Operation.ALL) for kind in SINGLE)
    return users


USERS: dict[str, tuple[Right, ...]] = _rights()


def acls() -> list[m.CreateAclsRequest.AclCreation]:
    """The grants of all users."""
    return [_acl(user, *right) for user, rights in USERS.items() for right in rights]


def _acl(user: str, kind: ResourceType, operation: Operation) -> m.CreateAclsRequest.AclCreation:
    name, pattern = PREFIX, PREFIXED
    if kind is ResourceType.CLUSTER:
        name, pattern = CLUSTER_NAME, LITERAL
    elif kind is ResourceType.USER:
        name, pattern = f"User:{OWNER}", LITERAL
    elif user == "everything" or kind is ResourceType.DELEGATION_TOKEN:
        name, pattern = "*", LITERAL
    return m.CreateAclsRequest.AclCreation(
        resource_type=int(kind),
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=int(operation),
        permission_type=ALLOW,
    )


def jaas_config() -> str:
    """The accounts, as a listener's `plain.sasl.jaas.config`."""
    names = [ADMIN, OWNER, *USERS]
    accounts = " ".join(f'user_{name}="{name}"' for name in names)
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{ADMIN}" password="{ADMIN}" {accounts};'
    )


def properties(broker_port: int, controller_port: int, plain_port: int) -> dict[str, str]:
    """The settings of a node whose clients and controllers log in by PLAIN.

    `plain_port` is for a listener without authentication, for the brokers among themselves.
    """
    listeners = (
        f"SASL_PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port},"
        f"PLAINTEXT://127.0.0.1:{plain_port}"
    )
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": (
            "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas_config(),
        "listener.name.controller.plain.sasl.jaas.config": jaas_config(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "delegation.token.secret.key": "the key of this test",
        "group.consumer.max.session.timeout.ms": "600000",
        "group.consumer.session.timeout.ms": "600000",
        "group.share.max.session.timeout.ms": "600000",
        "group.share.session.timeout.ms": "600000",
        "transaction.max.timeout.ms": "900000",
    }
