"""Connections of the HTTP process: nonsense that comes while a request is being answered."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

pytest.importorskip("uvicorn")

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

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
