"""A member of a group whose partitions the coordinator assigns (KIP-848, KIP-932): its heartbeats.

    epoch   what it tells
    0       joins; the group's coordinator gives the member's epoch
    > 0     takes part; a heartbeat within the interval that the coordinator says
    -1      has left

What an assignment means to the member is its kind's: `membership.py`, `share_membership.py`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, Unanswered
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_TIMEOUT_S = 5.0
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class HeartbeatMember(ABC):
    """See the module. `changed` is set when its assignment is another, and when it is a member no
    more: `error` is why, empty while it is. `member_id` is a new one, or that of a member in whose
    place it steps: one that has died is not waited for then."""

    def __init__(
        self, cluster: Cluster, group: str, topics: Sequence[str], member_id: str = ""
    ) -> None:
        self.changed = asyncio.Event()
        self.error = ""
        self.member_id = member_id or uuids.to_text(uuids.random_uuid(cluster.random))
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._epoch = JOIN_EPOCH
        self._interval_s = 0.0
        self._has_news = True
        """The coordinator is to hear something before the interval is over."""
        self._is_unsure = True
        self._task: asyncio.Task[None] | None = None

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
            return  # the coordinator misses it after the session timeout

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

    def _says_all(self) -> bool:
        """Whether the next heartbeat has all fields. An assignment is told once: who may have
        missed it says everything, and hears it again."""
        is_full = self._epoch == JOIN_EPOCH or (self._is_unsure and self._epoch > 0)
        self._is_unsure = True
        return is_full

    def _fenced(self) -> None:
        """It was silent for too long: it starts anew, at once."""
        self._epoch = JOIN_EPOCH
        self._has_news = True

    @abstractmethod
    async def _beat(self) -> None:
        """One heartbeat, and what it says. ClientError."""

    @abstractmethod
    async def _ask(self, node_id: int) -> object:
        """The coordinator's answer to a heartbeat; ClientError."""
