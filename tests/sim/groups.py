"""Members of consumer groups, of both protocols, that commit offsets and come and go.

They process nothing: each owned partition has a position that begins at the committed offset and
is committed, a little further, again and again. Retries are those of Kafka's clients; a member that
learns that it is out joins again, and now and then one disappears without a word or leaves.
"""

from __future__ import annotations

from typing import Any

from kwire.coordinator.partitioner import partition_for
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.simulation import SimulatedHost
from tests.sim.checkers import Checkers
from tests.sim.client import Retry
from tests.sim.cluster import SETTINGS
from tests.sim.model import Violation
from tests.sim.offsets import OffsetLedger, Owners
from tests.sim.workload import TOPICS, Actor

GROUP_KIND = 0
OFFSETS_PARTITIONS = int(SETTINGS["offsets.topic.num.partitions"])
HEARTBEAT_S = 0.7
CLASSIC_SESSION_S = 6.0
SESSIONS_S = {"classic": CLASSIC_SESSION_S, "consumer": 4.0}
REBALANCES_S = {"classic": CLASSIC_SESSION_S, "consumer": 5.0}
MOVED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
OUT = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
Partition = tuple[str, int]


class Group:
    """One group's ledgers and owners, shared by its members."""

    def __init__(self, name: str, session_s: float, rebalance_s: float) -> None:
        self.name = name
        self.owners = Owners(name, session_s, rebalance_s)
        self.ledgers: dict[Partition, OffsetLedger] = {
            (topic, index): OffsetLedger(f"{name}/{topic}-{index}")
            for topic, count in TOPICS.items()
            for index in range(count)
        }


class _Out(Exception):
    """The group goes on without this member: join again."""


