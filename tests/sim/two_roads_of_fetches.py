"""One history of fetch sessions on two clusters, one of which takes plain roads (`two_roads.py`).

Three nodes replicate to each other. Consumers open sessions, fetch in vain, wait, change what they
ask for, forget, take each other's sessions and say the wrong epoch; meanwhile records come, are
deleted, transactions end, leaders move, topics are deleted and made again. Their answers have to be
the same bytes; sessions, positions, counts, and what leaders know of their followers the same in
the end. `python -m tests.sim.two_roads_of_fetches SEED`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.replica.delayed_read import DelayedRead
from kwire.replica.partition import Partition
from kwire.replica.quiet_read import QuietRead
from kwire.server import fetch_sessions
from kwire.server.fetch_sessions import SessionPartition
from kwire.testing.simulation.client import batch_of
from kwire.testing.simulation.nodes import BROKER_PORT, SimulatedNodes
from tests.sim.two_roads import STEPS, Peer, Road, difference

IDS = (1, 2, 3)
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "max.incremental.fetch.session.cache.slots": "24",
    "replica.lag.time.max.ms": "2000",
}
TOPICS = {"three": [[1, 2, 3], [2, 3, 1], [3, 1, 2]], "own": [[1], [2], [3]]}
"""Name -> replicas of each partition, its leader first."""
VERSIONS = (7, 9, 10, 11, 12, 13, 15, 16, 17, 18)
LISTENER = "PLAINTEXT"
WAITS_MS = (0, 40, 300)
OF_QUIET = ("order", "quiet_at")
"""What only a session that looks for partitions where nothing happens knows of them."""


@dataclass
class Session:
    """What one consumer asks for, and how far it is."""

    version: int
    session_id: int = 0
    epoch: int = 0
    isolation: int = 0
    wait_ms: int = 300
    min_bytes: int = 1
    rack: str = ""
    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    changed: set[tuple[str, int]] = field(default_factory=set)
    forgotten: set[tuple[str, int]] = field(default_factory=set)


class FetchRoad(Road):
    """See the module."""

    plain_apis = ("Fetch",)

    def __init__(self, seed: int, plain: bool, steps: int = STEPS) -> None:
        super().__init__(seed, plain, steps)
        self.sessions: list[Session] = []
        self.replicas = {name: [list(x) for x in rows] for name, rows in TOPICS.items()}
        self.peers: list[Peer] = []
        self.followers_taken = 0
        """How many fetches of followers took the plain road."""
        self.transactions = 0
        self.heard: list[tuple[str, int]] = []
        """(partition, which of the node's reads that wait) as consumers heard of records."""

    def run(self) -> None:
        original = DelayedRead.data_arrived

        def data_arrived(
            read: DelayedRead[SessionPartition], partition: Partition, size_bytes: int
        ) -> None:
            if size_bytes and read._limits.replica_id < 0:
                self.heard.append((str(partition), partition.data_listeners[read]))
            original(read, partition, size_bytes)

        with (
            patch.object(DelayedRead, "data_arrived", data_arrived),
            patch.object(fetch_sessions, "QUIET_FROM", 1),
        ):
            self._run()
        self.state.append(("heard", str(self.heard)))

    def _run(self) -> None:
        enabled = {"kwire.plain.requests.enable": "true" if self.plain else "false"}
        self.nodes = nodes = SimulatedNodes(self.simulation, IDS, {**SETTINGS, **enabled})
        nodes.format()
        # Nor are two connections of one link (seed 300148: metadata and a follower's fetch).
        self.simulation.network.links.apart_s = 1.7e-7
        for node_id in IDS:
            for other in IDS:
                # No two links are alike: nothing of two nodes arrives at one instant, in an order
                # that is chance.
                extra_s = 0.00011 * node_id + 0.00037 * other
                self.simulation.network.links.slow(f"n{node_id}", f"n{other}", extra_s, extra_s)
            nodes.start(node_id)
        self.simulation.run(self.simulation.host("client"), self._history())
        for node_id in IDS:
            node = nodes.nodes[node_id]
            self.state += [(f"n{node_id} {name}", value) for name, value in self.kept(node)]
            for listener in node.listeners.bound.values():
                if listener.name != LISTENER:
                    continue
                for name, counts in listener.dispatcher.counts():
                    self.taken += counts.plain
                    self.of_plain_apis += counts.total if name in self.plain_apis else 0
                    followers = counts.followers
                    for each in (counts, *(() if followers is None else (followers,))):
                        codes = [at for at in enumerate(each.errors) if at[1]]
                        self.state.append((f"n{node_id} {name}", f"{each.by_version} {codes}"))
                    self.followers_taken += 0 if followers is None else followers.plain

    def kept(self, node: Node) -> Iterator[tuple[str, str]]:
        """Sessions, counts, and what is known of followers."""
        reads, cache = node.parts.read_context, node.parts.fetch_sessions
        yield "reads", f"{reads.waiting} {reads.expired} {reads.expired_of_followers}"
        for topic, traffic in node.replicas.traffic:
            yield f"{topic} traffic", str([(x, getattr(traffic, x)) for x in traffic.__slots__])
        for session in list(cache._sessions.values()):
            session.disturb()  # so that partitions know what it has read
            yield (
                f"session {session.session_id}",
                f"{session.epoch} {session.last_used_ms} {list(session.partitions)}",
            )
            for key, known in session.partitions.items():
                said = [getattr(known, name) for name in known.__slots__ if name not in OF_QUIET]
                yield f"session {session.session_id} {key}", str(said)
        for partition in sorted(node.replicas, key=lambda x: (x.topic, x.index)):
            log = partition.log
            assert log is not None
            ends = log.log_start_offset, log.high_watermark, log.log_end_offset
            yield f"{partition}", f"{ends} {partition.state}"
            yield f"{partition} listeners", str(len(partition.data_listeners))

    # -- the history

    async def _history(self) -> None:
        await asyncio.sleep(6)
        for number in range(2 * len(IDS)):
            self.peers.append(await self._connected(number))
        for name in TOPICS:
            await self._create(self.peers[0], "create", name)
        await asyncio.sleep(3)
        for step in range(self.steps):
            peer = self.peers[self.draw(len(self.peers))]
            kind = self.draw(24)
            if kind < 2:
                await asyncio.sleep(self.draw(1500) / 1000)
            elif kind == 2 or not self.sessions:
                await self._open(peer, f"{step} open")
            elif kind < 14:
                await self._quiet(peer, f"{step} quiet")
            elif kind < 19:
                await self._meanwhile(peer, f"{step} meanwhile")
            elif kind < 21:
                await self._together(peer, f"{step} together")
            else:
                await self._happens(f"{step}")
        for peer in self.peers:
            peer.writer.close()
        await asyncio.sleep(1)

    async def _connected(self, number: int, before: Peer | None = None) -> Peer:
        if before is not None:
            before.writer.close()
        host = f"n{IDS[number % len(IDS)]}"
        reader, writer = await asyncio.open_connection(host, BROKER_PORT)
        return Peer(number, reader, writer)

    def _session_of(self, peer: Peer) -> Session:
        """The one that this peer goes on with: of its own node, if nothing is odd."""
        own = [x for at, x in enumerate(self.sessions) if at % len(self.peers) == peer.number]
        if own and self.draw(12):
            return own[-1]
        return self.sessions[self.draw(len(self.sessions))]

    async def _open(self, peer: Peer, what: str) -> None:
        """A session of this peer, in place of its last one."""
        session = Session(
            version=VERSIONS[self.draw(len(VERSIONS))],
            isolation=self.draw(2),
            wait_ms=WAITS_MS[self.draw(len(WAITS_MS))],
            min_bytes=(1, 1, 1, 0, 500)[self.draw(5)],
        )
        if session.version >= 11 and self.draw(10) == 0:
            session.rack = "r"
        own = peer.number % len(IDS)
        for name in TOPICS:
            for index in range(len(IDS)):
                is_far = session.version >= 11 and self.draw(5) == 0
                if self.replicas[name][index][0] == own + 1 or is_far:
                    session.positions[name, index] = 0
        if self.draw(20) == 0:
            session.positions["absent", 0] = 0
        if self.draw(3) == 0 and len(session.positions) > 1:
            del session.positions["own", own]
        at = peer.number
        while len(self.sessions) <= at:
            self.sessions.append(session)
        self.sessions[at] = session
        await self._fetched(peer, what, session)

    async def _quiet(self, peer: Peer, what: str) -> None:
        """Fetches in which maybe nothing happens."""
        session = self._session_of(peer)
        for _ in range(3 + self.draw(6)):
            await self._fetched(peer, what, session)

    async def _meanwhile(self, peer: Peer, what: str) -> None:
        """Something happens while a fetch waits."""
        session = self._session_of(peer)
        if self.draw(2):
            await self._fetched(peer, what, session)
            await self._fetched(peer, what, session)
        peer.writer.write(self._fetch(peer, session))
        if self.draw(6) == 0:
            peer.writer.write(self._fetch(peer, session))  # the next one, before an answer
            self.transcript.append((what, await peer.answer()))
        await asyncio.sleep(self.draw(60) / 1000)
        if self.draw(8) == 0:
            self.peers[peer.number] = await self._connected(peer.number, peer)
            return
        if is_taken := self.draw(6) == 0:
            await self._taken(peer, session, what)
        for _ in range(1 + self.draw(2)):
            await self._happens(what, peer)
        self._heard(session, what, await peer.answer())
        if is_taken:
            self.transcript.append((what, b"%d left" % self._quiet_reads_of_no_session()))
            await self._fetched(peer, what, session)

    def _quiet_reads_of_no_session(self) -> int:
        """Reads that watch partitions for sessions that are gone."""
        count = 0
        for node in self.nodes.nodes.values():
            sessions = node.parts.fetch_sessions._sessions.values()
            known = {session.quiet for session in sessions}
            for partition in node.replicas:
                watching = (x for x in partition.watchers if isinstance(x, QuietRead))
                count += sum(watcher not in known for watcher in watching)
        return count

    async def _taken(self, busy: Peer, session: Session, what: str) -> None:
        """Another connection closes the session of a fetch that waits, or makes it another one."""
        other = self.peers[(busy.number + len(IDS)) % len(self.peers)]
        if session.epoch <= 0 or self.draw(3) == 0:
            session.epoch = -1
            await self._fetched(other, what, session)
            return
        before = tuple(session.positions)
        key = "own", busy.number % len(IDS)
        session.positions[key] = 0
        session.changed.add(key)
        old = before[self.draw(len(before))]
        if old != key:
            del session.positions[old]
            session.forgotten.add(old)
            session.changed.discard(old)
        wait_ms, session.wait_ms = session.wait_ms, 0
        for _ in range(2):
            await self._fetched(other, what, session)
        session.wait_ms = wait_ms
        await self._produce(what, *key, busy)

    async def _together(self, peer: Peer, what: str) -> None:
        """Several consumers wait for one partition. Their answers arrive at one instant; in which
        order they were woken is in `heard`."""
        node_id = IDS[peer.number % len(IDS)]
        name = "own"
        together = []
        for _ in range(2 + self.draw(3)):
            there = await self._connected(peer.number)
            session = Session(
                version=VERSIONS[self.draw(len(VERSIONS))], isolation=self.draw(2), wait_ms=300
            )
            session.positions[name, node_id - 1] = 0
            together.append((there, session))
        for there, session in together:
            for _ in range(5 + self.draw(4)):
                session.wait_ms = 0
                await self._fetched(there, what, session)
            session.wait_ms = 300
        for first in range(2):
            # Who waits first is not who was at rest first.
            together.append(together.pop(self.draw(len(together) - first)))
            for there, session in together:
                there.writer.write(self._fetch(there, session))
                await asyncio.sleep(0.002)
            if self.draw(4):
                await self._produce(what, name, node_id - 1, peer)
            for there, session in together:
                self._heard(session, what, await there.answer())
        for there, _ in together:
            there.writer.close()

    async def _happens(self, what: str, busy: Peer | None = None) -> None:
        """Something that is not a fetch of this session."""
        free = [peer for peer in self.peers if peer is not busy]
        peer = free[self.draw(len(free))]
        name = tuple(TOPICS)[self.draw(len(TOPICS))]
        index = self.draw(len(IDS))
        kind = self.draw(24)
        if kind < 11:
            await self._produce(what, name, index, busy)
        elif kind == 11:
            await self._transaction(peer, what)
        elif kind < 15:
            await self._records_deleted(what, name, index, busy)
        elif kind == 15:
            await self._leader_moved(peer, what)
        elif kind == 16 and self.draw(2):
            await self._made_anew(peer, what)
        elif kind < 21:
            session = self._session_of(peer)
            await self._fetched(peer, what, session)
        else:
            await self._configured(peer, what, name)

    # -- fetches

    def _fetch(self, peer: Peer, session: Session) -> bytes:
        """The next fetch of a session, now and then an odd one."""
        shape, odd = m.FetchRequest, self.draw(90)
        epoch = session.epoch
        request = shape(
            max_wait_ms=session.wait_ms, min_bytes=session.min_bytes, max_bytes=1 << 20,
            isolation_level=session.isolation, session_id=session.session_id,
            session_epoch=epoch, rack_id=session.rack,
        )  # fmt: skip
        if odd == 0 and epoch > 0:
            request.session_epoch += 1 + self.draw(2)
        elif odd == 1:
            request.session_id ^= 1
        elif odd == 2:
            request.session_epoch = session.epoch = epoch = self.draw(2) - 1
        elif odd == 3:
            request.min_bytes = self.draw(3)
        elif odd == 4:
            request.max_wait_ms = self.draw(200)
        elif odd == 5 and session.positions:
            key = tuple(session.positions)[self.draw(len(session.positions))]
            session.positions[key] = self.draw(3)
            session.changed.add(key)
        elif odd == 6 and len(session.positions) > 1 and epoch > 0:
            key = tuple(session.positions)[self.draw(len(session.positions))]
            del session.positions[key]
            session.forgotten.add(key)
            session.changed.discard(key)
        elif odd == 7:
            request.isolation_level = self.draw(3)
        elif odd == 8:
            request.max_bytes = self.draw(3) - 1
        named = session.changed if epoch > 0 else set(session.positions)
        by_topic: dict[str, list[m.FetchRequest.FetchPartition]] = {}
        for name, index in sorted(named):
            part = shape.FetchPartition(
                partition=index, fetch_offset=session.positions[name, index],
                partition_max_bytes=1 << 20,
            )  # fmt: skip
            if self.draw(20) == 0 and session.version >= 9:
                part.current_leader_epoch = self.draw(3)
            if self.draw(12) == 0 and session.version >= 12:
                part.last_fetched_epoch = self.draw(2)
            by_topic.setdefault(name, []).append(part)
        for name, parts in by_topic.items():
            topic = shape.FetchTopic(partitions=parts)
            self._name(topic, session, name)
            request.topics.append(topic)
        for name, index in sorted(session.forgotten):
            gone = shape.ForgottenTopic(partitions=[index])
            self._name(gone, session, name)
            request.forgotten_topics_data.append(gone)
        session.changed.clear()
        session.forgotten.clear()
        if epoch >= 0:
            session.epoch = epoch + 1
        return peer.encoded(request, session.version)

    def _name(
        self,
        topic: m.FetchRequest.FetchTopic | m.FetchRequest.ForgottenTopic,
        session: Session,
        name: str,
    ) -> None:
        if session.version >= 13:
            topic.topic_id = self.topic_ids.get(name, bytes(15) + b"\x01")
        else:
            topic.topic = name

    async def _fetched(self, peer: Peer, what: str, session: Session) -> None:
        peer.writer.write(self._fetch(peer, session))
        self._heard(session, what, await peer.answer())

    def _heard(self, session: Session, what: str, answer: bytes | None) -> None:
        """What a consumer makes of an answer."""
        self.transcript.append((what, answer))
        assert answer is not None
        _, heard = frame.decode_response(
            m.FetchRequest.API_KEY, session.version, memoryview(answer)
        )
        if heard.error_code:
            session.epoch = 0
            return
        session.session_id = heard.session_id
        if not heard.session_id:
            session.epoch = 0
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        for topic in heard.responses:
            name = names.get(topic.topic_id, "absent") if session.version >= 13 else topic.topic
            for part in topic.partitions:
                key = name, part.partition_index
                if key not in session.positions:
                    continue
                if part.error_code == 1:
                    session.positions[key] = max(part.log_start_offset, 0)
                    session.changed.add(key)
                elif part.error_code and self.draw(3) == 0 and len(session.positions) > 1:
                    del session.positions[key]
                    session.forgotten.add(key)
                    session.changed.discard(key)
                elif part.high_watermark > session.positions[key] and not part.error_code:
                    session.positions[key] = part.high_watermark
                    session.changed.add(key)

    # -- what happens

    def _peer_of(self, name: str, index: int, busy: Peer | None) -> Peer:
        """One that is connected to the leader, as far as we know."""
        leader = self.replicas[name][index][0]
        first = self.peers[leader - 1]
        return self.peers[leader - 1 + len(IDS)] if first is busy else first

    async def _produce(self, what: str, name: str, index: int, busy: Peer | None) -> None:
        shape = m.ProduceRequest
        data = shape.PartitionProduceData(
            index=index, records=batch_of([b"x" * self.draw(200)] * (1 + self.draw(2)))
        )
        request = shape(
            acks=1 if self.draw(2) else -1, timeout_ms=1000,
            topic_data=[shape.TopicProduceData(name=name, partition_data=[data])],
        )  # fmt: skip
        peer = self._peer_of(name, index, busy)
        await self._ask(peer, what, peer.encoded(request, 9))

    async def _transaction(self, peer: Peer, what: str) -> None:
        """A transaction with one record, which ends or stays open for a while."""
        self.transactions += 1
        owner, key = f"t{self.transactions}", m.InitProducerIdRequest.API_KEY
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[owner])
        answer = await self._ask(peer, what, peer.encoded(find, 4))
        assert answer is not None
        _, found = frame.decode_response(find.API_KEY, 4, memoryview(answer))
        if found.coordinators[0].error_code:
            return
        node_id = found.coordinators[0].node_id
        reader, writer = await asyncio.open_connection(f"n{node_id}", BROKER_PORT)
        there = Peer(99, reader, writer)
        begin = m.InitProducerIdRequest(transactional_id=owner, transaction_timeout_ms=60_000)
        answer = await self._ask(there, what, there.encoded(begin, 4))
        assert answer is not None
        _, made = frame.decode_response(key, 4, memoryview(answer))
        if not made.error_code:
            index = self.draw(len(IDS))
            add = m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=owner,
                v3_and_below_producer_id=made.producer_id,
                v3_and_below_producer_epoch=made.producer_epoch,
                v3_and_below_topics=[
                    m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name="own", partitions=[index]
                    )
                ],
            )
            await self._ask(there, what, there.encoded(add, 3))
            records = batch_of(
                [b"t"], producer_id=made.producer_id, producer_epoch=made.producer_epoch,
                base_sequence=0, transactional=True,
            )  # fmt: skip
            shape = m.ProduceRequest
            data = shape.PartitionProduceData(index=index, records=records)
            request = shape(
                acks=-1, timeout_ms=1000, transactional_id=owner,
                topic_data=[shape.TopicProduceData(name="own", partition_data=[data])],
            )  # fmt: skip
            reader, leader = await asyncio.open_connection(f"n{index + 1}", BROKER_PORT)
            with_leader = Peer(98, reader, leader)
            await self._ask(with_leader, what, with_leader.encoded(request, 9))
            leader.close()
            await asyncio.sleep(self.draw(200) / 1000)
            end = m.EndTxnRequest(
                transactional_id=owner, producer_id=made.producer_id,
                producer_epoch=made.producer_epoch, committed=bool(self.draw(2)),
            )  # fmt: skip
            await self._ask(there, what, there.encoded(end, 3))
        writer.close()

    async def _records_deleted(self, what: str, name: str, index: int, busy: Peer | None) -> None:
        shape = m.DeleteRecordsRequest
        part = shape.DeleteRecordsPartition(partition_index=index, offset=self.draw(4) - 1)
        topic = shape.DeleteRecordsTopic(name=name, partitions=[part])
        peer = self._peer_of(name, index, busy)
        await self._ask(peer, what, peer.encoded(shape(topics=[topic], timeout_ms=1000), 2))

    async def _leader_moved(self, peer: Peer, what: str) -> None:
        """The replicas of a partition in another order, and the first one leads."""
        index = self.draw(len(IDS))
        replicas = self.replicas["three"][index]
        replicas.append(replicas.pop(0))
        shape = m.AlterPartitionReassignmentsRequest
        part = shape.ReassignablePartition(partition_index=index, replicas=list(replicas))
        topic = shape.ReassignableTopic(name="three", partitions=[part])
        await self._ask(peer, what, peer.encoded(shape(topics=[topic], timeout_ms=1000), 0))
        elect = m.ElectLeadersRequest
        chosen = elect.TopicPartitions(topic="three", partitions=[index])
        request = elect(election_type=0, topic_partitions=[chosen], timeout_ms=1000)
        await self._ask(peer, what, peer.encoded(request, 2))

    async def _configured(self, peer: Peer, what: str, name: str) -> None:
        shape = m.IncrementalAlterConfigsRequest
        value = str(1 + self.draw(2))
        config = shape.AlterableConfig(name="min.insync.replicas", config_operation=0, value=value)
        resource = shape.AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
        await self._ask(peer, what, peer.encoded(shape(resources=[resource]), 1))

    async def _create(self, peer: Peer, what: str, name: str) -> None:
        shape = m.CreateTopicsRequest
        assignments = [
            shape.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(TOPICS[name])
        ]
        topic = shape.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        self.replicas[name] = [list(x) for x in TOPICS[name]]
        request = shape(topics=[topic], timeout_ms=5000)
        answer = await self._ask(peer, what, peer.encoded(request, 7))
        assert answer is not None
        _, made = frame.decode_response(shape.API_KEY, 7, memoryview(answer))
        self.topic_ids[name] = made.topics[0].topic_id

    async def _made_anew(self, peer: Peer, what: str) -> None:
        name = tuple(TOPICS)[self.draw(len(TOPICS))]
        shape = m.DeleteTopicsRequest
        request = shape(topics=[shape.DeleteTopicState(name=name)], timeout_ms=5000)
        await self._ask(peer, what, peer.encoded(request, 6))
        if self.draw(2):
            await asyncio.sleep(self.draw(300) / 1000)
        await self._create(peer, what, name)


def main() -> None:
    seed = int(sys.argv[1])
    road = FetchRoad(seed, True)
    road.run()
    print(f"{road.taken} of {road.of_plain_apis} requests took a plain road")
    print(f"and {road.followers_taken} of followers")
    print(difference(seed, road=FetchRoad) or "the same")


if __name__ == "__main__":
    main()
