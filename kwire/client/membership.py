"""A member of a consumer group of the consumer protocol (KIP-848), and what it is assigned.

The coordinator takes partitions away before it gives them to others: what is revoked stays the
member's until it says that it has let go. A member that is fenced (it was silent for too long)
starts anew at epoch 0 with nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import RequestFailed, check
from kwire.client.heartbeats import FENCED, JOIN_EPOCH, HeartbeatMember
from kwire.client.offsets import Member
from kwire.protocol import messages as m

REBALANCE_TIMEOUT_MS = 60_000

Partition = tuple[str, int]
Revoked = Callable[[Sequence[Partition]], Awaitable[None]]
"""Told before partitions are let go, so that what was read of them can be committed."""


class Membership(HeartbeatMember):
    """See the module. `assigned` is what this member reads."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        revoked: Revoked,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
    ) -> None:
        super().__init__(cluster, group, topics)
        self.assigned: list[Partition] = []
        self._revoked = revoked
        self._rebalance_timeout_ms = rebalance_timeout_ms

    @property
    def member(self) -> Member:
        """On whose behalf offsets are committed."""
        return Member(self.member_id, self._epoch)

    async def _beat(self) -> None:
        try:
            response = await self._cluster.ask_coordinator(
                Coordinator.GROUP, self._group, self._ask
            )
        except RequestFailed as error:
            if error.code not in FENCED:
                raise
            self._fenced()
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
        is_full = self._says_all()
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
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
