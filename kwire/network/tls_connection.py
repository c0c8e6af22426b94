"""TLS over a stream: `TlsConnection` stands between a transport of the loop and a FrameConnection.

    socket <-> the loop's transport <-> TlsConnection <-> TlsTransport <-> FrameConnection

Python's `ssl` does the work, in memory (`ssl.MemoryBIO`); this file only moves bytes, so it needs
no task, no buffer of a connection's own, and runs on any loop, a simulated one too (ADR 28 has what
it was measured against). What is received is decrypted straight into the buffer that the
FrameConnection asks for; what is sent is encrypted at once, so that the loop's transport knows how
much is unsent and its limits count.

The FrameConnection is connected before the handshake: a connection counts, and can be closed, from
its first moment. What it writes meanwhile is sent afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from typing import Any, cast

from kwire.network.frames import Buffer, FrameConnection

logger = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_MS = 30_000
CIPHER_BUFFER_BYTES = 256 * 1024
JOINED_BYTES_MAX = 16 * 1024  # of one TLS record; smaller pieces are sent together
SENT_BYTES_AT_ONCE = 1024 * 1024

Established = Callable[[ssl.SSLObject], None]

# What was received is decrypted before control returns to the loop: one buffer serves them all.
_received = bytearray()


def _cipher_buffer() -> bytearray:
    if not _received:
        _received.extend(bytes(CIPHER_BUFFER_BYTES))
    return _received


class TlsConnection(asyncio.BufferedProtocol):
    """One side of a TLS connection.

    `application` is what the decrypted bytes are for. `established(ssl object)` is called when the
    handshake is done, before the first decrypted byte. A handshake that fails, or is not done after
    `handshake_timeout_ms`, ends the connection; `application.failure` then says why.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        application: FrameConnection,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
        established: Established = lambda ssl_object: None,
        handshake_timeout_ms: int = HANDSHAKE_TIMEOUT_MS,
    ) -> None:
        self.context = context
        self.transport: asyncio.Transport
        """The loop's, from `connection_made` on."""
        self.is_established = False
        self._loop = loop
        self._application = application
        self._server_side = server_side
        self._established = established
        self._timeout_ms = handshake_timeout_ms
        self._timer: asyncio.TimerHandle | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self._unsent: list[Buffer] = []  # before the handshake is done
        self._is_paused = False
        self._reading_scheduled = False
        self._is_silent = server_side  # a client that has sent nothing yet
        self._ends_after = False  # the other side has sent its last byte
        self._is_over = False

    # -- the loop's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._start_timer()
        self._application.connection_made(TlsTransport(self))
        if not self._server_side:
            self._shake_hands()

    def get_buffer(self, sizehint: int) -> bytearray:
        return _cipher_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_over:
            return
        with memoryview(_received) as view:
            self._incoming.write(view[:nbytes])
        if not self.is_established:
            self._is_silent = False
            self._shake_hands()
        if self.is_established:
            self._read()

    def eof_received(self) -> bool:
        """The other side's end, with or without TLS's own word for it: a frame that is not whole
        was not sent, and no reply can be trusted to arrive."""
        if self._is_silent:
            self.close()  # somebody has looked whether the port is open
        elif not self.is_established:
            self._fail("the other side has ended the connection")
        elif self._is_paused:
            self._ends_after = True
            return True
        else:
            self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._stop_timer()
        is_handshake = not self.is_established and not self._is_silent
        if exc is not None and is_handshake and not self._application.failure:
            self._application.failure = f"TLS handshake: {exc}"
        self._application.connection_lost(exc)
        # It refers to this connection: nothing is left for the collector.
        del self._application, self._established

    def pause_writing(self) -> None:
        self._application.pause_writing()

    def resume_writing(self) -> None:
        self._application.resume_writing()

    # -- the handshake

    def _shake_hands(self) -> None:
        try:
            self.ssl_object.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._flush()  # the alert that says why
            self._fail(reason_of(error))
            return
        self._flush()
        self._stop_timer()
        self.is_established = True
        self._established(self.ssl_object)
        unsent, self._unsent = self._unsent, []
        if unsent and not self._is_over:
            self.send(unsent)

    def _start_timer(self) -> None:
        self._timer = self._loop.call_later(self._timeout_ms / 1000, self._timed_out)

    def _timed_out(self) -> None:
        self._timer = None
        self._fail(f"not done after {self._timeout_ms} ms")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fail(self, reason: str) -> None:
        """End the connection without a handshake; its alert, if there is one, is still sent."""
        if self._is_over:
            return
        self._is_over = True
        self._stop_timer()
        self._application.failure = f"TLS handshake: {reason}"
        if self._server_side:
            address = self.transport.get_extra_info("peername") or ("?", 0)
            logger.info("a TLS handshake with %s:%d failed: %s", address[0], address[1], reason)
        self.transport.close()

    # -- receiving

    def _read(self) -> None:
        """Hand on what has arrived, as far as the application takes it."""
        application, read = self._application, self.ssl_object.read
        try:
            while not self._is_paused and not self._is_over:
                with memoryview(application.get_buffer(-1)) as buffer:
                    wanted, filled, is_end, is_dry = len(buffer), 0, False, False
                    while filled < wanted:
                        try:
                            count = read(wanted - filled, buffer[filled:])
                        except ssl.SSLWantReadError:
                            is_dry = True
                            break
                        if not count:
                            is_end = True
                            break
                        filled += int(count)
                if filled:
                    application.buffer_updated(filled)
                if is_end:
                    self._end()
                    return
                if is_dry:
                    break
        except ssl.SSLZeroReturnError:
            self._end()
        except ssl.SSLError as error:
            logger.info("a TLS connection is closed: %s", reason_of(error))
            self._flush()
            self._is_over = True
            self.transport.close()
        else:
            self._flush()  # what TLS itself has to answer

    def _end(self) -> None:
        """The other side sends nothing any more."""
        if not self._is_over and not self._application.eof_received():
            self.close()

    def pause(self) -> None:
        """Hand nothing on until `resume`; a handshake has its time from then on."""
        self._is_paused = True
        self._stop_timer()
        if not self._is_over:
            self.transport.pause_reading()

    def resume(self) -> None:
        """Hand on again, first what has been received already."""
        self._is_paused = False
        if self._is_over:
            return
        if not self.is_established:
            self._stop_timer()
            self._start_timer()
        elif not self._reading_scheduled:
            self._reading_scheduled = True
            self._loop.call_soon(self._read_on)
        self.transport.resume_reading()

    def _read_on(self) -> None:
        self._reading_scheduled = False
        if self._is_paused or self._is_over:
            return
        self._read()
        if self._ends_after and not self._is_paused:
            self._end()

    # -- sending

    def send(self, parts: list[Buffer]) -> None:
        """Encrypt and send."""
        if self._is_over:
            return
        if not self.is_established:
            self._unsent += parts
            return
        write, held_bytes = self.ssl_object.write, 0
        for piece in _pieces(parts):
            write(piece)
            held_bytes += len(piece)
            if held_bytes >= SENT_BYTES_AT_ONCE:
                self._flush()
                held_bytes = 0
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and not self.transport.is_closing():
            self.transport.write(self._outgoing.read())

    def close(self) -> None:
        """Say that this side ends, send what is unsent, close."""
        if self._is_over:
            return
        self._is_over = True
        self._stop_timer()
        if self.is_established:
            try:
                self.ssl_object.unwrap()
            except ssl.SSLError:
                pass  # it wants the other side's word for its end, which nobody waits for
            self._flush()
        self.transport.close()

    def abort(self) -> None:
        """Close at once; what is unsent is dropped."""
        self._is_over = True
        self._stop_timer()
        self.transport.abort()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is sent."""
        return self._is_over or self.transport.is_closing()


def _pieces(parts: list[Buffer]) -> list[Buffer]:
    """What is written at once: small parts that follow each other are joined, as each would become
    a record of its own, with the cost of one."""
    if len(parts) == 1:
        return parts
    pieces: list[Buffer] = []
    small: list[Buffer] = []
    small_bytes = 0
    for part in parts:
        size_bytes = len(part)
        if small_bytes + size_bytes > JOINED_BYTES_MAX:
            if small:
                pieces.append(b"".join(small))
                small, small_bytes = [], 0
            if size_bytes > JOINED_BYTES_MAX:
                pieces.append(part)
                continue
        small.append(part)
        small_bytes += size_bytes
    if small:
        pieces.append(b"".join(small))
    return pieces


class TlsTransport(asyncio.Transport):
    """What a FrameConnection sees of its TlsConnection: a transport of a stream."""

    def __init__(self, connection: TlsConnection) -> None:
        super().__init__()
        self._connection = connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        connection = self._connection
        if name == "sslcontext":
            return connection.context
        if name == "ssl_object":
            return connection.ssl_object
        return connection.transport.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._connection.send([data])

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._connection.send(list(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._connection.transport.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        return self._connection.transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._connection.pause()

    def resume_reading(self) -> None:
        self._connection.resume()

    def is_closing(self) -> bool:
        return self._connection.is_over

    def close(self) -> None:
        self._connection.close()

    def abort(self) -> None:
        self._connection.abort()


def reason_of(error: Exception) -> str:
    """What OpenSSL says, without its file names; of a certificate why it is not trusted."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message or error}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error)
