"""One history on two brokers: one takes plain roads, the other sends every request the general way.

Both run in a simulation of the same seed and get the same bytes at the same instants, from several
connections: members that join, live, commit and leave, producers, fetch sessions, metadata, and
requests with bytes changed. Their answers have to be the same bytes, what they keep of groups the
same state, and what they count the same numbers (ADR 55). `python -m tests.sim.two_roads SEED`
prints where they part.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from unittest.mock import patch

from kwire.clock import SeededRandom
from kwire.config import BrokerConfig
from kwire.coordinator.coordinator_log import PartitionCoordinatorLog
from kwire.coordinator.group.classic.rebalance import MEMBER_TIMER
from kwire.coordinator.group.consumer.groups import REBALANCE_TIMER, SESSION_TIMER
from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.structs import Message, Request
from kwire.replica.partition import Partition
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.client import batch_of

PORT = 9092
TOPICS = ("one", "two")
PARTITIONS = 2
GROUPS = ("alpha", "beta", "gamma")
CONSUMER_GROUP = "new"
CONNECTIONS = 4  # one more than groups: two members of one put each other out
STEPS = 120
PLAIN_APIS = ("Heartbeat", "Metadata", "ConsumerGroupHeartbeat", "OffsetCommit", "Produce")
"""What has a plain road."""


@dataclass
class Member:
    """A member of a classic group as its client sees it."""

    group: str
    member_id: str = ""
    generation: int = -1
    version: int = 4


@dataclass
class Peer:
    """One connection, and what its client knows."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    member: Member = field(default_factory=lambda: Member(GROUPS[0]))
    consumer_id: str = ""
    consumer_epoch: int = 0
    correlation_id: int = 0

    def encoded(self, request: Request[Message], version: int) -> bytes:
        """The next frame of it."""
        self.correlation_id += 1
        name = f"client-{self.number}"
        return b"".join(
            frame.encode_request(request.API_KEY, version, self.correlation_id, name, request)
        )

    async def answer(self) -> bytes | None:
        """The next answer's frame without its size; None when the broker has closed."""
        try:
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError):
            return None