class Member(Actor):
    """What both protocols have in common. `owned` maps each partition to its tenure."""

    def __init__(self, host: SimulatedHost, name: str, checkers: Checkers, group: Group) -> None:
        super().__init__(host, name, checkers)
        self.group = group
        self.life = 0
        self.sent_s = 0.0  # when what was answered last was asked
        self.epoch = 0  # generation or member epoch
        self.member_id = ""
        self.owned: dict[Partition, int] = {}
        self.positions: dict[Partition, int] = {}

    # -- its life

    async def run(self) -> None:
        while not self.stop:
            self.life += 1
            try:
                await self._live()
            except _Out as out:
                self.client.note(f"is out: {out}")
                self._drop_all()
        self._drop_all()

    async def _live(self) -> None:
        await self.join()
        while not self.stop:
            await self.client.pause(HEARTBEAT_S)
            await self.heartbeat()
            if self.owned:
                owned = list(self.owned)
                await self._commit(owned[self.draw(len(owned))])
            if self.draw(60) == 0:
                if self.draw(2):
                    await self.leave()
                self._disappear()
                return

    def _disappear(self) -> None:
        """Its process ends, whether it has said so or not; what it owned waits for its session."""
        self.client.note("disappears")
        self.owned.clear()
        self.positions.clear()
        self.member_id, self.epoch = "", 0

    async def join(self) -> None:
        raise NotImplementedError

    async def heartbeat(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        raise NotImplementedError

    # -- asking

    def now(self) -> float:
        return self.client.host.simulation.now

    async def ask(self, request: Any, version: int, timeout_s: float = 3.0) -> Any:
        """Until an answer comes."""
        while True:
            sent = self.sent_s = self.now()
            try:
                answer = await self.client.ask_coordinator(
                    GROUP_KIND, self.group.name, request, version, timeout_s
                )
            except Retry:
                self.group.owners.unanswered(self.owner, sent)
                await self.client.pause()
                continue
            code = getattr(answer, "error_code", 0)
            if code in MOVED:
                self.client.forget_coordinator(GROUP_KIND, self.group.name)
                await self.client.pause()
                continue
            if code == 0:
                if not isinstance(request, m.OffsetFetchRequest):  # which keeps no session alive
                    self.group.owners.heard(self.owner, self._heard_s(sent))
                self.operations += 1
            return answer

    def _heard_s(self, sent_s: float) -> float:
        """What was sent at that time has been answered: when the group's coordinator heard of it
        for certain. The last that was asked has answered."""
        group = self.group.name
        host, _ = self.client.coordinators[GROUP_KIND, group]
        partition = partition_for(group, OFFSETS_PARTITIONS)
        return self.checkers.coordinators.heard_s(partition, int(host[1:]), sent_s)

    @property
    def owner(self) -> str:
        return f"{self.name}.{self.life}"

    def guarded(self, check: Any, *arguments: Any) -> None:
        try:
            check(*arguments)
        except Violation as violation:
            raise self.checkers.violated(violation) from None

    # -- what it owns

    async def assigned(self, partitions: list[Partition], heard_s: float) -> None:
        """It owns these from now on, and no others; _Out when it heard so too late."""
        if self.now() >= self.sent_s + self.group.owners.session_s:
            raise _Out("an answer that is older than a session")
        for partition in [p for p in self.owned if p not in partitions]:
            self._drop(partition)
        owners = self.group.owners
        for partition in [p for p in partitions if p not in self.owned]:
            self.guarded(owners.acquire, partition, self.owner, heard_s, self.now())
            self.owned[partition] = self.group.ledgers[partition].acquired()
        for partition in [p for p in self.owned if p not in self.positions]:
            position = await self._fetch(partition)
            if partition in self.owned:
                self.positions[partition] = max(0, position)

    def _drop(self, partition: Partition) -> None:
        self.group.owners.release(partition, self.owner)
        self.owned.pop(partition, None)
        self.positions.pop(partition, None)

    def _drop_all(self) -> None:
        for partition in list(self.owned):
            self._drop(partition)

    # -- offsets

    async def _commit(self, partition: Partition) -> None:
        tenure, ledger = self.owned[partition], self.group.ledgers[partition]
        offset = self.positions[partition] + 1 + self.draw(5)
        while not self.stop:
            attempt = ledger.begin(offset, tenure)
            request = self._commit_request(partition, offset)
            try:
                answer = await self.client.ask_coordinator(GROUP_KIND, self.group.name, request, 9)
            except Retry:
                ledger.end(attempt, None)
                await self.client.pause()
                continue
            code = answer.topics[0].partitions[0].error_code
            # Refused for certain is only what is fenced: a coordinator that fails after its append
            # answers that it is not available, or not the coordinator.
            ledger.end(attempt, True if code == 0 else False if code in OUT else None)
            if code == 0:
                self.operations += 1
                if partition in self.positions:
                    self.positions[partition] = offset
                return
            if code in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS):
                return  # its heartbeat will tell what is new
            if code in OUT:
                raise _Out(f"commit: {ErrorCode(code).name}")
            if code in MOVED:
                self.client.forget_coordinator(GROUP_KIND, self.group.name)
            await self.client.pause()

    def _commit_request(self, partition: Partition, offset: int) -> Any:
        request = m.OffsetCommitRequest
        return request(
            group_id=self.group.name,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[
                request.OffsetCommitRequestTopic(
                    name=partition[0],
                    partitions=[
                        request.OffsetCommitRequestPartition(
                            partition_index=partition[1],
                            committed_offset=offset,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )

    async def _fetch(self, partition: Partition) -> int:
        """The committed offset; it must be one that may be."""
        ledger = self.group.ledgers[partition]
        while True:
            asked = ledger.tick()
            answer = (await self.ask(self._fetch_request(partition), 8)).groups[0]
            found = None if answer.error_code else answer.topics[0].partitions[0]
            if found is not None and found.error_code == 0:
                offset = int(found.committed_offset)
                self.guarded(ledger.check, offset, asked, self.owner)
                return offset
            if answer.error_code in MOVED:
                self.client.forget_coordinator(GROUP_KIND, self.group.name)
            await self.client.pause()

    def _fetch_request(self, partition: Partition) -> Any:
        request = m.OffsetFetchRequest
        topic, index = partition
        group = request.OffsetFetchRequestGroup(
            group_id=self.group.name,
            topics=[request.OffsetFetchRequestTopics(name=topic, partition_indexes=[index])],
        )
        return request(groups=[group], require_stable=True)

    async def audit(self) -> None:
        """Every partition's committed offset is what it may be; after the members have ended."""
        for partition in self.group.ledgers:
            await self._fetch(partition)


class ConsumerMember(Member):
    """KIP-848: the coordinator assigns."""

    _topics: dict[bytes, str] | None = None

    async def join(self) -> None:
        self.owned.clear()
        self.member_id = f"{self.name}-{self.life}"
        self.epoch = 0
        await self.heartbeat()

    async def heartbeat(self) -> None:
        sent = self.now()
        answer = await self.ask(self._beat(self.epoch), 1)
        code = answer.error_code
        if code in OUT:
            raise _Out(f"heartbeat: {ErrorCode(code).name}")
        if code:
            return
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            self.group.owners.settled(self.owner)
        else:
            names = await self._names()
            partitions = [
                (names[topic.topic_id], index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            ]
            if all(partition in partitions for partition in self.owned):
                self.group.owners.settled(self.owner)
            await self.assigned(partitions, sent)

    async def leave(self) -> None:
        """What it owns is given up before it says so."""
        self._drop_all()
        try:
            await self.client.ask_coordinator(GROUP_KIND, self.group.name, self._beat(-1), 1)
        except Retry:
            pass

    def _beat(self, epoch: int) -> Any:
        request = m.ConsumerGroupHeartbeatRequest
        by_topic: dict[str, list[int]] = {}
        for topic, index in self.owned:
            by_topic.setdefault(topic, []).append(index)
        ids = {} if self._topics is None else {name: key for key, name in self._topics.items()}
        return request(
            group_id=self.group.name,
            member_id=self.member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=int(REBALANCES_S["consumer"] * 1000),
            subscribed_topic_names=sorted(TOPICS),
            topic_partitions=[
                request.TopicPartitions(topic_id=ids[topic], partitions=indexes)
                for topic, indexes in by_topic.items()
            ],
        )

    async def _names(self) -> dict[bytes, str]:
        """Topic ids by metadata."""
        while self._topics is None:
            request = m.MetadataRequest
            topics = [request.MetadataRequestTopic(name=topic) for topic in sorted(TOPICS)]
            message = request(topics=topics, allow_auto_topic_creation=False)
            try:
                answer = await self.client.ask(self.client.any_broker(), message, 12)
            except Retry:
                await self.client.pause()
                continue
            if all(topic.error_code == 0 for topic in answer.topics):
                self._topics = {topic.topic_id: topic.name for topic in answer.topics}
        return self._topics


class ClassicMember(Member):
    """The classic protocol, eager: whoever leads the generation assigns."""

    async def join(self) -> None:
        self._drop_all()
        while True:
            self.stopped_means_out()
            sent = self.now()
            answer = await self.ask(self._join_request(), 9, 12.0)
            code = answer.error_code
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                continue
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if code:
                await self.client.pause()
                continue
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            if await self._sync(answer, sent):
                return

    def stopped_means_out(self) -> None:
        if self.stop:
            raise _Out("stopped")

    async def _sync(self, joined: Any, sent: float) -> bool:
        request = m.SyncGroupRequest
        assignments = []
        if joined.leader == self.member_id:
            members = sorted(member.member_id for member in joined.members)
            shares: dict[str, list[Partition]] = {member: [] for member in members}
            for number, partition in enumerate(self.group.ledgers):
                shares[members[number % len(members)]].append(partition)
            assignments = [
                request.SyncGroupRequestAssignment(member_id=member, assignment=_encode(share))
                for member, share in shares.items()
            ]
        message = request(
            group_id=self.group.name,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        answer = await self.ask(message, 5, 8.0)
        if answer.error_code == 0:
            await self.assigned(_decode(bytes(answer.assignment)), sent)
            return True
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        await self.client.pause()
        return False

    def _join_request(self) -> Any:
        request = m.JoinGroupRequest
        return request(
            group_id=self.group.name,
            session_timeout_ms=int(CLASSIC_SESSION_S * 1000),
            rebalance_timeout_ms=int(CLASSIC_SESSION_S * 1000),
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[request.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )

    async def heartbeat(self) -> None:
        message = m.HeartbeatRequest(
            group_id=self.group.name, generation_id=self.epoch, member_id=self.member_id
        )
        code = (await self.ask(message, 4)).error_code
        if code == 0:
            self.group.owners.settled(self.owner)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            await self.join()
        elif code in OUT:
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            raise _Out(f"heartbeat: {ErrorCode(code).name}")

    async def leave(self) -> None:
        self._drop_all()
        request = m.LeaveGroupRequest
        message = request(
            group_id=self.group.name, members=[request.MemberIdentity(member_id=self.member_id)]
        )
        try:
            await self.client.ask_coordinator(GROUP_KIND, self.group.name, message, 5)
        except Retry:
            pass


def _encode(share: list[Partition]) -> bytes:
    return ",".join(f"{topic}:{index}" for topic, index in share).encode()


def _decode(assignment: bytes) -> list[Partition]:
    pairs = (pair.split(":") for pair in assignment.decode().split(",") if pair)
    return [(topic, int(index)) for topic, index in pairs]
