"""A member of a group hears its assignment also where an answer or a look-up fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest

from kwire.client.cluster import Cluster
from kwire.client.consumer import Consumer
from kwire.client.errors import Closed
from kwire.client.membership import Membership
from kwire.clock import SeededRandom
from kwire.protocol import messages as m

TOPIC_ID = bytes(15) + b"\1"
OURS = [("t", 0)]


class Group:
    """A cluster whose coordinator tells an assignment once, and again only who says everything: as
    Apache Kafka's. The calls whose numbers are in `lost` are executed, and their answers lost."""

    def __init__(self, lost: Sequence[int] = (), unknown_names: int = 0) -> None:
        self.random = SeededRandom(1)
        self.requests: list[m.ConsumerGroupHeartbeatRequest] = []
        self._lost = lost
        self._unknown_names = unknown_names

    async def ask_coordinator(
        self, kind: int, key: str, ask: Callable[[int], Awaitable[object]]
    ) -> object:
        while True:
            try:
                return await ask(1)
            except Closed:
                await asyncio.sleep(0)

    async def call(
        self, request: m.ConsumerGroupHeartbeatRequest, node_id: int
    ) -> m.ConsumerGroupHeartbeatResponse:
        self.requests.append(request)
        answer = m.ConsumerGroupHeartbeatResponse(
            member_epoch=1, heartbeat_interval_ms=0, assignment=None
        )
        says_everything = (
            request.rebalance_timeout_ms != -1
            and request.subscribed_topic_names is not None
            and request.topic_partitions is not None
        )
        if says_everything or len(self.requests) == 1:
            share = m.ConsumerGroupHeartbeatResponse.TopicPartitions(
                topic_id=TOPIC_ID, partitions=[0]
            )
            answer.assignment = m.ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[share]
            )
        if len(self.requests) in self._lost:
            raise Closed("gone")
        return answer

    async def name_of(self, topic_id: bytes) -> str:
        if self._unknown_names:
            self._unknown_names -= 1
            raise Closed("gone")
        return "t"

    async def topic(self, name: str) -> m.MetadataResponse.MetadataResponseTopic:
        return m.MetadataResponse.MetadataResponseTopic(name=name, topic_id=TOPIC_ID)


async def nothing(partitions: Sequence[tuple[str, int]]) -> None:
    pass


def member_of(group: Group) -> Membership:
    return Membership(cast(Cluster, group), "g", ["t"], revoked=nothing)


def test_a_topic_whose_name_is_not_found_at_once_is_read_all_the_same() -> None:
    async def inner() -> None:
        group = Group(unknown_names=1)
        member = member_of(group)
        with pytest.raises(Closed):
            await member._beat()
        assert member.assigned == []
        await member._beat()
        assert member.assigned == OURS

    asyncio.run(inner())


def test_an_assignment_whose_answer_is_lost_is_asked_for_again() -> None:
    async def inner() -> None:
        group = Group(lost=[1])
        member = member_of(group)
        await member._beat()
        assert member.assigned == OURS
        await member._beat()
        await member._beat()
        plain = group.requests[-1]
        assert plain.subscribed_topic_names is None
        assert plain.rebalance_timeout_ms == -1

    asyncio.run(inner())


def test_a_lost_answer_in_the_middle_has_everything_said_anew() -> None:
    async def inner() -> None:
        group = Group(lost=[3])
        member = member_of(group)
        for _ in range(3):
            await member._beat()
        again = group.requests[3]
        assert again.member_epoch == 1
        assert again.subscribed_topic_names == ["t"]
        assert again.topic_partitions is not None
        assert [one.partitions for one in again.topic_partitions] == [[0]]

    asyncio.run(inner())


def test_a_consumer_that_cannot_look_up_its_offsets_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def inner() -> None:
        consumer = Consumer(cast(Cluster, Group()), "g", ["t"])
        membership = consumer._membership
        membership.assigned = list(OURS)
        membership.changed.set()
        failures = iter(range(1))

        async def committed(group: str) -> dict[tuple[str, int], int]:
            if next(failures, None) is not None:
                raise Closed("gone")
            return {OURS[0]: 7}

        monkeypatch.setattr(consumer._offsets, "committed", committed)
        with pytest.raises(Closed):
            await consumer._follow_assignment()
        await consumer._follow_assignment()
        assert consumer._positions == {OURS[0]: 7}

    asyncio.run(inner())
