"""The broker's end of the frames: it answers questions in slices, and sees whether the process
lives."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from kwire.clock import ticks_ns
from kwire.http.control import FRAME_BYTES_MAX, HEADER, PIECE_BYTES_MAX, Kind, framed
from kwire.http.questions import Questions
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection

logger = logging.getLogger(__name__)

SLICE_NS = 300_000
"""How long a turn of the loop works on answers, and then ends with the piece it is at."""
PAUSE_MIN_S = 0.001
PAUSES_A_SLICE = 4
"""Other work has at least that long between two slices, and so many times as long as the slice has
taken: who asks by Kafka's protocol meets a slice seldom, and waits for one at most. The loop stays
one that sleeps often, which the kernel wakes before processes that compute."""
NS_PER_S = 1e9
ANSWERS_MAX = 16
WRITE_BUFFER_BYTES = 256 * 1024
FAILED = "the broker failed to answer; its log says why"


class _Answer:
    """An answer that is being given. `made` are the pieces of a slice: they go in one frame, which
    wakes up the process once."""

    __slots__ = ("made", "made_bytes", "name", "number", "pieces")

    def __init__(self, number: int, name: str, pieces: Iterator[bytes]) -> None:
        self.number = number
        self.name = name
        self.pieces = pieces
        self.made: list[bytes] = []
        self.made_bytes = 0

    def frame(self) -> list[bytes]:
        """What was made since the last one."""
        made, self.made, self.made_bytes = self.made, [], 0
        return framed(Kind.PIECE, self.number, *made) if made else made


class BrokerLink(FrameConnection):
    """See the module. `hello()` is what is said first; `lost()` is called once when the other end
    is gone or talks nonsense."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        questions: Questions,
        *,
        hello: Callable[[], bytes],
        lost: Callable[[], None],
    ) -> None:
        super().__init__(pool, FRAME_BYTES_MAX, HEADER.size)
        self.is_ready = False
        self.unanswered_pings = 0
        self._loop = loop
        self._questions = questions
        self._hello = hello
        self._lost = lost
        self._answers: deque[_Answer] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_full = False
        self._is_open = False
        self._is_closed = False

    def ping(self) -> None:
        """Ask for a sign of life."""
        self.unanswered_pings += 1
        self.write_frames(framed(Kind.PING))

    def tell_tls(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Listeners have other settings of TLS, by name; those in `hello` are older."""
        if self._is_open:
            self.write_frames(framed(Kind.TLS, 0, json.dumps(settings).encode()))

    def close(self) -> None:
        """The process ends when it sees this."""
        self._lost = _nothing
        self._is_closed = True
        if self._is_open:
            self.transport.abort()

    # -- the connection

    def opened(self) -> None:
        self._is_open = True
        if self._is_closed:
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self.write_frames(framed(Kind.HELLO, 0, self._hello()))

    def frame_received(self, frame: memoryview) -> None:
        kind, number = HEADER.unpack_from(frame)
        if kind == Kind.ASK:
            self._asked(number, bytes(frame[HEADER.size :]))
        elif kind == Kind.CANCEL:
            self._cancelled(number)
        elif kind == Kind.PONG:
            self.unanswered_pings = 0
        elif kind == Kind.READY:
            self.is_ready = True
        else:
            self.frame_refused(f"frame of kind {kind}")

    def closed(self) -> None:
        self._answers.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lost, self._lost = self._lost, _nothing
        lost()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._go_on()

    # -- answers

    def _asked(self, number: int, body: bytes) -> None:
        if len(self._answers) >= ANSWERS_MAX:
            self.write_frames(_refused(number, "too many questions at once"))
            return
        try:
            asked = json.loads(body)
            name, arguments = str(asked["name"]), dict(asked["arguments"])
            pieces = self._questions.ask(name, arguments)
        except (ValueError, KeyError, TypeError) as error:
            self.write_frames(_refused(number, str(error)))
            return
        self._answers.append(_Answer(number, name, pieces))
        self._go_on()

    def _cancelled(self, number: int) -> None:
        for answer in self._answers:
            if answer.number == number:
                self._answers.remove(answer)
                return

    def _go_on(self, taken_ns: int = 0) -> None:
        if self._answers and not self._is_full and self._timer is None:
            pause_s = max(PAUSE_MIN_S, taken_ns * PAUSES_A_SLICE / NS_PER_S)
            self._timer = self._loop.call_later(pause_s, self._slice)

    def _slice(self) -> None:
        """Answers take turns, a piece each."""
        self._timer = None
        begun_ns = ticks_ns()  # the loop's own time stands still in a turn
        output: list[bytes] = []
        made_bytes = 0
        while self._answers and made_bytes < WRITE_BUFFER_BYTES:
            answer = self._answers.popleft()
            piece, end = self._step(answer)
            if answer.made_bytes + len(piece) > PIECE_BYTES_MAX:
                output += answer.frame()
            if piece:
                answer.made.append(piece)
                answer.made_bytes += len(piece)
                made_bytes += len(piece)
            if end:
                output += (*answer.frame(), *end)
            else:
                self._answers.append(answer)
            if ticks_ns() - begun_ns >= SLICE_NS:
                break
        for answer in self._answers:
            output += answer.frame()
        if output:
            self.write_frames(output)
        self._go_on(ticks_ns() - begun_ns)

    def _step(self, answer: _Answer) -> tuple[bytes, list[bytes]]:
        """The next piece, empty without one, and the frame that ends the answer, if it ends."""
        try:
            piece = next(answer.pieces, None)
        except ValueError as error:
            return b"", _refused(answer.number, str(error))
        except Exception as error:
            logger.error("no answer to %s: %s: %s", answer.name, type(error).__name__, error)
            return b"", _refused(answer.number, FAILED)
        if piece is None:
            return b"", framed(Kind.END, answer.number)
        if len(piece) > PIECE_BYTES_MAX:
            logger.error("no answer to %s: a piece of %d bytes", answer.name, len(piece))
            return b"", _refused(answer.number, FAILED)
        return piece, []


def _refused(number: int, why: str) -> list[bytes]:
    return framed(Kind.REFUSED, number, why.encode(errors="replace")[:1000])


def _nothing() -> None:
    """Nobody is told."""