class EvenSimulation(Simulation):
    """Everything takes as long as ever: the two roads do not draw the same numbers in between, and
    that must not move what comes behind."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


class Road:
    """One broker, and its history so far: (step, answer) in order."""

    plain_apis = PLAIN_APIS

    def __init__(self, seed: int, plain: bool, steps: int = STEPS) -> None:
        self.simulation = EvenSimulation(seed)
        self.plain = plain
        self.steps = steps
        self.partitions = PARTITIONS  # of the first topic
        self.topic_ids: dict[str, bytes] = {}
        self.draw = SeededRandom(seed).below
        self.transcript: list[tuple[str, bytes | None]] = []
        self.state: list[tuple[str, str]] = []
        self.taken = 0
        """How many requests took a plain road."""
        self.of_plain_apis = 0
        """How many requests there were of APIs that have one."""

    def run(self) -> None:
        """The whole history. On the general way coordinators' batches are checked as any others."""
        with (
            nullcontext()
            if self.plain
            else patch.object(PartitionCoordinatorLog, "append_made", lambda *_: False)
        ):
            self._run()

    def _run(self) -> None:
        host = self.simulation.host("broker")
        settings = {
            "log.dirs": "/data",
            "listeners": f"PLAINTEXT://broker:{PORT}",
            "offsets.topic.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "100",
            "group.consumer.session.timeout.ms": "1500",
            "group.consumer.min.session.timeout.ms": "500",
            "group.consumer.heartbeat.interval.ms": "200",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.assignment.interval.ms": "0",
            "kwire.plain.requests.enable": "true" if self.plain else "false",
        }
        config = BrokerConfig.load(
            properties={}, environment={}, overrides=settings, developer=True
        )
        node = Node(config, host.loop, clock=host.clock, random=host.random, files=host.disk)
        host.simulation.run(host, node.start())
        client = self.simulation.host("client")
        self.simulation.run(client, self._history())
        self.state = list(self.kept(node))
        for listener in node.listeners.bound.values():
            for name, counts in listener.dispatcher.counts():
                self.taken += counts.plain
                codes = [at for at in enumerate(counts.errors) if at[1]]
                self.state.append((name, f"{counts.by_version} {codes}"))
                self.of_plain_apis += counts.total if name in self.plain_apis else 0
        self.simulation.run(host, node.stop())

    def kept(self, node: Node) -> Iterator[tuple[str, str]]:
        """What the broker keeps in the end."""
        yield from _state(node)
        for partition in sorted(node.parts.replicas, key=lambda x: (x.topic, x.index)):
            yield from self.records_of(partition)

    def records_of(self, partition: Partition) -> Iterator[tuple[str, str]]:
        """The log of a partition, byte by byte."""
        log = partition.log
        disk, name = self.simulation.host("broker").disk, f"{partition.topic}-{partition.index}"
        for segment in () if log is None else log.segments:
            data = disk.read_file(segment.log_path)
            yield f"{name} {segment.base_offset}", hashlib.sha256(data).hexdigest()
            yield f"{name} {segment.base_offset} index", str(list(segment.index.offsets))

    async def _history(self) -> None:
        peers = [await self._connected(number) for number in range(CONNECTIONS)]
        for name in TOPICS:
            await self._create(peers[0], "create", name)
        await self._ask(peers[0], "find", self._found(peers[0]))
        await asyncio.sleep(1)
        for peer in peers:
            peer.member = Member(GROUPS[peer.number % len(GROUPS)], version=self.draw(5))
        last = b""
        for step in range(self.steps):
            peer = peers[self.draw(len(peers))]
            kind = self.draw(20)
            if kind < 2:
                await asyncio.sleep(self.draw(250) / 1000)
            elif kind == 2 and last:
                changed = bytearray(last)
                changed[4 + self.draw(len(changed) - 4)] ^= 1 << self.draw(8)
                if await self._ask(peer, f"{step} changed", bytes(changed), may_wait=True) is None:
                    peers[peer.number] = await self._connected(peer.number, peer)
            elif (kind == 3 and self.draw(3) == 0) or (not peer.member.member_id and kind < 12):
                await self._join(peer, step)
            elif kind == 4 and peer.member.member_id and self.draw(3) == 0:
                await self._ask(peer, f"{step} leave", self._leave(peer))
            elif kind in (6, 7):
                await self._consumer_heartbeat(peer, step)
            elif kind == 5 and self.draw(2) == 0:
                await self._ask(peer, f"{step} grow", self._grown(peer))
            elif kind == 5 and self.draw(2) == 0:
                await self._made_anew(peer, f"{step} anew")
            else:
                frames = [self._usual(peer) for _ in range(1 + self.draw(3))]
                last = frames[-1]
                peer.writer.write(b"".join(frames))
                for _ in frames:
                    self.transcript.append((f"{step} usual", await peer.answer()))
        for peer in peers:
            peer.writer.close()

    async def _create(self, peer: Peer, what: str, name: str) -> None:
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        request = shape(topics=[topic], timeout_ms=5000)
        answer = await self._ask(peer, what, peer.encoded(request, 7))
        assert answer is not None
        _, made = frame.decode_response(shape.API_KEY, 7, memoryview(answer))
        self.topic_ids[name] = made.topics[0].topic_id

    async def _made_anew(self, peer: Peer, what: str) -> None:
        """The last topic is deleted, and made again: it has another id."""
        shape = m.DeleteTopicsRequest
        request = shape(topics=[shape.DeleteTopicState(name=TOPICS[-1])], timeout_ms=5000)
        await self._ask(peer, what, peer.encoded(request, 6))
        await self._create(peer, what, TOPICS[-1])

    async def _connected(self, number: int, before: Peer | None = None) -> Peer:
        if before is not None:
            before.writer.close()
        reader, writer = await asyncio.open_connection("broker", PORT)
        peer = Peer(number, reader, writer)
        if before is not None:
            peer.member = before.member
            peer.consumer_id, peer.consumer_epoch = before.consumer_id, before.consumer_epoch
        return peer

    async def _ask(
        self, peer: Peer, what: str, data: bytes, may_wait: bool = False
    ) -> bytes | None:
        """The answer, which goes to the transcript. What is changed may be a request that waits
        for something, or one that has no answer: its connection is given up then."""
        peer.writer.write(data)
        try:
            answer = await asyncio.wait_for(peer.answer(), 1.5 if may_wait else 60)
        except TimeoutError:
            answer = None
        self.transcript.append((what, answer))
        return answer

    async def _join(self, peer: Peer, step: int) -> None:
        """Join and sync, with the other members of the group as they are."""
        member, shape = peer.member, m.JoinGroupRequest
        request = shape(
            group_id=member.group, session_timeout_ms=300 + self.draw(3000),
            rebalance_timeout_ms=200, member_id=member.member_id, protocol_type="consumer",
            protocols=[shape.JoinGroupRequestProtocol(name="range", metadata=b"m")],
        )  # fmt: skip
        answer = await self._ask(peer, f"{step} join", peer.encoded(request, 3))
        if answer is None:
            return
        _, joined = frame.decode_response(shape.API_KEY, 3, memoryview(answer))
        if joined.error_code:
            member.member_id = ""
            return
        if member.member_id and self.draw(3) == 0:
            return  # it has not heard of its new generation
        member.member_id, member.generation = joined.member_id, joined.generation_id
        if self.draw(4) == 0:
            return  # it never syncs
        sync = m.SyncGroupRequest
        assigned = [
            sync.SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"a")
            for one in joined.members
        ]
        request = sync(
            group_id=member.group, generation_id=member.generation,
            member_id=member.member_id, assignments=assigned,
        )  # fmt: skip
        if joined.leader == joined.member_id:
            await self._ask(peer, f"{step} sync", peer.encoded(request, 2))

    def _leave(self, peer: Peer) -> bytes:
        member, peer.member = peer.member, Member(peer.member.group, version=self.draw(5))
        request = m.LeaveGroupRequest(group_id=member.group, member_id=member.member_id)
        return peer.encoded(request, 2)

    async def _consumer_heartbeat(self, peer: Peer, step: int) -> None:
        """Of a member of the consumer group: two or three in a row, as it hears of its epoch."""
        for _ in range(2 + self.draw(3)):
            if not peer.consumer_id:
                peer.consumer_id, peer.consumer_epoch = f"member-{peer.number}", 0
            odd = self.draw(10)
            request = m.ConsumerGroupHeartbeatRequest(
                group_id=CONSUMER_GROUP, member_id=peer.consumer_id,
                member_epoch=peer.consumer_epoch - (1 if odd == 1 else 0),
                rebalance_timeout_ms=1000 if odd == 2 else -1, topic_partitions=None,
            )  # fmt: skip
            if peer.consumer_epoch == 0 or odd == 3:
                request.rebalance_timeout_ms = 1000
                request.subscribed_topic_names = list(TOPICS[: 1 + self.draw(2)])
                request.topic_partitions = [] if peer.consumer_epoch == 0 else None
            if odd == 4 and self.draw(4) == 0:
                request.member_epoch = -1
            data = peer.encoded(request, 1)
            answer = await self._ask(peer, f"{step} consumer", data)
            if answer is None:
                return
            _, heard = frame.decode_response(request.API_KEY, 1, memoryview(answer))
            if heard.error_code or heard.member_epoch < 0:
                peer.consumer_epoch = 0
            elif odd != 5:  # else it has not heard of its new epoch
                peer.consumer_epoch = heard.member_epoch

    def _grown(self, peer: Peer) -> bytes:
        """One more partition."""
        self.partitions += 1
        topic = m.CreatePartitionsRequest.CreatePartitionsTopic(
            name=TOPICS[0], count=self.partitions, assignments=None
        )
        return peer.encoded(m.CreatePartitionsRequest(topics=[topic], timeout_ms=5000), 3)

    def _found(self, peer: Peer) -> bytes:
        return peer.encoded(m.FindCoordinatorRequest(key=GROUPS[0]), 2)

    def _usual(self, peer: Peer) -> bytes:
        """One request as clients send them all the time."""
        kind, topic = self.draw(14), TOPICS[self.draw(len(TOPICS))]
        if kind < 4 or kind > 11:
            return self._heartbeat(peer)
        if kind in (5, 10, 11):
            return self._commit(peer, topic)
        if kind in (4, 6):
            asked = m.MetadataRequest.MetadataRequestTopic(name=topic)
            return peer.encoded(m.MetadataRequest(topics=[asked]), 12)
        if kind == 7:
            produce = m.ProduceRequest
            records = batch_of([b"x" * self.draw(200)])
            data = produce.PartitionProduceData(index=self.draw(PARTITIONS), records=records)
            request = produce(
                acks=1 if self.draw(2) else -1, timeout_ms=1000,
                topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])],
            )  # fmt: skip
            return peer.encoded(request, 9)
        fetch = m.FetchRequest
        wanted = fetch.FetchPartition(
            partition=self.draw(PARTITIONS), fetch_offset=0, partition_max_bytes=1 << 20
        )
        request = fetch(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1,
            topics=[fetch.FetchTopic(topic=topic, partitions=[wanted])],
        )  # fmt: skip
        return peer.encoded(request, 11)

    def _commit(self, peer: Peer, topic: str) -> bytes:
        """Of a connection's member, of one of the consumer group, or of somebody outside; now and
        then of another generation, of what is not there, or in another way."""
        shape, member, odd = m.OffsetCommitRequest, peer.member, self.draw(30)
        version = self.draw(9) + 2 if odd < 4 else 8 + peer.number % 3
        names = [topic, "absent"] if odd == 4 else [topic]
        if odd in (5, 6, 7, 8):
            names = list(TOPICS)
        topics = []
        for name in names:
            count = 1 + self.draw(2 * PARTITIONS if odd == 9 else PARTITIONS)
            partitions = [
                shape.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=self.draw(1000),
                    committed_leader_epoch=self.draw(3) - 1,
                    committed_metadata=None if self.draw(6) else "m" * self.draw(3),
                )
                for index in range(count)
            ]  # fmt: skip
            if odd == 10:
                partitions[0].committed_metadata = "m" * 5000
            made = shape.OffsetCommitRequestTopic(name=name, partitions=partitions)
            if version >= 10:
                made.topic_id = self.topic_ids.get(name, bytes(15) + b"\x01")
            topics.append(made)
        request = shape(
            group_id=member.group, generation_id_or_member_epoch=member.generation,
            member_id=member.member_id, topics=topics,
        )  # fmt: skip
        if odd == 11:
            request.generation_id_or_member_epoch -= 1
        elif odd == 12:
            request.member_id = "somebody"
        elif odd in (13, 14, 15, 16) and peer.consumer_id:
            request.group_id, request.member_id = CONSUMER_GROUP, peer.consumer_id
            request.generation_id_or_member_epoch = peer.consumer_epoch - (odd == 13)
        elif odd in (17, 18, 19):
            request.group_id, request.member_id = f"outside-{self.draw(2)}", ""
            request.generation_id_or_member_epoch = -1
        if odd == 3 and 2 <= version <= 4:
            request.retention_time_ms = 1000
        if odd == 20 and version >= 7:
            request.group_instance_id = "static"
        return peer.encoded(request, version)

    def _heartbeat(self, peer: Peer) -> bytes:
        """Of this connection's member, now and then of another generation or member."""
        member, odd = peer.member, self.draw(12)
        request = m.HeartbeatRequest(
            group_id=member.group if odd else GROUPS[self.draw(len(GROUPS))],
            generation_id=member.generation - (1 if odd == 1 else 0),
            member_id=member.member_id if odd != 2 else "somebody",
        )
        if odd == 3 and member.version >= 3:
            request.group_instance_id = "static"
        return peer.encoded(request, member.version if odd != 4 else self.draw(5))


