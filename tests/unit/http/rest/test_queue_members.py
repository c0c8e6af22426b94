"""Members of queues, without a broker: ids, what was said of a message, when a member leaves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("msgspec")

import msgspec

from kwire.client.errors import ClientError
from kwire.client.share_consumer import Delivered, Unacknowledged
from kwire.clock import SystemRandom
from kwire.http.purposes.rest.message_ids import Delivery, Foreign, MessageIds, NoId
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.queue_members import IDLE_S, LEFT_S, Member, Members, Saying
from kwire.http.purposes.rest.queues import OfMessage
from kwire.protocol.records import Record

DELIVERY = Delivery("jobs", "workers", 3, 2**40, 2)


def test_an_id_is_read_by_whom_it_was_made_for_and_by_nobody_else() -> None:
    ids, others = MessageIds(SystemRandom()), MessageIds(SystemRandom())
    text = ids.made(DELIVERY, b"alice")
    assert ids.read(text, b"alice") == DELIVERY
    with pytest.raises(NoId):
        ids.read(text, b"bob")
    with pytest.raises(Foreign):
        others.read(text, b"alice")


def test_an_id_of_the_longest_names_can_be_sent_back() -> None:
    longest = DELIVERY._replace(queue="q" * 249, group="\U00010000" * 249)
    text = MessageIds(SystemRandom()).made(longest, b"alice")
    assert msgspec.convert({"messageId": text}, OfMessage).message_id == text


def test_no_part_of_an_id_can_be_another() -> None:
    ids = MessageIds(SystemRandom())
    text = ids.made(DELIVERY, b"alice")
    for at, letter in enumerate(text):
        changed = text[:at] + ("A" if letter != "A" else "B") + text[at + 1 :]
        try:
            assert ids.read(changed, b"alice") == DELIVERY  # bits of padding are none of the id
            assert at == len(text) - 1
        except (Foreign, NoId):
            continue


class Consumer:
    """A share consumer of which a test says what comes, and what the broker says."""

    lock_s = 30.0

    def __init__(self) -> None:
        self.coming: asyncio.Queue[list[Delivered]] = asyncio.Queue()
        self.said: list[tuple[str, int]] = []
        self.refuses = False
        self.has_left = False

    async def take(self, count: int, wait_ms: int) -> list[Delivered]:
        return await self.coming.get()

    def accept(self, *some: Delivered) -> None:
        self.said += [("accept", one.record.offset) for one in some]

    def release(self, *some: Delivered) -> None:
        self.said += [("release", one.record.offset) for one in some]

    def reject(self, *some: Delivered) -> None:
        self.said += [("reject", one.record.offset) for one in some]

    async def commit(self) -> list[Unacknowledged]:
        offsets = [offset for _, offset in self.said]
        return [Unacknowledged("jobs", 0, offsets, ClientError("late"))] if self.refuses else []

    async def __aexit__(self, *_: object) -> None:
        self.has_left = True


def delivered(offset: int) -> Delivered:
    return Delivered("jobs", 0, Record(offset, 0, None, b"", []), 1, (b"", 0), 1)


def made() -> tuple[Member, Consumer, SimpleNamespace]:
    async def close() -> None:
        return

    consumer = Consumer()
    cluster: Any = SimpleNamespace(loop=asyncio.get_running_loop(), close=close)
    anybody: Any = consumer
    return Member(cluster, anybody), consumer, cluster


def test_what_is_said_counts_once_and_nothing_else_is_said_after_it() -> None:
    async def scenario() -> None:
        member, consumer, _ = made()
        consumer.coming.put_nowait([delivered(7)])
        await member.take(1, 0)
        await member.say((0, 7), 1, Saying.ACK)
        await member.say((0, 7), 1, Saying.ACK)
        assert consumer.said == [("accept", 7)]
        for place, count, saying in (
            ((0, 7), 1, Saying.REJECT),
            ((0, 7), 2, Saying.ACK),
            ((0, 8), 1, Saying.ACK),
        ):
            with pytest.raises(Problem) as caught:
                await member.say(place, count, saying)
            assert caught.value.status == 409

    asyncio.run(scenario())


def test_an_acknowledgement_that_the_broker_refuses_is_not_held() -> None:
    async def scenario() -> None:
        member, consumer, _ = made()
        consumer.coming.put_nowait([delivered(7)])
        await member.take(1, 0)
        consumer.refuses = True
        with pytest.raises(Problem) as caught:
            await member.say((0, 7), 1, Saying.RELEASE)
        assert (caught.value.status, caught.value.told.error) == (409, "not_held")

    asyncio.run(scenario())


def test_what_came_for_somebody_who_left_goes_to_the_next_or_back() -> None:
    async def scenario() -> None:
        member, consumer, cluster = made()
        for offset in (7, 8):
            asking = asyncio.ensure_future(member.take(2, 1000))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            consumer.coming.put_nowait([delivered(offset)])
            while not member._left:
                await asyncio.sleep(0)
            if offset == 7:
                assert await member.take(2, 0) == [delivered(7)]
        await member.check(cluster.loop.time())
        assert consumer.said == []
        await member.check(cluster.loop.time() + LEFT_S + 1)
        assert consumer.said == [("release", 8)]

    asyncio.run(scenario())


def test_a_member_that_nobody_asks_leaves_and_one_that_is_waited_at_stays() -> None:
    async def scenario() -> None:
        idle, idle_consumer, cluster = made()
        busy, busy_consumer, _ = made()
        client: Any = SimpleNamespace(loop=cluster.loop)
        members = Members(client)
        members._members = {("idle", "g"): idle, ("busy", "g"): busy}
        now_s = cluster.loop.time()
        members.check(now_s + IDLE_S - 1)
        assert len(members._members) == 2
        asking = asyncio.ensure_future(busy.take(1, 1000))
        await asyncio.sleep(0)
        busy.used_s = now_s - 2 * IDLE_S
        idle.used_s = now_s - 2 * IDLE_S
        members.check(cluster.loop.time())
        while not idle_consumer.has_left:
            await asyncio.sleep(0)
        assert list(members._members) == [("busy", "g")]
        assert members.is_busy
        busy_consumer.coming.put_nowait([])
        await asking
        await members.close()
        assert busy_consumer.has_left

    asyncio.run(scenario())
