"""A connection that has to log in again sends nothing in between (KIP-368)."""

from __future__ import annotations

import asyncio

import pytest

from kwire.client.cluster import Cluster
from kwire.client.connection import Connection
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.network.buffers import BufferPool
from kwire.protocol import messages as m


def test_what_has_no_answer_waits_for_the_login_too(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    async def inner() -> None:
        loop = asyncio.get_running_loop()
        made = Connection(loop, BufferPool(), ConnectionSettings("127.0.0.1:1"))
        made._versions = {m.ProduceRequest.API_KEY: (3, 13)}
        made._login_due_s = loop.time()
        login = asyncio.Event()

        async def log_in() -> None:
            done.append("login begins")
            await login.wait()
            made._login_due_s = None
            done.append("login ends")

        monkeypatch.setattr(made, "_log_in", log_in)
        monkeypatch.setattr(made, "_write", lambda request, version: done.append("produce"))
        sending = [loop.create_task(made.send_only(m.ProduceRequest())) for _ in range(2)]
        while not done:
            await asyncio.sleep(0)
        login.set()
        await asyncio.gather(*sending)

    asyncio.run(inner())
    assert done == ["login begins", "login ends", "produce", "produce"]


def test_a_client_that_is_closed_leaves_no_task_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def inner() -> None:
        loop = asyncio.get_running_loop()
        begun, is_left = asyncio.Event(), asyncio.Event()

        async def slow(*arguments: object, **options: object) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(5):  # as a name that is looked up, or TLS that is ended
                    await asyncio.sleep(0)
                is_left.set()

        monkeypatch.setattr(loop, "create_connection", slow)
        cluster = Cluster(ConnectionSettings("127.0.0.1:1"))
        asking = loop.create_task(cluster.connection())
        await begun.wait()
        await cluster.close()
        assert is_left.is_set()
        with pytest.raises((ClientError, asyncio.CancelledError)):
            await asking

    asyncio.run(inner())
