"""One path of the API as an ASGI application: parse, call, answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing

import msgspec
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from kwire.client.errors import ClientError
from kwire.http.purposes.rest.clients import Clients
from kwire.http.purposes.rest.parsing import BodyParser, ParameterParser, check_media_type
from kwire.http.purposes.rest.problems import Problem, problem_of
from kwire.http.purposes.rest.route import JSON, AnyRoute, Nothing, Reply, Streamed

_ENCODER = msgspec.json.Encoder()
_JSON_HEADER = (b"content-type", JSON.encode())


class Gone(Exception):
    """The client has left: there is nobody to answer."""


class _Prepared:
    """A route with its parsers."""

    def __init__(self, route: AnyRoute) -> None:
        self.route = route
        self.parameters = ParameterParser(route)
        self.body = BodyParser(route.body)


class Endpoint:
    """The routes of one path, by method."""

    def __init__(self, routes: list[AnyRoute], clients: Clients) -> None:
        self._clients = clients
        self._by_method = {route.method: _Prepared(route) for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        prepared = self._by_method[scope["method"]]
        try:
            answer = await self._answer(prepared, scope, receive)
            if isinstance(answer, Streamed):
                await _stream(answer, receive, send)
                return
        except Gone:
            return
        except Problem as problem:
            await _send(send, problem.status, problem.body(), problem.headers)
            return
        except ClientError as error:
            refused = problem_of(error)
            await _send(send, refused.status, refused.body(), refused.headers)
            return
        body = answer.body
        raw = body if isinstance(body, bytes) else b"" if body is None else _ENCODER.encode(body)
        await _send(send, answer.status, raw, answer.headers)

    async def _answer(
        self, prepared: _Prepared, scope: Scope, receive: Receive
    ) -> Reply | Streamed:
        route = prepared.route
        parameters = prepared.parameters.parse(scope)
        body: Struct = Nothing()
        if route.has_body:
            check_media_type(scope)
            body = prepared.body.parse(await _whole(receive))
        client = self._clients.of(scope.get("state", {}).get("caller"))
        url = _url(scope)
        if not route.waits:
            return await route.run(client, parameters, body, url)
        if not route.has_body:
            await _whole(receive)
        loop = asyncio.get_running_loop()
        working = loop.create_task(route.run(client, parameters, body, url))
        leaving = loop.create_task(_left(receive))
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Gone
            return working.result()
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)


async def _whole(receive: Receive) -> bytes | bytearray:
    """The body; its size is bounded before it comes here."""
    message = await receive()
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if message["type"] == "http.disconnect":
            raise Gone
        return first
    found = bytearray(first)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        found += message.get("body", b"")
    return found


def _url(scope: Scope) -> str:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    raw_path: bytes = scope["raw_path"]
    return f"{scope['scheme']}://{host.decode('latin-1')}{raw_path.decode('latin-1')}"


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    if body and "content-type" not in headers:
        sent.append(_JSON_HEADER)
    if status != 204:
        sent.append((b"content-length", str(len(body)).encode()))
    sent.append((b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def _stream(answer: Streamed, receive: Receive, send: Send) -> None:
    """The pieces, until one of both sides ends it. The first one decides on the status."""
    async with aclosing(answer.pieces) as pieces:
        first = await anext(pieces, b"")
        headers = [(b"content-type", answer.media_type.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        loop = asyncio.get_running_loop()

        async def rest() -> None:
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        sending = loop.create_task(rest())
        leaving = loop.create_task(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
