"""The control API of faults: JSON by HTTP/1.1, on loopback, off unless it is asked for (ADR 40).

    GET    /faults        {"faults": [{"id": 1, "kind": "delay", "ms": 100, "hits": 3}]}
    POST   /faults        a fault as an object: {"kind": "delay", "ms": 100, "api": "Fetch"}
    DELETE /faults        ends all
    DELETE /faults/1      ends one, and tells what it has met

What is refused is answered {"error": one line}: 400, 401 without the token, 403 for browsers, 404,
405, 413. A connection is closed behind its answer.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kwire.config.broker_config import BrokerConfig
from kwire.config.checks import is_number
from kwire.config.errors import ConfigError
from kwire.config.listeners import is_loopback
from kwire.faults.errors import FaultError
from kwire.faults.kinds import Given
from kwire.node.start_error import StartError

LISTENERS = "kwire.fault.listeners"
TOKEN = "kwire.fault.token"
HEAD_BYTES_MAX = 8 * 1024
BODY_BYTES_MAX = 64 * 1024
CONNECTIONS_MAX = 64
TIMEOUT_S = 30.0
OF_BROWSERS = ("origin", "sec-fetch-site", "sec-fetch-mode")
ONCE = ("host", "content-length", "authorization", "content-type")
"""Headers of which a second one could mean something else."""
PORT_MAX = 65_535
REASONS = {
    200: "OK",
    201: "Created",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
}


class Controlled(Protocol):
    """The faults of a node."""

    async def add(self, given: Mapping[str, Given]) -> dict[str, Given]: ...

    def remove(self, number: int) -> dict[str, Given]: ...

    def clear(self) -> None: ...

    def standing(self) -> list[dict[str, Given]]: ...


class FaultSettings(NamedTuple):
    """Where the control API listens, and the token that it asks for; "" asks for none."""

    addresses: list[tuple[str, int]]
    token: str

    @classmethod
    def of(cls, config: BrokerConfig) -> FaultSettings:
        """ConfigError names what cannot be right."""
        token = config[TOKEN] or ""
        addresses = [_address(str(entry)) for entry in config[LISTENERS]]
        for host, port in addresses:
            if not token and not is_loopback(host):
                raise ConfigError(
                    f"Invalid value {host}:{port} for configuration {LISTENERS}: whoever reaches "
                    f"it could break this broker; listen on 127.0.0.1, or set {TOKEN}"
                )
        return cls(addresses, str(token))


def _address(entry: str) -> tuple[str, int]:
    host, colon, port = entry.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_bare = ":" not in host or bare != host
    if not (colon and bare and is_bare and is_number(port) and int(port) <= PORT_MAX):
        raise ConfigError(
            f"Invalid value {entry} for configuration {LISTENERS}: expected HOST:PORT, such as "
            "127.0.0.1:9097"
        )
    return bare, int(port)


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class FaultControl:
    """Listens from `start` to `stop`; `addresses` are the bound ones."""

    def __init__(self, settings: FaultSettings, faults: Controlled) -> None:
        self._settings = settings
        self._faults = faults
        self._servers: list[asyncio.Server] = []
        self._connections = 0
        self.addresses: list[str] = []

    async def start(self) -> None:
        """StartError when an address cannot be had."""
        for host, port in self._settings.addresses:
            try:
                server = await asyncio.start_server(
                    self._serve, host, port, limit=HEAD_BYTES_MAX, backlog=CONNECTIONS_MAX
                )
            except OSError as error:
                self.stop()
                raise StartError(
                    f"{LISTENERS}: cannot listen on {host}:{port}: {error.strerror or error}"
                ) from None
            self._servers.append(server)
            bound = server.sockets[0].getsockname()[1]
            self.addresses.append(f"[{host}]:{bound}" if ":" in host else f"{host}:{bound}")

    def stop(self) -> None:
        """Listen no more."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= CONNECTIONS_MAX:
                async with asyncio.timeout(TIMEOUT_S):
                    status, told = await self._answer(reader)
                    writer.write(_response(status, told))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone, or says nothing
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, Mapping[str, object]]:
        try:
            method, path, headers = await _head(reader)
            self._admit(headers)
            body = await _body(reader, headers)
            return await self._execute(method, path, headers, body)
        except _Refused as error:
            return error.status, {"error": str(error)}
        except FaultError as error:
            return 400, {"error": str(error)}

    def _admit(self, headers: Mapping[str, str]) -> None:
        """Pages of browsers have no business here, whatever name they reach it by."""
        token = self._settings.token
        is_near = token or is_loopback(_host(headers.get("host", "localhost")))
        if not is_near or any(name in headers for name in OF_BROWSERS):
            raise _Refused(403, "the control API of faults is not for browsers")
        if token:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(
                given.encode(), token.encode()
            ):
                raise _Refused(401, f"the token of {TOKEN} is needed: Authorization: Bearer TOKEN")

    async def _execute(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, object]]:
        parts = path.strip("/").split("/")
        if parts[0] != "faults" or len(parts) > 2:
            raise _Refused(404, f"there is no {path}; accepted: /faults, /faults/ID")
        if len(parts) == 2:
            if method != "DELETE":
                raise _Refused(405, f"{method} {path}; accepted: DELETE")
            number = _number(parts[1])
            try:
                return 200, self._faults.remove(number)
            except FaultError as error:
                raise _Refused(404, str(error)) from None
        if method == "GET":
            return 200, {"faults": self._faults.standing()}
        if method == "DELETE":
            self._faults.clear()
            return 200, {}
        if method != "POST":
            raise _Refused(405, f"{method} {path}; accepted: GET, POST, DELETE")
        given = headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != "application/json":
            raise _Refused(400, "a fault is sent as Content-Type: application/json")
        return 201, await self._faults.add(_given(body))


async def _head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _Refused(413, f"a head of over {HEAD_BYTES_MAX} bytes") from None
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(400, "this is no request of HTTP/1.1")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.strip().lower()
        if name in headers and name in ONCE:
            raise _Refused(400, f"a request has one {name}")
        headers[name] = value.strip()
    return words[0], words[1], headers


def _host(text: str) -> str:
    """Of a Host header, without its port."""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return host if not port or port.startswith(":") else text
    return text.partition(":")[0] or "localhost"


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not is_number(length):
        raise _Refused(400, "a body needs Content-Length")
    if int(length) > BODY_BYTES_MAX:
        raise _Refused(413, f"a body of {length} bytes; accepted: up to {BODY_BYTES_MAX}")
    return await reader.readexactly(int(length))


def _number(text: str) -> int:
    if not is_number(text) or len(text) > 9:
        raise _Refused(404, f"there is no fault {text!r}; accepted: the id that GET /faults tells")
    return int(text)


def _given(body: bytes) -> dict[str, Given]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise FaultError("the body is no JSON object") from None
    if not isinstance(given, dict):
        raise FaultError("the body is no JSON object")
    for name, value in given.items():
        if not isinstance(value, str | int | float | None):
            raise FaultError(
                f"{name}={json.dumps(value)}: accepted are texts, numbers, true, false"
            )
    return given


def _response(status: int, told: Mapping[str, object]) -> bytes:
    body = json.dumps(told).encode()
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
