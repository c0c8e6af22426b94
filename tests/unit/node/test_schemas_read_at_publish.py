"""Schemas that records name are parsed beside the loop: what takes long is refused, and holds up
neither small ones nor other topics for longer than one of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("avro")

from kwire.log.scheduling import LoopScheduler
from kwire.node.schema_reading import SchemaReading
from kwire.node.waiting import end_of
from kwire.node.workers import one_thread
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.schemas.registry.work import Kind, Part, SchemaWork
from kwire.schemas.validation import closures
from kwire.schemas.validation.allowance import Allowance
from kwire.schemas.validation.batch import PreparedOrFault
from kwire.schemas.validation.prepared import Prepared


def wide(fields: int) -> SchemaWork:
    """A record of so many fields; the Avro library looks at every pair of them."""
    told = [{"name": f"field_{at}", "type": "int"} for at in range(fields)]
    text = json.dumps({"type": "record", "name": "R", "fields": told})
    return SchemaWork(Kind.READ, (Part("AVRO", text, ()),), (0,))


SMALL, LARGE, HOSTILE = wide(1), wide(400), wide(20_000)


@asynccontextmanager
async def running(work_s: int = 5) -> AsyncIterator[SchemaReading]:
    loop = asyncio.get_running_loop()
    made: list[LoopScheduler] = []

    def scheduler(name: str) -> LoopScheduler:
        made.append(LoopScheduler(loop, one_thread(name)))
        return made[-1]

    one = SchemaReading(loop, scheduler, work_s)
    try:
        yield one
    finally:
        await one.close()
        for each in made:
            each.close()


async def outcome(pending: Pending[PreparedOrFault]) -> PreparedOrFault:
    await end_of(asyncio.get_running_loop(), pending)
    return pending.result()


def test_what_is_small_needs_no_process_and_what_is_large_has_one() -> None:
    async def run() -> None:
        async with running() as one:
            assert isinstance(await outcome(one.read("t", SMALL)), Prepared)
            assert one.process.started == 0
            found = await outcome(one.read("t", LARGE))
            assert isinstance(found, Prepared)
            found.decode(b"\2" * 400, 0, Allowance(400 + 1))
            assert one.process.started == 1

    asyncio.run(run())


def test_one_that_takes_too_long_is_refused_while_small_ones_are_read() -> None:
    async def run() -> None:
        async with running(work_s=1) as one:
            order: list[str] = []
            hostile, large = one.read("t", HOSTILE), one.read("t", LARGE)
            hostile.add_done_callback(lambda _: order.append("hostile"))
            small = one.read("t", SMALL)
            small.add_done_callback(lambda _: order.append("small"))
            told = await outcome(hostile)
            assert isinstance(told, str)
            assert "takes more than 1 s of a processor" in told
            assert isinstance(await outcome(large), Prepared)
            assert order == ["small", "hostile"]
            assert one.process.started == 2

    asyncio.run(run())


def test_topics_take_turns() -> None:
    async def run() -> None:
        async with running() as one:
            order: list[str] = []
            waiting = []
            for topic, fields in (("a", 400), ("a", 401), ("a", 402), ("b", 403), ("b", 404)):
                pending = one.read(topic, wide(fields))
                pending.add_done_callback(lambda _, topic=topic: order.append(topic))  # type: ignore[misc]
                waiting.append(pending)
            for pending in waiting:
                assert isinstance(await outcome(pending), Prepared)
            assert order == ["a", "b", "a", "b", "a"]

    asyncio.run(run())


def test_a_process_that_is_killed_is_started_once_more() -> None:
    async def run() -> None:
        async with running() as one:
            assert isinstance(await outcome(one.read("t", LARGE)), Prepared)
            pending = one.read("t", wide(410))
            while one.process.is_idle:
                await asyncio.sleep(0)
            assert one.process.pid is not None
            os.kill(one.process.pid, signal.SIGKILL)
            assert isinstance(await outcome(pending), Prepared)
            assert one.process.started == 2

    asyncio.run(run())


def test_what_is_larger_than_anything_kept_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kwire.node.schema_reading.CHARACTERS_MAX", 10_000)

    async def run() -> None:
        async with running() as one:
            told = one.read("t", LARGE).result()
            assert isinstance(told, str)
            assert "of at most 10000" in told
            assert closures.CHARACTERS_MAX > 10_000
            assert one.process.started == 0

    asyncio.run(run())


def code_of(pending: Pending[PreparedOrFault]) -> ErrorCode:
    error = pending.error()
    assert isinstance(error, KafkaError)
    return error.code


def test_who_waits_when_the_broker_stops_is_told() -> None:
    async def run() -> None:
        async with running() as one:
            waiting = [one.read(topic, HOSTILE) for topic in ("a", "a", "b")]
            while not one.process.started:
                await asyncio.sleep(0)
        waiting.append(one.read("a", SMALL))
        assert [code_of(pending) for pending in waiting] == [ErrorCode.REQUEST_TIMED_OUT] * 4

    asyncio.run(run())


def test_one_that_has_no_processor_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.node.schema_reading.WAIT_S", 0.01)

    async def run() -> None:
        async with running() as one:
            waiting = [one.read(topic, LARGE) for topic in ("a", "b")]
            for pending in waiting:
                await end_of(asyncio.get_running_loop(), pending)
                assert code_of(pending) is ErrorCode.REQUEST_TIMED_OUT

    asyncio.run(run())


def test_a_loop_that_starts_no_processes_parses_by_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The simulated one."""

    async def none(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("asyncio.create_subprocess_exec", none)

    async def run() -> None:
        async with running() as one:
            assert isinstance(await outcome(one.read("t", LARGE)), Prepared)

    asyncio.run(run())


def test_a_process_that_cannot_be_started_is_another_time_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        async with running() as one:
            with monkeypatch.context() as patch:
                patch.setattr("kwire.http.schema_process.python_module", lambda _: ["/nowhere"])
                pending = one.read("t", LARGE)
                await end_of(asyncio.get_running_loop(), pending)
                assert code_of(pending) is ErrorCode.REQUEST_TIMED_OUT
            assert isinstance(await outcome(one.read("t", LARGE)), Prepared)

    asyncio.run(run())
