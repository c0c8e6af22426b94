"""A member of a share group (KIP-932), and which partitions it may read.

Partitions are shared: an assignment is followed at once, nothing has to be let go before. A member
that is fenced (it was silent for too long) starts anew at epoch 0. One that has nothing asks sooner
than the interval: a new group's partitions are made ready behind the answer to its first heartbeat.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import RequestFailed, check
from kwire.client.heartbeats import FENCED, HeartbeatMember
from kwire.client.retries import Backoff
from kwire.protocol import messages as m

SOONER_S, SOONER_MAX_S = 0.1, 60.0
Key = tuple[bytes, int]
"""(topic id, partition)."""


class ShareMembership(HeartbeatMember):
    """See the module. `assigned` has the topic's name of each partition."""

    def __init__(
        self, cluster: Cluster, group: str, topics: Sequence[str], member_id: str = ""
    ) -> None:
        super().__init__(cluster, group, topics, member_id)
        self.assigned: dict[Key, str] = {}
        self._sooner = Backoff(SOONER_S, SOONER_MAX_S, cluster.random)

    async def _beat(self) -> None:
        try:
            response = await self._cluster.ask_coordinator(
                Coordinator.GROUP, self._group, self._ask
            )
        except RequestFailed as error:
            if error.code not in FENCED:
                raise
            self._fenced()
            return
        self._has_news = False
        self._epoch = response.member_epoch
        self._interval_s = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            assigned: dict[Key, str] = {}
            for topic in response.assignment.topic_partitions:
                name = await self._cluster.name_of(topic.topic_id)
                assigned.update({(topic.topic_id, index): name for index in topic.partitions})
            if assigned != self.assigned:
                self.assigned = assigned
                self.changed.set()
        if not self.assigned:
            self._interval_s = min(self._interval_s, self._sooner.next_s())
        self._is_unsure = False

    async def _ask(self, node_id: int) -> m.ShareGroupHeartbeatResponse:
        is_full = self._says_all()
        response = await self._cluster.call(
            m.ShareGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self.member_id,
                member_epoch=self._epoch,
                subscribed_topic_names=self._topics if is_full else None,
            ),
            node_id,
        )
        check(response.error_code, f"group {self._group}", response.error_message)
        return response
