"""A broker with StandardAuthorizer: ACLs that are made act, those that are removed do not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire.cli.app import main
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import PatternType, PermissionType
from kwire.testing.cluster.in_thread import NodeInThread
from tests.support.acls import STANDARD_AUTHORIZER, become
from tests.support.wire import WireClient, batch_of, produce_request

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


def test_odd_requests_of_who_may_do_nothing_are_refused_as_by_kafka(tmp_path: Path) -> None:
    """Each measured on Apache Kafka 4.4."""
    topic = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with node_and_clients(tmp_path) as (admin, alice):
        assert codes(admin.call(topics("t"), 5)) == [0]
        admin.topic("t")
        # A topic that may not be described is answered as it was asked for, any other one by its
        # partitions.
        asked = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
        wanted = m.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                m.ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[asked] * count)
                for name, count in (("t", 0), ("u", 2), ("u", 1))
            ],
        )
        told = [
            [(each.name, [p.error_code for p in each.partitions]) for each in answer.topics]
            for answer in (alice.call(wanted, 7), admin.call(wanted, 7))
        ]
        assert told[0] == [("t", []), ("u", [topic, topic]), ("u", [topic])]
        assert told[1] == [("u", [int(ErrorCode.INVALID_REQUEST)])]
        # A name that cannot be is told to everybody.
        described = m.DescribeProducersRequest
        names = described(
            topics=[described.TopicRequest(name=n, partition_indexes=[0]) for n in ("a b", "u")]
        )
        answers = alice.call(names, 0).topics
        assert [each.partitions[0].error_code for each in answers] == [
            int(ErrorCode.INVALID_TOPIC_EXCEPTION),
            topic,
        ]
        # A transactional id counts where there are records of a transaction.
        for is_transactional, code in (
            (False, topic),
            (True, int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)),
        ):
            batch = batch_of(
                [b"v"],
                producer_id=1,
                producer_epoch=0,
                base_sequence=0,
                transactional=is_transactional,
            )
            produced = produce_request("t", {0: batch})
            produced.transactional_id = "x"
            answer = alice.call(produced, 9).responses[0].partition_responses[0]
            assert answer.error_code == code
        shape = m.ListPartitionReassignmentsRequest
        named = shape.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 7])
        for client in (alice, admin):
            listed = client.call(shape(topics=[named], timeout_ms=9000), 0)
            refused = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED) if client is alice else 0
            assert listed.error_code == refused
            partitions = [
                (each.name, p.partition_index, p.replicas)
                for each in listed.topics
                for p in each.partitions
            ]
            assert partitions == ([("t", 0, []), ("t", 7, [])] if client is alice else [])


# -- kwire acl


class Told:
    """Runs `kwire acl ...` in this process against a cluster, and gives what it says."""

    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._bootstrap = bootstrap
        self._capsys = capsys

    def __call__(self, line: str, status: int = 0) -> str:
        found = main(["acl", *line.split(), "--bootstrap", self._bootstrap])
        told = self._capsys.readouterr()
        assert found == status, told.err
        return told.out + told.err


def tell_all(kwire_acl: Told, *, is_kwire: bool = True) -> None:
    """What `kwire acl` says of ACLs that it makes; on an Apache Kafka the same, but that such
    brokers tell no super users."""
    none = kwire_acl("why alice read topic:orders", status=1)
    assert none.startswith("denied: User:alice may not read topic:orders\n")
    assert "no ACL covers the resource, and then only super users are allowed" in none
    untold = "the brokers do not tell super.users: see kwire acl why --help"
    assert (untold in none) is not is_kwire
    everybody = kwire_acl("why alice read topic:orders --allow-everyone")
    assert "and then everybody is allowed" in everybody
    root = kwire_acl("why root alter cluster --super-users User:admin;User:root")
    assert "a super user may do everything" in root
    assert "do not tell" not in root
    added = kwire_acl("add alice read topic:ord --prefix")
    assert added == "added allow User:alice to read topic:ord... (prefix)\n"
    kwire_acl("add User:* all topic:* --deny --host 10.9.0.0/16")
    kwire_acl("add bob write topic:orders --host ::1")
    deadline = time.monotonic() + 30
    while kwire_acl("list").count("\n") < 4:
        assert time.monotonic() < deadline
    implied = kwire_acl("why alice describe topic:orders 127.0.0.1")
    assert implied.startswith("allowed: User:alice may describe topic:orders from 127.0.0.1\n")
    rule = "allow User:alice to read topic:ord... (prefix)"
    assert f"this ACL allows it: READ implies DESCRIBE: {rule}" in implied
    denied = kwire_acl("why alice read topic:orders 10.9.1.1", status=1)
    assert "this ACL denies it: deny User:* from 10.9.0.0/16 to all topic:*" in denied
    assert "2 of them fit" in denied
    left_out = kwire_acl("why bob write topic:orders", status=1)
    assert "2 ACLs of single hosts were left out" in left_out
    assert "from 0:0:0:0:0:0:0:1" in kwire_acl("why bob write topic:orders ::1")
    as_json = json.loads(kwire_acl("why alice read topic:orders --json"))
    assert as_json["allowed"] is True
    assert as_json["rule"]["pattern"] == "prefixed"
    assert kwire_acl("list --user bob").count("\n") == 2
    assert "bob" not in kwire_acl("list --resource topic:ordinary")
    refused = kwire_acl("add alice read topic:t --host 10.0.0.0/33", status=1)
    assert "Value [33] not in range [0,32]" in refused
    assert kwire_acl("remove alice read topic:ord --prefix").startswith("removed allow User:alice")
    kwire_acl("remove User:* all topic:* --deny --host 10.9.0.0/16")
    kwire_acl("remove bob write topic:orders --host ::1")
    assert "there is no such ACL" in kwire_acl("remove alice read topic:ord --prefix", status=1)


def test_kwire_acl_tells_which_rule_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {**SETTINGS, "super.users": "User:ANONYMOUS"}
    with NodeInThread(tmp_path, settings=settings) as node:
        tell_all(Told(node.bootstrap, capsys))


def test_kwire_acl_knows_super_users_and_who_may_do_what_nobody_has_an_acl_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {**SETTINGS, "super.users": "User:ANONYMOUS; User:root"}
    settings["allow.everyone.if.no.acl.found"] = "true"
    with NodeInThread(tmp_path, settings=settings) as node:
        kwire_acl = Told(node.bootstrap, capsys)
        assert "everybody is allowed" in kwire_acl("why alice read topic:orders")
        kwire_acl("add User:* all topic:orders --deny")
        assert "a super user may do everything" in kwire_acl("why root read topic:orders")
        assert kwire_acl("why alice read topic:orders", status=1).startswith("denied: ")
        other = kwire_acl("why alice read topic:orders --super-users User:alice")
        assert "a super user may do everything" in other
        with WireClient(node.bootstrap) as client:  # as Kafka tells them
            shape = m.DescribeConfigsRequest
            asked = shape.DescribeConfigsResource(
                resource_type=4, resource_name="1", configuration_keys=["super.users"]
            )
            configs = client.call(shape(resources=[asked]), 4).results[0].configs
    assert [(each.name, each.value, each.is_sensitive) for each in configs] == [
        ("super.users", None, True)
    ]


def test_kwire_acl_where_there_is_no_authorizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with NodeInThread(tmp_path) as node:
        told = Told(node.bootstrap, capsys)("why alice read topic:orders", status=1)
    assert told.startswith("kwire: the ACLs: No Authorizer is configured")


@pytest.mark.parametrize("early", ["PLAINTEXT", "CONTROLLER"])
def test_a_controllers_listener_serves_whether_it_starts_early_or_not(
    early: str, tmp_path: Path
) -> None:
    settings = {
        **SETTINGS,
        "super.users": "User:ANONYMOUS",
        "early.start.listeners": early,
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
    }
    with NodeInThread(tmp_path, settings=settings) as node:
        port = node.node.listeners.bound["CONTROLLER"].port
        with WireClient(f"127.0.0.1:{port}") as client:
            answer = client.call(m.DescribeClusterRequest(endpoint_type=2), 1)
    assert answer.error_code == ErrorCode.NONE


def test_users_who_log_in_have_the_rights_that_they_were_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By SASL PLAIN, each with its file of client properties."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    passwords = {"admin": "secret-a", "alice": "secret-b"}
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    own = 'username="admin" password="secret-a"'
    settings = {
        **SETTINGS,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} {own} {users};",
    }
    with NodeInThread(tmp_path / "data", settings=settings) as node:

        def run(user: str, line: str) -> int:
            file = tmp_path / f"{user}.properties"
            login = f'{module} username="{user}" password="{passwords[user]}";'
            file.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
                f"sasl.jaas.config={login}\n"
            )
            end = ["--bootstrap", node.bootstrap, "--command-config", str(file)]
            return main([*line.split(), *end])

        assert run("alice", "topic create alpha") == 1
        assert run("alice", "acl list") == 1
        assert run("admin", "acl add alice create topic:al --prefix") == 0
        assert run("admin", "acl why alice create topic:alpha") == 0
        assert run("alice", "topic create alpha") == 0
        assert run("alice", "topic create beta") == 1
        assert "secret" not in str(capsys.readouterr())
