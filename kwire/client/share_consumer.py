"""A consumer of a share group: a queue worker. Each record goes to one member at a time.

`poll` gives records that this member holds until their locks run out (the group's
`share.record.lock.duration.ms`). What becomes of a record is said by `accept`, `release` (it is
delivered again) or `reject` (it is not, and goes to dead letters where the group has them); that is
sent with the next `poll`, or by `commit`. Without `explicit`, what a poll has given is accepted by
the next one unless something else was said of it. A record that is worked on for longer keeps its
lock by `renew`. Records come again when a lock runs out or a member goes: at least once, up to the
group's `share.delivery.count.limit`; `delivery_count` says how often.

    async with Cluster(settings) as cluster, ShareConsumer(cluster, "workers", ["jobs"]) as queue:
        while True:
            for delivered in await queue.poll():
                await work(delivered.record.value)

Works with Apache Kafka 4.2 and later. Source: KIP-932, KIP-1222.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.client.share_membership import ShareMembership
from kwire.client.share_session import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Arrived,
    Key,
    ShareSession,
    Types,
)
from kwire.protocol.records import Record

WAIT_MS = 500
SLICE_MS = 100
"""Of what `take` waits at one broker, while the others and acknowledgements wait for their turn."""
RECORDS_MAX = 500
BYTES_MAX = 8 << 20
LOCK_MS = 30_000
"""Kafka's default, until a broker has said what the group's is."""


class Delivered(NamedTuple):
    """One record, where it is, and how often it has been delivered."""

    topic: str
    partition: int
    record: Record
    delivery_count: int
    key: Key
    node_id: int


class Unacknowledged(NamedTuple):
    """Records whose acknowledgement failed: they may be delivered again."""

    topic: str
    partition: int
    offsets: list[int]
    error: ClientError


class ShareConsumer:
    """See the module; an asynchronous context manager. What is held at its end is given back.

    A broker hands out whole batches, so that a poll may give more than `records_max`; `limited` has
    it give no more, and share them out more evenly (KIP-1206, Apache Kafka 4.2 and later).
    `member_id` is that of a member in whose place it steps, a new one where it is empty.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        explicit: bool = False,
        wait_ms: int = WAIT_MS,
        records_max: int = RECORDS_MAX,
        bytes_max: int = BYTES_MAX,
        limited: bool = False,
        member_id: str = "",
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._explicit = explicit
        self._wait_ms = wait_ms
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._limited = limited
        self._membership = ShareMembership(cluster, group, topics, member_id)
        self._sessions: dict[int, ShareSession] = {}
        self._fetches: dict[int, asyncio.Task[list[Arrived]]] = {}
        self._turns = 0
        self._names: dict[Key, str] = {}
        self._held: dict[tuple[Key, int], Delivered] = {}
        """What the last poll gave and nothing was said of."""

    async def __aenter__(self) -> ShareConsumer:
        await self._membership.join()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and not self._explicit:
            self._accept_held()
        await self._end_fetches()
        for session in self._sessions.values():
            try:
                await session.acknowledge(is_last=True)
            except ClientError:
                continue  # locks run out
        await self._membership.leave()

    @property
    def assigned(self) -> list[tuple[str, int]]:
        """What this member reads now, with others."""
        return [(name, index) for (_, index), name in self._membership.assigned.items()]

    @property
    def lock_s(self) -> float:
        """For how long this member has what it gets, as the brokers said last."""
        known = [one.lock_ms for one in self._sessions.values() if one.lock_ms > 0]
        return min(known, default=LOCK_MS) / 1000

    # -- records

    async def poll(self) -> list[Delivered]:
        """What has come; empty when nothing has within the wait. ClientError."""
        if self._membership.error:
            raise ClientError(self._membership.error)
        if not self._explicit:
            self._accept_held()
        self._held = {}
        await self._begin_fetches()
        if not self._fetches:
            await self._news(self._wait_ms)
            return []
        await asyncio.wait(self._fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        given: list[Delivered] = []
        for node_id, task in list(self._fetches.items()):
            if task.done():
                del self._fetches[node_id]
                given += await self._given(node_id, task)
        self._held = {(one.key, one.record.offset): one for one in given}
        return given

    async def _given(self, node_id: int, task: asyncio.Task[list[Arrived]]) -> list[Delivered]:
        session = self._sessions[node_id]
        try:
            arrived = task.result()
        except ClientError as error:
            for name in self._membership.assigned.values():
                self._cluster.forget_topic(name)
            if not error.is_retriable:
                raise
            await asyncio.sleep(self._cluster.settings.backoff_min_s)
            return []
        if session.moved:
            for key in session.moved:
                self._cluster.forget_topic(self._names.get(key, ""))
            session.moved.clear()
            await asyncio.sleep(self._cluster.settings.backoff_min_s)
        return [
            Delivered(self._names[key], key[1], record, count, key, node_id)
            for key, record, count in arrived
        ]

    async def take(self, records_max: int, wait_ms: int) -> list[Delivered]:
        """At most so many records, of one broker after the other until one gives some: what is not
        given here is not held. For an `explicit` and `limited` consumer that does not `poll`; by
        any number of tasks. It is not to be cancelled: what it is being given would be lost until
        the locks run out. ClientError."""
        assert self._explicit, "nothing is accepted by itself"
        assert self._limited, "no more is held than is given"
        loop = self._cluster.loop
        end_s = loop.time() + wait_ms / 1000
        slice_ms = 0
        while True:
            if self._membership.error:
                raise ClientError(self._membership.error)
            wanted = sorted((await self._by_leader()).items())
            self._turns += 1
            first = self._turns % len(wanted) if wanted else 0
            for node_id, keys in [*wanted[first:], *wanted[:first]]:
                given = await self._taken(node_id, keys, records_max, slice_ms)
                if given:
                    return given
            left_ms = int((end_s - loop.time()) * 1000)
            if left_ms <= 0:
                return []
            if not wanted:
                await self._news(min(left_ms, WAIT_MS))
            slice_ms = min(left_ms, SLICE_MS // max(1, len(wanted)))

    async def _taken(
        self, node_id: int, keys: Sequence[Key], records_max: int, wait_ms: int
    ) -> list[Delivered]:
        fetching = self._cluster.loop.create_task(
            self._session(node_id).fetch(
                keys,
                wait_ms=wait_ms,
                records_max=records_max,
                bytes_max=self._bytes_max,
                limited=True,
            )
        )
        await asyncio.wait([fetching])
        return await self._given(node_id, fetching)

    def _session(self, node_id: int) -> ShareSession:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = ShareSession(
                self._cluster, self._group, self._membership.member_id, node_id
            )
        return session

    async def _by_leader(self) -> dict[int, list[Key]]:
        """What is ours, by the broker that leads it."""
        wanted: dict[int, list[Key]] = {}
        assigned = dict(self._membership.assigned)
        self._names.update(assigned)
        for key, name in assigned.items():
            leader = await self._cluster.leader(name, key[1])
            wanted.setdefault(leader, []).append(key)
        return wanted

    async def _begin_fetches(self) -> None:
        """One fetch for each broker that leads something of ours."""
        for node_id, keys in (await self._by_leader()).items():
            session = self._session(node_id)
            if node_id not in self._fetches:
                self._fetches[node_id] = self._cluster.loop.create_task(
                    session.fetch(
                        keys,
                        wait_ms=self._wait_ms,
                        records_max=self._records_max,
                        bytes_max=self._bytes_max,
                        limited=self._limited,
                    )
                )

    async def _news(self, wait_ms: int) -> None:
        """Wait for an assignment."""
        changed = self._membership.changed
        changed.clear()
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await changed.wait()
        except TimeoutError:
            return

    async def _end_fetches(self) -> None:
        tasks = list(self._fetches.values())
        self._fetches.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- what is said of them

    def accept(self, *delivered: Delivered) -> None:
        """They are done."""
        self._say(delivered, ACCEPT)

    def release(self, *delivered: Delivered) -> None:
        """Somebody may try again."""
        self._say(delivered, RELEASE)

    def reject(self, *delivered: Delivered) -> None:
        """Nobody is to try again."""
        self._say(delivered, REJECT)

    async def renew(self, *delivered: Delivered) -> list[Unacknowledged]:
        """Hold them for another lock duration from now; what is not held any more is returned."""
        by_node: dict[int, Types] = {}
        for one in delivered:
            self._held.pop((one.key, one.record.offset), None)
            of_node = by_node.setdefault(one.node_id, {})
            of_node.setdefault(one.key, {})[one.record.offset] = RENEW
        for node_id, types in by_node.items():
            await self._acknowledge(self._sessions[node_id], types)
        return self.failures()

    async def commit(self) -> list[Unacknowledged]:
        """Send what was said so far; what failed is returned. Without `explicit` all that the last
        poll gave is accepted."""
        if not self._explicit:
            self._accept_held()
        for session in list(self._sessions.values()):
            await self._acknowledge(session)
        return self.failures()

    def failures(self) -> list[Unacknowledged]:
        """Acknowledgements that have failed since this was last asked."""
        found = [
            Unacknowledged(self._names.get(failed.key, ""), failed.key[1], *failed[1:])
            for session in self._sessions.values()
            for failed in session.failures
        ]
        for session in self._sessions.values():
            session.failures.clear()
        return found

    async def _acknowledge(self, session: ShareSession, renewed: Types | None = None) -> None:
        try:
            await session.acknowledge(renewed=renewed)
        except ClientError as error:
            if not error.is_retriable:
                raise

    def _accept_held(self) -> None:
        self._say(list(self._held.values()), ACCEPT)

    def _say(self, delivered: Iterable[Delivered], kind: int) -> None:
        for one in delivered:
            self._held.pop((one.key, one.record.offset), None)
            self._sessions[one.node_id].say(one.key, one.record.offset, kind)
