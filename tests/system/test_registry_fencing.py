"""Two writers of one topic, turn by turn: whoever took over last writes, the other is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from kwire.client.cluster import Cluster
from kwire.client.errors import Unanswered
from kwire.client.settings import ConnectionSettings
from kwire.client.topics import Topics
from kwire.clock import SystemRandom
from kwire.http.purposes.registry import topic as topic_module
from kwire.http.purposes.registry.reading import RegistryReading
from kwire.http.purposes.registry.service import RegistryService
from kwire.http.purposes.registry.topic import RegistrySettings, SchemaTopic
from kwire.http.purposes.registry.writer import SchemaWriter
from kwire.schemas.registry import queries
from kwire.schemas.registry.deleting import delete_version
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.json_values import Json, written
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.records import schema_key
from kwire.schemas.registry.registering import register
from kwire.schemas.registry.requests import schema_request
from kwire.testing.cluster import Broker

WAIT_S = 30.0


class Writer(SchemaWriter):
    """One that can be stopped before it sends, and whose answers can be lost."""

    def __init__(self, cluster: Cluster, topic: str, transactional_id: str = "") -> None:
        super().__init__(SchemaTopic(RegistrySettings(topic, 1)), RegistryReading())
        self.cluster = cluster
        self._own_id = transactional_id or topic
        self.go = asyncio.Event()
        self.go.set()
        self.stopped = asyncio.Event()
        self.stops_at = ""
        self.loses = ""

    @property
    def transactional_id(self) -> str:
        return self._own_id

    async def _sent(self, cluster: Cluster, batch: bytearray) -> int:
        if self.stops_at and self.stops_at.encode() in batch:
            self.stops_at = ""
            self.stopped.set()
            await self.go.wait()
        offset = await super()._sent(cluster, batch)
        if self.loses and self.loses.encode() in batch:
            self.loses = ""
            raise Unanswered("the answer is lost")
        return offset

    async def registers(self, subject: str, size: int) -> tuple[Json, Json]:
        """(id, version)"""
        schema = f'{{"type":"fixed","name":"F","size":{size}}}'
        request = schema_request({"schema": schema})
        answer = await self.decided(
            self.cluster, lambda registry: register(registry, subject, request, normalize=False)
        )
        assert isinstance(answer, dict)
        return answer["id"], answer["version"]

    def stop_at(self, text: str) -> None:
        self.go.clear()
        self.stops_at = text


@pytest.fixture(scope="module")
def bootstrap():  # type: ignore[no-untyped-def]
    with Broker() as broker:
        yield broker.bootstrap


def run(bootstrap: str, test: Callable[[Cluster, Cluster], Awaitable[None]]) -> None:
    """With a client for each of two writers: one that waits must not stop the other."""

    async def inner() -> None:
        settings = ConnectionSettings(bootstrap)
        async with Cluster(settings) as one, Cluster(settings) as other:
            await asyncio.wait_for(test(one, other), WAIT_S)

    asyncio.run(inner())


def test_a_writer_that_was_overtaken_decides_anew(bootstrap: str) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        old, new = Writer(one, "t1"), Writer(other, "t1")
        assert await old.registers("a", 1) == (1, 1)
        old.stop_at('"subject":"late"')
        waiting = asyncio.ensure_future(old.registers("late", 2))
        await old.stopped.wait()
        assert await new.registers("b", 3) == (2, 1)
        old.go.set()
        assert await waiting == (3, 1)
        assert (old.takeovers, new.takeovers) == (2, 1)

    run(bootstrap, test)


def test_who_has_taken_over_and_decided_is_not_overtaken_by_who_had_decided_before(
    bootstrap: str,
) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        old, new = Writer(one, "t2"), Writer(other, "t2")
        assert await old.registers("a", 1) == (1, 1)
        old.stop_at('"subject":"late"')
        new.stop_at('"subject":"b"')
        late = asyncio.ensure_future(old.registers("late", 2))
        await old.stopped.wait()
        first = asyncio.ensure_future(new.registers("b", 3))
        await new.stopped.wait()  # it has decided that b is 2
        old.go.set()  # and the other, which decided that late is 2, sends first
        while old.takeovers < 2:
            await asyncio.sleep(0)
        new.go.set()
        ids = [(await late)[0], (await first)[0]]
        assert sorted(map(int, ids)) == [2, 3]

    run(bootstrap, test)


def test_a_change_whose_answer_was_lost_is_answered_by_what_is_in_the_topic(bootstrap: str) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        writer = Writer(one, "t3")
        writer.loses = '"subject":"a"'
        assert await writer.registers("a", 1) == (1, 1)
        writer.loses = '"deleted":true'
        deleted = await writer.decided(
            one, lambda registry: delete_version(registry, "a", 1, permanent=False)
        )
        assert deleted == 1, "the second attempt would find it deleted"
        assert writer.takeovers == 3

    run(bootstrap, test)


def test_a_producer_id_that_is_not_given_any_more_is_fenced(bootstrap: str) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        old, new = Writer(one, "t4"), Writer(other, "t4", "t4-of-another-producer-id")
        assert await old.registers("a", 1) == (1, 1)
        assert await new.registers("b", 2) == (2, 1)
        assert old.takeovers == new.takeovers == 1
        assert await old.registers("c", 3) == (3, 1)
        assert old.takeovers == 2, "it was refused, although its id had no later epoch"

    run(bootstrap, test)


def test_a_takeover_is_good_for_a_while(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        writer = Writer(one, "t5")
        await writer.registers("a", 1)
        await writer.registers("a2", 2)
        assert writer.takeovers == 1
        monkeypatch.setattr("kwire.http.purposes.registry.writer.ROLE_S", -1.0)
        writer = Writer(one, "t5")
        await writer.registers("a3", 3)
        await writer.registers("a4", 4)
        assert writer.takeovers == 2

    run(bootstrap, test)


def test_a_topic_that_was_deleted_is_read_anew(bootstrap: str) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        writer = Writer(one, "t6")
        await writer.registers("a", 1)
        await writer.registers("b", 2)
        await Topics(other).delete("t6")
        topic = writer._topic
        while topic.registry.state.subjects():
            await topic.caught_up(one)
        assert await writer.registers("c", 3) == (1, 1)
        assert topic.registry.state.subjects() == ["c"]

    run(bootstrap, test)


def test_a_topic_that_was_not_read_for_long_is_read_from_its_beginning(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that nobody asked for a day showed for good what was deleted and cleaned meanwhile."""

    async def test(one: Cluster, other: Cluster) -> None:
        await Writer(one, "t7").registers("kept", 1)
        service = RegistryService(RegistrySettings("t7", 1), bootstrap, SystemRandom())
        topic = service.topic
        await service.fresh(other)

        def forget() -> None:
            """Have it know a version of which the topic has no record any more."""
            gone = {"subject": "gone", "version": 1, "id": 9, "schema": '"int"', "deleted": False}
            assert not topic.registry.replay(schema_key("gone", 1), written(gone), 1)

        def look(registry: Registry) -> str:
            return queries.version_of_id(registry, 9, "").subject

        forget()
        await service.fresh(other)
        assert topic.registry.state.subjects() == ["gone", "kept"]
        monkeypatch.setattr(topic_module, "UNREAD_MS_MAX", -1)
        await service.fresh(other)
        assert topic.registry.state.subjects() == ["kept"]
        assert await Writer(one, "t7").registers("kept", 1) == (1, 1)

        forget()
        assert await service.found(other, look) == "gone"  # by id, from memory, and for once
        while "gone" in topic.registry.state.subjects():
            await asyncio.sleep(0)
        with pytest.raises(RegistryError, match="Schema 9 not found"):
            await service.found(other, look)
        await service.close()

    run(bootstrap, test)


def test_a_topic_that_would_lose_schemas_is_refused(bootstrap: str) -> None:
    async def test(one: Cluster, other: Cluster) -> None:
        compact = {"cleanup.policy": "compact"}
        await Topics(one).create("two", partitions=2, replication=1, configs=compact)
        await Topics(one).create("deletes", partitions=1, replication=1)
        for topic, why in (("two", "2 partitions"), ("deletes", "cleanup.policy=delete")):
            with pytest.raises(RegistryError, match=why) as caught:
                await Writer(one, topic).registers("a", 1)
            assert caught.value.status == 503

    run(bootstrap, test)
