"""A caller's members of share groups: who holds the messages of a queue between two requests.

A member is made when a queue is first asked for, on connections of its own, and leaves when nobody
has used it for `IDLE_S`: what it holds goes back then. It remembers what it has delivered for as
long as the locks last, so that an acknowledgement finds its message, and one that is sent twice is
answered twice.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.client.configs import Configs, Resource
from kwire.client.errors import ClientError, RequestFailed, Unsupported
from kwire.client.share_consumer import Delivered, ShareConsumer, Unacknowledged
from kwire.clock import SystemRandom
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.message_ids import MessageIds
from kwire.http.purposes.rest.problems import Problem
from kwire.protocol import uuids

MEMBERS_MAX = 32
"""Of one caller."""
HELD_MAX = 10_000
"""Deliveries that a member remembers."""
IDLE_S = 60.0
LEFT_S = 5.0
"""After which messages whose asker has left are given back."""
RESET = "share.auto.offset.reset"
EARLIEST = "earliest"

Place = tuple[int, int]
"""(partition, offset)."""


class Saying(enum.Enum):
    """What becomes of a message."""

    ACK = "ack"
    RELEASE = "release"
    REJECT = "reject"


class Held(NamedTuple):
    """A delivery, until when its lock lasts, and what was said of it."""

    delivered: Delivered
    until_s: float
    said: Saying | None = None


class Member:
    """See the module; `opened` makes one."""

    def __init__(self, cluster: Cluster, consumer: ShareConsumer) -> None:
        self.used_s = cluster.loop.time()
        self._cluster = cluster
        self._loop = cluster.loop
        self._consumer = consumer
        self._held: dict[Place, Held] = {}
        self._left: list[Delivered] = []
        """What was taken for somebody who did not wait for it."""
        self._left_s = 0.0
        self._taking: dict[asyncio.Task[list[Delivered]], None] = {}
        self._failed: dict[Place, ClientError] = {}
        self._waiting = 0

    @property
    def idle_since_s(self) -> float:
        """When it was last used."""
        return self._loop.time() if self._waiting else self.used_s

    @property
    def lock_s(self) -> float:
        """For how long messages are held."""
        return self._consumer.lock_s

    async def take(self, count_max: int, wait_ms: int) -> list[Delivered]:
        """Messages, none if none comes in time. ClientError."""
        self.used_s = self._loop.time()
        if self._left:
            given, self._left = self._left[:count_max], self._left[count_max:]
            return given
        taking = self._loop.create_task(self._consumer.take(count_max, wait_ms))
        self._taking[taking] = None
        self._waiting += 1
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._keep_left)
            raise
        finally:
            self._waiting -= 1
            taking.add_done_callback(lambda done: self._taking.pop(done, None))
            self.used_s = self._loop.time()
        self._remember(taken)
        return taken

    def _keep_left(self, taking: asyncio.Task[list[Delivered]]) -> None:
        if taking.cancelled() or taking.exception() is not None:
            return
        taken = taking.result()
        self._remember(taken)
        self._left += taken
        self._left_s = self._loop.time()

    def _remember(self, taken: list[Delivered]) -> None:
        now_s = self._loop.time()
        for place in [place for place, held in self._held.items() if held.until_s < now_s]:
            del self._held[place]
        until_s = now_s + self._consumer.lock_s
        for one in taken:
            self._held[one.partition, one.record.offset] = Held(one, until_s)

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as it may."""
        return len(self._held) >= HELD_MAX

    def held(self, place: Place, count: int) -> Held:
        """The delivery of a message; Problem 409 where it is not held any more."""
        held = self._held.get(place)
        is_over = held is not None and held.said is None and held.until_s < self._loop.time()
        if held is None or is_over or held.delivered.delivery_count != count:
            raise not_held()
        return held

    async def say(self, place: Place, count: int, saying: Saying) -> None:
        """What becomes of a message; Problem 409 where that is not for this member to say."""
        self.used_s = self._loop.time()
        held = self.held(place, count)
        if held.said is not None:
            if held.said is saying:
                return
            message = f"it was answered with {held.said.value} before"
            raise Problem(409, "already_answered", message, field="messageId")
        one = held.delivered
        self._held[place] = held._replace(said=saying)
        if saying is Saying.ACK:
            self._consumer.accept(one)
        elif saying is Saying.RELEASE:
            self._consumer.release(one)
        else:
            self._consumer.reject(one)
        self._note(await self._consumer.commit())
        error = self._failed.pop(place, None)
        if error is not None:
            self._held.pop(place, None)
            raise not_held(error)

    async def renew(self, place: Place, count: int) -> float:
        """Hold a message for another lock; for how many seconds. Problem 409."""
        self.used_s = self._loop.time()
        held = self.held(place, count)
        if held.said is not None:
            message = f"it was answered with {held.said.value} before"
            raise Problem(409, "already_answered", message, field="messageId")
        self._note(await self._consumer.renew(held.delivered))
        error = self._failed.pop(place, None)
        if error is not None:
            self._held.pop(place, None)
            raise not_held(error)
        self._held[place] = held._replace(until_s=self._loop.time() + self._consumer.lock_s)
        return self._consumer.lock_s

    def _note(self, failures: list[Unacknowledged]) -> None:
        """Whoever has said it hears of it: all wait for their own."""
        for failed in failures:
            for offset in failed.offsets:
                place = (failed.partition, offset)
                if place in self._held:
                    self._failed[place] = failed.error

    async def check(self, now_s: float) -> None:
        """Give back what nobody has waited for."""
        if self._left and now_s - self._left_s > LEFT_S:
            left, self._left = self._left, []
            self._consumer.release(*left)
            for one in left:
                self._held.pop((one.partition, one.record.offset), None)
            try:
                self._note(await self._consumer.commit())
            except ClientError:
                return  # the locks run out

    async def close(self) -> None:
        """Leave the group; nothing raises."""
        await asyncio.gather(*self._taking, return_exceptions=True)
        await self._consumer.__aexit__(None, None, None)
        await self._cluster.close()


