"""What rights commands of share groups need: with one of them missing they say so in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cli.app import main
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import PatternType, PermissionType
from kwire.share.dead_letters import REJECTED, DeadLetters, headers
from kwire.testing.cluster.in_thread import NodeInThread
from tests.support.acls import STANDARD_AUTHORIZER, become
from tests.support.share.member import Member, set_group_config
from tests.support.wire import WireClient, produce_request

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
    "log.retention.ms": "-1",  # records here are of 1970
}
NEEDED = (
    (Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, "g", "group g: "),
    (Operation.READ, ResourceType.TOPIC, "dlq.mail", "topic dlq.mail: "),
    (
        Operation.WRITE,
        ResourceType.TRANSACTIONAL_ID,
        "kwire-redrive/",
        "coordinator of kwire-redrive/dlq.mail-0/g: ",
    ),
    (Operation.READ, ResourceType.GROUP, "kwire-redrive/", "coordinator of kwire-redrive/g: "),
    (Operation.DESCRIBE, ResourceType.TOPIC, "mail", "topic mail: "),
    (Operation.READ, ResourceType.TOPIC, "mail", "mail-0: "),
    (Operation.WRITE, ResourceType.TOPIC, "mail", "mail-0: "),
)
"""(right, whose, how the line begins without it), in the order in which they are missed."""


def allow(client: WireClient, operation: Operation, kind: ResourceType, name: str) -> None:
    creation = m.CreateAclsRequest.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=PatternType.PREFIXED,
        principal="User:ANONYMOUS",
        host="*",
        operation=operation,
        permission_type=PermissionType.ALLOW,
    )
    assert client.call(m.CreateAclsRequest(creations=[creation]), 3).results[0].error_code == 0


def test_each_right_that_is_missing_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with NodeInThread(tmp_path, settings=SETTINGS) as node, WireClient(node.bootstrap) as admin:
        admin.call(m.ApiVersionsRequest(), 0)
        become(node, admin, "User:admin")
        for name in ("mail", "dlq.mail"):
            admin.create_topic(name)
        set_group_config(admin, "g", errors_deadletterqueue_topic_name="dlq.mail")
        letters = DeadLetters("g", "mail", bytes(16), 0, 0, 0, 1, REJECTED)
        dead = Record(timestamp=2000, headers=headers(letters, 0))
        for name, record in (("mail", Record(0, 1000, b"k", b"v")), ("dlq.mail", dead)):
            batch = bytes(build_batch([record]))
            answer = admin.call(produce_request(name, {0: batch}), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        capsys.readouterr()
        for operation, kind, name, told in NEEDED:
            status = main(["share", "redrive", "g", "-b", node.bootstrap])
            shown = capsys.readouterr()
            assert (status, shown.out, shown.err.count("\n")) == (1, "", 1), shown
            assert shown.err.startswith(f"kwire: {told}"), (name, shown.err)
            assert "authorization failed" in shown.err.lower().replace("_", " ")
            allow(admin, operation, kind, name)
        assert main(["share", "redrive", "g", "-b", node.bootstrap]) == 0
        assert capsys.readouterr() == ("1 sent to mail\n", "")
        assert main(["share", "dead", "g", "-b", node.bootstrap]) == 0
        assert "\tsettled\tk\tv\n" in capsys.readouterr().out


def test_commands_of_share_groups_name_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A group over two topics, of which the user may see one."""
    reset = ("group", "reset-offsets", "g", "--to", "latest", "-t")

    def kwire(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*arguments, "-b", node.bootstrap])
        return status, *capsys.readouterr()

    with NodeInThread(tmp_path, settings=SETTINGS) as node, WireClient(node.bootstrap) as admin:
        admin.call(m.ApiVersionsRequest(), 0)
        become(node, admin, "User:admin")
        for name in ("seen", "hidden"):
            admin.create_topic(name)
        set_group_config(admin, "g", share_auto_offset_reset="earliest")
        member = Member(node.bootstrap, "g", ["seen", "hidden"])
        member.client.call(m.ApiVersionsRequest(), 0)
        become(node, member.client, "User:admin")
        member.join(2)
        assert kwire("group", "list") == (0, "group\ttype\tstate\n", "")
        for arguments in (
            ("group", "describe", "g"),
            ("group", "delete", "g"),
            ("group", "alter", "g", "-o", "share.auto.offset.reset=latest"),
            ("share", "dead", "g"),
            ("consume", "seen", "--share", "g", "-c", "1"),
            (*reset, "seen"),
        ):
            status, shown, told = kwire(*arguments)
            assert (status, shown, told.count("\n")) == (1, "", 1), arguments
            assert "authorization failed" in told.lower().replace("_", " ")
        allow(admin, Operation.ALL, ResourceType.GROUP, "g")
        allow(admin, Operation.READ, ResourceType.TOPIC, "seen")
        status, _, told = kwire("group", "describe", "g")
        assert (status, told.count("\n")) == (1, 1)
        assert "topic(s) that the client is not authorized to describe" in told
        status, shown, told = kwire("consume", "seen", "--group", "g")
        assert (status, shown) == (1, "")
        assert told.startswith("kwire: group g is a share group")
        member.leave()
        member.close()
        status, shown, told = kwire("group", "describe", "g")
        assert (status, told) == (0, "")
        assert "\nseen\t0\t" in shown
        assert "hidden" not in shown
        assert kwire(*reset, "seen") == (0, "topic\tpartition\tstart\nseen\t0\t0\n", "")
        assert kwire(*reset, "hidden")[0] == 1
        assert kwire("group", "delete", "g") == (0, "deleted g\n", "")
