"""The history of a cluster from a seed: 60 simulated seconds of clients and faults, then the end.

    python -m tests.sim.history SEED [RUNS] [--mutation NAME] [--general] [--few-files]

prints a line for each seed: its fingerprint, what happened in it, and how it failed if it did. The
same seed gives the same history, byte for byte. With a mutation the faults are those aimed at it,
if there is such a plan. `--general` has the nodes answer every request the general way (ADR 55),
`--few-files` lets them have fewer files open than they have logs.
"""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kwire.log.segment.open_file_limit import OPEN_MIN
from kwire.node.node import Node
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.scheduler import SimulationError
from tests.sim.checkers import Checkers
from tests.sim.client import RoutingClient
from tests.sim.cluster import IDS, Cluster
from tests.sim.faults import Faults, Plan
from tests.sim.groups import REBALANCES_S, SESSIONS_S, ClassicMember, ConsumerMember, Group, Member
from tests.sim.model import Violation
from tests.sim.readers import COMMITTED, UNCOMMITTED, Reader
from tests.sim.workload import (
    SHORT_CONFIGS,
    SHORT_TOPIC,
    TOPICS,
    Actor,
    Administrator,
    IdempotentProducer,
    TransactionalProducer,
    create_topics,
)
from tests.sim.zombies import Zombie

LENGTH_S = 60.0
START_LIMIT_S = 30.0
FAULTS_UNTIL_S = 42.0
RECOVERY_LIMIT_S = 40.0
VOTE_AGAIN_S = 10.0
OPERATIONS_MIN = 500
FEW_FILES = 2 * OPEN_MIN


@dataclass
class Result:
    """What became of one seed."""

    seed: int
    fingerprint: str = ""
    violation: str | None = None
    operations: int = 0
    simulated_s: float = 0.0
    events: int = 0
    checks: int = 0
    real_s: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    transcript: list[str] = field(default_factory=list)

    def line(self) -> str:
        outcome = "ok" if self.violation is None else f"FAILED: {self.violation}"
        return (
            f"seed {self.seed}: {self.fingerprint} {self.operations} operations, "
            f"{self.simulated_s:.1f} s in {self.real_s:.1f} s, {self.events} events, "
            f"{self.checks} checks, faults {self.faults or 'none'}: {outcome}"
        )


