"""Redrives of dead letters in a cluster of three under failures: each original once more, no more.

Two programs redrive the same group at once, again and again, while nodes are killed, lose power,
are cut off and stopped, leaders move, and the programs end or stand still between any two of their
requests. New letters come meanwhile. Then everything heals, one redrive goes to its end, and what
is committed in the topic of the originals is compared with the letters.

    python -m tests.sim.share_redrive SEED [RUNS] [--mutation NAME]

prints a line for each seed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from kwire.cli.dead_letters import redriven
from kwire.client.admin import Admin
from kwire.client.cluster import Cluster as Client
from kwire.client.dead_letters.filters import EVERYTHING
from kwire.client.dead_letters.redrive import Sent, Told
from kwire.client.errors import ClientError
from kwire.client.producer import Outgoing, Producer
from kwire.client.transactional_producer import TransactionalProducer
from kwire.protocol import dead_letter_headers as named
from kwire.protocol.records import Record
from kwire.testing.simulation import SimulatedHost, Simulation
from tests.sim.checkers import Checkers
from tests.sim.client import Retry, RoutingClient
from tests.sim.cluster import IDS, Cluster
from tests.sim.driving import end_all, run_until
from tests.sim.faults import Faults, Plan
from tests.sim.model import Violation
from tests.sim.mutations import applied
from tests.sim.share_histories import KINDS, lead_by, read_topic, run_by_command
from tests.sim.share_worker import asked

TOPIC, DEAD, GROUP = "jobs", "dlq.jobs", "workers"
PARTITIONS, PROGRAMS = 2, 2
ORIGINALS, BURIED_FIRST = 60, 20
START_LIMIT_S, END_LIMIT_S = 60.0, 300.0
SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
Place = tuple[int, int]
"""(partition, offset)."""


class RedrivePlan:
    """What a history has: kinds of faults, how long; whether programs end on their way, and whether
    they stand still there."""

    def __init__(
        self,
        kinds: tuple[str, ...] = (),
        *,
        length_s: float = 12.0,
        ends: bool = True,
        stands: bool = True,
    ) -> None:
        self.kinds = kinds
        self.length_s = length_s
        self.ends = ends
        self.stands = stands

    @classmethod
    def drawn(cls, below: Callable[[int], int]) -> RedrivePlan:
        """One to three kinds of faults; in a few histories none."""
        kinds = tuple(KINDS[below(len(KINDS))] for _ in range(below(4)))
        return cls(tuple(dict.fromkeys(kinds)), ends=below(4) > 0, stands=below(2) > 0)


class RedriveHistory:
    """One seed's history; `run` raises Violation for a broken promise."""

    def __init__(self, seed: int, plan: RedrivePlan | None = None) -> None:
        self.simulation = simulation = Simulation(seed, keep_transcript=False)
        self.below = simulation.random.below
        self.plan = plan or RedrivePlan.drawn(self.below)
        self.cluster = Cluster(simulation, SETTINGS)
        self.faults = Faults(self.cluster, Plan(self.plan.kinds, pause_s=(0.3, 3.0)), Checkers())
        self.host = simulation.host("clients")
        self.world = simulation.host("others")
        self.client = RoutingClient(self.world, "operator")
        self.programs: dict[int, asyncio.Task[None]] = {}
        self.doomed: list[SimulatedHost] = []
        self.first: Violation | None = None
        self.sent: dict[Place, tuple[Place, Place]] = {}  # letter: its origin, where it is told
        self.unburied: list[Place] = []
        self.ends = False
        self.seen = dict.fromkeys(("ended", "frozen", "failed", "done", "letters", "moves"), 0)

    # -- the run

    def run(self) -> None:
        """Play it to its end; raises Violation."""
        try:
            with applied("observe", {"observe": self._observe}):
                self._run()
        finally:
            end_all(self.cluster)

    def _run(self) -> None:
        cluster, simulation = self.cluster, self.simulation
        cluster.format()
        for node_id in IDS:
            cluster.start(node_id)
        self._until(cluster.is_in_sync, START_LIMIT_S, "the cluster does not start")
        self._do(self._prepare(), "no originals")
        self._until(cluster.is_in_sync, START_LIMIT_S, "the topics do not come up")
        end_s = simulation.now + self.plan.length_s
        for at in range(PROGRAMS):
            self._begin_program(at)
        burying = self.host.loop.create_task(self._bury_more(end_s))
        deeds = self.world.loop.create_task(self._operate(end_s))
        nemesis = simulation.host("world").loop.create_task(self.faults.run(end_s))
        tasks = (burying, deeds, nemesis)
        self._until(
            lambda: all(task.done() for task in tasks), END_LIMIT_S, "the failures do not end"
        )
        for task in tasks:
            task.result()
        self._until(cluster.is_in_sync, END_LIMIT_S, "the nodes do not come back")
        self.ends = True
        programs = self.programs.values()
        self._until(
            lambda: all(task.done() for task in programs), END_LIMIT_S, "the redrives do not end"
        )
        for task in programs:
            task.result()
        self._do(self._redrive_all(), "the last redrive does not end")
        self._do(self._finish(), "the logs cannot be read")

    def _do(self, work: Any, otherwise: str) -> None:
        task = self.host.loop.create_task(work)
        self._until(task.done, END_LIMIT_S, otherwise)
        task.result()

    def _until(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        run_until(
            self.simulation,
            condition,
            limit_s,
            lambda: f"{otherwise}: {self.seen}\n{self.cluster.describe()}",
            lambda: self.first,
        )

    def told(self) -> str:
        """What happened, in a line."""
        return (
            f"{self.simulation.now:.0f} s, {self.simulation.events} events, "
            f"faults {self.faults.counts}, {len(self.sent)} sent, {self.seen}"
        )

    # -- before

    async def _prepare(self) -> None:
        await self._again(self._make_topics)
        await self._again(self._produce)
        for place in [self.unburied.pop() for _ in range(BURIED_FIRST)]:
            await self._again(lambda client, place=place: self._bury(client, place))

    async def _again(self, work: Callable[[Client], Any]) -> Any:
        while True:
            try:
                return await asked(self.host, work)
            except ClientError:
                await asyncio.sleep(0.2)

    async def _make_topics(self, client: Client) -> None:
        admin = Admin(client)
        known = {topic.name for topic in await admin.topics.listed()}
        for topic in (TOPIC, DEAD):
            if topic not in known:
                await admin.topics.create(topic, partitions=PARTITIONS)

    async def _produce(self, client: Client) -> None:
        producer = Producer(client)
        for at in range(ORIGINALS):
            await producer.send(TOPIC, [Outgoing(value=b"%d" % at, partition=at % PARTITIONS)])
        for index, records in (await read_topic(client, TOPIC, committed_only=True)).items():
            self.unburied += [(index, record.offset) for record in records]
        for at in range(len(self.unburied) - 1, 0, -1):
            other = self.below(at + 1)
            self.unburied[at], self.unburied[other] = self.unburied[other], self.unburied[at]

    async def _bury(self, client: Client, place: Place) -> None:
        """A dead letter, as a leader writes it."""
        headers: list[tuple[str | bytes, bytes | None]] = [
            (named.TOPIC, TOPIC.encode()),
            (named.PARTITION, b"%d" % place[0]),
            (named.OFFSET, b"%d" % place[1]),
            (named.GROUP, GROUP.encode()),
            (named.DELIVERY_COUNT, b"5"),
            (named.MESSAGE, b"rejected"),
        ]
        letter = Outgoing(headers=tuple(headers), partition=self.below(PARTITIONS))
        await Producer(client).send(DEAD, [letter])

    # -- while

    async def _bury_more(self, end_s: float) -> None:
        """Each one once: nobody knows what has become of one without an answer."""
        while self.unburied and self.simulation.now < end_s:
            place = self.unburied.pop()
            try:
                await asked(self.host, lambda client, place=place: self._bury(client, place))  # type: ignore[misc]
            except ClientError:
                pass
            await asyncio.sleep(self.simulation.uniform(0.0, 0.6))

    def _begin_program(self, at: int) -> None:
        host = self.simulation.host(f"program-{at}")
        self.programs[at] = host.loop.create_task(self._program(host))

    async def _program(self, host: SimulatedHost) -> None:
        while not self.ends:
            count_max = (0, 1, 3)[host.random.below(3)]
            try:
                await asked(host, lambda client: self._redrive(client, count_max))  # noqa: B023
                self.seen["done"] += 1
            except ClientError:
                self.seen["failed"] += 1
            await asyncio.sleep(host.random.below(1000) / 1500)

    async def _redrive(self, client: Client, count_max: int = 0) -> None:
        await redriven(
            client,
            GROUP,
            DEAD,
            EVERYTHING,
            is_dry=False,
            count_max=count_max,
            trusts_offsets=False,
            tell=self._tells,
        )

    def _tells(self, topic: str, index: int, told: Told) -> None:
        if not isinstance(told, Sent):
            self._fail(f"{told} although nothing was taken and everything is chosen")
            return
        letter = index, told.letter.offset
        origin = told.letter.origin
        place = origin.partition, told.offset
        if letter in self.sent:
            self._fail(f"letter {letter} is sent to {place}, and was to {self.sent[letter]}")
        self.sent[letter] = (origin.partition, origin.offset), place

    def _fail(self, message: str) -> None:
        if self.first is None:
            self.first = Violation(message)

    def _observe(self, replace: Callable[[Any, str, Any], None]) -> None:
        """At times programs end or stand still, in the middle of what a transaction asks for."""
        for name in ("open", "send", "commit_offsets", "commit"):
            replace(TransactionalProducer, name, self._ending(getattr(TransactionalProducer, name)))

    def _ending(self, asks: Any) -> Any:
        async def ends_at_times(producer: Any, *arguments: Any, **named_ones: Any) -> Any:
            host = next(
                (
                    host
                    for host in self.simulation.hosts.values()
                    if host.loop is producer._cluster.loop and host.name.startswith("program")
                ),
                None,
            )
            plan = self.plan
            is_over = self.ends or not (plan.ends or plan.stands)
            if host is not None and not is_over and host.random.below(8) == 0:
                self.doomed.append(host)
            return await asks(producer, *arguments, **named_ones)

        return ends_at_times

    async def _operate(self, end_s: float) -> None:
        while self.simulation.now < end_s:
            await asyncio.sleep(self.simulation.uniform(0.0, 0.01))
            if self.doomed:
                host = self.doomed.pop()
                if not self.plan.ends or (self.plan.stands and self.below(2)):
                    await self._freeze_program(host)
                else:
                    await self._end_program(host)
                self.doomed.clear()
            elif self.below(400) == 0:
                await self._move()

    async def _end_program(self, host: SimulatedHost) -> None:
        if not host.up:
            return
        host.crash(power_loss=self.below(2) == 0)
        self.seen["ended"] += 1
        await asyncio.sleep(self.simulation.uniform(0.05, 0.5))
        host.restart()
        self._begin_program(int(host.name.rpartition("-")[2]))

    async def _freeze_program(self, host: SimulatedHost) -> None:
        host.freeze()
        self.seen["frozen"] += 1
        await asyncio.sleep(self.simulation.uniform(0.1, 2.0))
        host.thaw()

    async def _move(self) -> None:
        """Another broker leads a partition."""
        topics = (TOPIC, DEAD, "__transaction_state", "__consumer_offsets")
        topic, index = topics[self.below(len(topics))], self.below(2)
        replicas = list(IDS)
        first = self.below(len(replicas))
        replicas = replicas[first:] + replicas[:first]
        try:
            await lead_by(self.client, topic, index, replicas)
            self.seen["moves"] += 1
        except (ClientError, Retry):
            await self.client.pause()

    # -- the end

    async def _redrive_all(self) -> None:
        await self._again(self._redrive)

    async def _finish(self) -> None:
        letters, jobs = await self._again(self._read_both)
        self.seen["letters"] = sum(map(len, letters.values()))
        values = {(index, x.offset): x.value for index, found in jobs.items() for x in found}
        wanted = Counter(b"%d" % at for at in range(ORIGINALS))
        for records in letters.values():
            for record in records:
                headers = {str(key): value or b"" for key, value in record.headers}
                origin = int(headers[named.PARTITION]), int(headers[named.OFFSET])
                wanted[values[origin] or b""] += 1
        found = Counter(value or b"" for value in values.values())
        if found != wanted:
            raise Violation(f"too many: {found - wanted}, missing: {wanted - found}")
        for letter, (origin, place) in self.sent.items():
            if values.get(place) != values[origin]:
                raise Violation(f"letter {letter} is told to be at {place}: {values.get(place)!r}")

    @staticmethod
    async def _read_both(
        client: Client,
    ) -> tuple[dict[int, list[Record]], dict[int, list[Record]]]:
        letters = await read_topic(client, DEAD, committed_only=True)
        return letters, await read_topic(client, TOPIC, committed_only=True)


def main() -> int:
    from tests.sim.share_redrive_mutations import AIMED, MUTATIONS

    return run_by_command(RedriveHistory, MUTATIONS, AIMED)


if __name__ == "__main__":
    sys.exit(main())
