"""Connections of the HTTP process: nonsense that comes while a request is being answered, clients
that end their side behind a request, targets with a host in them, bodies that are packed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

import pytest

pytest.importorskip("uvicorn")

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from kwire.http import app as app_module
from kwire.http.app import Bounds, Gate
from kwire.http.server import ConnectionLimits, protocol_of

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
READ_HEAD = HEAD.replace(b"POST", b"HEAD")
NO_CHUNK = b"zz\r\n"
BOUNDS = Bounds((), (), 1000, 60.0)


class Answering:
    """An application that answers, or has begun to and waits for the rest of the body."""

    def __init__(self, *, begins_first: bool) -> None:
        self.begins_first = begins_first
        self.has_begun = asyncio.Event()
        self.has_ended = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self.begins_first:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"half", "more_body": True})
                self.has_begun.set()
                await receive()
            else:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"all"})
        finally:
            self.has_ended.set()


class Reading(Answering):
    """An application that reads the body as starlette's do."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await Request(scope, receive).body()
        finally:
            self.has_ended.set()


async def talk(app: Answering, head: bytes = HEAD) -> tuple[bytes, list[object]]:
    """What a connection gets that sends a head, and nonsense in the place of the body; and what
    only the loop was told of."""
    raised: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: raised.append(context))
    protocol = protocol_of(Gate(app, BOUNDS), ConnectionLimits(10, 60.0), loop)
    server = await loop.create_server(protocol, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    async with asyncio.timeout(60):
        if app.begins_first:
            writer.write(head)
            await app.has_begun.wait()
            writer.write(NO_CHUNK)
        else:
            writer.write(head + NO_CHUNK)
        try:
            found = await reader.read()
        except ConnectionError:
            found = b""
        await app.has_ended.wait()
    writer.close()
    server.close()
    await asyncio.sleep(0)
    return found, raised


@pytest.mark.parametrize("head", [HEAD, READ_HEAD], ids=["POST", "HEAD"])
@pytest.mark.parametrize("kind", [Answering, Reading])
def test_a_body_that_is_no_http_is_the_clients_fault_and_not_told_as_ours(
    kind: type[Answering], head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def inner() -> tuple[bytes, list[object]]:
        return await talk(kind(begins_first=False), head)

    with caplog.at_level(logging.WARNING):
        found, raised = asyncio.run(inner())
    assert found.startswith(b"HTTP/1.1 400")
    told = json.loads(found.partition(b"\r\n\r\n")[2])
    assert (told["error"], told["error_code"]) == ("bad_request", 400)
    assert not raised
    assert not caplog.records


def test_nonsense_behind_a_half_answer_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    async def inner() -> tuple[bytes, list[object]]:
        return await talk(Answering(begins_first=True))

    with caplog.at_level(logging.WARNING):
        found, raised = asyncio.run(inner())
    assert b"400" not in found
    assert not found.endswith(b"0\r\n\r\n")
    assert not raised
    assert not caplog.records


class Echo:
    """Answers with the path and the host that it is asked for, once it may."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_answer = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        body = await Request(scope, receive).body()
        await self.may_answer.wait()
        host = dict(scope["headers"])[b"host"]
        answer = b"%s of %s: %s" % (scope["raw_path"], host, body)
        length = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": answer})


class Waiting:
    """Answers if its client stays, and gives up when it leaves."""

    def __init__(self, *, answers: bool) -> None:
        self.answers = answers
        self.heard: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        leaving = asyncio.create_task(receive())  # type: ignore[arg-type]
        if not self.answers:
            self.heard.append((await leaving)["type"])
            return
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})
        leaving.cancel()


async def half_closed(
    app: Echo | Waiting, sent: bytes, behind: Callable[[], object] = lambda: None
) -> tuple[bytes, list[object]]:
    """What a client gets that sends this and ends its side; `behind` is done once it has."""
    raised: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: raised.append(context))
    limits = ConnectionLimits(10, 60.0)
    server = await loop.create_server(protocol_of(Gate(app, BOUNDS), limits, loop), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    async with asyncio.timeout(60):
        writer.write(sent)
        writer.write_eof()
        while not all(one.is_half_closed for one in limits.open) or not app_has_begun(app):
            await asyncio.sleep(0)
        behind()
        found = await reader.read()
        writer.close()
        while limits.open:
            await asyncio.sleep(0)
    server.close()
    return found, raised


def app_has_begun(app: Echo | Waiting) -> bool:
    return not isinstance(app, Echo) or app.begun > 0


def asked(path: str, body: bytes = b"", *headers: str, host: str = "localhost") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_a_client_that_ends_its_side_behind_its_requests_is_answered() -> None:
    """What it sent was done, and it heard nothing of it."""

    async def inner() -> None:
        echo = Echo()
        sent = asked("/one", b"1") + asked("/two", b"2") + b"GET /thr"
        found, raised = await half_closed(echo, sent, echo.may_answer.set)
        answers = found.split(b"HTTP/1.1 200 OK\r\n")[1:]
        texts = [one.partition(b"\r\n\r\n")[2] for one in answers]
        assert texts == [b"/one of localhost: 1", b"/two of localhost: 2"]
        assert not raised

    asyncio.run(inner())


@pytest.mark.parametrize("answers", [True, False])
def test_a_wait_for_a_client_that_ends_its_side_is_answered_soon_or_given_up(
    answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "HALF_CLOSED_S", 60.0 if answers else 0.0)

    async def inner() -> None:
        waiting = Waiting(answers=answers)
        found, raised = await half_closed(waiting, asked("/"))
        assert (found.startswith(b"HTTP/1.1 204"), waiting.heard) == (
            (True, []) if answers else (False, ["http.disconnect"])
        )
        assert not raised

    asyncio.run(inner())


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("http://localhost:8080/a%2Fb?c=d", b"/a%2Fb of localhost:8080: "),
        ("HTTP://127.0.0.1", b"/ of 127.0.0.1: "),
        ("http://evil.example/a", b"host 'evil.example' is not one of http.allowed.hosts"),
        ("http:///a", b"host '' is not one of http.allowed.hosts"),
    ],
)
def test_a_target_with_a_host_in_it_is_asked_of_that_host(target: str, told: bytes) -> None:
    """RFC 9112, 3.2.2. It was 404, and the Host check looked at another host."""

    async def inner() -> None:
        echo = Echo()
        echo.begun = 1
        echo.may_answer.set()
        found, raised = await half_closed(echo, asked(target))
        assert told in found
        assert not raised

    asyncio.run(inner())


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", ""])
def test_a_body_that_is_packed_is_refused_by_its_header(coding: str) -> None:
    """It was told to be malformed JSON, and taken where it was not packed at all."""

    async def inner() -> None:
        echo = Echo()
        echo.begun = 1
        found, raised = await half_closed(echo, asked("/", b"{}", f"Content-Encoding: {coding}"))
        assert found.startswith(b"HTTP/1.1 415"), found
        assert f"Content-Encoding {coding}: send the body as it is".encode() in found
        assert not raised

    asyncio.run(inner())


@pytest.mark.parametrize(("count", "status"), [(4000, b"200"), (7000, b"431")])
def test_what_stands_between_headers_counts_for_the_size_of_a_head(
    count: int, status: bytes
) -> None:
    """Thousands of short headers were twice as many bytes as a head may have."""

    async def inner() -> None:
        echo = Echo()
        echo.begun = 1
        echo.may_answer.set()
        found, raised = await half_closed(echo, asked("/", b"", "\r\n".join(["a: b"] * count)))
        assert found.startswith(b"HTTP/1.1 " + status), found[:200]
        assert not raised

    asyncio.run(inner())
