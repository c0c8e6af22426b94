"""A broker with StandardAuthorizer: ACLs that are made act, those that are removed do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import PatternType, PermissionType
from kwire.testing.cluster.in_thread import NodeInThread
from tests.support.acls import STANDARD_AUTHORIZER, become
from tests.support.wire import WireClient

SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}


def creation(principal: str, operation: Operation, name: str) -> m.CreateAclsRequest.AclCreation:
    return m.CreateAclsRequest.AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        resource_pattern_type=PatternType.PREFIXED,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=PermissionType.ALLOW,
    )


def codes(response: m.CreateTopicsResponse) -> list[int]:
    return [topic.error_code for topic in response.topics]


def topics(*names: str) -> m.CreateTopicsRequest:
    return m.CreateTopicsRequest(
        topics=[
            m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in names
        ],
        timeout_ms=10_000,
    )


@contextmanager
def node_and_clients(directory: Path) -> Iterator[tuple[WireClient, WireClient]]:
    """Two connections to a node: of User:admin and of User:alice."""
    with (
        NodeInThread(directory, settings=SETTINGS) as node,
        WireClient(node.bootstrap) as admin,
        WireClient(node.bootstrap) as alice,
    ):
        for client, principal in ((admin, "User:admin"), (alice, "User:alice")):
            client.call(m.ApiVersionsRequest(), 0)
            become(node, client, principal)
        yield admin, alice


def test_acls_act_at_once_and_outlive_a_restart(tmp_path: Path) -> None:
    with node_and_clients(tmp_path) as (admin, alice):
        denied = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert codes(alice.call(topics("alice-1", "bob-1"), 5)) == [denied, denied]
        refused = alice.call(
            m.CreateAclsRequest(creations=[creation("User:alice", Operation.ALL, "")]), 3
        )
        assert refused.results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        made = admin.call(
            m.CreateAclsRequest(creations=[creation("User:alice", Operation.CREATE, "alice-")]),
            3,
        )
        assert made.results[0].error_code == 0
        assert sorted(codes(alice.call(topics("alice-1", "bob-1"), 5))) == [0, denied]
    with node_and_clients(tmp_path) as (admin, alice):
        assert codes(alice.call(topics("alice-2"), 5)) == [0]
        removed = admin.call(
            m.DeleteAclsRequest(
                filters=[
                    m.DeleteAclsRequest.DeleteAclsFilter(
                        resource_type_filter=1,
                        resource_name_filter=None,
                        principal_filter=None,
                        host_filter=None,
                        pattern_type_filter=1,
                        operation=1,
                        permission_type=1,
                    )
                ]
            ),
            3,
        )
        assert len(removed.filter_results[0].matching_acls) == 1
        assert codes(alice.call(topics("alice-3"), 5)) == [denied]
