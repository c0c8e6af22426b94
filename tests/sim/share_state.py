"""The state of share partitions under failures: what was acknowledged stays, and fences hold.

A cluster of three; nodes are killed, lose power or are cut off while leaders of partitions change
the state of share partitions through a persister of their own. The topic of the state is pruned all
the time. Every share partition has one leader at a time, who begins by reading; a leader that was
relieved goes on writing for a while, as one does that has not heard of it, and so does one of an
older state epoch.

    promise                                              checked when
    an acknowledged write is not gone back behind        the state is read, at the end
    nothing is there that nobody wrote                   the state is read, at the end
    a fenced leader, or state epoch, never writes        it is answered; the state is read
    the state epoch is the last that was acknowledged    the state is read, at the end
"""

from __future__ import annotations

import asyncio
from typing import Any

from kwire.coordinator.partitioner import partition_for
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share import messages as shapes
from kwire.share.coordinator_persister import CoordinatorPersister
from kwire.share.keys import SharePartitionKey, coordinator_key
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionState,
    Persister,
    StateBatch,
    WritePartition,
)
from kwire.testing.simulation import Simulation
from tests.sim.client import Retry, RoutingClient
from tests.sim.cluster import IDS, Cluster
from tests.sim.driving import end_all, run_until
from tests.sim.model import Violation

STATE_TOPIC, TOPIC = "__share_group_state", "shared"
STATE_PARTITIONS = 2
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": str(STATE_PARTITIONS),
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.prune.interval.ms": "700",
    "share.coordinator.cold.partition.snapshot.interval.ms": "1500",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}
GROUPS, PARTITIONS = ("a", "b"), 2
STEPS = 30
FENCED_OFFSET = 1_000_000
START_LIMIT_S, END_LIMIT_S = 60.0, 400.0
AVAILABLE, ACKNOWLEDGED = 0, 2


class Known:
    """What the world knows of one share partition. `acknowledged` and `sent` are offset ->
    (delivery count, delivery state), of this state epoch; `start_offset` is acknowledged,
    `start_offset_sent` may be there."""

    def __init__(self, group_id: str, partition: int) -> None:
        self.group_id = group_id
        self.partition = partition
        self.state_epoch = -1
        self.state_epoch_sent = -1
        self.leader_epoch = 0
        self.begin(-1, 0)

    def begin(self, state_epoch: int, start_offset: int) -> None:
        self.state_epoch = state_epoch
        self.start_offset = self.start_offset_sent = start_offset
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.sent: dict[int, set[tuple[int, int]]] = {}


