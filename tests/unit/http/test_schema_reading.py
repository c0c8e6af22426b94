"""Large schemas are read by a process beside the loop, which a hostile one does not hold up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("avro")

from kwire.http.purposes.registry import reading
from kwire.http.purposes.registry.reading import RegistryReading
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry

NO_REFERENCES = ()


def wide(fields: int) -> str:
    told = [{"name": f"field_{at}", "type": "int"} for at in range(fields)]
    return json.dumps({"type": "record", "name": "R", "fields": told})


@asynccontextmanager
async def running(work_s: int = 5) -> AsyncIterator[RegistryReading]:
    one = RegistryReading(work_s)
    try:
        yield one
    finally:
        await one.close()


async def read(one: RegistryReading, registry: Registry, schema: str) -> str:
    found = await one.decided(
        lambda: registry, lambda known: known.schemas.read("s", "AVRO", schema, NO_REFERENCES)
    )
    return found.canonical


def test_large_schemas_are_read_by_one_process() -> None:
    async def run() -> None:
        async with running() as one:
            registry = Registry()
            texts = await asyncio.gather(*(read(one, registry, wide(n)) for n in (500, 501)))
            assert [json.loads(text)["fields"][-1]["name"] for text in texts] == [
                "field_499",
                "field_500",
            ]
            assert one.started == 1
            assert await read(one, registry, '"int"') == '"int"'

    asyncio.run(run())


def test_one_that_takes_too_long_is_refused_and_the_next_is_read() -> None:
    """The Avro library looks at every pair of 20,000 fields."""

    async def run() -> None:
        async with running(work_s=1) as one:
            registry = Registry()
            with pytest.raises(
                RegistryError, match="takes more than 1 s of a processor"
            ) as refused:
                await read(one, registry, wide(20_000))
            assert refused.value.code is Code.INVALID_SCHEMA
            assert not registry.schemas._told  # another time it is tried anew
        async with running() as one:
            assert await read(one, registry, wide(400))

    asyncio.run(run())


def test_who_leaves_is_not_answered_with_what_another_asked() -> None:
    async def run() -> None:
        async with running() as one:
            registry = Registry()
            leaving = asyncio.create_task(read(one, registry, wide(20_000)))
            while not one.started:
                await asyncio.sleep(0)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            found = json.loads(await read(one, registry, wide(400)))
            assert len(found["fields"]) == 400
            assert one.started == 2

    asyncio.run(run())


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WAITING_MAX", 1)

    async def run() -> None:
        async with running() as one:
            registry = Registry()
            both = await asyncio.gather(
                *(read(one, registry, wide(n)) for n in (500, 501)), return_exceptions=True
            )
            refused = [found for found in both if isinstance(found, RegistryError)]
            assert [found.status for found in refused] == [503]

    asyncio.run(run())
