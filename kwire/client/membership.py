"""A member of a consumer group of the consumer protocol (KIP-848): heartbeats, and what they give.

    epoch   what it tells
    0       joins; the group's coordinator gives the member's epoch
    > 0     takes part; a heartbeat within the interval that the coordinator says
    -1      has left

The coordinator takes partitions away before it gives them to others: what is revoked stays the
member's until it says that it has let go. A member that is fenced (it was silent for too long)
starts anew at epoch 0 with nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed, Unanswered, check
from kwire.client.offsets import Member
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
REBALANCE_TIMEOUT_MS = 60_000
LEAVE_TIMEOUT_S = 5.0
FENCED = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
)

Partition = tuple[str, int]
Revoked = Callable[[Sequence[Partition]], Awaitable[None]]
"""Told before partitions are let go, so that what was read of them can be committed."""


class Membership:
    """See the module. `assigned` is what this member reads; `changed` is set when it is another.

    `error` is why it is not a member any more, empty while it is.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        revoked: Revoked,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
    ) -> None:
        self.assigned: list[Partition] = []
        self.changed = asyncio.Event()
        self.error = ""
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._revoked = revoked
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._member_id = uuids.to_text(uuids.random_uuid(cluster.random))
        self._epoch = JOIN_EPOCH
        self._interval_s = 0.0
        self._has_news = True
        self._is_unsure = True
        self._task: asyncio.Task[None] | None = None

    @property
    def member(self) -> Member:
        """On whose behalf offsets are committed."""
        return Member(self._member_id, self._epoch)

    async def join(self) -> None:
        """Become a member; from then on heartbeats go out. ClientError."""
        await self._beat()
        self._task = self._cluster.loop.create_task(self._keep_alive())

    async def leave(self) -> None:
        """Let everything go, and tell the group; nothing raises."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._epoch <= JOIN_EPOCH:
            return
        self._epoch = LEAVE_EPOCH
        try:
            await self._cluster.ask_coordinator(
                Coordinator.GROUP, self._group, self._ask, LEAVE_TIMEOUT_S
            )
        except ClientError:
            return

    async def _keep_alive(self) -> None:
        while True:
            if not self._has_news:
                await asyncio.sleep(self._interval_s)
            try:
                await self._beat()
            except ClientError as error:
                if not (error.is_retriable or isinstance(error, Unanswered)):
                    self.error = str(error)
                    self._epoch = JOIN_EPOCH
                    self.changed.set()
                    return
                await asyncio.sleep(self._cluster.settings.backoff_max_s)

    async def _beat(self) -> None:
        """One heartbeat, and what it says."""
        try:
            response = await self._cluster.ask_coordinator(
                Coordinator.GROUP, self._group, self._ask
            )
        except RequestFailed as error:
            if error.code not in FENCED:
                raise
            self._epoch = JOIN_EPOCH
            self._has_news = True
            self.assigned = []
            self.changed.set()
            return
        self._has_news = False
        self._epoch = response.member_epoch
        self._interval_s = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            await self._take(response.assignment)
        self._is_unsure = False

    async def _ask(self, node_id: int) -> m.ConsumerGroupHeartbeatResponse:
        # An assignment is told once: who may have missed it says everything, and hears it again.
        is_full = self._epoch == JOIN_EPOCH or (self._is_unsure and self._epoch > 0)
        self._is_unsure = True
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=self._rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=self._topics if is_full else None,
        )
        if self._epoch == JOIN_EPOCH:
            request.topic_partitions = []
        elif self._epoch > 0 and (is_full or self._has_news):
            request.topic_partitions = await self._owned()
        response = await self._cluster.call(request, node_id)
        check(response.error_code, f"group {self._group}", response.error_message)
        return response

    async def _owned(self) -> list[m.ConsumerGroupHeartbeatRequest.TopicPartitions]:
        topics: dict[str, list[int]] = {}
        for name, index in self.assigned:
            topics.setdefault(name, []).append(index)
        found = []
        for name, indexes in topics.items():
            topic = await self._cluster.topic(name)
            found.append(
                m.ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=topic.topic_id, partitions=indexes
                )
            )
        return found

    async def _take(self, assignment: m.ConsumerGroupHeartbeatResponse.Assignment) -> None:
        target: list[Partition] = []
        for topic in assignment.topic_partitions:
            name = await self._cluster.name_of(topic.topic_id)
            target += [(name, index) for index in topic.partitions]
        if sorted(target) == sorted(self.assigned):
            self._has_news = True  # it is acknowledged all the same
            return
        gone = [one for one in self.assigned if one not in target]
        if gone:
            await self._revoked(gone)
        self.assigned = sorted(target)
        self._has_news = True
        self.changed.set()