class ShareStateHistory:
    """One seed's history; `run` raises Violation for a broken promise."""

    node_id = -1

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.cluster = Cluster(self.simulation, SETTINGS)
        self.below = self.simulation.random.below
        self.host = self.simulation.host("clients")
        self.client = RoutingClient(self.host, "leaders")
        self.persister = CoordinatorPersister(
            loop=self.host.loop,
            coordinators=self,
            send=self._send,
            draw=lambda: self.below(1001) / 1000,
        )
        self.topic_id = b""
        self.reads = self.writes = self.fenced = 0
        self.known = [Known(group, x) for group in GROUPS for x in range(PARTITIONS)]
        self.is_done = False

    # -- the persister's world

    @property
    def local(self) -> Persister:
        raise AssertionError("no coordinator is here")

    def find(self, key: SharePartitionKey) -> int | None:
        index = partition_for(coordinator_key(*key), STATE_PARTITIONS)
        node_id, _ = self.client._leaders.get((STATE_TOPIC, index), (-1, -1))
        return node_id if node_id in self.client._brokers else None

    def _send(self, node_id: int, request: Any) -> Pending[Any]:
        pending: Pending[Any] = Pending()

        async def ask() -> None:
            try:
                address = self.client._brokers[node_id]
                pending.complete(await self.client.ask(address, request, request.MAX_VERSION))
            except Retry as error:
                pending.fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)))

        self.host.loop.create_task(ask())
        return pending

    async def _follow_leaders(self) -> None:
        while not self.is_done:
            try:
                await self.client.refresh([STATE_TOPIC])
            except Retry:
                pass
            self.persister.coordinators_changed()
            await self.client.pause()

    @staticmethod
    async def _result(pending: Pending[list[Any]]) -> Any:
        """The only result of a call."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pending.add_done_callback(lambda done: future.set_result(done.result()[0]))
        return await future

    # -- leaders

    async def _lead(self, known: Known) -> None:
        await self._begin_anew(known)
        for _ in range(STEPS):
            step = self.below(20)
            if step == 0:
                await self._begin_anew(known)
            elif step < 3:
                await self._relieve(known)
            elif step < 5:
                await self._write_stale(known)
            else:
                await self._write(known)
            if self.below(3) == 0:
                await self.client.pause(0.3)

    async def _begin_anew(self, known: Known) -> None:
        """A state epoch that is acknowledged at the first attempt: of one that was not, another
        attempt may come late."""
        while True:
            known.state_epoch_sent += 1
            start_offset = self.below(20)
            asked = [InitializePartition(
                self.topic_id, known.partition, known.state_epoch_sent, start_offset
            )]  # fmt: skip
            node_id = self.find(SharePartitionKey(known.group_id, self.topic_id, known.partition))
            if node_id is not None:
                request = shapes.initialize_request(known.group_id, asked)
                try:
                    answer = await self.client.ask(self.client._brokers[node_id], request, 0)
                except Retry:
                    continue
                if not shapes.initialize_results(answer)[0].error_code:
                    known.begin(known.state_epoch_sent, start_offset)
                    break
            await self.client.pause()
        await self._relieve(known)

    async def _relieve(self, known: Known) -> None:
        """Another leader takes over."""
        known.leader_epoch += 1
        state = await self._read(known)
        self._check(known, state)
        self.reads += 1

    async def _read(self, known: Known) -> PartitionState:
        asked = [PartitionEpoch(self.topic_id, known.partition, known.leader_epoch)]
        while True:
            state: PartitionState = await self._result(self.persister.read(known.group_id, asked))
            if not state.error_code:
                return state
            if state.error_code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST):
                raise Violation(f"leader epoch {known.leader_epoch} cannot read: {state}")
            await self.client.pause()

    def _drawn(self, known: Known) -> tuple[int, list[StateBatch]]:
        start_offset = -1
        if self.below(3) == 0:
            start_offset = known.start_offset_sent + self.below(6)
        batches = []
        for _ in range(self.below(3)):
            first = max(known.start_offset - 3 + self.below(40), 0)
            batches.append(StateBatch(
                first, first + self.below(5), (AVAILABLE, ACKNOWLEDGED)[self.below(2)],
                1 + self.below(4),
            ))  # fmt: skip
        return start_offset, batches

    async def _write(self, known: Known) -> None:
        start_offset, batches = self._drawn(known)
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                priority = batch.delivery_count, batch.delivery_state
                known.sent.setdefault(offset, set()).add(priority)
        known.start_offset_sent = max(known.start_offset_sent, start_offset)
        asked = [WritePartition(
            self.topic_id, known.partition, known.state_epoch, known.leader_epoch,
            start_offset, -1, batches,
        )]  # fmt: skip
        result = await self._result(self.persister.write(known.group_id, asked))
        if result.error_code in (
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.FENCED_STATE_EPOCH,
            ErrorCode.INVALID_REQUEST,
        ):
            raise Violation(f"the leader's own write is refused: {result}")
        if result.error_code:
            return
        self.writes += 1
        known.start_offset = max(known.start_offset, start_offset)
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                before = known.acknowledged.get(offset, (0, 0))
                priority = batch.delivery_count, batch.delivery_state
                known.acknowledged[offset] = max(before, priority)

    async def _write_stale(self, known: Known) -> None:
        """A leader that was relieved, or a state epoch that has ended, goes on."""
        state_epoch, leader_epoch = known.state_epoch, known.leader_epoch
        if self.below(2) and state_epoch > 0:
            state_epoch -= 1
        else:
            leader_epoch -= 1
        batch = StateBatch(FENCED_OFFSET, FENCED_OFFSET + self.below(9), ACKNOWLEDGED, 9)
        asked = [WritePartition(
            self.topic_id, known.partition, state_epoch, leader_epoch, -1, -1, [batch]
        )]  # fmt: skip
        result = await self._result(self.persister.write(known.group_id, asked))
        if not result.error_code:
            raise Violation(f"a fenced write is acknowledged: {asked}")
        self.fenced += 1

    def _check(self, known: Known, state: PartitionState) -> None:
        name = f"{known.group_id}-{known.partition} {state}"
        if state.state_epoch != known.state_epoch:
            raise Violation(f"state epoch {known.state_epoch} was acknowledged: {name}")
        if not known.start_offset <= state.start_offset <= known.start_offset_sent:
            raise Violation(f"start offset {known.start_offset} was acknowledged: {name}")
        found = {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in state.state_batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        for offset, priority in found.items():
            if priority not in known.sent.get(offset, ()):
                raise Violation(f"nobody wrote {priority} at {offset}: {name}")
        for offset, priority in known.acknowledged.items():
            if offset >= state.start_offset and found.get(offset, (0, 0)) < priority:
                raise Violation(f"{priority} at {offset} was acknowledged: {name}")

    # -- failures

    async def _break(self) -> None:
        """One node at a time dies, or is cut off, for a while. Machines lose power only while
        everything is in sync: what another one has just lost may be nowhere else. No other process
        is killed before a machine that lost power is in sync again: it is in the ISR until it is
        fenced, which a change of the controller puts off; when it is the only one there, and the
        others ended without order, it leads (KIP-966)."""
        network = self.simulation.network
        while not self.is_done:
            await asyncio.sleep(self.below(2500) / 1000)
            node_id = IDS[self.below(len(IDS))]
            others = [f"n{each}" for each in IDS if each != node_id]
            kind = self.below(3)
            if not self.cluster.is_up(node_id):
                continue
            if kind == 0:
                for other in others:
                    network.block(f"n{node_id}", other)
                    network.block(other, f"n{node_id}")
            elif self._may_kill(node_id):
                self.cluster.kill(node_id, power_loss=kind == 1 and self.cluster.is_in_sync())
            await asyncio.sleep(self.below(3000) / 1000)
            if kind == 0:
                for other in others:
                    network.heal(f"n{node_id}", other)
                    network.heal(other, f"n{node_id}")
            elif not self.cluster.is_up(node_id):
                self.cluster.start(node_id)

    def _may_kill(self, node_id: int) -> bool:
        unclean = self.cluster.unclean
        if unclean and self.cluster.is_in_sync():
            unclean.clear()
        return all(other == node_id for other in unclean)

    # -- the run

    def run(self) -> None:
        """Play it to its end; raises Violation."""
        try:
            self._run()
        finally:
            end_all(self.cluster)

    def _run(self) -> None:
        cluster = self.cluster
        cluster.format()
        for node_id in IDS:
            cluster.start(node_id)
        self._until(cluster.is_in_sync, START_LIMIT_S, "the cluster does not start")
        prepared = self.host.loop.create_task(self._prepare())
        self._until(prepared.done, START_LIMIT_S, "no topic of the state")
        prepared.result()
        self._until(cluster.is_in_sync, START_LIMIT_S, "the topics do not come up")
        self.host.loop.create_task(self._follow_leaders())
        world = self.simulation.host("world").loop
        breaking = world.create_task(self._break())
        leading = [self.host.loop.create_task(self._lead(known)) for known in self.known]
        self._ended(leading)
        self.is_done = True
        self._until(breaking.done, END_LIMIT_S, "the failures do not end")
        self.is_done = False
        self.host.loop.create_task(self._follow_leaders())
        # A node that has lost power is not the only one that knows: it may have forgotten.
        self._until(cluster.is_in_sync, END_LIMIT_S, "the nodes do not come back")
        for node_id in IDS:  # all state is loaded anew
            cluster.kill(node_id)
            cluster.start(node_id)
        self._until(cluster.is_in_sync, END_LIMIT_S, "the nodes do not come back")
        self._ended([self.host.loop.create_task(self._relieve(known)) for known in self.known])
        self.is_done = True

    def _ended(self, tasks: list[asyncio.Task[None]]) -> None:
        def is_over() -> bool:
            return all(task.done() for task in tasks) or any(
                task.done() and task.exception() is not None for task in tasks
            )

        self._until(is_over, END_LIMIT_S, "it does not end")
        for task in tasks:
            if task.done():
                task.result()

    async def _prepare(self) -> None:
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=3)
        while True:
            try:
                await self.client.refresh([TOPIC, STATE_TOPIC])
                address = self.client.any_broker()
                await self.client.ask(address, shape(topics=[topic], timeout_ms=5000), 7)
                find = m.FindCoordinatorRequest(
                    key_type=2, coordinator_keys=[coordinator_key("a", bytes(16), 0)]
                )
                found = (await self.client.ask(address, find, 6)).coordinators[0]
                asked = [m.MetadataRequest.MetadataRequestTopic(name=TOPIC)]
                metadata = await self.client.ask(address, m.MetadataRequest(topics=asked), 12)
            except Retry:
                continue
            if not found.error_code and not metadata.topics[0].error_code:
                self.topic_id = bytes(metadata.topics[0].topic_id)
                await self.client.refresh([STATE_TOPIC])
                return
            await self.client.pause()

    def _until(self, condition: Any, limit_s: float, otherwise: str) -> None:
        run_until(
            self.simulation,
            condition,
            limit_s,
            lambda: f"{otherwise}\n{self.cluster.describe()}",
        )
