"""One path of the REST API as an application: what comes in, who leaves, what goes out."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Annotated, Any

import pytest

pytest.importorskip("msgspec")

from msgspec import Meta, Struct
from starlette.types import Message

from kwire.client.cluster import Cluster
from kwire.client.errors import LoginFailed, RequestFailed, Unanswered, Unreachable, Unsupported
from kwire.client.settings import ConnectionSettings
from kwire.client.transactional_producer import Fenced
from kwire.http.callers import Caller
from kwire.http.purposes.rest.clients import READERS_MAX, Client, Clients
from kwire.http.purposes.rest.endpoint import Endpoint
from kwire.http.purposes.rest.expiring import Expiring
from kwire.http.purposes.rest.problems import Problem, problem_of
from kwire.http.purposes.rest.route import Answered, Call, Nothing, Reply, Route, Streamed
from kwire.protocol.errors import ErrorCode, is_retriable


class Where(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    count: Annotated[int, Meta(ge=0, le=9)] = 0
    flag: bool = False
    trace: Annotated[str, Meta(max_length=3)] | None = None


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    value: bytes


class Told(Struct):
    text: str


Handler = Callable[[Call[Where, Any]], Awaitable[Reply | Streamed]]


def endpoint(handler: Handler, *, body: Any = Nothing, waits: bool = False) -> Endpoint:
    route = Route(
        "POST",
        "/x/{name}",
        handler,
        summary="",
        tag="",
        parameters=Where,
        body=body,
        headers={"trace": "Trace-Id"},
        answers={200: Answered(Told, "")},
        waits=waits,
    )
    return Endpoint([route], Clients("127.0.0.1:1"))


class Asked:
    """A request, and what is sent for it."""

    def __init__(
        self,
        *pieces: bytes,
        query: bytes = b"",
        headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),),
    ) -> None:
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        bodies = pieces or (b"",)
        for at, piece in enumerate(bodies):
            more = at < len(bodies) - 1
            self.incoming.put_nowait({"type": "http.request", "body": piece, "more_body": more})
        self.sent: list[Message] = []
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path_params": {"name": "n"},
            "query_string": query,
            "headers": list(headers),
            "state": {},
        }

    def leave(self) -> None:
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def by(self, app: Endpoint) -> tuple[int, Any]:
        await app(self.scope, self.incoming.get, self.send)
        if not self.sent:
            return 0, None
        raw = b"".join(message.get("body", b"") for message in self.sent[1:])
        return self.sent[0]["status"], json.loads(raw) if raw.startswith(b"{") else raw


async def echo(call: Call[Where, Any]) -> Reply:
    return Reply(200, Told(repr(call.parameters)))


def refusal(query: bytes = b"", *headers: tuple[bytes, bytes]) -> tuple[int, Any]:
    return asyncio.run(Asked(query=query, headers=headers).by(endpoint(echo)))


def test_parameters_come_from_path_query_and_headers() -> None:
    status, told = refusal(b"count=3&flag=true", (b"trace-id", b"abc"))
    assert status == 200
    assert told["text"] == "Where(name='n', count=3, flag=True, trace='abc')"


@pytest.mark.parametrize(
    ("query", "where"),
    [
        (b"count=", "count"),
        (b"count=10", "count"),
        (b"count=1_0", "count"),
        (b"count=%31", None),
        (b"count=+1", "count"),
        (b"count=1&count=1", "count"),
        (b"flag=1", "flag"),
        (b"name=m", "name"),
        (b"trace=abc", "trace"),
        (b"unknown=1", "unknown"),
    ],
)
def test_what_is_wrong_of_a_query_is_named(query: bytes, where: str | None) -> None:
    status, told = refusal(query)
    if where is None:
        assert status == 200
    else:
        assert (status, told["error"], told["parameter"]) == (400, "invalid_parameter", where)


@pytest.mark.parametrize("query", [b"a", b"&", b"count=%ff", b"\xff=1", b"&".join([b"a=1"] * 99)])
def test_a_query_that_cannot_be_read(query: bytes) -> None:
    status, told = refusal(query)
    assert (status, told["error"]) == (400, "invalid_parameter")


@pytest.mark.parametrize("headers", [[(b"trace-id", b"abcd")], [(b"trace-id", b"a")] * 2])
def test_what_is_wrong_of_a_header_is_named(headers: list[tuple[bytes, bytes]]) -> None:
    status, told = refusal(b"", *headers)
    assert (status, told["error"], told["header"]) == (400, "invalid_header", "Trace-Id")


def test_a_body_in_pieces() -> None:
    async def handler(call: Call[Where, Any]) -> Reply:
        return Reply(200, Told(call.body.value.decode()))

    asked = Asked(b'{"val', b'ue":"YW', b'Jj"}')
    assert asyncio.run(asked.by(endpoint(handler, body=Body))) == (200, {"text": "abc"})


def test_json_that_is_deep_is_refused() -> None:
    asked = Asked(b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    status, told = asyncio.run(asked.by(endpoint(echo, body=Body)))
    assert (status, told["error_code"]) == (400, 400)


def test_who_leaves_while_the_body_comes_is_not_answered() -> None:
    async def test() -> None:
        asked = Asked()
        asked.incoming.get_nowait()
        asked.incoming.put_nowait({"type": "http.request", "body": b"{", "more_body": True})
        asked.leave()
        assert await asked.by(endpoint(echo, body=Body)) == (0, None)

    asyncio.run(test())


def test_a_wait_ends_when_the_client_leaves() -> None:
    async def test() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def handler(call: Call[Where, Any]) -> Reply:
            begun.set()
            try:
                return await asyncio.get_running_loop().create_future()
            finally:
                ended.set()

        asked = Asked()
        asking = asyncio.ensure_future(asked.by(endpoint(handler, waits=True)))
        await begun.wait()
        asked.leave()
        assert await asking == (0, None)
        assert ended.is_set()

    asyncio.run(test())


def test_a_wait_that_is_over_is_answered() -> None:
    assert asyncio.run(Asked().by(endpoint(echo, waits=True)))[0] == 200


def test_what_a_wait_ends_with_is_told() -> None:
    async def handler(call: Call[Where, Any]) -> Reply:
        raise Problem(404, "not_found", "there is none", parameter="name")

    status, told = asyncio.run(Asked().by(endpoint(handler, waits=True)))
    assert (status, told) == (
        404,
        {"error": "not_found", "error_code": 404, "message": "there is none", "parameter": "name"},
    )


def streaming(count: int, ended: asyncio.Event) -> Handler:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            for at in range(count):
                yield b"%d;" % at
            if count == 2:
                await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async def handler(call: Call[Where, Any]) -> Streamed:
        return Streamed(pieces(), "text/event-stream")

    return handler


def test_a_stream_goes_out_piece_by_piece() -> None:
    async def test() -> None:
        asked = Asked()
        status, raw = await asked.by(endpoint(streaming(3, asyncio.Event())))
        assert (status, raw) == (200, b"0;1;2;")
        assert [message.get("more_body", False) for message in asked.sent[1:]] == [True] * 3 + [
            False
        ]

    asyncio.run(test())


def test_a_stream_ends_when_the_client_leaves() -> None:
    async def test() -> None:
        ended = asyncio.Event()
        asked = Asked()
        asking = asyncio.ensure_future(asked.by(endpoint(streaming(2, ended))))
        while len(asked.sent) < 3:
            await asyncio.sleep(0)
        asked.leave()
        await asking
        await ended.wait()

    asyncio.run(test())


# -- Kafka's errors


@pytest.mark.parametrize("code", [one for one in ErrorCode if one != ErrorCode.NONE])
def test_every_error_of_kafka_has_a_status(code: ErrorCode) -> None:
    """None is 500: that is a fault of the HTTP process alone."""
    problem = problem_of(RequestFailed(code, "topic t"))
    assert problem.status in (400, 401, 403, 404, 409, 416, 429, 502, 503)
    assert ("retry-after" in problem.headers) == (problem.status in (429, 503))
    assert problem.told.error_code == problem.status
    if problem.status == 502:
        assert not is_retriable(code)


@pytest.mark.parametrize(
    ("code", "status", "word"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, 416, "offset_out_of_range"),
        (ErrorCode.MESSAGE_TOO_LARGE, 400, "message_too_large"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404, "not_found"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 403, "forbidden"),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 503, "not_enough_replicas"),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 503, "not_enough_replicas"),
        (ErrorCode.PRODUCER_FENCED, 409, "fenced"),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 429, "quota_exceeded"),
        (ErrorCode.NOT_COORDINATOR, 503, "unavailable"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 502, "failed"),
    ],
)
def test_statuses_of_kafkas_errors(code: ErrorCode, status: int, word: str) -> None:
    problem = problem_of(RequestFailed(code, "it"))
    assert (problem.status, problem.told.error) == (status, word)


def test_statuses_of_other_failures() -> None:
    found = {
        kind.__name__: problem_of(kind("it")).status
        for kind in (Fenced, LoginFailed, Unsupported, Unreachable, Unanswered)
    }
    assert found == {
        "Fenced": 409,
        "LoginFailed": 401,
        "Unsupported": 501,
        "Unreachable": 503,
        "Unanswered": 503,
    }


# -- callers


def test_without_a_listener_for_them_nobody_is_anonymous() -> None:
    async def test() -> None:
        with pytest.raises(Problem) as caught:
            Clients("").of(None)
        assert caught.value.status == 401
        assert "http.authentication" in str(caught.value)

    asyncio.run(test())


def test_a_caller_has_one_client_and_its_parts_are_closed_with_it() -> None:
    class Kept:
        is_busy = False

        def __init__(self, client: Client) -> None:
            self.closed = False

        def check(self, now_s: float) -> None: ...

        async def close(self) -> None:
            self.closed = True

    async def test() -> None:
        clients = Clients("127.0.0.1:1")
        client = clients.of(None)
        assert clients.of(None) is client
        kept = client.part(Kept, Kept)
        assert client.part(Kept, Kept) is kept
        assert not client.is_busy
        kept.is_busy = True
        assert client.is_busy
        await clients.close()
        assert kept.closed

    asyncio.run(test())


def test_requests_that_wait_are_bounded_and_end_their_connections() -> None:
    async def test() -> None:
        clients = Clients("127.0.0.1:1")
        client = clients.of(None)
        async with client.reader() as first:
            pass
        async with client.reader() as second:
            assert second is first
            with pytest.raises(ValueError):
                async with client.reader() as third:
                    raise ValueError
        async with client.reader() as fourth:
            assert fourth is first is not third
        async with AsyncExitStack() as stack:
            for _ in range(READERS_MAX):
                await stack.enter_async_context(client.reader())
            with pytest.raises(Problem) as caught:
                await stack.enter_async_context(client.reader())
            assert caught.value.status == 503
        await clients.close()

    asyncio.run(test())


class Timers:
    """A loop whose timers are called by the test."""

    def __init__(self) -> None:
        self.create_task = asyncio.get_running_loop().create_task
        self.due: list[Callable[[], None]] = []

    def call_later(self, delay_s: float, call: Callable[..., None], *given: Any) -> Any:
        self.due.append(functools.partial(call, *given))
        return SimpleNamespace(cancel=functools.partial(self.due.remove, self.due[-1]))


class Opened:
    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def close(self) -> None:
        self.closed.set()


def test_what_is_opened_expires_when_nobody_uses_it() -> None:
    async def test() -> None:
        timers = Timers()
        kept: Expiring[Opened] = Expiring(
            timers,  # type: ignore[arg-type]
            2,
            lambda key: Problem(404, "not_found", key),
        )
        one, two = Opened(), Opened()
        kept.add("one", one, 1.0)
        assert len(timers.due) == 1
        async with kept.used("one") as used:
            assert used is one
            assert timers.due == []  # it does not expire while it is used
        kept.add("two", two, 60.0)
        with pytest.raises(Problem) as caught:
            kept.check_room()
        assert caught.value.status == 429
        timers.due[0]()
        await one.closed.wait()
        with pytest.raises(Problem) as caught:
            async with kept.used("one"):
                pass
        assert caught.value.status == 404
        await kept.close()
        assert two.closed.is_set()

    asyncio.run(test())


def test_who_logs_in_anew_trusts_the_certificates_of_then() -> None:
    async def test() -> None:
        contexts = [ssl.create_default_context() for _ in range(2)]
        settings = [
            ConnectionSettings("127.0.0.1:1", tls=functools.partial(lambda one: one, context))
            for context in contexts
        ]
        callers = [Caller(Cluster(one), b"key", 0.0) for one in settings]
        clients = Clients("")
        client = clients.of(callers[0])
        made = client.new_cluster()
        for caller, context in zip(callers, contexts, strict=True):
            assert clients.of(caller) is client
            for cluster in (client.cluster, made):
                assert cluster.settings.tls is not None
                assert cluster.settings.tls() is context
        await clients.close()

    asyncio.run(test())
