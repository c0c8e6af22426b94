"""Share groups in a cluster of three under failures; what holds is in `share_checker.py`.

Members take records and accept, release, reject, renew, forget and vanish, while nodes are killed,
lose power, are cut off and stopped, leaders of the records, of their state and of the group are
moved, records deleted and configs changed; in some histories producers write in transactions and
members see committed records alone. Then everything heals, members accept what comes until nothing
is left, all nodes begin anew, and logs and dead letters are compared with what was seen.

    python -m tests.sim.share_cluster SEED [RUNS] [--mutation NAME]

prints a line for each seed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster as Client
from kwire.client.configs import Resource
from kwire.client.errors import ClientError
from kwire.client.offsets import EARLIEST
from kwire.client.producer import Outgoing, Producer
from kwire.protocol import dead_letter_headers as named
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from kwire.share.led_partition import LedPartition
from kwire.testing.simulation import Simulation
from tests.sim.checkers import Checkers
from tests.sim.client import Retry, RoutingClient
from tests.sim.cluster import IDS, Cluster
from tests.sim.driving import end_all, run_until
from tests.sim.faults import Faults, Plan
from tests.sim.mutations import applied
from tests.sim.share_checker import DeadLetter, Log, Place, ShareChecker
from tests.sim.share_histories import KINDS, lead_by, read_topic, run_by_command
from tests.sim.share_worker import MILDLY, Orders, Worker, asked

TOPIC, DEAD, GROUP = "jobs", "dlq.jobs", "workers"
PARTITIONS, DEAD_PARTITIONS, WORKERS = 2, 2, 3
LIMITS = (3, 4)
LOCKS_MS = (1000, 2000)
START_LIMIT_S, DRAIN_LIMIT_S, END_LIMIT_S = 60.0, 120.0, 300.0
ANEW_S = 4.0
DEEDS = ("move", "move records", "vanish", "vanish", "delete", "configure")
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.prune.interval.ms": "900",
    "share.coordinator.cold.partition.snapshot.interval.ms": "1500",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
RETAINED = {"log.roll.ms": "1500", "log.retention.check.interval.ms": "1000"}


class SharePlan:
    """What a history has: kinds of faults, deeds of an operator, what members do, how long."""

    def __init__(
        self,
        kinds: tuple[str, ...] = (),
        deeds: tuple[str, ...] = (),
        *,
        length_s: float = 15.0,
        is_committed: bool = False,
        copies: bool = False,
        is_retained: bool = False,
        said: tuple[str, ...] = MILDLY,
        pause_s: tuple[float, float] = (0.3, 3.0),
        work_s: float = 0.3,
        lock_ms: int = LOCKS_MS[0],
    ) -> None:
        self.kinds = kinds
        self.deeds = deeds
        self.length_s = length_s
        self.is_committed = is_committed
        self.copies = copies
        self.is_retained = is_retained
        self.said = said
        self.pause_s = pause_s
        self.work_s = work_s
        self.lock_ms = lock_ms

    @classmethod
    def drawn(cls, below: Callable[[int], int]) -> SharePlan:
        """One or two kinds of faults, or about half of all."""
        if below(2):
            kinds = tuple(KINDS[below(len(KINDS))] for _ in range(1 + below(2)))
        else:
            kinds = tuple(kind for kind in KINDS if below(2)) or ("kill",)
        return cls(
            tuple(dict.fromkeys(kinds)),
            tuple(deed for deed in DEEDS if below(3)),
            is_committed=below(3) == 0,
            copies=below(2) == 0,
            is_retained=below(5) == 0,
            work_s=(0.0, 0.1, 0.4)[below(3)],
        )


class ShareClusterHistory:
    """One seed's history; `run` raises Violation for a broken promise."""

    def __init__(self, seed: int, plan: SharePlan | None = None) -> None:
        self.seed = seed
        self.simulation = simulation = Simulation(seed, keep_transcript=False)
        self.below = simulation.random.below
        self.plan = plan or SharePlan.drawn(self.below)
        settings = {**SETTINGS, **(RETAINED if self.plan.is_retained else {})}
        self.cluster = Cluster(simulation, settings)
        faults = Plan(self.plan.kinds, pause_s=self.plan.pause_s)
        self.faults = Faults(self.cluster, faults, Checkers())
        self.checker = ShareChecker(TOPIC, LIMITS)
        self.orders = Orders(self.plan.lock_ms / 1000, self.plan.work_s, self.plan.said)
        self.host = simulation.host("clients")
        self.world = simulation.host("others")
        self.client = RoutingClient(self.world, "operator")
        self.writer = RoutingClient(self.host, "producer")
        self.workers: dict[int, asyncio.Task[None]] = {}
        self.deeds = 0
        self.is_producing = True
        self.sequence = 0

    # -- the run

    def run(self) -> None:
        """Play it to its end; raises Violation."""
        try:
            with applied("observe", {"observe": self.checker.observe}):
                self._run()
        finally:
            end_all(self.cluster)

    def _run(self) -> None:
        cluster, simulation = self.cluster, self.simulation
        cluster.format()
        for node_id in IDS:
            cluster.start(node_id)
        self._until(cluster.is_in_sync, START_LIMIT_S, "the cluster does not start")
        prepared = self.host.loop.create_task(self._prepare())
        self._until(prepared.done, START_LIMIT_S, "no topics")
        prepared.result()
        self._until(cluster.is_in_sync, START_LIMIT_S, "the topics do not come up")
        end_s = simulation.now + self.plan.length_s
        producing = self.host.loop.create_task(self._produce())
        for at in range(WORKERS):
            self._begin_worker(at)
        deeds = self.world.loop.create_task(self._operate(end_s))
        nemesis = simulation.host("world").loop.create_task(self.faults.run(end_s))
        self._until(lambda: nemesis.done() and deeds.done(), END_LIMIT_S, "the failures do not end")
        nemesis.result()
        deeds.result()
        self.is_producing = False
        self._until(producing.done, END_LIMIT_S, "the producer does not end")
        producing.result()
        self._until(cluster.is_in_sync, END_LIMIT_S, "the nodes do not come back")
        self.orders.drains = True
        self._until(self._is_drained, DRAIN_LIMIT_S, "not everything is delivered")
        for node_id in IDS:  # all state is loaded anew
            cluster.kill(node_id)
            cluster.start(node_id)
        self._until(cluster.is_in_sync, END_LIMIT_S, "the nodes do not come back")
        wait_s = simulation.now + ANEW_S
        self._until(lambda: simulation.now > wait_s, END_LIMIT_S, "")
        self._until(self._is_drained, DRAIN_LIMIT_S, "not everything is delivered again")
        self.orders.ends = True
        self._until(
            lambda: all(task.done() for task in self.workers.values()),
            END_LIMIT_S,
            "the members do not end",
        )
        for task in self.workers.values():
            task.result()
        ending = self.host.loop.create_task(self._finish())
        self._until(ending.done, END_LIMIT_S, "the logs cannot be read")
        ending.result()

    def _until(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        run_until(
            self.simulation,
            condition,
            limit_s,
            lambda: f"{otherwise}: {self._positions()}\n{self.cluster.describe()}",
            lambda: self.checker.first,
        )

    def told(self) -> str:
        """What happened, in a line."""
        plan = self.plan
        return (
            f"{self.simulation.now:.0f} s, {self.simulation.events} events, {self.deeds} deeds, "
            f"faults {self.faults.counts}, {self.checker.seen}, "
            f"{sorted(set(self.checker.unburied.values()))}, "
            f"committed {plan.is_committed}, copies {plan.copies}, retained {plan.is_retained}"
        )

    # -- before and while

    async def _prepare(self) -> None:
        while True:
            try:
                await asked(self.host, self._make_topics)
                await self.writer.refresh([TOPIC])
                return
            except (ClientError, Retry):
                await asyncio.sleep(0.2)

    async def _make_topics(self, client: Client) -> None:
        admin = Admin(client)
        known = {topic.name for topic in await admin.topics.listed()}
        if TOPIC not in known:
            await admin.topics.create(TOPIC, partitions=PARTITIONS)
        if DEAD not in known and self.below(4):
            configs = {"errors.deadletterqueue.group.enable": "true"}
            await admin.topics.create(DEAD, partitions=DEAD_PARTITIONS, configs=configs)
        await admin.configs.alter(Resource.GROUP, GROUP, self._group_configs())

    def _group_configs(self) -> Mapping[str, str]:
        return {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(self.plan.lock_ms),
            "share.delivery.count.limit": str(LIMITS[0]),
            "share.isolation.level": (
                "read_committed" if self.plan.is_committed else "read_uncommitted"
            ),
            "errors.deadletterqueue.topic.name": DEAD,
            "errors.deadletterqueue.copy.record.enable": str(self.plan.copies).lower(),
        }

    def _begin_worker(self, at: int) -> None:
        host = self.simulation.host(f"worker-{at}")
        worker = Worker(host, GROUP, TOPIC, self.checker, self.orders, limited=at % 2 == 0)
        self.workers[at] = host.loop.create_task(worker.run())

    def _values(self) -> list[bytes]:
        count = 1 + self.below(4)
        self.sequence += count
        return [b"%d" % (self.sequence - at) for at in range(count)]

    async def _produce(self) -> None:
        while self.is_producing:
            try:
                if self.plan.is_committed and self.below(2):
                    await self._transaction()
                else:
                    await asked(self.host, self._send)
            except (ClientError, Retry):
                pass
            await self.writer.pause(0.4)
        while self.plan.is_committed:  # what is open is aborted
            try:
                await self._identify()
                return
            except Retry:
                await self.writer.pause()

    async def _send(self, client: Client) -> None:
        await Producer(client).send(TOPIC, [Outgoing(value=value) for value in self._values()])

    # -- transactions

    async def _identify(self) -> tuple[int, int]:
        request = m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
        answer = await self.writer.ask_coordinator(1, "t", request, 4)
        _check(answer.error_code, lambda: self.writer.forget_coordinator(1, "t"))
        return answer.producer_id, answer.producer_epoch

    async def _transaction(self) -> None:
        producer_id, epoch = await self._identify()
        index = self.below(PARTITIONS)
        batch = build_batch(
            [
                Record(timestamp=self.host.clock.wall_ms(), key=None, value=value, headers=[])
                for value in self._values()
            ],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
        shape = m.ProduceRequest
        data = shape.PartitionProduceData(index=index, records=bytes(batch))
        request = shape(
            transactional_id="t",
            acks=-1,
            timeout_ms=3000,
            topic_data=[shape.TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        address, _ = await self.writer.leader(TOPIC, index)
        try:
            answer = await self.writer.ask(address, request, 12)
        except Retry:
            self.writer.forget_leader(TOPIC, index)
            raise
        code = answer.responses[0].partition_responses[0].error_code
        _check(code, lambda: self.writer.forget_leader(TOPIC, index))
        await self.writer.pause(0.3)
        end = m.EndTxnRequest(
            transactional_id="t",
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.below(3) > 0,
        )
        ended = await self.writer.ask_coordinator(1, "t", end, 5)
        _check(ended.error_code, lambda: self.writer.forget_coordinator(1, "t"))

    # -- the operator

    async def _operate(self, end_s: float) -> None:
        acts = {
            "move": self._move,
            "move records": lambda: self._move((TOPIC,)),
            "vanish": self._vanish,
            "delete": self._delete,
            "configure": self._configure,
            "kill while burying": self._kill_while_burying,
            "freeze a leader": self._freeze_leader,
        }
        while self.simulation.now < end_s:
            await asyncio.sleep(self.simulation.uniform(0.3, 1.5))
            if not self.plan.deeds:
                continue
            try:
                await acts[self.plan.deeds[self.below(len(self.plan.deeds))]]()
                self.deeds += 1
            except (ClientError, Retry):
                await self.client.pause()

    async def _move(
        self, topics: tuple[str, ...] = (TOPIC, "__share_group_state", "__consumer_offsets", DEAD)
    ) -> None:
        """Another replica leads a partition: of records, of their state, of groups."""
        topic, index = topics[self.below(len(topics))], self.below(2)
        replicas = list(IDS)
        for at in range(2, 0, -1):
            other = self.below(at + 1)
            replicas[at], replicas[other] = replicas[other], replicas[at]
        await lead_by(self.client, topic, index, replicas)

    async def _vanish(self) -> None:
        """A member's process ends, or its machine; another begins in its place."""
        at = self.below(WORKERS)
        host = self.simulation.host(f"worker-{at}")
        host.crash(power_loss=self.below(2) == 0)
        await asyncio.sleep(self.simulation.uniform(0.1, 2.0))
        host.restart()
        self._begin_worker(at)

    async def _delete(self) -> None:
        """Records up to some offset are deleted."""
        index = self.below(PARTITIONS)
        ends = [
            partition.log.high_watermark
            for node in self.cluster.nodes.values()
            for partition in node.replicas
            if (partition.topic, partition.index) == (TOPIC, index) and partition.log is not None
        ]
        offset = max(0, max(ends, default=0) - self.below(12))
        checker = self.checker
        checker.deleted_asked[index] = max(offset, checker.deleted_asked.get(index, 0))
        shape = m.DeleteRecordsRequest
        asked = shape.DeleteRecordsPartition(partition_index=index, offset=offset)
        request = shape(
            topics=[shape.DeleteRecordsTopic(name=TOPIC, partitions=[asked])], timeout_ms=2000
        )
        await self.client.refresh([TOPIC])
        address, _ = await self.client.leader(TOPIC, index)
        answer = (await self.client.ask(address, request, 2)).topics[0].partitions[0]
        if not answer.error_code and self._have_deleted(index, answer.low_watermark):
            checker.deleted[index] = max(answer.low_watermark, checker.deleted.get(index, 0))

    def _have_deleted(self, index: int, offset: int) -> bool:
        """Whether every replica has deleted up to `offset`. As in Apache Kafka the answer waits
        only for those that are not fenced: another one may lead later, and know nothing of it."""
        starts = [
            partition.log.log_start_offset
            for node in self.cluster.nodes.values()
            for partition in node.replicas
            if (partition.topic, partition.index) == (TOPIC, index) and partition.log is not None
        ]
        return len(starts) == len(IDS) and min(starts) >= offset

    def _leading(self, is_meant: Callable[[LedPartition], bool]) -> list[int]:
        """The nodes that lead such a share partition."""
        return [
            node_id
            for node_id, node in self.cluster.nodes.items()
            for partition in node.replicas
            if partition.topic == TOPIC and partition.is_leader
            for led in [
                node.coordinators.shares.partitions.led(GROUP, partition.topic_id, partition.index)
            ]
            if led is not None and is_meant(led)
        ]

    async def _kill_while_burying(self) -> None:
        """A leader ends while a dead letter of it is on its way."""
        for _ in range(400):
            await asyncio.sleep(0.0005)
            found = self._leading(lambda led: led._letters_under_way > 0)
            if found:
                self.cluster.kill(found[0])
                await asyncio.sleep(0.5)
                self.cluster.start(found[0])
                await asyncio.sleep(2)
                return

    async def _freeze_leader(self) -> None:
        """A leader does nothing until others lead, and then goes on."""
        found = self._leading(lambda led: led.state.next_deadline_ms() is not None)
        if found:
            await self.faults.frozen(found[self.below(len(found))], 6.0, 8.0)
            await asyncio.sleep(2)

    async def _configure(self) -> None:
        if self.plan.is_retained and self.below(2):
            kind, name = Resource.TOPIC, TOPIC
            changes = {"retention.bytes": "400" if self.below(2) else "-1"}
        else:
            kind, name = Resource.GROUP, GROUP
            lock_ms = LOCKS_MS[self.below(2)]
            self.orders.lock_s = lock_ms / 1000
            changes = {
                "share.record.lock.duration.ms": str(lock_ms),
                "share.delivery.count.limit": str(LIMITS[self.below(2)]),
            }
        await asked(self.world, lambda client: Admin(client).configs.alter(kind, name, changes))

    # -- the end

    def _positions(self) -> dict[int, tuple[int, int, bool]]:
        """partition -> (start of what is left, end of the log, whether anything is under way), as
        the leaders know it."""
        found: dict[int, tuple[int, int, bool]] = {}
        for node in self.cluster.nodes.values():
            for partition in node.replicas:
                if partition.topic != TOPIC or not partition.is_leader or partition.log is None:
                    continue
                led = node.coordinators.shares.partitions.led(
                    GROUP, partition.topic_id, partition.index
                )
                if led is not None and led.failure is None and led.state.is_active:
                    busy = bool(led._is_writing or led._letters_under_way)
                    end = partition.log.last_stable_offset
                    if partition.log.log_start_offset == end:
                        continue  # nobody looks for records where there are none
                    found[partition.index] = led.state.start_offset, end, busy
                elif partition.log.log_start_offset < partition.log.last_stable_offset:
                    found[partition.index] = -1, partition.log.last_stable_offset, True
        return found

    def _is_drained(self) -> bool:
        if not self.cluster.is_in_sync():
            return False
        return all(start >= end and not busy for start, end, busy in self._positions().values())

    async def _finish(self) -> None:
        while True:
            try:
                logs, letters = await asked(self.host, self._read)
                break
            except ClientError:
                await asyncio.sleep(0.2)
        self.checker.finish(logs, letters)

    async def _read(self, client: Client) -> tuple[dict[int, Log], list[DeadLetter]]:
        """What there is at the end."""
        admin = Admin(client)
        starts = await admin.offsets.of_topic(TOPIC, EARLIEST)
        seen = await read_topic(client, TOPIC, committed_only=self.plan.is_committed)
        logs = {
            index: Log(starts[index], {record.offset: record.value or b"" for record in records})
            for index, records in seen.items()
        }
        letters: list[DeadLetter] = []
        if DEAD in {topic.name for topic in await admin.topics.listed()}:
            for records in (await read_topic(client, DEAD, committed_only=False)).values():
                letters += map(_letter, records)
        return logs, letters


def _check(code: int, otherwise: Callable[[], None]) -> None:
    if code:
        otherwise()
        raise Retry(str(code))


def _letter(record: Record) -> DeadLetter:
    headers = {str(key): value or b"" for key, value in record.headers}
    place: Place = int(headers[named.PARTITION]), int(headers[named.OFFSET])
    return DeadLetter(place, int(headers[named.DELIVERY_COUNT]), record.value)


def main() -> int:
    from tests.sim.share_cluster_mutations import AIMED, MUTATIONS

    return run_by_command(ShareClusterHistory, MUTATIONS, AIMED)


if __name__ == "__main__":
    sys.exit(main())