def _state(node: Node) -> Iterator[tuple[str, str]]:
    """What the broker keeps of groups."""
    timers = (SESSION_TIMER, REBALANCE_TIMER)
    runtime = node.parts.coordinators.groups.runtime
    for partition in runtime.partitions():
        shard = runtime.shard(partition)
        if shard is None:
            yield str(partition), str(runtime.state(partition))
            continue
        for group_id, group in sorted(shard.classic.groups.live.items()):
            yield f"{partition} {group_id}", f"{group.state} {group.generation}"
            for member_id in sorted(group.members):
                deadline_ms = shard.deadlines.deadline((MEMBER_TIMER, group_id, member_id))
                yield f"{partition} {group_id} {member_id}", str(deadline_ms)
        yield f"{partition} offsets", str(shard.storage.offsets.by_group)
        yield f"{partition} commits", str(shard.storage.counts.offset_commits)
        groups = shard.consumer.groups
        for group_id, consumers in sorted(groups.stored.items()):
            refresh_ms = groups.refresh_at_ms.get(group_id)
            yield f"{partition} {group_id}", f"{consumers.epoch} {refresh_ms}"
            for member_id in sorted(consumers.members):
                due_ms = [shard.deadlines.deadline((x, group_id, member_id)) for x in timers]
                yield (
                    f"{partition} {group_id} {member_id}", f"{consumers.where(member_id)} {due_ms}"
                )  # fmt: skip


def difference(seed: int, steps: int = STEPS, road: type[Road] = Road) -> str | None:
    """Where the two part; None when they do not."""
    plain, general = road(seed, True, steps), road(seed, False, steps)
    plain.run()
    general.run()
    if general.taken:
        return f"{general.taken} requests took a plain road where there are none"
    for ours, theirs in zip(plain.transcript, general.transcript, strict=False):
        if ours != theirs:
            return f"plain {ours}, general {theirs}"
    if len(plain.transcript) != len(general.transcript):
        return f"{len(plain.transcript)} answers and {len(general.transcript)}"
    if plain.state != general.state:
        parted = set(plain.state) ^ set(general.state)
        return f"state: {sorted(parted)}"
    return None


def main() -> None:
    seed = int(sys.argv[1])
    road = Road(seed, True)
    road.run()
    print(f"{road.taken} of {road.of_plain_apis} requests took a plain road")
    print(difference(seed) or "the same")


if __name__ == "__main__":
    main()
