"""Work of a client that nobody goes on with ends at once: its coroutine is closed, no loop runs.

It waited for others in an `except BaseException`, which also catches GeneratorExit: "coroutine
ignored GeneratorExit".
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from kwire.client.dead_letters.filters import EVERYTHING
from kwire.client.dead_letters.redrive import PartitionRedrive
from kwire.client.fetching import Fetcher
from kwire.client.transactional_producer import Identity


class Silent:
    """A cluster, and a producer, that never answer."""

    settings = SimpleNamespace(request_timeout_s=1.0)
    identity = Identity(1, 0)

    def __init__(self) -> None:
        self.aborted = False

    async def leader(self, topic: str, partition: int) -> int:
        return 1

    async def call(self, *arguments: Any, **named: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    async def commit_offsets(self, group: str, positions: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def abort(self) -> None:
        self.aborted = True
        await asyncio.sleep(1)


def test_a_fetch_that_is_dropped() -> None:
    async def scenario() -> None:
        silent: Any = Silent()
        work = Fetcher(silent).fetch({("topic", 0): 0})
        work.send(None)
        work.close()

    asyncio.run(scenario())


def test_a_transaction_of_a_redrive_that_is_dropped() -> None:
    async def scenario() -> None:
        silent: Any = Silent()
        source: Any = SimpleNamespace(topic="letters", group="workers")
        redrive = PartitionRedrive(source, silent, silent, silent, 0, EVERYTHING, 0, print)
        work = redrive._transaction([], redrive._progress, False)
        work.send(None)
        work.close()
        assert not silent.aborted

    asyncio.run(scenario())
