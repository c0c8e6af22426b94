"""What a road remembers of its client's last request (ADR 55)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.api.plain.remembered import Frame, RememberedRequest
from kwire.protocol.request_frames import SAID_START
from kwire.server.request_counts import RequestCounts

HEADER = bytes(SAID_START)


class Road(RememberedRequest):
    """It answers, once it has said no as often as it is told; `remembered` is what it was shown."""

    def __init__(self, refusals: int) -> None:
        super().__init__(RequestCounts(12), 0)
        self.refusals = refusals
        self.remembered: list[bytes] = []

    def remember(self, connection: Any, body: memoryview) -> None:
        self.remembered.append(bytes(body[SAID_START:]))

    def answer(self, connection: Any, body: memoryview) -> Frame | None:
        self.refusals -= 1
        return None if self.refusals >= 0 else (b"", b"")

    def ask(self, said: bytes) -> bytes | None:
        connection: Any = SimpleNamespace(turn_s=1.0)
        return self(connection, memoryview(HEADER + said))


def test_what_is_said_again_is_not_looked_at() -> None:
    road = Road(0)
    assert road.ask(b"one") == road.ask(b"one") == HEADER[4:8]
    assert road.remembered == [b"one"]


def test_what_was_refused_is_looked_at_again() -> None:
    road = Road(1)
    assert road.ask(b"one") is None
    assert road.ask(b"one") is not None
    assert road.remembered == [b"one", b"one"]


def test_a_request_that_says_nothing_is_not_the_one_that_was_refused() -> None:
    """It is no request: the general way closes its connection. It was answered."""
    road = Road(1)
    road.ask(b"one")
    road.ask(b"")
    assert road.remembered == [b"one", b""]
