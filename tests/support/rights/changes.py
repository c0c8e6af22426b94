"""Rights that change while a client is connected, has a fetch session and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.protocol import messages as m
from kwire.security.acl import Operation
from tests.support.rights.users import ADMIN, ALLOW, LITERAL
from tests.support.rights.world import OK, SECRET, login, until
from tests.support.wire import WireClient, batch_of, produce_request

USER = "none"
DENY = 2
Told = list[list[Any]]
Plain = Callable[[Any], Any]


def play(bootstrap: str, plain: Plain) -> Told:
    """[what is asked, answer], in this order."""
    with login(bootstrap, ADMIN) as admin, login(bootstrap, USER) as client:
        story = _Story(admin, client, plain)
        story.tell()
        return story.told


class _Story:
    def __init__(self, admin: WireClient, client: WireClient, plain: Plain) -> None:
        self._admin = admin
        self._client = client
        self._plain = plain
        self._session_id = 0
        self._session_epoch = 0
        self._entries = 0
        self.told: Told = []

    def tell(self) -> None:
        self._change(Operation.READ, ALLOW, sees=True)
        self._fetch("fetch, first", OK, SECRET)
        self._fetch("fetch, allowed")
        self._revoke(Operation.READ, ALLOW, sees=False)
        self._fetch("fetch, revoked")
        self._change(Operation.WRITE, ALLOW, sees=True)
        self._fetch("fetch, may write")
        self._produce("produce, may write")
        self._change(Operation.READ, ALLOW, sees=True)
        self._produce("produce, may read and write")
        self._fetch("fetch, may read and write")
        self._change(Operation.DESCRIBE, DENY, sees=False)
        self._fetch("fetch, may not describe")
        self._produce("produce, may not describe")
        self._change(Operation.ALL, DENY, sees=False)
        self._revoke(Operation.DESCRIBE, DENY, sees=False)
        self._fetch("fetch, denied all")
        self._produce("produce, denied all")
        self._revoke(Operation.ALL, DENY, sees=True)
        self._fetch("fetch, not denied any more")
        self._revoke(Operation.READ, ALLOW, sees=True)
        self._revoke(Operation.WRITE, ALLOW, sees=False)
        self._produce("produce, revoked")

    def _change(self, operation: Operation, permission: int, *, sees: bool) -> None:
        shape = m.CreateAclsRequest
        entry = shape.AclCreation(
            resource_type=2,
            resource_name=SECRET,
            resource_pattern_type=LITERAL,
            principal=f"User:{USER}",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        answer = self._admin.call(shape(creations=[entry]), 3)
        assert answer.results[0].error_code == 0, answer
        self._entries += 1
        self._wait(sees)

    def _revoke(self, operation: Operation, permission: int, *, sees: bool) -> None:
        shape = m.DeleteAclsRequest
        wanted = shape.DeleteAclsFilter(
            resource_type_filter=2,
            resource_name_filter=SECRET,
            pattern_type_filter=LITERAL,
            principal_filter=f"User:{USER}",
            host_filter="*",
            operation=operation,
            permission_type=permission,
        )
        answer = self._admin.call(shape(filters=[wanted]), 3)
        assert len(answer.filter_results[0].matching_acls) == 1, answer
        self._entries -= 1
        self._wait(sees)

    def _wait(self, sees: bool) -> None:
        """Until the broker decides by the entries as they are now, all of them."""
        shown = m.DescribeAclsRequest(
            resource_type_filter=2,
            resource_name_filter=SECRET,
            pattern_type_filter=LITERAL,
            principal_filter=f"User:{USER}",
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        until(
            lambda: self._admin.call(shown, 3),
            lambda answer: sum(len(x.acls) for x in answer.resources) == self._entries,
        )
        expected = 0 if sees else 29
        until(
            lambda: self._client.metadata([SECRET], 9),
            lambda answer: answer.topics[0].error_code == expected,
        )

    def _fetch(self, label: str, *names: str) -> None:
        shape = m.FetchRequest
        one = [shape.FetchPartition(partition=0, partition_max_bytes=1 << 20)]
        request = shape(
            max_wait_ms=0,
            min_bytes=0,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[shape.FetchTopic(topic=name, partitions=one) for name in names],
        )
        answer = self._client.call(request, 12)
        self._session_id = answer.session_id
        self._session_epoch += 1
        answer.session_id = int(bool(answer.session_id))
        self.told.append([label, self._plain(answer)])

    def _produce(self, label: str) -> None:
        request = produce_request(SECRET, {0: batch_of([b"value"])})
        self.told.append([label, self._plain(self._client.call(request, 9))])
