"""Where the messages of a group are: offsets of one partition with others' between them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from kwire.client.idempotency.writing import GroupWriter, Post
from kwire.client.producer import Outgoing


def test_runs_of_offsets_end_where_others_are_between() -> None:
    async def scenario() -> None:
        held: Any = SimpleNamespace(loop=asyncio.get_running_loop())
        writer = GroupWriter(held, "alice", 0, sending=held)

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
