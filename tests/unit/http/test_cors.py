"""Pages of other origins: none reads an answer but those of `http.cors.allowed.origins`."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message

from kwire.http.app import Bounds, make_app

ALLOWED = "https://page.example"


async def _asked(method: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    """(status, headers that say what a page may)."""

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse({})

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    app = make_app([Route("/a", answer, methods=["GET"])], Bounds([], [ALLOWED], 1000, 60.0))
    sent = {"host": "localhost", **headers}
    scope = {
        "type": "http",
        "method": method,
        "http_version": "1.1",
        "path": "/a",
        "raw_path": b"/a",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }
    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    told = {name: value for name, value in found.items() if name.startswith("access-control")}
    return said[0]["status"], told


@pytest.mark.parametrize("header", ["authorization", "idempotency-key", "content-type"])
def test_a_page_that_is_allowed_may_send_the_headers_that_callers_send(header: str) -> None:
    """It could not log in: browsers ask first whether it may send Authorization."""
    asked = {
        "origin": ALLOWED,
        "access-control-request-method": "GET",
        "access-control-request-headers": header,
    }
    status, told = asyncio.run(_asked("OPTIONS", asked))
    assert (status, told["access-control-allow-origin"]) == (200, ALLOWED)
    assert header in told["access-control-allow-headers"].lower()


def test_pages_of_other_origins_are_told_nothing() -> None:
    for origin, expected in ((ALLOWED, ALLOWED), ("https://evil.example", None)):
        status, told = asyncio.run(_asked("GET", {"origin": origin}))
        assert (status, told.get("access-control-allow-origin")) == (200, expected)
    asked = {"origin": "https://evil.example", "access-control-request-method": "GET"}
    status, told = asyncio.run(_asked("OPTIONS", asked))
    assert (status, told.get("access-control-allow-origin")) == (400, None)
