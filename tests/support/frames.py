"""A socket that sends and receives Kafka's frames: a length of four bytes, and so many bytes."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from typing import Self

from tests.support import told

RECEIVE_BYTES = 1 << 20
FRAME_BYTES_MAX = 200 << 20
SEARCHED_BYTES = 256 * 1024  # of a response, for secrets: settings and errors are no longer


class WireError(AssertionError):
    """The peer sent something that cannot be a correct reply."""


class Closed(WireError):
    """The peer closed or reset the connection where a reply was due."""


def parse_hostport(text: str) -> tuple[str, int]:
    """`host:port`; an IPv6 host is in brackets."""
    host, port = text.rsplit(":", 1)
    return host.strip("[]"), int(port)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class FrameSocket:
    """One TCP (or TLS) connection, below the messages. `timeout` is in seconds."""

    def __init__(
        self, bootstrap: str, timeout: float, tls: ssl.SSLContext | bool | None = None
    ) -> None:
        self.bootstrap, self.timeout = bootstrap, timeout
        host, port = parse_hostport(bootstrap)
        self.sock = socket.create_connection((host, port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            if isinstance(tls, bool):
                tls = ssl.create_default_context()
                tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
            self.sock = tls.wrap_socket(self.sock, server_hostname=host)
        self.buf = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.sock.close()
        except OSError:
            pass

    def send_raw(self, data: bytes) -> None:
        """Bytes as they are. Raises Closed when the peer has gone."""
        self.sock.settimeout(self.timeout)
        try:
            self.sock.sendall(data)
        except ConnectionError as error:
            raise Closed(f"connection lost: {error!r}") from error

    def send_frame(self, payload: bytes) -> None:
        self.send_raw(frame(payload))

    def recv_exact(self, size: int, timeout: float | None = None) -> bytes:
        """So many bytes. Raises Closed, or TimeoutError after `timeout` seconds."""
        limit = self.timeout if timeout is None else timeout
        end = time.monotonic() + limit
        while len(self.buf) < size:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer within {limit} s")
            self.buf += self._received(left, limit)
        out = bytes(self.buf[:size])
        del self.buf[:size]
        return out

    def _received(self, left: float, limit: float) -> bytes:
        self.sock.settimeout(left)
        try:
            piece = self.sock.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise TimeoutError(f"no answer within {limit} s") from None
        except OSError as error:
            raise Closed(f"connection lost: {error!r}") from None
        if not piece:
            raise Closed("connection closed by the peer")
        return piece

    def recv_frame(self, timeout: float | None = None) -> bytes:
        """The payload of the next frame (no length). Raises Closed or TimeoutError."""
        size: int = struct.unpack(">i", self.recv_exact(4, timeout))[0]
        if size < 0 or size > FRAME_BYTES_MAX:
            raise WireError(f"frame length {size}")
        payload = self.recv_exact(size, timeout)
        told.search(payload[:SEARCHED_BYTES], "a response")
        return payload

    def closed_within(self, seconds: float) -> bool:
        """True when the peer closes (or resets) within that time without another byte."""
        try:
            self.recv_exact(1, seconds)
        except Closed:
            return True
        except TimeoutError:
            return False
        return False

    def expect_close(self, timeout: float = 5.0) -> float:
        """The peer must close now, without another byte. Gives the seconds it took."""
        start = time.monotonic()
        try:
            data = self.recv_exact(1, timeout)
        except Closed:
            return time.monotonic() - start
        except TimeoutError:
            raise AssertionError(f"connection still open after {timeout} s") from None
        raise AssertionError(
            f"unexpected bytes instead of a close: {data + bytes(self.buf[:63])!r}"
        )

    def no_reply_within(self, seconds: float) -> bool:
        """True when nothing at all arrives in that time (the connection stays open)."""
        if self.buf:
            return False
        try:
            piece = self.recv_exact(1, seconds)
        except TimeoutError:
            return True
        except Closed:
            return False
        self.buf[:0] = piece
        return False

    def expect_silence(self, seconds: float) -> None:
        """Nothing may arrive and the connection must stay open for that long."""
        assert self.no_reply_within(seconds), "connection closed, or unexpected bytes"
