"""Callers of HTTP are principals of the broker: their passwords, their rights, nobody else's."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http.client import HTTPSConnection
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from starlette.types import Message, Receive, Scope, Send

from kwire.client.admin import Admin
from kwire.clock import SystemRandom
from kwire.http.callers import CALLERS_MAX, Callers, Protected, Refused
from kwire.http.logins import Logins, LoginWay
from kwire.protocol import messages as m
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.testing.cluster import Broker, free_ports
from tests.support.certificates import Authority, secure_options
from tests.support.sasl import USERS, sasl_settings
from tests.support.wire import WireClient
from tests.system.test_http import Http, port_of, wait_for

WAIT_S = 60.0
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
LITERAL, ALLOW = 3, 3


def header(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


ADMIN, ALICE = header("admin", USERS["admin"]), header("alice", USERS["alice"])


class Secure(Broker):
    """A broker where `admin` may do everything and others nothing."""

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
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
                **(more or {}),
            },
        )


@pytest.fixture(scope="module")
def broker() -> Iterator[Secure]:
    with Secure() as one:
        yield one


def callers_at(bootstrap: str, mechanisms: list[str]) -> Callers:
    ways = {"basic": LoginWay(bootstrap, mechanisms, "")}
    return Callers(Logins(ways, SystemRandom(), None), SystemRandom())


def run(broker: Secure, test: Callable[[Callers], Awaitable[None]]) -> None:
    async def inner() -> None:
        callers = callers_at(broker.sasl_bootstrap, ["PLAIN", "SCRAM-SHA-256"])
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
        callers = callers_at(f"127.0.0.1:{free_ports(1)[0]}", ["PLAIN"])
        with pytest.raises(Refused) as caught:
            await callers.of(ADMIN)
        assert caught.value.status == 503

    asyncio.run(test())


def test_health_is_open(broker: Secure) -> None:
    assert Http(broker).get("/health/ready")[0] == 200


class WithTls(Broker):
    """A broker where callers log in by SASL_SSL, with a token as well; it signs its own tokens."""

    def __init__(self, directory: Path) -> None:
        authority = Authority()
        port, sasl_port = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{sasl_port}"
        unsecured = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        super().__init__(
            port=port,
            options={
                "listeners": listeners,
                "advertised.listeners": listeners,
                "http.listeners": "https://127.0.0.1:0",
                "http.authentication": "basic,bearer",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
                "connection.failed.authentication.delay.ms": "0",
                **sasl_settings("SASL_SSL", mechanisms=("PLAIN",)),
                "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
                "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": unsecured,
                "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
                **secure_options(directory, authority.sign(), authority),
            },
        )
        self.authority = authority
        self.directory = directory

    def get(self, path: str, authorization: str = "") -> tuple[int, str, bytes]:
        """(status, WWW-Authenticate, the certificate that was shown)."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        connection = HTTPSConnection("127.0.0.1", port_of(self), timeout=WAIT_S, context=context)
        try:
            connection.connect()
            shown = connection.sock.getpeercert(binary_form=True)
            connection.request("GET", path, headers={"Authorization": authorization})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader("WWW-Authenticate") or "", shown
        finally:
            connection.close()


def token(subject: str) -> str:
    """Of nobody's signature."""
    now_s = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now_s, "exp": now_s + 3600})
    texts = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in parts]
    return b".".join([*texts, b""]).decode()


def test_callers_log_in_by_tls_with_passwords_and_tokens_and_new_keys_are_taken_over(
    tmp_path: Path,
) -> None:
    with WithTls(tmp_path) as broker:
        assert broker.get("/metrics")[:2] == (
            401,
            'Basic realm="kwire", charset="UTF-8", Bearer realm="kwire"',
        )
        for given, status in (
            (ADMIN, 200),
            (ALICE, 403),
            (header("admin", "wrong"), 401),
            (f"Bearer {token('admin')}", 200),
            (f"Bearer {token('alice')}", 403),
            ("Bearer no.token.", 401),
            ("Bearer a b", 401),
            ("Bearer " + "a" * 20_000, 401),
        ):
            assert broker.get("/metrics", given)[0] == status, given[:20]
        _, _, before = broker.get("/health/live")
        broker.authority.sign().write(tmp_path, "node")

        def shown() -> bool:
            return broker.get("/health/live")[2] != before

        wait_for(shown)
        assert broker.get("/metrics", ADMIN)[0] == 200
        # The broker's listener has it as well: who has not logged in yet does so by the new one.
        assert wait_for(lambda: broker.get("/metrics", f"Bearer {token('admin')}")[0] == 200)
