"""A consumer of a group: it reads what the group assigns to it, from where the group was.

Offsets are committed by `commit`, and of partitions that are taken away before they are let go.
Records that were given out and not committed come again, to this or another member: at least once.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple

from kwire.client.classic_membership import ClassicMembership
from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.fetching import WAIT_MS, Fetched, Fetcher, Partition
from kwire.client.membership import Membership
from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record


class Consumed(NamedTuple):
    """One record and where it is."""

    topic: str
    partition: int
    record: Record


class GroupProtocol(enum.Enum):
    """By which protocol a consumer is a member."""

    CONSUMER = "consumer"
    """The coordinator assigns (KIP-848)."""
    CLASSIC = "classic"
    """A member assigns: beside members of older clients."""


class Consumer:
    """See the module; an asynchronous context manager. `start` is where a partition is read from
    in which the group has committed nothing, or an offset that is gone: EARLIEST or LATEST. Without
    `commits_revoked` only `commit` commits: who has not worked off yet what it was given."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        start: int = LATEST,
        committed_only: bool = False,
        wait_ms: int = WAIT_MS,
        protocol: GroupProtocol = GroupProtocol.CONSUMER,
        commits_revoked: bool = True,
    ) -> None:
        assert start in (EARLIEST, LATEST), start
        self._group = group
        self._start = start
        self._wait_ms = wait_ms
        self._commits_revoked = commits_revoked
        self._offsets = Offsets(cluster)
        self._fetcher = Fetcher(cluster, committed_only=committed_only, wait_ms=wait_ms)
        kind = Membership if protocol is GroupProtocol.CONSUMER else ClassicMembership
        self._membership = kind(cluster, group, topics, revoked=self._revoked)
        self._positions: dict[Partition, int] = {}

    async def __aenter__(self) -> Consumer:
        await self._membership.join()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._membership.leave()

    @property
    def assigned(self) -> list[Partition]:
        """What this member reads now."""
        return list(self._membership.assigned)

    async def poll(
        self, *, wait_ms: int | None = None, bytes_max: int | None = None
    ) -> list[Consumed]:
        """What has come; empty when nothing has within the wait. ClientError."""
        wait = self._wait_ms if wait_ms is None else wait_ms
        await self._follow_assignment()
        if not self._positions:
            await self._news(wait / 1000)
            return []
        try:
            found = await self._fetcher.fetch(self._positions, wait_ms=wait, bytes_max=bytes_max)
        except RequestFailed as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            await self._reset()
            return []
        return self._moved_on(found)

    def _moved_on(self, found: dict[Partition, Fetched]) -> list[Consumed]:
        given: list[Consumed] = []
        for name, fetched in found.items():
            if name not in self._positions:
                continue  # taken away meanwhile
            self._positions[name] = fetched.next_offset
            given += [Consumed(*name, record) for record in fetched.records]
        return given

    async def commit(self, offsets: Mapping[Partition, int] | None = None) -> None:
        """Commit these offsets, else what `poll` has given so far. ClientError."""
        committed = dict(self._positions if offsets is None else offsets)
        if committed:
            await self._offsets.commit(self._group, committed, self._membership.member)

    @property
    def positions(self) -> dict[Partition, int]:
        """Where it reads on, of what it is assigned."""
        return dict(self._positions)

    async def _news(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._membership.changed.wait()
        except TimeoutError:
            return

    async def _follow_assignment(self) -> None:
        membership = self._membership
        if not membership.changed.is_set():
            return
        if membership.error:
            raise ClientError(membership.error)
        membership.changed.clear()
        assigned = membership.assigned
        self._positions = {
            name: offset for name, offset in self._positions.items() if name in assigned
        }
        new = [name for name in assigned if name not in self._positions]
        if not new:
            return
        try:
            committed = await self._offsets.committed(self._group)
            unknown = [name for name in new if name not in committed]
            begun = await self._offsets.at(unknown, self._start) if unknown else {}
        except BaseException:
            membership.changed.set()  # the next poll tries again
            raise
        for name in new:
            if name in membership.assigned:  # not taken away meanwhile
                self._positions[name] = committed.get(name, begun.get(name, 0))

    async def _reset(self) -> None:
        """Offsets that are gone: go on where there is something."""
        first = await self._offsets.at(self._positions, EARLIEST)
        last = await self._offsets.at(self._positions, LATEST)
        for name, offset in self._positions.items():
            if not first[name] <= offset <= last[name]:
                self._positions[name] = (first if self._start == EARLIEST else last)[name]

    async def _revoked(self, partitions: Sequence[Partition]) -> None:
        held = {name: self._positions.pop(name) for name in partitions if name in self._positions}
        if not held or not self._commits_revoked:
            return
        try:
            await self._offsets.commit(self._group, held, self._membership.member)
        except ClientError:
            return  # whoever gets them reads from the last commit
