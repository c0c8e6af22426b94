"""A registry that reads its topic from the beginning again, as nobody has asked it for long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("starlette")

from kwire.client.errors import RequestFailed, Unanswered
from kwire.client.fetching import Fetched
from kwire.http.purposes.registry import topic as topic_module
from kwire.http.purposes.registry.topic import RegistrySettings, SchemaTopic
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.json_values import written
from kwire.schemas.registry.records import schema_key
from kwire.schemas.registry.state import UNREAD_MS_MAX

NAME = ("_schemas", 0)


class OneTopic:
    """A cluster with `count` schemas, a record a fetch, of which some fail."""

    topic_id = b"t" * 16
    partitions = (0,)

    def __init__(self, count: int) -> None:
        self.loop = self
        self.asyncio = asyncio.get_running_loop()
        self.now_s = 1.0
        self.count = count
        self.first = 0
        self.fetched: list[int] = []
        self.fails_behind = count

    def time(self) -> float:
        return self.now_s

    def create_task(self, work: Any) -> asyncio.Task[None]:
        return self.asyncio.create_task(work)

    async def topic(self, name: str) -> OneTopic:
        return self

    async def fetch(self, positions: dict[tuple[str, int], int]) -> dict[tuple[str, int], Fetched]:
        at = positions[NAME]
        self.fetched.append(at)
        if at < self.first:
            raise RequestFailed(ErrorCode.OFFSET_OUT_OF_RANGE, NAME[0])
        if len(self.fetched) > self.fails_behind:
            raise Unanswered("the broker is slow")
        value = {"subject": f"s{at}", "version": 1, "id": at + 1, "schema": '"int"'}
        key = schema_key(f"s{at}", 1)
        records = [Record(at, 1, key, written({**value, "deleted": False}))][: self.count - at]
        return {NAME: fetched(records, at + len(records), self.count)}


def fetched(records: list[Record], next_offset: int, end: int) -> Fetched:
    values: dict[str, Any] = dict.fromkeys(Fetched._fields, 0)
    values.update(records=records, next_offset=next_offset, high_watermark=end)
    return Fetched(**values)


def test_what_was_read_again_when_a_fetch_failed_is_not_read_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic that takes longer than one request may wait was never read to its end: each request
    began anew."""

    async def work() -> None:
        cluster: Any = OneTopic(4)
        monkeypatch.setattr(topic_module, "Fetcher", lambda *_, **__: cluster)
        topic = SchemaTopic(RegistrySettings())
        await topic.caught_up(cluster)
        assert cluster.fetched == [0, 1, 2, 3]
        cluster.now_s += UNREAD_MS_MAX / 1000 + 1
        cluster.fetched, cluster.fails_behind = [], 2
        with pytest.raises(RegistryError, match="slow"):
            await topic.caught_up(cluster)
        assert (cluster.fetched, topic.position) == ([0, 1, 2], 2)
        assert topic.registry.state.subjects() == ["s0", "s1", "s2", "s3"], "what was known holds"
        cluster.fetched = []
        await topic.caught_up(cluster)
        assert cluster.fetched == [2, 3]
        assert topic.registry.state.subjects() == ["s0", "s1", "s2", "s3"]
        cluster.fetched, cluster.fails_behind = [], 9
        await topic.caught_up(cluster)
        assert cluster.fetched == [4]
        cluster.now_s += UNREAD_MS_MAX / 1000 + 1
        await topic.caught_up(cluster)
        assert cluster.fetched == [4, 0, 1, 2, 3]

    asyncio.run(work())


def test_what_is_known_holds_where_the_first_records_of_the_topic_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not begin at 0: that was taken for another topic."""

    async def earliest(self: SchemaTopic, cluster: Any) -> int:
        return int(cluster.first)

    async def work() -> None:
        cluster: Any = OneTopic(4)
        cluster.first = 2
        monkeypatch.setattr(topic_module, "Fetcher", lambda *_, **__: cluster)
        monkeypatch.setattr(SchemaTopic, "_earliest", earliest)
        topic = SchemaTopic(RegistrySettings())
        await topic.caught_up(cluster)
        cluster.now_s += UNREAD_MS_MAX / 1000 + 1
        cluster.fetched, cluster.fails_behind = [], 2
        with pytest.raises(RegistryError, match="slow"):
            await topic.caught_up(cluster)
        assert cluster.fetched == [0, 2, 3]
        assert topic.registry.state.subjects() == ["s2", "s3"]
        cluster.fetched, cluster.fails_behind = [], 9
        await topic.caught_up(cluster)
        assert cluster.fetched == [3]
        assert topic.registry.state.subjects() == ["s2", "s3"]

    asyncio.run(work())