def not_held(error: ClientError | None = None) -> Problem:
    """Nobody may say anything of the message by this id."""
    why = f" ({error})" if error is not None else ""
    message = f"the message is not held by this id any more, and is delivered again{why}"
    return Problem(409, "not_held", message, field="messageId")


async def opened(client: Client, queue: str, group: str) -> Member:
    """A member that has joined; ClientError."""
    cluster = client.new_cluster()
    try:
        await cluster.topic(queue)
        await _begin_at_the_beginning(cluster, group)
        consumer = ShareConsumer(
            cluster,
            group,
            [queue],
            explicit=True,
            limited=True,
            member_id=_member_id(client, queue, group),
        )
        await consumer.__aenter__()
    except BaseException:
        closing = client.loop.create_task(cluster.close())
        await asyncio.shield(closing)
        raise
    return Member(cluster, consumer)


def _member_id(client: Client, queue: str, group: str) -> str:
    """The same for each process of this node: the next one takes over from one that has died,
    whose partitions would have nobody until its session is over."""
    words = f"{client.node_id}\0{client.login}\0{queue}\0{group}"
    return uuids.to_text(hashlib.sha256(words.encode()).digest()[:16])


async def _begin_at_the_beginning(cluster: Cluster, group: str) -> None:
    """A queue has what was sent before anybody worked on it. Who has no right to see or to set the
    group's configs works with what they are."""
    configs = Configs(cluster)
    try:
        found = await configs.describe(Resource.GROUP, group, [RESET])
        if all(one.value != EARLIEST for one in found):
            await configs.alter(Resource.GROUP, group, {RESET: EARLIEST})
    except (RequestFailed, Unsupported) as error:
        if error.is_retriable:
            raise


class Members:
    """The members of one caller (a `Part` of its client), by queue and group."""

    ids = MessageIds(SystemRandom())
    """Of this process."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._members: dict[tuple[str, str], Member] = {}
        self._opening = asyncio.Lock()
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def is_busy(self) -> bool:
        """Whether it is a member of anything."""
        return bool(self._members)

    async def of(self, queue: str, group: str) -> Member:
        """The member for a queue, made where there is none. ClientError, Problem 429."""
        async with self._opening:
            member = self._members.get((queue, group))
            if member is None:
                if len(self._members) >= MEMBERS_MAX:
                    message = f"the caller takes messages of {MEMBERS_MAX} queues already"
                    raise Problem(
                        429, "too_many_queues", message, headers={"retry-after": str(int(IDLE_S))}
                    )
                member = self._members[queue, group] = await opened(self._client, queue, group)
        return member

    def known(self, queue: str, group: str) -> Member:
        """The member for a queue; Problem 409 where it has left."""
        member = self._members.get((queue, group))
        if member is None:
            raise not_held()
        return member

    def ended(self, member: Member) -> None:
        """It is of no use any more: its group does not know it, say."""
        for name, one in list(self._members.items()):
            if one is member:
                del self._members[name]
                self._later(member)

    def check(self, now_s: float) -> None:
        """Leave where nobody asks."""
        for name, member in list(self._members.items()):
            if now_s - member.idle_since_s > IDLE_S:
                del self._members[name]
                self._later(member)
            else:
                self._keep(self._client.loop.create_task(member.check(now_s)))

    def _later(self, member: Member) -> None:
        self._keep(self._client.loop.create_task(member.close()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def close(self) -> None:
        """Leave all groups."""
        members = list(self._members.values())
        self._members.clear()
        for member in members:
            await member.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
