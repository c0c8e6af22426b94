"""Brokers and an application in one simulated world: what a test sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster as Client
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.config.errors import ConfigError
from kwire.testing.brokers.runner import Setting, setting_texts
from kwire.testing.records import Record
from kwire.testing.simulation import faults as acts
from kwire.testing.simulation import plans
from kwire.testing.simulation.history import History, without_addresses
from kwire.testing.simulation.leader_moves import Led, move_leader
from kwire.testing.simulation.links import Cut
from kwire.testing.simulation.nodes import BROKER_PORT, SimulatedNodes
from kwire.testing.simulation.options import Options
from kwire.testing.simulation.processes import Process, resolve
from kwire.testing.simulation.scheduler import Simulation
from kwire.testing.topics import records_of

T = TypeVar("T")

CLIENT = "app"
RESTART_AFTER_S = 1.0
IN_SYNC_LIMIT_S = 180.0
LOOK_S = 0.1
MOVE_LIMIT_S = 30.0
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "500",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1500",
    "replica.lag.time.max.ms": "6000",
    "replica.fetch.wait.max.ms": "2000",
    "metadata.max.idle.interval.ms": "5000",
}
"""Beside Kafka's defaults: a broker that is dead is noticed in seconds, and an idle cluster does
little."""

End = int | str | Process
"""A broker by its id, a process by itself or its name; "app" is the test."""


class SimulatedCluster:
    """Brokers 1 to `brokers`, and the loop of the test, `app`, in one world with one clock.

    What is done to it, and what it notices, is in `history`. Made by `simulated_cluster` and
    `simulate`.
    """

    def __init__(self, options: Options, simulation: Simulation) -> None:
        self.seed = options.seed
        self.options = options
        self.simulation = simulation
        self.history = History()
        self.processes: dict[str, Process] = {}
        self.kept: list[asyncio.Task[object]] = []
        self.operations_begun: dict[int, bool] = {}
        count = options.brokers
        copies = str(min(3, count))
        replicas = {
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "share.coordinator.state.topic.replication.factor": copies,
            "min.insync.replicas": "2" if count > 2 else "1",
            "transaction.state.log.min.isr": "2" if count > 2 else "1",
            "share.coordinator.state.topic.min.isr": "2" if count > 2 else "1",
        }
        settings = {**SETTINGS, **replicas, **setting_texts(options.config)}
        self.nodes = SimulatedNodes(simulation, range(1, count + 1), settings)
        try:
            self.nodes.config(1)
        except ConfigError as error:
            raise ValueError(f"config: {error}") from None
        self.host = simulation.host(CLIENT, is_application=True)
        self.outside = simulation.host("world").loop
        simulation.told = self._told
        plan = plans.drawn(options.seed, options.minutes * 60, options.kinds)
        if options.faults is not None:
            plan = tuple(one for one in plan if one.number in options.faults)
        self.faults = acts.Faults(self, plan)
        self._nemesis: asyncio.Task[None] | None = None
        self._began_s = 0.0
        self._client: Client | None = None

    # -- beginning and end, called by who runs it

    def begin(self) -> None:
        """The brokers run and are in sync; the faults are to come."""
        self.nodes.format()
        for node_id in self.nodes.ids:
            self.nodes.start(node_id)
        self.simulation.run_until(self.nodes.is_in_sync, limit_s=IN_SYNC_LIMIT_S)
        self._began_s = self.simulation.now
        self._nemesis = self.outside.create_task(self._let_faults_happen())

    async def _let_faults_happen(self) -> None:
        until_s = self.options.minutes * 60 if self.faults.plan else 0.0
        await self.faults.run(self._began_s, until_s)
        if self.faults.plan:
            self.note("the faults are over")
            acts.heal(self.nodes, list(self.processes.values()))

    def forget(self) -> None:
        """Let go of what ran, when the run is over; `history` and `processes` stay."""
        self._nemesis = self._client = None
        for process in self.processes.values():
            process.forget()

    # -- what it is

    @property
    def bootstrap(self) -> str:
        """host:port of all brokers, as clients want it."""
        return ",".join(f"n{node_id}:{BROKER_PORT}" for node_id in self.nodes.ids)

    @property
    def brokers(self) -> tuple[int, ...]:
        """Their ids."""
        return self.nodes.ids

    @property
    def now(self) -> float:
        """Simulated seconds since the start."""
        return self.simulation.now

    @property
    def client_name(self) -> str:
        return CLIENT

    def fingerprint(self) -> str:
        """A digest of all that has happened: the same for a seed in any process."""
        return self.simulation.fingerprint()

    def note(self, what: str, who: str = CLIENT) -> None:
        """Add a line to the history."""
        self.simulation.record(who, without_addresses(what))

    def fail(self, message: str, error: BaseException | None = None) -> None:
        """End the run as failed; with the error of a process."""
        self.simulation.fail(message, error)

    def keep(self, tasks: list[asyncio.Task[object]]) -> None:
        """Of a process that was killed: they run no line more until the run is over."""
        self.kept += tasks

    def _told(self, who: str, what: str) -> None:
        if who != "network":
            self.history.add(self.simulation.now, who, what)

    # -- the application

    def process(
        self,
        main: Callable[..., Awaitable[object]],
        *arguments: object,
        name: str | None = None,
        restart_after_s: float | None = RESTART_AFTER_S,
    ) -> Process:
        """Run `main(*arguments)` as a process of its own, from now on; drawn faults kill, pause
        and stop it, and it starts anew.

        An error ends it too, and it starts again after `restart_after_s`; with None the error ends
        the run. Processes reach each other by their names: `asyncio.open_connection("api", 80)`.
        """
        if not callable(main) or asyncio.iscoroutine(main):
            raise ValueError(f"process: {main!r}; accepted is a function that gives a coroutine")
        base = name or getattr(main, "__name__", "process").strip("_")
        unique, number = base, 2
        while unique in self.processes or unique in self.simulation.hosts:
            unique, number = f"{base}-{number}", number + 1
        host = self.simulation.host(unique, is_application=True)
        made = Process(self, host, lambda: main(*arguments), restart_after_s)
        self.processes[unique] = made
        made.start()
        return made

    def operations(self, count: int) -> Iterator[int]:
        """The numbers 0 to `count` - 1, as many of them as the run has: a run that fails is made
        smaller by leaving out some. For what a workload does: `for n in cluster.operations(100)`.
        """
        if not isinstance(count, int) or count < 0:
            raise ValueError(f"operations: {count!r}; accepted are numbers from 0 on")
        for number in range(count):
            if self.options.operations is None or number in self.options.operations:
                self.operations_begun[number] = True
                yield number

    # -- faults on command

    def kill(self, broker: int) -> None:
        """End its process at this instant; what it wrote stays."""
        self.note(f"n{self._id(broker)} is killed", "world")
        self.nodes.kill(broker)

    def power_loss(self, broker: int) -> None:
        """Its machine loses power, and part of what was not synced."""
        self.note(f"n{self._id(broker)} loses power", "world")
        self.nodes.kill(broker, power_loss=True)

    async def stop(self, broker: int) -> None:
        """Stop it in order."""
        self.note(f"n{self._id(broker)} is stopped in order", "world")
        await self._outside(self.nodes.stop(broker))

    def start(self, broker: int) -> None:
        """Start it; nothing while it runs. It serves some moments later."""
        if not self.nodes.is_up(self._id(broker)):
            self.nodes.start(broker)

    async def restart(self, broker: int) -> None:
        """Stop it in order and start it."""
        await self.stop(broker)
        self.start(broker)

    def pause(self, broker: int) -> None:
        """It keeps its connections and does nothing until `resume`."""
        host = self.nodes.hosts[self._id(broker)]
        if host.up and host.loop.held is None:
            host.freeze()

    def resume(self, broker: int) -> None:
        """End a pause."""
        host = self.nodes.hosts[self._id(broker)]
        if host.up and host.loop.held is not None:
            host.thaw()

    def partition(self, one: End, other: End | None = None, *, one_way: bool = False) -> None:
        """Nothing passes between the two, or between `one` and all others; `one_way`: nothing
        that `one` sends. It arrives when the link is healed, if its connection still is there."""
        for pair in self._pairs(one, other, one_way=one_way):
            self.simulation.network.block(*pair)
        self.note(f"partition of {self._name(one)} and {self._names(other)}", "world")

    def heal(self, one: End | None = None, other: End | None = None) -> None:
        """Everything passes again, at its usual speed: between the two, of one, or everywhere."""
        network = self.simulation.network
        if one is None:
            network.heal()
            network.links.heal_all()
        else:
            for pair in self._pairs(one, other, one_way=False):
                network.heal(*pair)
                network.links.heal(*pair)
        self.note("links are healed", "world")

    def slow(self, one: End, other: End | None = None, *, delay_s: float = 1.0) -> None:
        """What passes between the two takes up to `delay_s` longer, each way."""
        if not delay_s > 0:
            raise ValueError(f"delay_s={delay_s!r}: accepted are seconds above 0")
        for pair in self._pairs(one, other, one_way=False):
            self.simulation.network.links.slow(*pair, delay_s / 10, delay_s)
        self.note(f"{self._name(one)} and {self._names(other)}: up to {delay_s} s slower", "world")

    def cut_reply(self, broker: int, client: End = CLIENT, *, after: int = 0) -> None:
        """The reply after `after` more of them is cut in the middle, with its connection."""
        self._arm(broker, client, after, Cut.MIDDLE, "is cut in the middle")

    def lose_reply(self, broker: int, client: End = CLIENT, *, after: int = 0) -> None:
        """The request is carried out; its reply is lost, and its connection."""
        self._arm(broker, client, after, Cut.LOST, "is lost")

    def _arm(self, broker: int, client: End, after: int, how: Cut, what: str) -> None:
        source, target = f"n{self._id(broker)}", self._name(client)

        def told() -> None:
            self.note(f"a reply of {source} to {target} {what}", "world")

        self.simulation.network.links.cut(source, target, after, how, told)

    def skew_clock(self, one: End, skew_ms: int) -> None:
        """Its wall clock is wrong by so much."""
        self.simulation.host(self._name(one)).clock_skew_ms = skew_ms
        self.note(f"the clock of {self._name(one)} is wrong by {skew_ms} ms", "world")

    def slow_disk(self, broker: int, delay_s: float) -> None:
        """Each access takes up to `delay_s` longer; 0 ends it."""
        self.nodes.hosts[self._id(broker)].disk_delay_s = delay_s
        self.note(f"the disk of n{broker} is up to {delay_s} s slower", "world")

    def full_disk(self, broker: int, free_bytes: int | None = 0) -> None:
        """So much space is left; None ends it."""
        disk = self.nodes.hosts[self._id(broker)].disk
        disk.capacity_bytes = None if free_bytes is None else disk.used_bytes() + free_bytes
        self.note(f"the disk of n{broker} has {free_bytes} bytes left", "world")

    async def faults_over(self) -> None:
        """Until the drawn faults are over, everything is healed, every broker runs and is in
        sync, and processes that are wanted run."""
        if self._nemesis is not None:
            await self._outside_done(self._nemesis)
        await self.in_sync()

    async def in_sync(self) -> None:
        """Until all brokers that should run do, with all replicas in sync."""
        end_s = self.now + IN_SYNC_LIMIT_S
        while not self.nodes.is_in_sync():
            if self.now > end_s:
                described = self.nodes.describe()
                raise AssertionError(f"not in sync within {IN_SYNC_LIMIT_S:.0f} s\n{described}")
            await asyncio.sleep(LOOK_S)

    # -- what is in it

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replicas: int = -1,
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        """Create a topic; -1 replicas are three, or as many as there are brokers."""
        texts = setting_texts(config or {})

        async def create(client: Client) -> None:
            await Admin(client).topics.create(
                name, partitions=partitions, replication=replicas, configs=texts
            )

        await self._ask(create)

    async def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True
    ) -> list[Record]:
        """What is in a topic, by partition and offset; of a topic that does not exist, nothing.
        Not what transactions have not committed, unless `committed=False`."""

        async def read(client: Client) -> list[Record]:
            return await records_of(client, topic, partition, committed)

        return await self._ask(read)

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Who leads a partition, as the brokers know it."""
        for node in self.nodes.nodes.values():
            known = node.image.topics.by_name.get(topic)
            if known is not None and partition in known.partitions:
                leader = known.partitions[partition].leader
                return leader if leader >= 0 else None
        return None

    def leaders(self, topic: str | None = None) -> Sequence[int]:
        """Who leads partitions of a topic, or of all that are not internal."""
        found: dict[int, bool] = {}
        for node in self.nodes.nodes.values():
            for known in node.image.topics.by_name.values():
                if known.name == topic or (topic is None and not known.name.startswith("__")):
                    for each in known.partitions.values():
                        if each.leader >= 0:
                            found[each.leader] = True
        return sorted(found)

    def led(self) -> Sequence[Led]:
        """Every partition that has a leader, internal ones too, as some broker knows it."""
        for node in self.nodes.nodes.values():
            return [
                Led(
                    name,
                    index,
                    each.leader,
                    tuple(one for one in each.isr if one != each.leader),
                    tuple(each.replicas),
                )
                for name, topic in sorted(node.image.topics.by_name.items())
                for index, each in sorted(topic.partitions.items())
                if each.leader >= 0
            ]
        return []

    async def move_leader(self, led: Led, to: int) -> None:
        """Have another replica lead a partition; nothing where no controller answers in time."""
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(MOVE_LIMIT_S):
                await self._asked(lambda client: move_leader(client, led, to))

    # -- inside

    def _id(self, broker: int) -> int:
        if broker not in self.nodes.ids:
            raise ValueError(f"broker {broker!r}: accepted are {', '.join(map(str, self.brokers))}")
        return broker

    def _name(self, end: End) -> str:
        if isinstance(end, Process):
            return end.name
        if isinstance(end, str):
            if end not in self.processes and end != CLIENT:
                known = ", ".join(map(repr, [CLIENT, *self.processes]))
                raise ValueError(f"{end!r} is no process; accepted are {known} and ids of brokers")
            return end
        return f"n{self._id(end)}"

    def _names(self, end: End | None) -> str:
        return "all others" if end is None else self._name(end)

    def _pairs(self, one: End, other: End | None, *, one_way: bool) -> list[tuple[str, str]]:
        name = self._name(one)
        others = [self._name(other)] if other is not None else self._everyone_but(name)
        pairs = [(name, each) for each in others]
        return pairs if one_way else pairs + [(each, name) for each in others]

    def _everyone_but(self, name: str) -> Iterable[str]:
        every = [*(f"n{node_id}" for node_id in self.nodes.ids), CLIENT, *self.processes]
        return [each for each in every if each != name]

    async def _ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Asked by an observer, whom no fault reaches."""
        return await self._outside(self._asked(work))

    async def _asked(self, work: Callable[[Client], Awaitable[T]]) -> T:
        if self._client is None:
            world = self.simulation.host("world")
            settings = ConnectionSettings(self.bootstrap, "kwire-simulation", retry_timeout_s=60.0)
            self._client = Client(
                settings, loop=self.outside, random=world.random, clock=world.clock
            )
        return await work(self._client)

    async def _outside(self, work: Awaitable[T]) -> T:
        async def run() -> T:
            return await work

        task = self.outside.create_task(run())
        await self._outside_done(task)
        return task.result()

    async def _outside_done(self, task: asyncio.Task[T]) -> None:
        """Wait on this loop for a task of the world's."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        task.add_done_callback(lambda _: resolve(done))
        await done
