"""The history of two brokers that do long requests a partition or two a turn, while all changes.

Producers, consumers and askers name many partitions in each request, so that every request is in
slices (ADR 52), and a turn takes a while: topics are deleted and made anew, leaders move, disks
have no room, quotas come and go and connections end between two slices of one request.

- an answer has each partition that was asked for, once, a Produce's in the order of the request,
- what a connection sends is in every log in its order, each record once,
- what was sent to a topic is in no other one that has its name later,
- what was acknowledged is kept where the answer says, what was refused is nowhere,
- a request whose client has gone is appended to all of its partitions or to none,
- a consumer misses nothing, sees nothing that changes, and is told of a record when it comes,
- metadata that nobody is changing is told as it is.

`python -m tests.sim.slices SEED` prints what came between slices.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from kwire.api import fetch, metadata, produce
from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica import bounded_read, delayed_read
from kwire.slices import Slices
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.client import batch_of, values_of
from kwire.testing.simulation.nodes import BROKER_PORT, SimulatedNodes
from tests.sim.two_roads import Peer

IDS = (1, 2)
TOPICS = ("a", "b", "c")
PARTITIONS = 3
MISSING = "missing"
UNKNOWN = {name: bytes(15) + bytes([number]) for number, name in enumerate((*TOPICS, MISSING), 9)}
"""Ids of topics that there are not."""
CHANGES = 14
TURN_S_MAX = 0.01
START_LIMIT_S = ANSWER_LIMIT_S = END_LIMIT_S = 30.0
CHANGES_LIMIT_S = 300.0
FETCH_WAIT_MS = 5000
LATE_S = 3.0
FOLLOWED_S = 1.0
"""So long after a change every broker has followed it."""
SETTINGS = {
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "6000",
    "quota.window.num": "3",
    "log.retention.ms": "-1",  # records are of 1970
}
LEFT = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
NOT_KEPT = (*LEFT, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.KAFKA_STORAGE_ERROR)
PRODUCE_CODES = (*NOT_KEPT, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
FETCH_CODES = (
    *(*NOT_KEPT, ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID),
    *(ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_NOT_AVAILABLE),
)
KINDS = ("topics", "leaders", "disks", "quotas", "connections")
"""What has to come between slices."""


class Fault(AssertionError):
    """A promise is broken."""


Place = tuple[str, int]
Log = list[tuple[int, bytes]]


@dataclass
class Sent:
    """A Produce request. All of its partitions get the same record."""

    connection: int
    number: int
    value: bytes
    acks: int
    node_id: int
    ids: dict[str, bytes]
    """The topics that it was for, as they were when it was sent."""
    places: list[Place]
    led: list[Place]
    """Those that the broker led then."""
    at_s: float
    ended_s: float = float("inf")
    """When its answer came, or its client went."""
    is_answered: bool = False
    answers: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """(code, base offset)."""


@contextmanager
def small_slices(count: int) -> Iterator[None]:
    """Every request of more than `count` partitions is done in slices of that many."""
    with ExitStack() as stack:
        for module in (produce, fetch, bounded_read, delayed_read):
            stack.enter_context(patch.object(module, "SLICE_PARTITIONS", count))
        stack.enter_context(patch.object(metadata, "AT_ONCE_PARTITIONS_MAX", 1))
        stack.enter_context(patch.object(metadata, "SLICE_COST", 1))
        yield


class SlicedHistory:
    """One seed's history."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.nodes = SimulatedNodes(self.simulation, IDS, SETTINGS, self._attach)
        self.draw = self.simulation.random.below
        self.between: Counter[str] = Counter()
        """How often something of a kind came between two slices of a broker."""
        self.ids: dict[str, bytes] = {}
        self.changed_s: dict[str, float] = {}
        """When a topic was made, deleted or given other leaders the last time; it is under way
        where that lies ahead."""
        self.disturbed: list[tuple[float, float]] = []
        """When something was changed that a request may stop at."""
        self.happened: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.acknowledged_s: dict[tuple[bytes, int, bytes], float] = {}
        self.seen: dict[tuple[bytes, int], dict[int, bytes]] = {}
        self.positions: dict[int, dict[tuple[bytes, int], int]] = {}
        self.bound_s = -LATE_S
        self.connections = 0
        self.stops_writing = self.stops = self.rests = False
        self._open: list[Peer] = []

    def run(self) -> None:
        """Fault where a promise is broken."""
        try:
            with small_slices(1 + self.draw(3)):
                self._run()
        finally:
            for peer in self._open:
                peer.writer.close()
            for host in self.simulation.hosts.values():
                host.loop.kill()

    def _run(self) -> None:
        self.nodes.format()
        for node_id in IDS:
            self.nodes.start(node_id)
        self.simulation.run_until(self.nodes.is_in_sync, limit_s=START_LIMIT_S)
        self.simulation.run(self.simulation.host("clients"), self._history())

    # -- turns that take a while

    def _attach(self, node: Node) -> None:
        before: list[Any] = [None]

        def later(turn: Callable[[], None]) -> None:
            before[0] = before[0] or self._state(node)
            node.loop.call_later(self.simulation.uniform(0, TURN_S_MAX), run, turn)

        def run(turn: Callable[[], None]) -> None:
            state = self._state(node)
            for kind, old, new in zip(KINDS, before[0] or state, state, strict=True):
                self.between[kind] += old != new
            before[0] = None
            turn()

        node.parts.slices = Slices(later)
        node.replicas.slice_cost = 1

    def _state(self, node: Node) -> tuple[object, ...]:
        topics = node.image.topics
        leaders = [
            partition.leader_epoch
            for topic in topics.by_name.values()
            for partition in topic.partitions.values()
        ]
        disk = self.simulation.host(f"n{node.parts.broker_id}").disk
        return (
            *(sorted(topics.by_id), leaders, disk.fault is None),
            *(self.happened["quotas"], self.happened["connections"]),
        )

    # -- clients

    async def _history(self) -> None:
        admin = await self._connected(1)
        for name in TOPICS:
            await self._create(admin, name)
        loop = asyncio.get_running_loop()
        writers = [loop.create_task(self._write(number)) for number in range(2)]
        readers = [loop.create_task(self._read(node_id)) for node_id in IDS]
        asker = loop.create_task(self._ask_metadata())
        tasks = [*writers, *readers, asker]
        change = loop.create_task(self._change(admin))
        await self._until(change.done, CHANGES_LIMIT_S, tasks, "changes")
        change.result()
        self.stops_writing = True
        await self._until(lambda: all(x.done() for x in writers), 2 * END_LIMIT_S, tasks, "writers")
        await asyncio.sleep(FOLLOWED_S)  # until what they sent last is appended
        await self._until(self.nodes.is_in_sync, END_LIMIT_S, tasks, "replicas in sync")
        logs = {
            (name, index): await self._log(admin, name, index)
            for name in TOPICS
            for index in range(PARTITIONS)
        }
        await self._until(lambda: self._all_seen(logs), END_LIMIT_S, tasks, "consumers")
        self.stops = True
        await self._until(lambda: all(x.done() for x in tasks), END_LIMIT_S, tasks, "clients")
        self._check(logs)

    async def _until(
        self, holds: Callable[[], bool], limit_s: float, tasks: list[Any], what: str
    ) -> None:
        end_s = self.simulation.now + limit_s
        while not holds():
            for task in tasks:
                if task.done():
                    task.result()
            if self.simulation.now > end_s:
                raise Fault(f"{what}: not within {limit_s} s")
            await asyncio.sleep(0.05)

    async def _connected(self, node_id: int) -> Peer:
        self.connections = number = self.connections + 1
        reader, writer = await asyncio.open_connection(f"n{node_id}", BROKER_PORT)
        peer = Peer(number, reader, writer)
        self._open.append(peer)
        return peer

    def _closed(self, peer: Peer) -> None:
        peer.writer.close()
        self._open.remove(peer)

    async def _answer(self, peer: Peer, shape: Any, version: int) -> Any:
        """None when the broker has closed."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                data = await peer.answer()
        except TimeoutError:
            raise Fault(f"no answer to {shape.__name__} within {ANSWER_LIMIT_S} s") from None
        return None if data is None else frame.decode_response(shape.API_KEY, version, data)[1]

    async def _asked(self, peer: Peer, request: Any, version: int) -> Any:
        peer.writer.write(peer.encoded(request, version))
        answer = await self._answer(peer, type(request), version)
        if answer is None:
            raise Fault(f"a connection ends after {type(request).__name__}")
        return answer

    # -- producers

    async def _write(self, number: int) -> None:
        while not self.stops_writing:
            node_id = IDS[self.draw(len(IDS))]
            peer = await self._connected(node_id)
            for at in range(1 + self.draw(6)):
                if not await self._burst(peer, node_id, at * 10) or self.stops_writing:
                    break
                await asyncio.sleep(self.draw(100) / 1000)
                while self.rests:
                    await asyncio.sleep(0.1)
            self._closed(peer)

    async def _burst(self, peer: Peer, node_id: int, first: int) -> bool:
        """Some requests at once; whether the connection goes on."""
        burst, versions, data = [], [], b""
        for number in range(first, first + 1 + self.draw(3)):
            version = 13 if self.draw(2) else 9
            sent, request = self._request(peer, node_id, number, version)
            data += peer.encoded(request, version)
            burst.append(sent)
            versions.append(version)
        self.sent += burst
        peer.writer.write(data)
        if self.draw(4) == 0:
            await asyncio.sleep(self.draw(10) / 1000)
            self.happened["connections"] += 1
            for sent in burst:
                sent.ended_s = self.simulation.now
            if self.draw(4):
                peer.writer.transport.abort()  # a broker goes on for one that only ends its side
            return False
        for sent, version in zip(burst, versions, strict=True):
            if sent.acks:
                answer = await self._answer(peer, m.ProduceRequest, version)
                sent.ended_s = self.simulation.now
                if answer is None:
                    if all(each.acks for each in self.sent if each.connection == peer.number):
                        raise Fault("a connection ends that has sent nothing without acks")
                    for each in burst:
                        each.ended_s = self.simulation.now
                    return False
                self._acknowledged(sent, answer, version)
        return True

    def _request(
        self, peer: Peer, node_id: int, number: int, version: int
    ) -> tuple[Sent, m.ProduceRequest]:
        shape = m.ProduceRequest
        acks = (-1, -1, 1, -1, 1, 0)[self.draw(6)]
        names = [name for name in (*TOPICS, MISSING) if name != MISSING or self.draw(8) == 0]
        if self.draw(2):
            names.reverse()
        ids = {**UNKNOWN, **self.ids}
        led = list(self._led_by(node_id))
        places = [
            (name, index) for name in names for index in range(PARTITIONS + (self.draw(8) == 0))
        ]
        if acks == 0 and self.draw(4):
            places = [place for place in places if place in led]
        value = b"%d:%d:" % (peer.number, number)
        topics = []
        for name in names:
            of_topic = value + (ids[name].hex().encode() if version >= 13 else b"")
            data = [
                shape.PartitionProduceData(index=index, records=bytes(batch_of([of_topic])))
                for topic, index in places
                if topic == name
            ]
            topic = shape.TopicProduceData(partition_data=data)
            if version >= 13:
                topic.topic_id = ids[name]
            else:
                topic.name = name
            if data:
                topics.append(topic)
        sent = Sent(
            *(peer.number, number, value, acks, node_id, ids, places),
            led=[place for place in places if place in led],
            at_s=self.simulation.now,
        )
        return sent, shape(acks=acks, timeout_ms=3000, topic_data=topics)

    def _led_by(self, node_id: int) -> Iterable[Place]:
        for name, topic in self.nodes.nodes[node_id].image.topics.by_name.items():
            for index, partition in topic.partitions.items():
                if partition.leader == node_id:
                    yield name, index

    def _acknowledged(self, sent: Sent, answer: m.ProduceResponse, version: int) -> None:
        names = {topic_id: name for name, topic_id in sent.ids.items()}
        answers = [
            (names[topic.topic_id] if version >= 13 else topic.name, result)
            for topic in answer.responses
            for result in topic.partition_responses
        ]
        if [(name, result.index) for name, result in answers] != sent.places:
            raise Fault(f"{sent.places} were written to, answered are {answers}")
        for name, result in answers:
            code = ErrorCode(result.error_code)
            if code not in PRODUCE_CODES or (code == 0 and result.base_offset < 0):
                raise Fault(f"{name}-{result.index} of {sent}: {result}")
            if code == 0 and (name == MISSING or result.index >= PARTITIONS):
                raise Fault(f"{name}-{result.index}, which is not there, has taken {sent}")
            sent.answers[name, result.index] = code, result.base_offset
            if code == 0 and sent.acks == -1 and version >= 13:
                value = sent.value + sent.ids[name].hex().encode()
                self.acknowledged_s[sent.ids[name], result.index, value] = self.simulation.now
        sent.is_answered = True

    # -- consumers

    async def _read(self, node_id: int) -> None:
        """From one broker, leader or follower; now and then by another session, or without."""
        positions = self.positions.setdefault(node_id, {})
        while not self.stops:
            peer = await self._connected(node_id)
            ids = dict(self.ids)
            asked = [(ids[name], index) for name in sorted(ids) for index in range(PARTITIONS)]
            session_id, epoch = 0, 0 if self.draw(3) else -1
            told: dict[tuple[bytes, int], int] = {}
            for _ in range(2 + self.draw(4)):
                if self.stops:
                    break
                named = [x for x in asked if epoch < 1 or told.get(x) != positions.get(x, 0)]
                told.update({x: positions.get(x, 0) for x in named})
                begun_s = self.simulation.now
                request = self._fetch_request(named, told, session_id, epoch)
                if self.draw(12) == 0:
                    peer.writer.write(peer.encoded(request, 13))
                    await asyncio.sleep(self.draw(10) / 1000)
                    self.happened["connections"] += 1
                    break
                answer = await self._asked(peer, request, 13)
                if answer.error_code:
                    raise Fault(f"a session is refused: {answer.error_code}")
                if answer.throttle_time_ms and not answer.responses:
                    break
                self._fetched(answer, asked, told, positions, is_full=epoch < 1)
                self._look_for_late(answer, begun_s)
                if epoch >= 0:
                    session_id, epoch = answer.session_id, epoch + 1
            self._closed(peer)

    def _fetch_request(
        self, named: list[tuple[bytes, int]], told: dict[tuple[bytes, int], int], *session: int
    ) -> m.FetchRequest:
        shape = m.FetchRequest
        topics: dict[bytes, m.FetchRequest.FetchTopic] = {}
        for topic_id, index in named:
            topic = topics.setdefault(topic_id, shape.FetchTopic(topic_id=topic_id, partitions=[]))
            topic.partitions.append(
                shape.FetchPartition(
                    partition=index,
                    fetch_offset=told[topic_id, index],
                    partition_max_bytes=100 if self.draw(4) == 0 else 1 << 20,
                )
            )
        return shape(
            max_wait_ms=300 if self.stops_writing else FETCH_WAIT_MS, min_bytes=1,
            max_bytes=1 << 20, topics=list(topics.values()),
            session_id=session[0], session_epoch=session[1],
        )  # fmt: skip

    def _fetched(
        self,
        answer: m.FetchResponse,
        asked: list[tuple[bytes, int]],
        told: dict[tuple[bytes, int], int],
        positions: dict[tuple[bytes, int], int],
        is_full: bool,
    ) -> None:
        parts = [
            ((topic.topic_id, part.partition_index), part)
            for topic in answer.responses
            for part in topic.partitions
        ]
        keys = [key for key, _ in parts]
        if len(set(keys)) != len(keys) or not set(keys) <= set(asked):
            raise Fault(f"{asked} were asked for, answered are {keys}")
        if is_full and len(keys) != len(asked):
            raise Fault(f"not answered: {set(asked) - set(keys)}")
        for key, part in parts:
            if part.error_code not in FETCH_CODES:
                raise Fault(f"{key}: {part}")
            position, seen = told[key], self.seen.setdefault(key, {})
            for offset, value in values_of(part.records):
                if offset < position:
                    continue
                if offset != position:
                    raise Fault(f"{key} goes on at {offset} behind {position}")
                if seen.setdefault(offset, value or b"") != value:
                    raise Fault(f"{key} has {value!r} at {offset}, before: {seen[offset]!r}")
                position += 1
            positions[key] = position

    def _look_for_late(self, answer: m.FetchResponse, begun_s: float) -> None:
        """A fetch that waits ends when a record comes."""
        now_s = self.simulation.now
        if begun_s < self.bound_s + 5 * LATE_S:
            return
        for topic in answer.responses:
            for part in topic.partitions:
                for _, value in values_of(part.records):
                    key = topic.topic_id, part.partition_index, value or b""
                    if begun_s < self.acknowledged_s.get(key, now_s) < now_s - LATE_S:
                        raise Fault(f"{key} is told {now_s - self.acknowledged_s[key]} s late")

    def _all_seen(self, logs: dict[Place, Log]) -> bool:
        return all(
            positions.get((self.ids[name], index), 0) == len(log)
            for positions in self.positions.values()
            for (name, index), log in logs.items()
        )

    async def _log(self, admin: Peer, name: str, index: int) -> Log:
        """All of a partition, as the first broker gives it when all are in sync."""
        key = self.ids[name], index
        found: Log = []
        while True:
            request = self._fetch_request([key], {key: len(found)}, 0, -1)
            answer = await self._asked(admin, request, 13)
            (part,) = answer.responses[0].partitions
            if not (records := values_of(part.records)) and part.high_watermark <= len(found):
                return found
            found += [(offset, value or b"") for offset, value in records if offset >= len(found)]

    # -- metadata

    async def _ask_metadata(self) -> None:
        shape = m.MetadataRequest
        peers = [await self._connected(node_id) for node_id in IDS]
        while not self.stops:
            await asyncio.sleep(self.draw(150) / 1000)
            peer = peers[self.draw(len(peers))]
            begun_s, known = self.simulation.now, dict(self.ids)
            names = [*TOPICS, MISSING] if self.draw(2) else None
            topics = names and [shape.MetadataRequestTopic(name=name) for name in names]
            request = shape(topics=topics, allow_auto_topic_creation=False)
            answer = await self._asked(peer, request, 12)
            told = Counter(topic.name for topic in answer.topics)
            if max(told.values(), default=1) > 1 or (names and set(told) != set(names)):
                raise Fault(f"metadata of {names}: {told}")
            found = {topic.name: topic for topic in answer.topics if not topic.error_code}
            for name, topic in found.items():
                indexes = [part.partition_index for part in topic.partitions]
                if name not in TOPICS or indexes != list(range(PARTITIONS)):
                    raise Fault(f"metadata: {topic}")
            for name in TOPICS:
                if self.changed_s[name] > begun_s - FOLLOWED_S:
                    continue
                if found[name].topic_id != known[name] if name in found else name in known:
                    raise Fault(f"metadata of {name}: {found.get(name)}")
                if name in found:
                    self._compare(found[name])
        for peer in peers:
            self._closed(peer)

    def _compare(self, topic: m.MetadataResponse.MetadataResponseTopic) -> None:
        """A topic that nobody changes is told as the brokers know it."""
        known = self.nodes.nodes[1].image.topics.by_name[topic.name or ""]
        for part in topic.partitions:
            partition = known.partitions[part.partition_index]
            told = part.error_code, part.leader_id, part.leader_epoch
            if told != (0, partition.leader, partition.leader_epoch):
                raise Fault(f"metadata of {topic.name}: {part}, known is {partition}")

    # -- what changes

    async def _create(self, admin: Peer, name: str) -> None:
        self._created(name, await self._asked(admin, self._creation(name), 7))

    @staticmethod
    def _creation(name: str) -> m.CreateTopicsRequest:
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=2)
        return shape(topics=[topic], timeout_ms=5000)

    def _created(self, name: str, answer: m.CreateTopicsResponse) -> None:
        if answer.topics[0].error_code:
            raise Fault(f"{name} is not created: {answer}")
        self.ids[name] = answer.topics[0].topic_id
        self.changed_s[name] = self.simulation.now

    async def _change(self, admin: Peer) -> None:
        changes = (self._anew, self._anew, self._move, self._no_room, self._bind, self._rest)
        for number in range(CHANGES):
            await asyncio.sleep(self.draw(250) / 1000)
            await changes[number % len(changes)](admin)

    async def _anew(self, admin: Peer) -> None:
        """A topic is deleted, and made again."""
        name, shape = TOPICS[1 + self.draw(2)], m.DeleteTopicsRequest
        with self._disturbing(name):
            request = shape(topics=[shape.DeleteTopicState(name=name)], timeout_ms=5000)
            admin.writer.write(admin.encoded(request, 6))
            if self.draw(3):
                admin.writer.write(admin.encoded(self._creation(name), 7))
                await self._answer(admin, shape, 6)
                self._created(name, await self._answer(admin, m.CreateTopicsRequest, 7))
                return
            await self._answer(admin, shape, 6)
            self.ids.pop(name)
            self.changed_s[name] = self.simulation.now
            await asyncio.sleep(1.5 * FOLLOWED_S)
            self.changed_s[name] = float("inf")
            await self._create(admin, name)

    async def _move(self, admin: Peer) -> None:
        """The partitions of a topic are led by others."""
        name = TOPICS[self.draw(len(TOPICS))]
        with self._disturbing(name):
            shape = m.AlterPartitionReassignmentsRequest
            parts = []
            for index in range(PARTITIONS):
                replicas = list(IDS) if self.draw(2) else list(reversed(IDS))
                parts.append(shape.ReassignablePartition(partition_index=index, replicas=replicas))
            topic = shape.ReassignableTopic(name=name, partitions=parts)
            await self._asked(admin, shape(topics=[topic], timeout_ms=5000), 0)
            elect = m.ElectLeadersRequest
            asked = elect.TopicPartitions(topic=name, partitions=list(range(PARTITIONS)))
            await self._asked(admin, elect(topic_partitions=[asked], timeout_ms=5000), 2)

    async def _no_room(self, admin: Peer) -> None:
        """A broker cannot write to some of its partitions for a while."""
        disk = self.simulation.host(f"n{IDS[self.draw(len(IDS))]}").disk
        index = self.draw(PARTITIONS)

        def fault(operation: str, path: str) -> OSError | None:
            if operation == "pwritev" and f"-{index}/" in path and "__" not in path:
                return OSError(errno.ENOSPC, "no room")
            return None

        with self._disturbing():
            disk.fault = fault
            await asyncio.sleep(self.draw(300) / 1000)
            disk.fault = None
            await asyncio.sleep(2.0)  # until what was refused is taken again

    async def _bind(self, admin: Peer) -> None:
        """Quotas of all clients come, and go."""
        shape = m.AlterClientQuotasRequest
        key = ("producer_byte_rate", "consumer_byte_rate")[self.draw(2)]
        for is_removed in (False, True):
            op = shape.OpData(key=key, value=2000.0, remove=is_removed)
            entity = [shape.EntityData(entity_type="client-id", entity_name=None)]
            entry = shape.EntryData(entity=entity, ops=[op])
            await self._asked(admin, shape(entries=[entry]), 1)
            self.happened["quotas"] += 1
            if key == "consumer_byte_rate":
                self.bound_s = self.simulation.now
            if not is_removed:
                await asyncio.sleep(self.draw(400) / 1000)

    async def _rest(self, admin: Peer) -> None:
        """Nothing changes for a while; then nobody sends records either: what a consumer has missed
        stays so."""
        await asyncio.sleep(3 * FOLLOWED_S)
        self.rests = True
        await asyncio.sleep(1.5 * FETCH_WAIT_MS / 1000)
        self.rests = False

    @contextmanager
    def _disturbing(self, name: str | None = None) -> Iterator[None]:
        begun_s = self.simulation.now
        if name is not None:
            self.changed_s[name] = float("inf")
        at = len(self.disturbed)
        self.disturbed.append((begun_s, float("inf")))
        yield
        self.disturbed[at] = begun_s, self.simulation.now + FOLLOWED_S
        if name is not None:
            self.changed_s[name] = self.simulation.now

    # -- what is kept

    def _check(self, logs: dict[Place, Log]) -> None:
        values = {place: dict(log) for place, log in logs.items()}
        kept = {
            place: {value.rpartition(b":")[0]: offset for offset, value in log}
            for place, log in logs.items()
        }
        for place, log in logs.items():
            self._check_log(place, log)
            for offset, value in self.seen.get((self.ids[place[0]], place[1]), {}).items():
                if values[place].get(offset) != value:
                    raise Fault(f"{place} has {values[place].get(offset)!r}, seen was {value!r}")
        for sent in self.sent:
            self._check_sent(sent, kept)

    def _check_log(self, place: Place, log: Log) -> None:
        newest: dict[int, int] = {}
        for offset, value in log:
            connection, number, topic_id = value.split(b":")
            if topic_id and bytes.fromhex(topic_id.decode()) != self.ids[place[0]]:
                raise Fault(f"{place} has at {offset} what was sent to another topic: {value!r}")
            if int(number) <= newest.get(int(connection), -1):
                raise Fault(f"{place} has at {offset} what comes before others: {value!r}")
            newest[int(connection)] = int(number)

    def _check_sent(self, sent: Sent, kept: dict[Place, dict[bytes, int]]) -> None:
        value = sent.value[:-1]
        for place, (code, base_offset) in sent.answers.items():
            found = kept.get(place, {}).get(value)
            if code in NOT_KEPT and base_offset < 0 and found is not None:
                raise Fault(f"{place} has {value!r} at {found}, which was refused: {code}")
            if code == 0 and self._must_be_kept(sent, place[0]) and found != base_offset:
                raise Fault(f"{place} has {value!r} at {found}, it was acknowledged: {base_offset}")
        if sent.is_answered or self._is_disturbed(sent):
            return
        led = [place for place in sent.led if place[0] in TOPICS and place[1] < PARTITIONS]
        at = [kept[place].get(value) for place in led if self._must_be_kept(sent, place[0])]
        if None in at and any(offset is not None for offset in at):
            raise Fault(f"half of {sent} is kept: {led} have it at {at}")

    def _must_be_kept(self, sent: Sent, name: str) -> bool:
        """Whether a topic still has all that was appended to it then."""
        if sent.ids[name] != self.ids.get(name):
            return False
        return (sent.acks == -1 and sent.is_answered) or not self._is_disturbed(sent)

    def _is_disturbed(self, sent: Sent) -> bool:
        ended_s = sent.ended_s if sent.acks else sent.at_s + FOLLOWED_S
        return any(
            begun_s <= ended_s + FOLLOWED_S and sent.at_s <= until_s
            for begun_s, until_s in self.disturbed
        )


def main() -> None:
    history = SlicedHistory(int(sys.argv[1]))
    history.run()
    print(f"{len(history.sent)} requests; between slices: {dict(history.between)}")


if __name__ == "__main__":
    main()
