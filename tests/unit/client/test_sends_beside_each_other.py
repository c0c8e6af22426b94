"""Batches of a transaction that go beside each other while the quota holds the producer back.

Each goes over connections of its own until it is answered: the first one to end set the others back
to the connection that the broker does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kwire.client.idempotency.writing import GroupWriter, Post
from kwire.client.producer import Outgoing


class Connections:
    """A cluster's."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_closed = False

    @asynccontextmanager
    async def another(self) -> AsyncIterator[Connections]:
        own = Connections()
        yield own
        own.is_closed = True


class Producer:
    """It is throttled with its first batch, and answers in the order of the partitions."""

    def __init__(self) -> None:
        self.throttled_until_s = 0.0
        self.went: list[Any] = []
        self._turns = [asyncio.Event() for _ in range(3)]
        self._turns[0].set()

    async def add(self, partitions: object) -> None:
        return

    async def send_in_parts(
        self, topic: str, partition: int, records: list[Outgoing], *, over: Connections
    ) -> list[int]:
        self.throttled_until_s = over.loop.time() + 60
        await self._turns[partition].wait()
        assert not over.is_closed
        self.went.append(over)
        self._turns[partition + 1].set()
        return list(range(len(records)))


def test_the_end_of_one_leaves_the_others_where_they_are() -> None:
    async def scenario() -> None:
        held: Any = Connections()
        writer = GroupWriter(held, "alice", 0)
        producer: Any = Producer()
        writer._producer = producer
        messages = [Outgoing(value=b"v", partition=at) for at in (0, 0, 1, 1)]
        post = Post("t", b"key", b"body", messages, 1, batch_bytes_max=1)
        found = await writer.write({1: post})
        assert {at: len(runs) for at, runs in found[1].items()} == {0: 2, 1: 2}
        first, *others = [one for one in producer.went if one is not held] or [None]
        assert first is not None
        assert len(producer.went) == 4
        assert producer.went.count(held) == 1, "only what began before it was throttled"
        assert len({id(one) for one in others}) == len(others)

    asyncio.run(scenario())


def test_runs_of_offsets_end_where_others_are_between() -> None:
    async def scenario() -> None:
        held: Any = Connections()
        writer = GroupWriter(held, "alice", 0)

        class Between:
            throttled_until_s = 0.0

            async def add(self, partitions: object) -> None:
                return

            async def send_in_parts(self, *_: object, over: object) -> list[int]:
                return [3, 4, 7, 8, 9]

        producer: Any = Between()
        writer._producer = producer
        posts = {
            number: Post("t", b"%d" % number, b"b", [Outgoing(value=b"v", partition=0)] * count, 1)
            for number, count in ((1, 1), (2, 4))
        }
        assert await writer.write(posts) == {1: {0: [(3, 1)]}, 2: {0: [(4, 1), (7, 3)]}}

    asyncio.run(scenario())
