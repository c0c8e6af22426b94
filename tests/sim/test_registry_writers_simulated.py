"""Three registries on one simulated clock write one topic, under drawn faults of brokers, of links
and of themselves: no id is given twice, and what was answered is there, the same for all readers.

A writer that fences nobody gives an id twice: the search finds that. `KWIRE_EFFORT` multiplies the
seeds of the other one (`make stress`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings
from kwire.http.purposes.registry.reading import RegistryReading
from kwire.http.purposes.registry.topic import RegistrySettings, SchemaTopic
from kwire.http.purposes.registry.writer import SchemaWriter
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.machine import Decision, Registry
from kwire.schemas.registry.registering import register
from kwire.schemas.registry.requests import schema_request
from kwire.testing.simulation import SimulationFailed, simulate
from kwire.testing.simulation.run import RunFailed

EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))
WRITERS = 3
SCHEMAS = 48
PAUSE_S = 1.5
SETTINGS = RegistrySettings("_schemas", 3)
SUBJECTS = ("a", "b", ":.c:a")


class Unfenced(SchemaWriter):
    """A faulty one: it writes as a producer of its own, and tells nobody that it begins."""

    @property
    def transactional_id(self) -> str:
        return f"{super().transactional_id}-{self._own}"

    _own = 0

    async def _fence(self, *_: object) -> None:
        return


def text_of(number: int) -> str:
    return f'{{"type":"fixed","name":"F","size":{number + 1}}}'


async def _registering(
    bootstrap: str,
    numbers: Iterator[int],
    own: int,
    is_faulty: bool,
    answered: dict[int, tuple[int, int]],
) -> None:
    """Register one schema after the other, until the registry has answered each."""
    settings = ConnectionSettings(
        bootstrap, connect_timeout_s=2, first_timeout_s=5, request_timeout_s=10
    )
    async with Cluster(settings) as cluster:
        writer = (Unfenced if is_faulty else SchemaWriter)(SchemaTopic(SETTINGS), RegistryReading())
        if isinstance(writer, Unfenced):
            writer._own = own
        for number in numbers:
            while number not in answered:
                try:
                    answer = await writer.decided(
                        cluster,
                        lambda registry: _registered(registry, number),  # noqa: B023
                    )
                except RegistryError:
                    await asyncio.sleep(1)  # of simulated time, as are all of these
                    continue
                assert isinstance(answer, dict)
                answered[number] = int(str(answer["id"])), int(str(answer["version"]))
            await asyncio.sleep(PAUSE_S)


def _registered(registry: Registry, number: int) -> Decision:
    request = schema_request({"schema": text_of(number), "schemaType": "AVRO"})
    return register(
        registry, SUBJECTS[number % len(SUBJECTS)], request, normalize=False, force=True
    )


async def _registries(cluster, is_faulty: bool, schemas: int) -> None:  # type: ignore[no-untyped-def]
    answered: dict[int, tuple[int, int]] = {}
    numbers = list(cluster.operations(schemas))

    def process(own: int):  # type: ignore[no-untyped-def]
        mine = numbers[own::WRITERS]

        async def registry() -> None:
            await _registering(cluster.bootstrap, iter(mine), own, is_faulty, answered)

        registry.__name__ = f"registry{own}"
        return cluster.process(registry)

    for one in [process(own) for own in range(WRITERS)]:
        await one.finished()
    await cluster.faults_over()
    await asyncio.sleep(10)
    assert sorted(answered) == sorted(numbers)
    async with Cluster(ConnectionSettings(cluster.bootstrap)) as client:
        topic = SchemaTopic(SETTINGS)
        await topic.caught_up(client)
    for context, subjects in ((".", ("a", "b")), (".c", (":.c:a",))):
        given = {
            number: found
            for number, found in answered.items()
            if SUBJECTS[number % len(SUBJECTS)] in subjects
        }
        ids = [schema_id for schema_id, _ in given.values()]
        assert len(set(ids)) == len(ids), f"an id was given twice: {sorted(given.items())}"
        for number, (schema_id, version) in given.items():
            found = topic.registry.state.of_id(context, schema_id)
            assert [(one.schema, one.version) for one in found] == [(text_of(number), version)]


@simulate(first_seed=0, seeds=5, minutes=0.1, processes=1, shrink_runs=0)
async def _unfenced(cluster) -> None:  # type: ignore[no-untyped-def]
    await _registries(cluster, True, SCHEMAS // 4)


@simulate(seeds=EFFORT, minutes=0.5, processes=1)
async def test_ids_are_given_once_under_drawn_faults(cluster) -> None:  # type: ignore[no-untyped-def]
    await _registries(cluster, False, SCHEMAS)


def test_a_writer_that_fences_nobody_is_found() -> None:
    with pytest.raises((SimulationFailed, RunFailed)) as caught:
        _unfenced()
    assert "given twice" in str(caught.value) or "AssertionError" in str(caught.value)
