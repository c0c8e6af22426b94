"""What every HTTP request passes: the Host check, the body's bounds, answers in JSON to errors."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

HEAD_BYTES_MAX = 32 * 1024
"""Of a request line with its headers."""
VERSIONS = ("1.0", "1.1")
CONNECTION = "kwire.connection"
"""In the state of a scope: the `Leaving` of its connection."""
HALF_CLOSED_S = 0.5
"""So long a wait goes on for a client that has ended its side."""
_SCHEMES = (b"http", b"https")


class Leaving(Protocol):
    """A connection whose client may have ended its side behind the request. It may read on, and
    may be gone: who answers soon does so, who waits for longer does it for nobody."""

    is_half_closed: bool

    def leave(self) -> None:
        """Whoever answers does not: the connection ends."""
        ...


class Bounds:
    """What a listener lets through: see `http.*` in docs/CONFIGS.md."""

    def __init__(
        self,
        allowed_hosts: Sequence[str],
        cors_origins: Sequence[str],
        request_bytes_max: int,
        request_timeout_s: float,
    ) -> None:
        self.allowed_hosts = frozenset(host.lower() for host in allowed_hosts)
        self.cors_origins = list(cors_origins)
        self.request_bytes_max = request_bytes_max
        self.request_timeout_s = request_timeout_s


def refusal(status: int, message: str) -> JSONResponse:
    """An answer that says in one line what is wrong."""
    word = HTTPStatus(status).phrase.lower().replace(" ", "_")
    return JSONResponse({"error": word, "error_code": status, "message": message}, status)


def make_app(routes: Sequence[BaseRoute], bounds: Bounds) -> Starlette:
    """The application of one listener."""
    middleware = [Middleware(Gate, bounds=bounds)]
    if bounds.cors_origins:
        from starlette.middleware.cors import CORSMiddleware

        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=bounds.cors_origins,
                allow_methods=["*"],
                allow_headers=["*"],  # callers log in by one, and REST has some of its own
            )
        )
    return Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _http_error},
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refusal(error.status_code, f"{error.detail}: {request.method} {request.url.path}")
    answer.headers.update(error.headers or {})
    return answer


class BodyTooLarge(Exception):
    """More than a request may have."""


class BodyLate(Exception):
    """It does not come in time."""


class Gate:
    """Outermost: what is wrong here reaches no handler, and no error of a handler leaves it."""

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        self._app = app
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        _settle_target(scope)
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            connection: Leaving | None = scope.get("state", {}).get(CONNECTION)
            await self._app(scope, _Body(receive, self._bounds, connection).receive, noting)
        except ClientDisconnect:
            return  # there is nobody to answer
        except BodyTooLarge:
            answer = refusal(413, f"the body is over {self._bounds.request_bytes_max} bytes")
        except BodyLate:
            answer = refusal(408, "the body did not come in time")
        except Exception as error:
            logger.error(
                "%s %s failed: %s: %s", scope["method"], scope["path"], type(error).__name__, error
            )
            answer = refusal(500, "a fault of kwire's; the broker's log says more")
        else:
            return
        if has_begun:
            raise ConnectionAbortedError  # a half answer must not look like a whole one
        await _last(answer)(scope, receive, send)

    def _refused(self, scope: Scope) -> JSONResponse | None:
        head_bytes = len(scope["raw_path"]) + len(scope["query_string"])
        between = len(b": \r\n")
        head_bytes += sum(len(name) + len(value) + between for name, value in scope["headers"])
        if head_bytes > HEAD_BYTES_MAX:
            return refusal(431, f"the head is over {HEAD_BYTES_MAX} bytes")
        if scope["http_version"] not in VERSIONS:
            return _last(refusal(505, f"expected HTTP/1.1, not HTTP/{scope['http_version']}"))
        names = [name for name, _ in scope["headers"]]
        if b"transfer-encoding" in names and b"content-length" in names:
            # A proxy in front may see another end of this request than is seen here (RFC 9112,
            # 6.1): what follows may be somebody else's.
            return _last(refusal(400, "Content-Length and Transfer-Encoding do not go together"))
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if scope["http_version"] == "1.0" and not hosts:
            return None
        if len(hosts) != 1 or not self._is_allowed(hosts[0]):
            shown = b", ".join(hosts).decode("latin-1")[:200]
            return refusal(421, f"host {shown!r} is not one of http.allowed.hosts")
        codings = [value for name, value in scope["headers"] if name == b"content-encoding"]
        if any(value.lower() != b"identity" for value in codings):
            shown = b", ".join(codings).decode("latin-1")[:100]
            return _last(refusal(415, f"Content-Encoding {shown}: send the body as it is"))
        sizes = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(_is_over(value, self._bounds.request_bytes_max) for value in sizes):
            return _last(refusal(413, f"the body is over {self._bounds.request_bytes_max} bytes"))
        return None

    def _is_allowed(self, value: bytes) -> bool:
        """A page of somebody else's whose name leads here (DNS rebinding) has that name as the
        host; an address, or this machine's own name for itself, cannot be such a one."""
        host, colon, port = value.decode("latin-1").lower().rpartition(":")
        if not colon or not port.isdigit():
            host = value.decode("latin-1").lower()
        if host in ("localhost", *self._bounds.allowed_hosts):
            return True
        try:
            ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True


def _settle_target(scope: Scope) -> None:
    """A target with a host in it (RFC 9112, 3.2.2) is that path of that host, whatever `Host` is;
    proxies ask so."""
    scheme, is_absolute, rest = scope["raw_path"].partition(b"://")
    if not is_absolute or scheme.lower() not in _SCHEMES:
        return
    host, slash, path = rest.partition(b"/")
    scope["raw_path"] = slash + path or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("latin-1"))
    others = [one for one in scope["headers"] if one[0] != b"host"]
    scope["headers"] = [(b"host", host), *others]


def _last(answer: JSONResponse) -> JSONResponse:
    """The last answer on its connection."""
    answer.headers["connection"] = "close"
    return answer


def _is_over(size: bytes, limit: int) -> bool:
    return len(size) > 20 or (size.isdigit() and int(size) > limit)


class _Body:
    """The body of one request, within its bounds."""

    def __init__(self, receive: Receive, bounds: Bounds, connection: Leaving | None) -> None:
        self._receive = receive
        self._connection = connection
        self._bounds = bounds
        self._end_s = asyncio.get_running_loop().time() + bounds.request_timeout_s
        self._bytes = 0
        self._is_complete = False

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._left()
        try:
            async with asyncio.timeout_at(self._end_s):
                message = await self._receive()
        except TimeoutError:
            raise BodyLate from None
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._bounds.request_bytes_max:
            raise BodyTooLarge
        self._is_complete = not message.get("more_body", False)
        return message

    async def _left(self) -> Message:
        """Behind the body: whoever asks now waits for the client to leave."""
        connection = self._connection
        if connection is None or not connection.is_half_closed:
            message = await self._receive()
            if connection is None or not connection.is_half_closed:
                return message
        await asyncio.sleep(HALF_CLOSED_S)
        connection.leave()
        return {"type": "http.disconnect"}
