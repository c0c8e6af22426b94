"""Callers of HTTP are principals of the broker: their passwords, their rights, nobody else's."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator

import pytest

pytest.importorskip("starlette")

from starlette.types import Message, Receive, Scope, Send

from kwire.client.admin import Admin
from kwire.clock import SystemRandom
from kwire.http.callers import CALLERS_MAX, Callers, Protected, Refused
from kwire.protocol import messages as m
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.testing.cluster import Broker, free_ports
from tests.support.sasl import USERS, sasl_settings
from tests.support.wire import WireClient
from tests.system.test_http import Http

WAIT_S = 60.0
LITERAL, ALLOW = 3, 3


def header(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


ADMIN, ALICE = header("admin", USERS["admin"]), header("alice", USERS["alice"])


class Secure(Broker):
    """A broker where `admin` may do everything and others nothing."""

    def __init__(self) -> None:
        port, sasl_port = free_ports(2)
        self.sasl_bootstrap = f"127.0.0.1:{sasl_port}"
        listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://{self.sasl_bootstrap}"
        super().__init__(
            port=port,
            options={
                "listeners": listeners,
                "advertised.listeners": listeners,
                "http.listeners": "http://127.0.0.1:0",
                "http.authentication": "basic",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
                "connection.failed.authentication.delay.ms": "0",
                **sasl_settings("SASL_PLAINTEXT", mechanisms=("PLAIN", "SCRAM-SHA-256")),
            },
        )


@pytest.fixture(scope="module")
def broker() -> Iterator[Secure]:
    with Secure() as one:
        yield one


def run(broker: Secure, test: Callable[[Callers], Awaitable[None]]) -> None:
    async def inner() -> None:
        callers = Callers(broker.sasl_bootstrap, ["PLAIN", "SCRAM-SHA-256"], SystemRandom())
        try:
            await asyncio.wait_for(test(callers), WAIT_S)
        finally:
            await callers.close()

    asyncio.run(inner())


def test_a_caller_has_the_rights_of_its_principal(broker: Secure) -> None:
    async def test(callers: Callers) -> None:
        admin, alice = await callers.of(ADMIN), await callers.of(ALICE)
        assert (await admin.may_describe(), await alice.may_describe()) == (True, False)
        await Admin(admin.cluster).topics.create("t", partitions=1)
        assert [topic.name for topic in await Admin(admin.cluster).topics.listed()] == ["t"]
        assert await Admin(alice.cluster).topics.listed() == []
        assert await callers.of(ADMIN) is admin

    run(broker, test)


@pytest.mark.parametrize(
    "given",
    [
        header("alice", "wrong"),
        header("nobody", "x"),
        header("", "x"),
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"alice").decode(),
        "Basic " + base64.b64encode(b"a\0b:c").decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:c").decode(),
        "Basic " + "A" * 5000,
        "Bearer token",
        "",
    ],
)
def test_whoever_does_not_log_in_is_refused(broker: Secure, given: str) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(Refused) as caught:
            await callers.of(given)
        assert caught.value.status == 401
        assert "wrong" not in str(caught.value)

    run(broker, test)


def test_clients_that_are_kept_are_bounded(broker: Secure) -> None:
    async def test(callers: Callers) -> None:
        first = await callers.of(ADMIN)
        callers._known |= {b"%d" % number: first for number in range(CALLERS_MAX)}
        await callers.of(ALICE)
        assert len(callers._known) <= CALLERS_MAX

    run(broker, test)


def test_a_right_that_is_taken_away_is_gone_at_once(broker: Secure) -> None:
    """A caller kept the right for as long as its login."""

    async def test(callers: Callers) -> None:
        admin = await callers.of(ADMIN)
        alice = await callers.of(ALICE)
        app = Protected(hello, callers, needs_describe=True)
        may = m.CreateAclsRequest.AclCreation(
            resource_type=4,
            resource_name="kafka-cluster",
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=8,
            permission_type=3,
        )
        shape = m.DeleteAclsRequest
        everything = shape.DeleteAclsFilter(
            resource_type_filter=4,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter="User:alice",
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        for request, status in (
            (m.CreateAclsRequest(creations=[may]), 200),
            (shape(filters=[everything]), 403),
        ):
            await admin.cluster.call(request)
            while (await asked(app, ALICE))[0] != status:  # published in a moment
                await asyncio.sleep(0.01)
        assert await callers.of(ALICE) is alice

    run(broker, test)


def test_who_has_logged_in_before_does_not_wait_for_who_tries_passwords(broker: Secure) -> None:
    async def test(callers: Callers) -> None:
        alice = await callers.of(ALICE)
        alice.until_s = 0.0
        async with callers._logging_in:  # somebody tries one after the other
            both = await asyncio.gather(callers.of(ALICE), callers.of(ALICE))
        assert both[0] is both[1] is not alice

    run(broker, test)


async def asked(app: Protected, *headers: str) -> tuple[int, bool]:
    """(status, whether the answer asks for a login)."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "state": {},
        "headers": [(b"authorization", one.encode()) for one in headers],
    }
    await app(scope, receive, send)
    names = [name for name, _ in sent[0]["headers"]]
    return sent[0]["status"], b"www-authenticate" in names


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["state"]["caller"].cluster is not None
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_what_is_protected(broker: Secure) -> None:
    async def test(callers: Callers) -> None:
        anybody = Protected(hello, callers, needs_describe=False)
        admins = Protected(hello, callers, needs_describe=True)
        assert await asked(anybody) == (401, True)
        assert await asked(anybody, ALICE, ADMIN) == (401, True)
        assert await asked(anybody, header("alice", "wrong")) == (401, True)
        assert await asked(anybody, ALICE) == (200, False)
        assert await asked(admins, ALICE) == (403, False)
        assert await asked(admins, ADMIN) == (200, False)

    run(broker, test)


def test_a_right_that_is_given_or_taken_counts_for_who_has_logged_in() -> None:
    acl = {"resource_type": int(ResourceType.CLUSTER), "principal": "User:alice", "host": "*"}
    acl |= {"operation": int(Operation.DESCRIBE), "permission_type": ALLOW}
    given = m.CreateAclsRequest.AclCreation(
        **acl, resource_name=CLUSTER_NAME, resource_pattern_type=LITERAL
    )
    taken = m.DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=int(ResourceType.CLUSTER),
        resource_name_filter=CLUSTER_NAME,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=int(Operation.DESCRIBE),
        permission_type=ALLOW,
    )

    async def test(callers: Callers) -> None:
        alice = await callers.of(ALICE)
        assert not await alice.may_describe()
        root.call(m.CreateAclsRequest(creations=[given]), 3)
        while not await alice.may_describe():
            await asyncio.sleep(0.01)
        root.call(m.DeleteAclsRequest(filters=[taken]), 3)
        while await alice.may_describe():
            await asyncio.sleep(0.01)

    with Secure() as broker, WireClient(broker.bootstrap) as root:
        run(broker, test)


def test_a_broker_that_is_gone_is_no_wrong_password() -> None:
    async def test() -> None:
        callers = Callers(f"127.0.0.1:{free_ports(1)[0]}", ["PLAIN"], SystemRandom())
        with pytest.raises(Refused) as caught:
            await callers.of(ADMIN)
        assert caught.value.status == 503

    asyncio.run(test())


def test_health_is_open(broker: Secure) -> None:
    assert Http(broker).get("/health/ready")[0] == 200
