"""A plain road that remembers what its client said last, and the answer to it."""

from __future__ import annotations

from typing import TypeAlias

from kwire.clock import ticks_ns
from kwire.protocol.request_frames import CORRELATION_ID, SAID
from kwire.server.context import Connection
from kwire.server.request_counts import PLAIN, SEEN, RequestCounts

ASKED_BYTES_MAX = 4096
"""Of a request; one with more is not looked at."""

Frame: TypeAlias = tuple[bytes, bytes]
"""A frame: what is in front of its correlation id, and what is behind it."""


class RememberedRequest:
    """See the module; called it is a `PlainRoad`. A subclass makes the answer.

    `codes` is how many more error codes, all NONE, the answer has than is usual for its API.
    """

    answers_later = False
    __slots__ = ("_asked", "_counts", "_numbers", "_version", "codes")

    def __init__(self, counts: RequestCounts, version: int) -> None:
        self._counts = counts
        self._numbers = counts.numbers
        self._version = version
        self._asked: bytes | None = None  # which no request says, however short
        self.codes = 0

    def __call__(self, connection: Connection, body: memoryview) -> bytes | None:
        """The frame of the answer, or None."""
        if len(body) > ASKED_BYTES_MAX:
            return None
        turn_s = connection.turn_s
        started_ns = ticks_ns() if turn_s >= self._counts.due_s else 0
        asked = body[SAID].tobytes()
        if asked != self._asked:
            self._asked = asked
            self.remember(connection, body)
        frame = self.answer(connection, body)
        if frame is None:
            self._asked = None
            return None
        numbers = self._numbers
        numbers[self._version] += 1
        numbers[SEEN] += self.codes
        numbers[PLAIN] += 1
        if started_ns:
            self._counts.answered_at_once(turn_s, started_ns, len(body))
        before, behind = frame
        return b"".join((before, body[CORRELATION_ID], behind))

    def remember(self, connection: Connection, body: memoryview) -> None:
        """The client says something else than last time."""
        raise NotImplementedError

    def answer(self, connection: Connection, body: memoryview) -> Frame | None:
        """The answer to what is remembered, and its effect; None, without one, where the general
        way has to answer."""
        raise NotImplementedError
