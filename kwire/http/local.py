"""The process' end of the frames: it asks the broker that started it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from kwire.http.control import FRAME_BYTES_MAX, HEADER, Kind, framed, question
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection

TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 256 << 20
HELD_BYTES_MAX = 64 << 20
"""Of an answer that its reader does not take: beyond it the reader gets no more."""


class Refused(Exception):
    """The broker has no answer; one line why."""


class _Waiting:
    """Who waits for an answer: `pieces` come one by one, None at the end."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | Refused | None] = asyncio.Queue()
        self.held_bytes = 0


class LocalBroker(FrameConnection):
    """See the module. `hello` is completed by the broker's settings, `tls` gets the settings of TLS
    that come later; `ended()` is called when the broker is gone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        super().__init__(BufferPool(), FRAME_BYTES_MAX, HEADER.size)
        self.hello: asyncio.Future[bytes] = loop.create_future()
        self.tls: asyncio.Queue[bytes] = asyncio.Queue()
        self._ended = ended
        self._waiting: dict[int, _Waiting] = {}
        self._number = 0

    def ready(self) -> None:
        """Connections are accepted from now on."""
        self.write_frames(framed(Kind.READY))

    async def ask(
        self, name: str, arguments: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> bytes:
        """The whole answer. Raises Refused, also when it takes longer than `timeout_s` in all."""
        found = bytearray()
        try:
            async with asyncio.timeout(timeout_s):
                async for piece in self.pieces(name, arguments):
                    found += piece
                    if len(found) > ANSWER_BYTES_MAX:
                        raise Refused(f"the answer to {name} is over {ANSWER_BYTES_MAX} bytes")
        except TimeoutError:
            raise Refused(f"the broker does not answer within {timeout_s:g} s") from None
        return bytes(found)

    async def pieces(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> AsyncIterator[bytes]:
        """The answer piece by piece. Raises Refused."""
        if self.transport.is_closing():
            raise Refused("the broker is gone")
        self._number = number = self._number % 0x7FFFFFFF + 1
        waiting = self._waiting[number] = _Waiting()
        self.write_frames(framed(Kind.ASK, number, question(name, dict(arguments or {}))))
        try:
            while True:
                piece = await waiting.pieces.get()
                if piece is None:
                    return
                if isinstance(piece, Refused):
                    raise Refused(str(piece))
                waiting.held_bytes -= len(piece)
                yield piece
        finally:
            if self._waiting.pop(number, None) is not None and not self.transport.is_closing():
                self.write_frames(framed(Kind.CANCEL, number))

    # -- the connection

    def frame_received(self, frame: memoryview) -> None:
        kind, number = HEADER.unpack_from(frame)
        body = bytes(frame[HEADER.size :])
        if kind == Kind.PING:
            self.write_frames(framed(Kind.PONG))
        elif kind == Kind.HELLO:
            self.hello.set_result(body)
        elif kind == Kind.TLS:
            self.tls.put_nowait(body)
        elif (waiting := self._waiting.get(number)) is None:
            pass  # cancelled
        elif kind == Kind.PIECE:
            waiting.pieces.put_nowait(body)
            waiting.held_bytes += len(body)
            if waiting.held_bytes > HELD_BYTES_MAX:
                del self._waiting[number]
                waiting.pieces.put_nowait(Refused("the answer is not taken fast enough"))
                self.write_frames(framed(Kind.CANCEL, number))
        else:
            del self._waiting[number]
            refused = Refused(body.decode(errors="replace")) if kind == Kind.REFUSED else None
            waiting.pieces.put_nowait(refused)

    def closed(self) -> None:
        for waiting in self._waiting.values():
            waiting.pieces.put_nowait(Refused("the broker is gone"))
        self._waiting.clear()
        if not self.hello.done():
            self.hello.cancel()
        self._ended()