class History:
    """One seed's history. `plan` says which faults there are; None draws one from the seed. No
    request takes a plain road if all go the `general` way. With `few_files` a node has fewer files
    open than it has logs."""

    def __init__(
        self,
        seed: int,
        plan: Plan | None = None,
        general: bool = False,
        *,
        few_files: bool = False,
    ) -> None:
        self.simulation = Simulation(seed)
        self.checkers = Checkers()
        self.plan = plan or Plan.drawn(self.simulation.random)
        roads = {"kwire.plain.requests.enable": "false"} if general else {}
        self.cluster = Cluster(self.simulation, {**self.plan.settings, **roads}, self._attach)
        for host in self.cluster.hosts.values():
            host.disk.descriptors_max = FEW_FILES if few_files else 0
        self.checkers.compacts = "log.roll.ms" in self.plan.settings
        self.checkers.life_of = lambda node_id: self.cluster.lives[node_id]
        self.checkers.now = lambda: self.simulation.now
        self.checkers.honest_node = self._honest_node
        self.checkers.running_node = lambda node_id: self.cluster.nodes.get(node_id)
        self.checkers.serving_node = self._serving_node
        self.faults = Faults(self.cluster, self.plan, self.checkers)
        self.actors: list[Actor] = []
        self.groups: list[Group] = []
        self.creator: RoutingClient | None = None
        self.seed = seed

    def _attach(self, node: Node) -> None:
        self.checkers.attach(node)

    def _honest_node(self, node_id: int) -> Node | None:
        """A node that runs and has lost nothing since everything was in sync."""
        if node_id in self.cluster.unclean and not self.plan.flushed:
            return None
        return self.cluster.nodes.get(node_id)

    def _serving_node(self, node_id: int) -> Node | None:
        """A node whose process runs and is not about to end."""
        cluster = self.cluster
        if not cluster.is_up(node_id) or node_id in cluster.stopping:
            return None
        return cluster.nodes[node_id]

    def run(self) -> Result:
        """Run it; never raises for a broken promise."""
        result = Result(self.seed)
        started = time.process_time()
        gc.disable()
        try:
            with self.checkers.watch():
                self._run()
        except (Violation, SimulationError) as error:
            result.violation = str(self.checkers.first or error)
        finally:
            self.close()
            gc.enable()
        simulation = self.simulation
        result.fingerprint = simulation.fingerprint()
        result.operations = self._operations()
        result.simulated_s, result.events = simulation.now, simulation.events
        result.checks, result.faults = self.checkers.checks, self.faults.counts
        result.real_s = time.process_time() - started
        result.transcript = simulation.transcript
        return result

    # -- the parts of it

    def begin(self) -> None:
        """The nodes run and are in sync."""
        self.cluster.format()
        for node_id in IDS:
            self.cluster.start(node_id)
        self.until(self.cluster.is_in_sync, START_LIMIT_S, "the cluster does not start")

    def _run(self) -> None:
        simulation, cluster = self.simulation, self.cluster
        self.begin()
        host = simulation.host("clients")
        self.creator = RoutingClient(host, "creator")
        creations = [host.loop.create_task(create_topics(self.creator, TOPICS))]
        short = RoutingClient(host, "creator of the short one")
        if self.checkers.compacts:
            creation = create_topics(short, {SHORT_TOPIC: 1}, SHORT_CONFIGS)
            creations.append(host.loop.create_task(creation))
        self.until(
            lambda: all(creation.done() for creation in creations),
            START_LIMIT_S,
            "the topics cannot be created",
        )
        short.close()
        self._make_actors()
        tasks = [actor.client.host.loop.create_task(actor.run()) for actor in self.actors]
        nemesis = simulation.host("world").loop.create_task(self.faults.run(FAULTS_UNTIL_S))
        self.until(nemesis.done, LENGTH_S + RECOVERY_LIMIT_S, "the faults do not end")
        nemesis.result()
        self.until(self._settles(), RECOVERY_LIMIT_S, "not everything is in sync after the faults")
        before = [actor.operations for actor in self.actors]
        end = max(LENGTH_S, simulation.now + 3)
        self.until(
            lambda: simulation.now >= end and self._operations() >= OPERATIONS_MIN,
            LENGTH_S,
            f"the clients do not get {OPERATIONS_MIN} answers",
        )
        writers = [a for a in self.actors if not isinstance(a, Reader)]
        self.until(
            lambda: all(
                actor.operations > before[i]
                for i, actor in enumerate(self.actors)
                if actor in writers
            ),
            RECOVERY_LIMIT_S,
            "a producer does not get on after the faults",
        )
        for actor in writers:
            actor.stop = True
        self.until(
            lambda: all(task.done() for task, a in zip(tasks, self.actors) if a in writers),
            RECOVERY_LIMIT_S,
            "a producer does not end",
        )
        self.until(self._all_read, RECOVERY_LIMIT_S, "a consumer does not see everything")
        # A removal that its operator gave up long ago may have been carried out since (seed 720116:
        # its forwarder had to find out first that the controller's machine was a new one).
        voting = simulation.host("world").loop.create_task(self.faults.let_all_vote())
        settles = self._settles()
        self.until(
            lambda: voting.done() and settles(),
            RECOVERY_LIMIT_S,
            "not everything is in sync at the end",
        )
        self.until(self._replicas_equal, RECOVERY_LIMIT_S, "the replicas differ in length")
        self.checkers.finish(cluster.nodes)
        self._check_transactions()
        self._check_offsets()
        for actor in self.actors:
            actor.stop = True
        for task in tasks:
            if task.done():
                task.result()

    def _settles(self) -> Callable[[], bool]:
        """Whether everything is in sync. Whoever does not vote is made a voter meanwhile: a removal
        that its operator gave up may be carried out long after (seeds 720116, 750480)."""
        simulation, cluster = self.simulation, self.cluster
        voting: list[Any] = []
        vote_at = simulation.now + VOTE_AGAIN_S

        def settled() -> bool:
            nonlocal vote_at
            if cluster.is_in_sync():
                return True
            if simulation.now >= vote_at and all(task.done() for task in voting):
                vote_at = simulation.now + VOTE_AGAIN_S
                world = simulation.host("world").loop
                voting.append(world.create_task(self.faults.let_all_vote()))
            return False

        return settled

    def until(self, condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
        """Run until it holds; a violation anywhere ends the run at once."""
        simulation, checkers = self.simulation, self.checkers
        step, failures = simulation.step, simulation.failures
        now = next_look = simulation.now
        end = now + limit_s
        while True:
            if now >= next_look:
                if condition():
                    return
                next_look = now + 0.02
            if not step():
                raise SimulationError("nothing left to do")
            if checkers.first is not None:
                raise checkers.first
            if failures:
                raise SimulationError(failures[0])
            now = simulation.now
            if now > end:
                raise Violation(f"{otherwise} within {limit_s:.0f} s\n{self.cluster.describe()}")

    def _make_actors(self) -> None:
        host = self.simulation.host("clients")
        checkers = self.checkers
        self.actors = [
            IdempotentProducer(host, "p0", checkers, "plain", TOPICS["plain"]),
            IdempotentProducer(self.simulation.host("others"), "p1", checkers, "plain", 2),
            TransactionalProducer(host, "t0", checkers, implicit=False),
            TransactionalProducer(host, "t1", checkers, implicit=True),
            Administrator(host, "admin", checkers),
        ]
        if self.checkers.compacts:
            self.actors.append(IdempotentProducer(host, "s0", checkers, SHORT_TOPIC, 1))
        self.groups = [
            Group(f"g-{protocol}", SESSIONS_S[protocol], REBALANCES_S[protocol])
            for protocol in self.plan.groups
        ]
        for protocol, group in zip(self.plan.groups, self.groups):
            kind = ClassicMember if protocol == "classic" else ConsumerMember
            for number, at in enumerate((host, self.simulation.host("others"))):
                self.actors.append(kind(at, f"{protocol}-{number}", checkers, group))
        for topic, count in TOPICS.items():
            for index in range(count):
                for letter, isolation in (("u", UNCOMMITTED), ("c", COMMITTED)):
                    name = f"{letter}-{topic}-{index}"
                    if topic == "plain" and isolation == COMMITTED:
                        continue
                    self.actors.append(Reader(host, name, checkers, topic, index, isolation))
        extras = self.plan.extras
        for actor in self.actors:
            if isinstance(actor, IdempotentProducer):
                actor.repeats = "repeats" in extras
            elif isinstance(actor, Reader):
                actor.asks_for_ends = "positions" in extras
        if "zombies" in extras:
            self.actors.append(Zombie(host, "zombie", checkers))

    def _operations(self) -> int:
        return sum(actor.operations for actor in self.actors)

    def _all_read(self) -> bool:
        for actor in self.actors:
            if isinstance(actor, Reader):
                log = self.checkers.by_name.get((actor.topic, actor.index))
                if log is None:
                    continue
                expected = log.visible if actor.isolation == COMMITTED else log.values
                if log.last_stable_offset != log.end or actor.seen != len(expected):
                    return False
        return True

    def _replicas_equal(self) -> bool:
        if len({node.image.offset for node in self.cluster.nodes.values()}) > 1:
            return False
        ends: dict[tuple[bytes, int], int] = {}
        for node in self.cluster.nodes.values():
            for partition in node.replicas:
                key = partition.topic_id, partition.index
                end = partition.log.log_end_offset
                if ends.setdefault(key, end) != end or partition.log.high_watermark != end:
                    return False
        return True

    def _check_offsets(self) -> None:
        """What the groups have committed is there."""
        host = self.simulation.host("clients")
        for group in self.groups:
            auditor = Member(host, "auditor", self.checkers, group)
            audit = host.loop.create_task(auditor.audit())
            self.until(audit.done, RECOVERY_LIMIT_S, "committed offsets cannot be fetched")
            audit.result()
            auditor.client.close()

    def _check_transactions(self) -> None:
        """Each transaction is seen wholly or not at all, as its producer was told."""
        visible: dict[tuple[int, bytes], None] = {}
        for (topic, index), log in self.checkers.by_name.items():
            if topic == "exact":
                visible.update(dict.fromkeys((index, entry.value) for entry in log.visible))
        for actor in self.actors:
            if isinstance(actor, TransactionalProducer):
                for outcome, values in actor.transactions:
                    seen = [entry in visible for entry in values]
                    if outcome is None and len(set(seen)) > 1:
                        self.checkers.fail(f"{actor.name}: half of a transaction is seen: {values}")
                    elif outcome is not None and any(s is not outcome for s in seen):
                        self.checkers.fail(
                            f"{actor.name}: committed is {outcome}, seen is {seen}: {values}"
                        )

    def close(self) -> None:
        for host in self.simulation.hosts.values():
            if host.up:
                host.loop.kill()
            self.simulation.network.host_crashed(host, silently=True)
        self.cluster.nodes.clear()


def main() -> int:
    from tests.sim import mutations

    plan = None
    arguments = sys.argv[1:]
    mutation = None
    if "--mutation" in arguments:
        at = arguments.index("--mutation")
        mutation = arguments[at + 1]
        plan = mutations.AIMED.get(mutation)
        del arguments[at : at + 2]
    show = "--transcript" in arguments
    until_failure = "--until-failure" in arguments
    general = "--general" in arguments
    few_files = "--few-files" in arguments
    arguments = [a for a in arguments if not a.startswith("--")]
    first = int(arguments[0]) if arguments else 1
    runs = int(arguments[1]) if len(arguments) > 1 else 1
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(first, first + runs):
        with mutations.applied(mutation):
            result = History(seed, plan, general, few_files=few_files).run()
        if show:
            print("\n".join(result.transcript))
        print(result.line(), flush=True)
        failed += result.violation is not None
        gc.collect()
        if failed and until_failure:
            break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
