"""One HTTP request that blocks: to who issues tokens, and its keys.

No redirect is followed, no proxy is asked and no cookie kept: what a setting allows is this
address. The answer's size and the time for all of it are bounded.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

from kwire.network.tls_connection import reason_of

READ_BYTES = 64 * 1024
TIMEOUT_MS = 10_000


class HttpAnswer(NamedTuple):
    """A status and a body of at most as many bytes as were asked for, and one more."""

    status: int
    body: bytes


def ask(
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    connect_timeout_ms: int = TIMEOUT_MS,
    read_timeout_ms: int = TIMEOUT_MS,
    bytes_max: int,
) -> HttpAnswer:
    """GET, or with a body POST; OSError, one line, for what is no answer. Blocks.

    `tls` is for https, None: the system's authorities. `read_timeout_ms` is for all of the answer.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        timeout_s = connect_timeout_ms / 1000
        if parts.scheme == "https":
            context = tls or ssl.create_default_context()
            connection: HTTPConnection = HTTPSConnection(
                host, port, timeout=timeout_s, context=context
            )
        else:
            connection = HTTPConnection(host, port, timeout=timeout_s)
        try:
            connection.connect()
            connection.sock.settimeout(read_timeout_ms / 1000)
            ends_s = time.monotonic() + read_timeout_ms / 1000
            connection.putrequest("GET" if body is None else "POST", target, False, True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Connection", "close")
            connection.endheaders(body)
            response = connection.getresponse()
            return HttpAnswer(response.status, _read(connection, response, bytes_max + 1, ends_s))
        finally:
            connection.close()
    except ssl.SSLError as error:
        raise OSError(f"TLS: {reason_of(error)}") from None
    except (HTTPException, ValueError) as error:
        raise OSError(f"no answer of HTTP: {type(error).__name__}") from None
    except TimeoutError:
        raise OSError("no answer in time") from None


def _read(
    connection: HTTPConnection, response: HTTPResponse, bytes_max: int, ends_s: float
) -> bytes:
    parts: list[bytes] = []
    left = bytes_max
    while left > 0:
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left_s)
        part = response.read1(min(left, READ_BYTES))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
