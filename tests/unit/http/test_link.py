"""Questions of the HTTP process: answered in slices and in turns, bounded, never by a traceback."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping

import pytest

from kwire.http import link as link_module
from kwire.http.control import PIECE_BYTES_MAX, Kind, framed
from kwire.http.link import ANSWERS_MAX, BrokerLink
from kwire.http.local import LocalBroker, Refused
from kwire.http.questions import Question, Questions
from kwire.network.buffers import BufferPool


class Pair:
    """Both ends."""

    def __init__(self, questions: Questions) -> None:
        loop = asyncio.get_running_loop()
        self.lost = 0
        self.link = BrokerLink(
            loop, BufferPool(), questions, hello=lambda: b'{"told": 1}', lost=self._note_lost
        )
        self.local = LocalBroker(loop, lambda: None)

    def _note_lost(self) -> None:
        self.lost += 1

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        for end, protocol in ((ours, self.link), (theirs, self.local)):
            end.setblocking(False)
            await loop.create_unix_connection(lambda made=protocol: made, sock=end)


def run(
    test: Callable[[Pair], Awaitable[None]], **asked: Callable[[Mapping[str, str]], Iterator[bytes]]
) -> None:
    async def inner() -> None:
        questions = Questions()
        for name, question in asked.items():
            questions.register(name, question)
        pair = Pair(questions)
        await pair.open()
        await asyncio.wait_for(test(pair), 30)
        pair.local.transport.close()
        while not pair.lost:
            await asyncio.sleep(0)

    asyncio.run(inner())


def count(arguments: Mapping[str, str]) -> Iterator[bytes]:
    for number in range(int(arguments["to"])):
        yield b"%d," % number


def test_the_settings_come_first() -> None:
    async def test(pair: Pair) -> None:
        assert await pair.local.hello == b'{"told": 1}'

    run(test)


def test_an_answer_comes_in_pieces_and_whole() -> None:
    async def test(pair: Pair) -> None:
        assert await pair.local.ask("count", {"to": "3"}) == b"0,1,2,"

    run(test, count=count)


def test_the_pieces_of_a_slice_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process wakes up once for them."""

    async def pieces(pair: Pair) -> list[bytes]:
        return [piece async for piece in pair.local.pieces("count", {"to": "2"})]

    async def test(pair: Pair) -> None:
        monkeypatch.setattr(link_module, "SLICE_NS", 1 << 60)
        assert await pieces(pair) == [b"0,1,"]
        monkeypatch.setattr(link_module, "SLICE_NS", 0)
        assert await pieces(pair) == [b"0,", b"1,"]

    run(test, count=count)


def test_no_frame_is_larger_than_a_piece_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "SLICE_NS", 1 << 60)
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES", 4 * PIECE_BYTES_MAX)
    sizes = [PIECE_BYTES_MAX // 2, PIECE_BYTES_MAX // 2, 1, PIECE_BYTES_MAX]

    async def test(pair: Pair) -> None:
        got = [len(piece) async for piece in pair.local.pieces("large")]
        assert got == [PIECE_BYTES_MAX, 1, PIECE_BYTES_MAX]

    run(test, large=lambda arguments: map(bytes, sizes))


def test_answers_take_turns_and_the_loop_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """With slices of no length each turn of the loop gives one piece of one answer."""
    monkeypatch.setattr(link_module, "SLICE_NS", 0)
    given: list[str] = []

    def noting(name: str) -> Question:
        def answer(arguments: Mapping[str, str]) -> Iterator[bytes]:
            for _ in range(3):
                given.append(name)
                yield b"x"

        return answer

    async def test(pair: Pair) -> None:
        await asyncio.gather(pair.local.ask("a"), pair.local.ask("b"))
        assert given == ["a", "b"] * 3

    run(test, a=noting("a"), b=noting("b"))


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("nothing", {}, "nobody answers to 'nothing'"),
        ("count", {"to": "x"}, "invalid literal"),
        ("count", {}, "the broker failed to answer"),
    ],
)
def test_what_has_no_answer_is_refused_in_a_line(
    name: str, arguments: dict[str, str], told: str
) -> None:
    async def test(pair: Pair) -> None:
        with pytest.raises(Refused, match=told):
            await pair.local.ask(name, arguments)
        assert await pair.local.ask("count", {"to": "1"}) == b"0,"

    run(test, count=count)


def test_a_piece_that_is_too_large_is_refused() -> None:
    async def test(pair: Pair) -> None:
        with pytest.raises(Refused, match="failed to answer"):
            await pair.local.ask("large")

    run(test, large=lambda arguments: iter([bytes(PIECE_BYTES_MAX + 1)]))


def endless(arguments: Mapping[str, str]) -> Iterator[bytes]:
    while True:
        yield bytes(1000)


def test_an_answer_that_nobody_waits_for_ends() -> None:
    async def test(pair: Pair) -> None:
        with pytest.raises(Refused, match="does not answer within"):
            await pair.local.ask("endless", timeout_s=0.05)
        assert await pair.local.ask("count", {"to": "1"}) == b"0,"
        while pair.link._answers:
            await asyncio.sleep(0.001)

    run(test, endless=endless, count=count)


def test_questions_at_once_are_bounded() -> None:
    async def test(pair: Pair) -> None:
        asking = [
            asyncio.ensure_future(pair.local.ask("endless", timeout_s=20))
            for _ in range(ANSWERS_MAX)
        ]
        await asyncio.sleep(0)  # they ask
        with pytest.raises(Refused, match="too many questions"):
            await pair.local.ask("endless", timeout_s=20)
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    run(test, endless=endless)


def test_a_process_that_does_not_read_costs_a_bounded_buffer() -> None:
    async def test(pair: Pair) -> None:
        pair.local.transport.pause_reading()
        asking = asyncio.ensure_future(pair.local.ask("endless", timeout_s=20))
        while not pair.link._is_full:
            await asyncio.sleep(0.001)
        size = pair.link.transport.get_write_buffer_size()
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert pair.link.transport.get_write_buffer_size() <= size
        asking.cancel()
        pair.local.transport.resume_reading()

    run(test, endless=endless)


def test_nonsense_ends_the_connection() -> None:
    async def test(pair: Pair) -> None:
        pair.local.write_frames(framed(Kind.HELLO, 0, json.dumps({}).encode()))
        while not pair.lost:
            await asyncio.sleep(0.001)
        with pytest.raises(Refused):
            await pair.local.ask("count", {"to": "1"})

    run(test, count=count)


def test_a_sign_of_life() -> None:
    async def test(pair: Pair) -> None:
        pair.link.ping()
        pair.link.ping()
        assert pair.link.unanswered_pings == 2
        while pair.link.unanswered_pings:
            await asyncio.sleep(0.001)

    run(test)
