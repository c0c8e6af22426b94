"""Several pure raft replicas with disks that forget, and a network that can be told anything.

Nothing here waits: time is a number that the test moves. A `RaftNode` performs the effects of one
replica on an in-memory disk that keeps durable and volatile state apart, so that a crash loses
exactly what was not flushed. A `RaftCluster` delivers the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kwire.clock import Random, SeededRandom
from kwire.kraft.raft import RaftConfig, RaftState, machine
from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.control_records import ControlType, batch_shapes, build_control_batch
from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.log_state import LogState
from kwire.kraft.raft.types import BOOTSTRAP_SNAPSHOT, Endpoint, OffsetAndEpoch, ReplicaKey
from kwire.kraft.raft.voters import VoterHistory, VoterNode, VoterSet
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import ErrorCode

CLUSTER_ID = "raft-test"


def directory_of(node_id: int, generation: int = 0) -> bytes:
    return bytes([0xD0, generation]) + bytes(13) + bytes([node_id])


def endpoint_of(node_id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"node{node_id}", 9000 + node_id)


def voter_node(node_id: int, static: bool = False, generation: int = 0) -> VoterNode:
    key = ReplicaKey(node_id, None if static else directory_of(node_id, generation))
    return VoterNode(key, (endpoint_of(node_id),), 0, 0 if static else 1)


@dataclass
class Stored:
    """One batch on disk."""

    base_offset: int
    last_offset: int
    epoch: int
    data: bytes
    control: tuple[Any, ...] = ()

    @property
    def is_data(self) -> bool:
        return not self.control


@dataclass
class Snapshot:
    """A stored snapshot: the state (batches that it replaces) and what it says of the voters."""

    state: tuple[tuple[int, int, bytes], ...]
    voters: VoterSet | None
    level: int
    data: bytes = b""


@dataclass
class Disk:
    """What a node has written; `durable_offset` is what a crash leaves of the log."""

    batches: list[Stored] = field(default_factory=list)
    start_offset: int = 0
    durable_offset: int = 0
    election: ElectionState | None = None
    snapshots: dict[OffsetAndEpoch, Snapshot] = field(default_factory=dict)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.start_offset

    def crash(self) -> None:
        """Lose what was not flushed."""
        self.batches = [b for b in self.batches if b.last_offset < self.durable_offset]

    def truncate_to(self, end_offset: int) -> None:
        self.batches = [b for b in self.batches if b.last_offset < end_offset]
        self.durable_offset = min(self.durable_offset, end_offset)

    def log_state(self) -> LogState:
        log = LogState(start_offset=self.start_offset, end_offset=self.start_offset)
        log.snapshots = sorted(self.snapshots)
        for batch in self.batches:
            log.append(batch.base_offset, batch.last_offset, batch.epoch)
        log.flushed_offset = log.end_offset
        log.high_watermark = self.start_offset
        return log

    def history(self, static: VoterSet | None) -> VoterHistory:
        history = VoterHistory(static)
        if self.snapshots:
            latest = max(self.snapshots)
            snapshot = self.snapshots[latest]
            if snapshot.level:
                history.add_level(latest.offset - 1, snapshot.level)
            if snapshot.voters is not None:
                history.add_voters(latest.offset - 1, snapshot.voters)
        for batch in self.batches:
            for entry in batch.control:
                if batch.last_offset < (max(self.snapshots).offset if self.snapshots else 0):
                    continue
                if entry.type == ControlType.KRAFT_VERSION:
                    history.add_level(entry.offset, entry.message.kraft_version)
                elif entry.type == ControlType.VOTERS:
                    history.add_voters(entry.offset, VoterSet.from_record(entry.message))
        return history


class RaftNode:
    """One replica with its disk. `outbox` collects (send effect) until the cluster takes it."""

    def __init__(
        self,
        node_id: int,
        *,
        static: VoterSet | None,
        bootstrap: tuple[tuple[str, int], ...],
        seed: int,
        random: Random | None = None,
        generation: int = 0,
        auto_join: bool = False,
        can_be_voter: bool = True,
        flush_at_once: bool = True,
    ) -> None:
        self.id = node_id
        self.config = RaftConfig(
            node_id=node_id,
            directory_id=directory_of(node_id, generation),
            cluster_id=CLUSTER_ID,
            endpoints=(endpoint_of(node_id),),
            bootstrap_servers=bootstrap,
            static_voters=static,
            auto_join=auto_join,
            can_be_voter=can_be_voter,
        )
        self.random = random or SeededRandom(seed)
        self.disk = Disk()
        self.raft: RaftState | None = None
        self.outbox: list[fx.Send] = []
        self.replies: list[tuple[Any, Any]] = []
        self.flushes: list[tuple[int, int]] = []
        self.flush_at_once = flush_at_once
        self.state: list[tuple[int, int, bytes]] = []
        self.applied = 0
        self.leads_since: int | None = None
        self.pieces: dict[OffsetAndEpoch, bytearray] = {}
        self.upgrades: list[fx.Upgraded] = []
        self.listeners: list[Callable[[RaftNode, fx.Effect], None]] = []

    # ---- life

    def start(self, now_ms: int) -> None:
        log = self.disk.log_state()
        history = self.disk.history(self.config.static_voters)
        self.disk.durable_offset = self.disk.end_offset
        self.raft = RaftState(self.config, self.random, log, history, self.disk.election)
        self.applied = self.disk.start_offset
        self.state = []
        if self.disk.snapshots:
            latest = max(self.disk.snapshots)
            self.state = list(self.disk.snapshots[latest].state)
            self.applied = latest.offset
            log.high_watermark = max(log.high_watermark, latest.offset)
        self.leads_since = None
        self._perform(machine.start(self.raft, now_ms), now_ms)

    def crash(self) -> None:
        self.raft = None
        self.outbox.clear()
        self.flushes.clear()
        self.replies.clear()
        self.pieces.clear()
        self.disk.crash()

    def step(self, message: msg.Message, now_ms: int) -> None:
        assert self.raft is not None
        self._perform(machine.step(self.raft, message, now_ms), now_ms)

    def flush(self, now_ms: int) -> None:
        """Finish the flush that has been running longest."""
        if self.flushes:
            token, end_offset = self.flushes.pop(0)
            self.disk.durable_offset = max(
                self.disk.durable_offset, min(end_offset, self.disk.end_offset)
            )
            self.step(msg.Flushed(token), now_ms)

    def append(self, payload: bytes, now_ms: int) -> int:
        """Append one record as leader; its offset."""
        assert self.raft is not None
        offset = self.raft.log.end_offset
        record = records.Record(0, now_ms, None, payload, [])
        batch = records.build_batch([record], base_offset=offset, leader_epoch=self.raft.epoch)
        self.step(msg.Append(batch, 1, self.raft.epoch), now_ms)
        return offset

    def take_snapshot(self, now_ms: int) -> OffsetAndEpoch | None:
        """Snapshot the committed state."""
        assert self.raft is not None
        if self.applied == 0 or self.raft.log.start_offset >= self.applied:
            return None
        epoch = max(
            (b.epoch for b in self.disk.batches if b.base_offset < self.applied),
            default=0,
        )
        snapshot = OffsetAndEpoch(self.applied, epoch)
        if snapshot in self.disk.snapshots:
            return None
        history = self.raft.voters
        content = repr([(offset, epoch, data.hex()) for offset, epoch, data in self.state])
        self.disk.snapshots[snapshot] = Snapshot(
            tuple(self.state),
            history.voters_at(self.applied - 1),
            history.level_at(self.applied - 1),
            content.encode(),
        )
        self.on_snapshot(snapshot, self.disk.snapshots[snapshot])
        self.step(msg.SnapshotCreated(snapshot), now_ms)
        return snapshot

    # ---- effects

    def _perform(self, effects: list[fx.Effect], now_ms: int) -> None:
        for effect in effects:
            for listener in self.listeners:
                listener(self, effect)
            getattr(self, "_" + type(effect).__name__)(effect, now_ms)
        if self.flush_at_once:
            while self.flushes:
                self.flush(now_ms)

    def _PersistElection(self, effect: fx.PersistElection, now_ms: int) -> None:
        self.disk.election = ElectionState.decode(effect.election.encode(effect.kraft_version))

    def _store(self, data: bytes, now_ms: int, next_offset: int) -> None:
        shapes, size = batch_shapes(data, next_offset=next_offset, epoch_max=1 << 30)
        assert size == len(data), "a damaged batch is appended"
        position = 0
        view = memoryview(data)
        for shape in shapes:
            header = records.parse_header(view, position)
            piece = bytes(view[position : position + header.size_bytes])
            position += header.size_bytes
            assert shape.base_offset == self.disk.end_offset
            stored = Stored(shape.base_offset, shape.last_offset, shape.epoch, piece, shape.control)
            self.disk.batches.append(stored)

    def _AppendControl(self, effect: fx.AppendControl, now_ms: int) -> None:
        batch = build_control_batch(
            effect.records, base_offset=effect.base_offset, epoch=effect.epoch, timestamp_ms=now_ms
        )
        self._store(bytes(batch), now_ms, effect.base_offset)

    def _AppendBatch(self, effect: fx.AppendBatch, now_ms: int) -> None:
        self._store(bytes(effect.batch), now_ms, effect.base_offset)

    def _AppendFetched(self, effect: fx.AppendFetched, now_ms: int) -> None:
        self._store(effect.batches, now_ms, effect.base_offset)

    def _TruncateTo(self, effect: fx.TruncateTo, now_ms: int) -> None:
        self.disk.truncate_to(effect.end_offset)

    def _StartAt(self, effect: fx.StartAt, now_ms: int) -> None:
        self.disk.batches.clear()
        for snapshot in list(self.disk.snapshots):
            if snapshot.offset < effect.snapshot.offset:
                del self.disk.snapshots[snapshot]
        self.disk.start_offset = self.disk.durable_offset = effect.snapshot.offset

    def _DeleteBefore(self, effect: fx.DeleteBefore, now_ms: int) -> None:
        offset = effect.snapshot.offset
        self.disk.batches = [b for b in self.disk.batches if b.last_offset >= offset]
        self.disk.start_offset = max(self.disk.start_offset, offset)
        for snapshot in effect.gone:
            del self.disk.snapshots[snapshot]

    def _Flush(self, effect: fx.Flush, now_ms: int) -> None:
        self.flushes.append((effect.token, self.disk.end_offset))

    def _Send(self, effect: fx.Send, now_ms: int) -> None:
        self.outbox.append(effect)

    def _Reply(self, effect: fx.Reply, now_ms: int) -> None:
        self.replies.append((effect.reply_to, effect.response))

    def _ReplyRecords(self, effect: fx.ReplyRecords, now_ms: int) -> None:
        data = b""
        for batch in self.disk.batches:
            if batch.last_offset >= effect.offset:
                if data and len(data) + len(batch.data) > effect.bytes_max:
                    break
                data += batch.data
        effect.response.responses[0].partitions[0].records = data
        self.replies.append((effect.reply_to, effect.response))

    def _ReplySnapshot(self, effect: fx.ReplySnapshot, now_ms: int) -> None:
        content = self.disk.snapshots[effect.snapshot].data
        partition = effect.response.topics[0].partitions[0]
        if effect.position >= len(content):
            partition.error_code = int(ErrorCode.POSITION_OUT_OF_RANGE)
        else:
            end = effect.position + effect.bytes_max
            partition.size = len(content)
            partition.unaligned_records = content[effect.position : end]
        self.replies.append((effect.reply_to, effect.response))

    def _WriteSnapshot(self, effect: fx.WriteSnapshot, now_ms: int) -> None:
        pieces = self.pieces.setdefault(effect.snapshot, bytearray())
        if effect.position == 0:
            pieces.clear()
        assert len(pieces) == effect.position
        pieces += effect.chunk

    def _FreezeSnapshot(self, effect: fx.FreezeSnapshot, now_ms: int) -> None:
        content = bytes(self.pieces.pop(effect.snapshot))
        source = self.find_snapshot(effect.snapshot, content)
        self.disk.snapshots[effect.snapshot] = source
        self.step(msg.SnapshotStored(effect.snapshot, source.voters, source.level or None), now_ms)

    find_snapshot: Callable[[OffsetAndEpoch, bytes], Snapshot]
    on_snapshot: Callable[[OffsetAndEpoch, Snapshot], None]

    def _Commit(self, effect: fx.Commit, now_ms: int) -> None:
        for batch in self.disk.batches:
            if self.applied <= batch.base_offset and batch.last_offset < effect.offset:
                if batch.is_data:
                    self.state.append((batch.base_offset, batch.epoch, batch.data))
                self.applied = batch.last_offset + 1

    def _LoadSnapshot(self, effect: fx.LoadSnapshot, now_ms: int) -> None:
        self.state = list(self.disk.snapshots[effect.snapshot].state)
        self.applied = effect.snapshot.offset

    def _LeaderChanged(self, effect: fx.LeaderChanged, now_ms: int) -> None:
        self.leads_since = effect.epoch if effect.leader_id == self.id else None

    def _Upgraded(self, effect: fx.Upgraded, now_ms: int) -> None:
        self.upgrades.append(effect)


@dataclass
class InFlight:
    """A message on the network: a request or the response to one."""

    source: int
    target: int
    correlation: int
    body: Any
    is_response: bool
    version: int
    lost: bool = False


class RaftCluster:
    """Nodes and the network between them."""

    def __init__(self, seed: int = 1) -> None:
        self.random = SeededRandom(seed)
        self.now_ms = 0
        self.nodes: dict[int, RaftNode] = {}
        self.network: list[InFlight] = []
        self.cut: set[tuple[int, int]] = set()
        self.trace: list[str] = []
        self.listeners: list[Callable[[RaftNode, fx.Effect], None]] = []
        self.client_replies: list[Any] = []
        self.versions: dict[int, dict[int, int]] = {}
        self._taken: dict[tuple[OffsetAndEpoch, bytes], Snapshot] = {}

    def add(
        self,
        node_id: int,
        *,
        voters: list[int] | None = None,
        static: bool = False,
        formatted: bool = True,
        bootstrap: list[int] | None = None,
        random: Random | None = None,
        **options: Any,
    ) -> RaftNode:
        """A node, not started yet; with `voters` formatted so (kraft.version 1), or static."""
        known = voters if voters is not None else []
        voter_set = VoterSet(voter_node(voter, static) for voter in known)
        servers = bootstrap if bootstrap is not None else known
        node = RaftNode(
            node_id,
            static=voter_set if static else None,
            bootstrap=tuple((endpoint_of(n).host, endpoint_of(n).port) for n in servers),
            seed=self.random.below(1 << 30),
            random=random,
            **options,
        )
        if not static and formatted:
            node.disk.snapshots[BOOTSTRAP_SNAPSHOT] = Snapshot(
                (), voter_set if known else None, 1 if known else 0
            )
        node.find_snapshot = self._find_snapshot
        node.on_snapshot = self._snapshots_taken
        node.listeners = self.listeners
        self.nodes[node_id] = node
        return node

    def _snapshots_taken(self, snapshot: OffsetAndEpoch, taken: Snapshot) -> None:
        self._taken[(snapshot, taken.data)] = taken

    def _find_snapshot(self, snapshot: OffsetAndEpoch, content: bytes) -> Snapshot:
        found = self._taken.get((snapshot, content))
        if found is not None:
            return found
        raise AssertionError(f"a snapshot {snapshot} with content that nobody wrote")

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.nodes):
            self.nodes[node_id].start(self.now_ms)
            self.collect()

    def crash(self, node_id: int) -> None:
        self.nodes[node_id].crash()
        self.network = [
            f for f in self.network if not (f.source == node_id and f.is_response is False)
        ]

    def running(self) -> list[RaftNode]:
        return [node for node in self.nodes.values() if node.raft is not None]

    def leaders(self) -> list[RaftNode]:
        return [node for node in self.running() if node.raft is not None and node.raft.is_leader]

    def leader(self) -> RaftNode:
        """The newest leader."""
        return max(self.leaders(), key=lambda node: node.raft.epoch)  # type: ignore[union-attr]

    # ---- the network

    def collect(self) -> None:
        """Take what nodes want to send."""
        for node in self.nodes.values():
            for send in node.outbox:
                target = self._target_of(send)
                version = self._version(target, send.request)
                self.network.append(
                    InFlight(node.id, target, send.correlation, send.request, False, version)
                )
            node.outbox.clear()
            for reply_to, response in node.replies:
                if reply_to[0] == "client":
                    self.client_replies.append((reply_to[1], response))
                    continue
                source, correlation, version = reply_to
                self.network.append(InFlight(node.id, source, correlation, response, True, version))
            node.replies.clear()

    def _target_of(self, send: fx.Send) -> int:
        for node_id in self.nodes:
            endpoint = endpoint_of(node_id)
            if (endpoint.host, endpoint.port) == (send.node.host, send.node.port):
                return node_id
        return send.node.id

    def _version(self, target: int, request: Any) -> int:
        capped = self.versions.get(target, {}).get(request.API_KEY)
        return int(type(request).MAX_VERSION if capped is None else capped)

    def deliver(self, flight: InFlight) -> None:
        """Deliver one message (over the wire format, at its version)."""
        if flight in self.network:
            self.network.remove(flight)
        target = self.nodes.get(flight.target)
        dead = target is None or target.raft is None
        if flight.is_response:
            if not dead and (flight.source, flight.target) not in self.cut:
                assert target is not None
                message = msg.Response(flight.correlation, flight.body)
                if flight.body is None:
                    self.fail(flight.target, flight.correlation, ErrorCode.NETWORK_EXCEPTION)
                else:
                    body = type(flight.body).decode(
                        flight.body.encode(flight.version), flight.version
                    )
                    target.step(msg.Response(message.correlation, body), self.now_ms)
        elif dead:
            self.fail(flight.source, flight.correlation, ErrorCode.NETWORK_EXCEPTION)
        elif (flight.source, flight.target) not in self.cut:
            assert target is not None
            self._deliver_request(target, flight)
        self.collect()

    def _deliver_request(self, target: RaftNode, flight: InFlight) -> None:
        request = flight.body
        if request.API_KEY == m.ApiVersionsRequest.API_KEY:
            response = m.ApiVersionsResponse(
                supported_features=[
                    m.ApiVersionsResponse.SupportedFeatureKey(
                        name="kraft.version", min_version=0, max_version=1
                    )
                ]
            )
            target.replies.append(((flight.source, flight.correlation, 4), response))
            return
        try:
            body = type(request).decode(request.encode(flight.version), flight.version)
        except (ValueError, OverflowError):
            # What the version cannot carry is not sent at all.
            self.fail(flight.source, flight.correlation, ErrorCode.UNSUPPORTED_VERSION)
            return
        # Raft hands it back as it is: here an address, in the driver a Pending.
        reply_to: Any = (flight.source, flight.correlation, flight.version)
        target.step(msg.Request(body, flight.version, reply_to, wall_ms=self.now_ms), self.now_ms)

    def fail(self, node_id: int, correlation: int, code: ErrorCode) -> None:
        node = self.nodes[node_id]
        if node.raft is not None:
            node.step(msg.Failed(correlation, int(code)), self.now_ms)

    def ask(self, node_id: int, request: Any, name: str = "client", version: int = -1) -> None:
        """A client's request; the answer comes to `client_replies`."""
        at = int(type(request).MAX_VERSION) if version < 0 else version
        reply_to: Any = ("client", name)
        message = msg.Request(request, at, reply_to, wall_ms=self.now_ms)
        self.nodes[node_id].step(message, self.now_ms)
        self.collect()

    # ---- time

    def settle(self, deliveries_max: int = 2000) -> None:
        """Deliver everything that is on the way, oldest first, without moving time."""
        for _ in range(deliveries_max):
            self.collect()
            if not self.network:
                return
            self.deliver(self.network[0])
        raise AssertionError(f"the network never gets quiet: {self.network[:3]}")

    def tick(self) -> bool:
        """Move time to the next deadline and let it happen; False if there is none."""
        deadlines = [
            max(node.raft.deadline_ms, self.now_ms)
            for node in self.running()
            if node.raft is not None and node.raft.deadline_ms < 1 << 61
        ]
        if not deadlines:
            return False
        self.now_ms = max(self.now_ms, min(deadlines))
        self.fire()
        return True

    def fire(self) -> None:
        for node in self.running():
            if node.raft is not None and node.raft.deadline_ms <= self.now_ms:
                node.step(msg.Tick(), self.now_ms)
        self.collect()

    def run(self, duration_ms: int) -> None:
        """Let time pass with a perfect network."""
        end_ms = self.now_ms + duration_ms
        self.settle()
        while True:
            deadlines = [node.raft.deadline_ms for node in self.running() if node.raft is not None]
            next_ms = min(deadlines, default=end_ms)
            if next_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, next_ms)
            self.fire()
            self.settle()
        self.now_ms = end_ms
        self.fire()
        self.settle()

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> None:
        """Let time pass until the condition holds; AssertionError after `limit_ms`."""
        end_ms = self.now_ms + limit_ms
        self.settle()
        while not condition():
            assert self.now_ms < end_ms, "the condition never held"
            assert self.tick(), "nothing will ever happen"
            self.settle()
