"""What rights `kwire share redrive` needs: with one of them missing it says so in one line."""

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
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, produce_request

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
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
