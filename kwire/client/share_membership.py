"""A member of a share group (KIP-932): heartbeats, and which partitions it may read.

    epoch   what it tells
    0       joins; the group's coordinator gives the member's epoch
    > 0     takes part; a heartbeat within the interval that the coordinator says
    -1      has left

Partitions are shared: an assignment is followed at once, nothing has to be let go before. A member
that is fenced (it was silent for too long) starts anew at epoch 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed, Unanswered, check
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_TIMEOUT_S = 5.0
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)

Key = tuple[bytes, int]
"""(topic id, partition)."""


class ShareMembership:
    """See the module. `assigned` has the topic's name of each partition; `changed` is set when it
    is another. `error` is why it is not a member any more, empty while it is."""

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str]) -> None:
        self.assigned: dict[Key, str] = {}
        self.changed = asyncio.Event()
        self.error = ""
        self.member_id = uuids.to_text(uuids.random_uuid(cluster.random))
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._epoch = JOIN_EPOCH
        self._interval_s = 0.0
        self._is_unsure = True
        self._task: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Become a member; from then on heartbeats go out. ClientError."""
        await self._beat()
        self._task = self._cluster.loop.create_task(self._keep_alive())

    async def leave(self) -> None:
        """Tell the group; nothing raises."""
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
        try:
            response = await self._cluster.ask_coordinator(
                Coordinator.GROUP, self._group, self._ask
            )
        except RequestFailed as error:
            if error.code not in FENCED:
                raise
            self._epoch = JOIN_EPOCH
            self._interval_s = 0.0
            return
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
        self._is_unsure = False

    async def _ask(self, node_id: int) -> m.ShareGroupHeartbeatResponse:
        # An assignment is told once: who may have missed it says everything, and hears it again.
        is_full = self._epoch == JOIN_EPOCH or (self._is_unsure and self._epoch > 0)
        self._is_unsure = True
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
