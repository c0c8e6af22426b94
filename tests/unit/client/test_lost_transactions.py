"""A group of posts whose transaction somebody else has ended is found out about, not refused.

A produce that was on its way when another node took over is answered INVALID_TXN_STATE: a poster
got 409 for it, and might have taken its message for refused for good.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.client.errors import ClientError, RequestFailed
from kwire.client.idempotency.writing import GroupWriter, OutcomeUnknown, Post, PostsRefused
from kwire.client.producer import Outgoing
from kwire.client.transactional_producer import Fenced
from kwire.protocol.errors import ErrorCode

POST = Post("t", b"key", b"body", [Outgoing(value=b"v", partition=0)], 1)


class Producer:
    """It fails at one step."""

    throttled_until_s = 0.0

    def __init__(self, step: str, error: ClientError) -> None:
        self._step = step
        self._error = error

    def _reached(self, step: str) -> None:
        if step == self._step:
            raise self._error

    async def add(self, partitions: object) -> None:
        self._reached("add")

    async def send_in_parts(
        self, topic: str, partition: int, records: list[Outgoing], *, over: object
    ) -> list[int]:
        self._reached("send" if topic == "t" else "send of keys")
        return list(range(len(records)))

    async def commit(self) -> None:
        self._reached("commit")

    async def abort(self) -> None:
        return


def write(step: str, error: ClientError) -> None:
    async def scenario() -> None:
        cluster: Any = SimpleNamespace(loop=asyncio.get_running_loop())
        writer = GroupWriter(cluster, "alice", 0, sending=cluster)
        producer: Any = Producer(step, error)
        writer._producer = producer
        await writer.write({1: POST})
        await writer.finish({})

    asyncio.run(scenario())


@pytest.mark.parametrize("step", ["add", "send", "send of keys", "commit"])
@pytest.mark.parametrize(
    "error",
    [
        Fenced("by another"),
        RequestFailed(ErrorCode.INVALID_TXN_STATE, "t-0"),
        RequestFailed(ErrorCode.TRANSACTION_ABORTABLE, "t-0"),
        RequestFailed(ErrorCode.CONCURRENT_TRANSACTIONS, "t-0"),
        RequestFailed(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "t-0"),
    ],
)
def test_a_transaction_that_is_lost_leaves_open_what_became_of_it(
    step: str, error: ClientError
) -> None:
    with pytest.raises(OutcomeUnknown):
        write(step, error)


@pytest.mark.parametrize("step", ["add", "send", "send of keys"])
def test_what_the_broker_refuses_is_refused(step: str) -> None:
    with pytest.raises(PostsRefused) as caught:
        write(step, RequestFailed(ErrorCode.MESSAGE_TOO_LARGE, "t-0"))
    assert caught.value.numbers == (() if step == "send of keys" else (1,))
