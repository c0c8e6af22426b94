"""A member of a group of the classic protocol: JoinGroup, SyncGroup, heartbeats.

    joining   all members say what they subscribe to; the coordinator makes one the leader
    syncing   the leader shares the partitions out, the coordinator tells everybody
    stable    heartbeats; one is refused with REBALANCE_IN_PROGRESS when members change

Before it joins again a member lets go of everything (the eager protocol), so that nobody reads
what another one reads. The leader has its group join again when a topic has other partitions than
it had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from kwire.client.assignors import ASSIGNORS, RANGE, ROUND_ROBIN, Partition
from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed, Unanswered, check
from kwire.client.heartbeats import LEAVE_TIMEOUT_S
from kwire.client.membership import REBALANCE_TIMEOUT_MS, Revoked
from kwire.client.offsets import Member
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, MalformedError

PROTOCOL_TYPE = "consumer"
SESSION_TIMEOUT_MS = 45_000
HEARTBEATS_A_SESSION = 15
SUBSCRIPTION_VERSION = 1
VERSION_MAX = 3
NO_GENERATION = -1
SLACK_S = 5.0
"""What a coordinator may take beyond the rebalance timeout."""
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, *LOST)


class ClassicMembership:
    """See the module; used as `membership.Membership` is. While a member joins, the connection to
    its coordinator serves nothing else: give it a `Cluster` of its own."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        revoked: Revoked,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        assignors: Sequence[str] = (RANGE, ROUND_ROBIN),
    ) -> None:
        assert all(name in ASSIGNORS for name in assignors), assignors
        self.assigned: list[Partition] = []
        self.changed = asyncio.Event()
        self.error = ""
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._revoked = revoked
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._session_timeout_ms = session_timeout_ms
        self._assignors = list(assignors)
        self._member_id = ""
        self._generation = NO_GENERATION
        self._protocol = ""
        self._shares: Mapping[str, Sequence[Partition]] = {}
        self._shared_out: dict[str, int] | None = None
        """The leader's: how many partitions the topics had that it has shared out."""
        self._task: asyncio.Task[None] | None = None

    @property
    def member(self) -> Member:
        """On whose behalf offsets are committed."""
        return Member(self._member_id, self._generation)

    async def join(self) -> None:
        """Become a member; from then on heartbeats go out. ClientError."""
        await self._rejoin()
        self._task = self._cluster.loop.create_task(self._keep_alive())

    async def leave(self) -> None:
        """Let everything go, and tell the group; nothing raises."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if not self._member_id:
            return
        try:
            await self._cluster.ask_coordinator(
                Coordinator.GROUP, self._group, self._ask_to_leave, LEAVE_TIMEOUT_S
            )
        except ClientError:
            return

    async def _ask_to_leave(self, node_id: int) -> None:
        member = m.LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        request = m.LeaveGroupRequest(group_id=self._group, members=[member])
        left = await self._cluster.call(request, node_id, timeout_s=LEAVE_TIMEOUT_S)
        check(left.error_code, f"group {self._group}")

    # -- heartbeats

    async def _keep_alive(self) -> None:
        pause_s = self._session_timeout_ms / 1000 / HEARTBEATS_A_SESSION
        while True:
            await asyncio.sleep(pause_s)
            try:
                if not await self._is_stable():
                    await self._let_go()
                    await self._rejoin()
            except ClientError as error:
                if not (error.is_retriable or isinstance(error, Unanswered)):
                    self.error = str(error)
                    self.changed.set()
                    return

    async def _is_stable(self) -> bool:
        """Whether this member may go on as it is."""
        if self._generation == NO_GENERATION:  # the last attempt to join has failed
            return False
        try:
            await self._cluster.ask_coordinator(Coordinator.GROUP, self._group, self._beat)
        except RequestFailed as error:
            if error.code not in AGAIN:
                raise
            if error.code in LOST:
                self._forgotten()
            return False
        return self._shared_out is None or await self._counts(self._shared_out) == self._shared_out

    async def _beat(self, node_id: int) -> None:
        request = m.HeartbeatRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._member_id
        )
        check((await self._cluster.call(request, node_id)).error_code, f"group {self._group}")

    def _forgotten(self) -> None:
        """The group does not know this member any more: what it had is somebody else's."""
        self._member_id = ""
        self._generation = NO_GENERATION
        self.assigned = []
        self.changed.set()

    async def _let_go(self) -> None:
        if self.assigned:
            await self._revoked(self.assigned)
        self.assigned = []
        self.changed.set()

    # -- joining

    async def _rejoin(self) -> None:
        """Join and sync until both have succeeded. ClientError."""
        while True:
            self._generation = NO_GENERATION
            try:
                joined = await self._cluster.ask_coordinator(
                    Coordinator.GROUP, self._group, self._ask_to_join
                )
                self._generation = joined.generation_id
                self._shares = await self._shared(joined)
                assignment = await self._cluster.ask_coordinator(
                    Coordinator.GROUP, self._group, self._ask_to_sync
                )
            except RequestFailed as error:
                if error.code not in (*AGAIN, ErrorCode.MEMBER_ID_REQUIRED):
                    raise
                if error.code in LOST:
                    self._forgotten()
                continue
            self.assigned = partitions_of(assignment)
            self.changed.set()
            return

    async def _ask_to_join(self, node_id: int) -> m.JoinGroupResponse:
        subscription = m.ConsumerProtocolSubscription(topics=self._topics)
        metadata = SUBSCRIPTION_VERSION.to_bytes(2, "big")
        metadata += subscription.encode(SUBSCRIPTION_VERSION)
        shape = m.JoinGroupRequest.JoinGroupRequestProtocol
        request = m.JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[shape(name=name, metadata=metadata) for name in self._assignors],
        )
        timeout_s = self._rebalance_timeout_ms / 1000 + SLACK_S
        joined = await self._cluster.call(request, node_id, timeout_s=timeout_s)
        if joined.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._member_id = joined.member_id
        check(joined.error_code, f"group {self._group}")
        return joined

    async def _ask_to_sync(self, node_id: int) -> bytes:
        shape = m.SyncGroupRequest.SyncGroupRequestAssignment
        request = m.SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=[
                shape(member_id=member, assignment=_encoded(share))
                for member, share in self._shares.items()
            ],
        )
        timeout_s = self._rebalance_timeout_ms / 1000 + SLACK_S
        synced = await self._cluster.call(request, node_id, timeout_s=timeout_s)
        check(synced.error_code, f"group {self._group}")
        return bytes(synced.assignment)

    async def _shared(self, joined: m.JoinGroupResponse) -> Mapping[str, Sequence[Partition]]:
        """What the leader gives everybody; nothing of any other member."""
        self._protocol = joined.protocol_name or ""
        self._shared_out = None
        if joined.leader != joined.member_id:
            return {}
        members = {one.member_id: _topics_of(bytes(one.metadata)) for one in joined.members}
        topics = {topic for subscribed in members.values() for topic in subscribed}
        self._shared_out = await self._counts(sorted(topics))
        return ASSIGNORS[self._protocol](members, self._shared_out)

    async def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions topics have; 0 of those that are not there."""
        found = {}
        for topic in topics:
            try:
                found[topic] = len((await self._cluster.topic(topic)).partitions)
            except RequestFailed as error:
                if error.is_retriable and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                found[topic] = 0
        return found


def _topics_of(metadata: bytes) -> list[str]:
    """What a member subscribes to; one that says it in no known way gets nothing."""
    version = int.from_bytes(metadata[:2], "big", signed=True)
    if len(metadata) < 2 or version < 0:
        return []
    try:
        found, _ = m.ConsumerProtocolSubscription.decode_from(
            metadata, 2, min(version, VERSION_MAX)
        )
    except MalformedError:
        return []
    return list(found.topics)


def _encoded(share: Sequence[Partition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in share:
        topics.setdefault(topic, []).append(index)
    shape = m.ConsumerProtocolAssignment.TopicPartition
    assignment = m.ConsumerProtocolAssignment(
        assigned_partitions=[shape(topic=name, partitions=at) for name, at in topics.items()]
    )
    version = 0
    return version.to_bytes(2, "big") + assignment.encode(version)


def partitions_of(assignment: bytes) -> list[Partition]:
    """What a member was given, of a group of Kafka's consumers; ClientError for what is none."""
    if not assignment:
        return []
    version = int.from_bytes(assignment[:2], "big", signed=True)
    try:
        if len(assignment) < 2 or version < 0:
            raise MalformedError("no version")
        found, _ = m.ConsumerProtocolAssignment.decode_from(
            assignment, 2, min(version, VERSION_MAX)
        )
    except MalformedError as error:
        raise ClientError(f"the group's leader gave a malformed assignment: {error}") from None
    return sorted(
        (topic.topic, index) for topic in found.assigned_partitions for index in topic.partitions
    )
