"""What faults do to brokers and processes of an application, one at a time."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest

from kwire.testing.simulation import simulated_cluster
from kwire.testing.simulation.faults import ROLES, Faults, heal
from kwire.testing.simulation.plans import Fault
from kwire.testing.simulation.run import RunFailed

ANYBODY = ROLES.index("any")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("broker killed", "n1 is killed for 20.0 s"),
        ("broker stopped", "n1 is stopped in order"),
        ("brokers restarted in turn", "are restarted in turn"),
        ("process killed", "serve is killed for 20.0 s"),
        ("process paused", "serve is paused for 20.0 s"),
        ("process stopped", "serve is stopped in order"),
    ],
)
def test_when_the_faults_are_over_nobody_is_down(kind: str, told: str) -> None:
    """A node that was stopping stayed so for ever, and so did a process; one that was killed
    stayed down as long as its fault had been drawn for."""

    async def serve() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(5)

    async def run() -> None:
        async with simulated_cluster(1, minutes=0) as cluster:
            process = cluster.process(serve)
            faults = Faults(cluster, [Fault(0, 0.2, kind, 20.0, 0, (0, 0, 0))])
            ended = cluster.outside.create_task(faults.run(cluster.now, 0.25))
            await asyncio.sleep(0.5)
            assert ended.done()
            heal(cluster.nodes, list(cluster.processes.values()))
            await cluster.in_sync()
            await asyncio.sleep(10)
            assert process.is_running
            assert any(told in event.what for event in cluster.history)

    asyncio.run(run())


@pytest.mark.parametrize("choice", [0, 1])
def test_a_leader_is_moved_to_another_replica_and_nobody_ends(choice: int) -> None:
    async def run() -> None:
        async with simulated_cluster(2, minutes=0) as cluster:
            await cluster.create_topic("t", 2)
            await cluster.in_sync()
            [before, other] = cluster.led()
            faults = Faults(cluster, [Fault(0, 0.1, "leader moved", 1.0, 0, (0, choice, 0))])
            await cluster._outside(faults.run(cluster.now, 10.0))
            [after, same] = cluster.led()
            assert (after.topic, after.partition) == ("t", 0)
            assert after.leader == before.others[choice]
            assert set(after.replicas) == set(before.replicas)
            assert same == other
            assert all(cluster.nodes.is_up(broker) for broker in cluster.brokers)

    asyncio.run(run())


POWER, STOP = "broker loses power", "broker stopped"


@pytest.mark.parametrize(("first", "second"), [(POWER, STOP), (STOP, POWER)])
def test_no_broker_is_stopped_while_another_has_lost_power(first: str, second: str) -> None:
    """A stop that takes too long ends in a kill, and a broker that was killed is taken for one that
    has lost data: with another one that has, nobody was left who had all that was acknowledged
    (seed 20515 of orders_by_http)."""

    async def run() -> None:
        async with simulated_cluster(1, minutes=0) as cluster:
            await cluster.in_sync()
            plan = [
                Fault(at, 0.1 + at / 20, kind, 5.0, 0, (ANYBODY + at * len(ROLES), 0, 0))
                for at, kind in enumerate((first, second))
            ]
            await cluster._outside(Faults(cluster, plan).run(cluster.now, 1.0))
            told = [event.what for event in cluster.history if event.what.startswith("fault ")]
            assert len(told) == 1, told
            assert told[0].startswith("fault 0: n1")

    asyncio.run(run())


def test_slow_links_of_two_faults_end_with_the_later_one() -> None:
    """The end of the first was the end of both."""

    async def run() -> None:
        async with simulated_cluster(1, minutes=0, brokers=1) as cluster:
            began, conditions = cluster.now, cluster.simulation.network.conditions
            plan = [
                Fault(0, 0.0, "network slow", 2.0, 0, (0, 0, 0)),
                Fault(1, 1.0, "network slow", 4.0, 0, (0, 0, 0)),
                Fault(2, 1.0, "connections reset", 4.0, 0, (0, 0, 0)),
            ]
            cluster.outside.create_task(Faults(cluster, plan).run(began, 20.0))
            await asyncio.sleep(3.0)
            assert conditions.slow_per_million
            assert conditions.reset_per_million
            await asyncio.sleep(4.0)
            assert (conditions.slow_per_million, conditions.reset_per_million) == (0, 0)

    asyncio.run(run())


@pytest.mark.parametrize("module", ["aiokafka.client", "shop"])
def test_an_assertion_inside_of_the_client_ends_the_process_and_one_of_the_code_the_run(
    module: str,
) -> None:
    """aiokafka asserts that metadata have brokers: those of brokers that all start may not."""
    scope: dict[str, object] = {"__name__": module}
    exec("async def look_up():\n    assert [], 'Did we not perform bootstrap?'", scope)
    lives: list[int] = []

    async def work() -> None:
        lives.append(len(lives))
        if len(lives) < 3:
            await scope["look_up"]()

    async def run() -> None:
        async with simulated_cluster(1, minutes=0, brokers=1) as cluster:
            await cluster.process(work).finished()

    if module == "shop":
        with pytest.raises(RunFailed, match="process work fails"):
            asyncio.run(run())
        assert lives == [0]
    else:
        asyncio.run(run())
        assert lives == [0, 1, 2]


@pytest.mark.parametrize("file", ["/lib/aiokafka/group_coordinator.py", "/app/shop.py"])
def test_an_error_that_nobody_reads_of_a_task_of_the_client_is_not_one_of_the_application(
    file: str,
) -> None:
    """A process is told to stop while it commits: aiokafka shields the commit, whose error then
    nobody reads. asyncio logs it, and the mended example failed."""
    scope: dict[str, object] = {}
    exec(compile("async def commit():\n    raise OSError('no coordinator')", file, "exec"), scope)

    async def work() -> None:
        asyncio.get_running_loop().create_task(scope["commit"]())
        await asyncio.sleep(1)
        gc.collect()

    async def run() -> None:
        async with simulated_cluster(1, minutes=0, brokers=1) as cluster:
            await cluster.process(work).finished()
            told = [event.what for event in cluster.history if "a task of the client" in event.what]
            assert told == ["a task of the client fails: OSError('no coordinator')"]

    if "aiokafka" in file:
        asyncio.run(run())
    else:
        with pytest.raises(RunFailed, match="exception was never retrieved"):
            asyncio.run(run())


def test_a_killed_process_that_waits_in_its_finally_clauses_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its coroutine was closed once: what was left of it complained when it was collected."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    async def work() -> None:
        try:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
        finally:
            await asyncio.sleep(1)
            await asyncio.sleep(1)

    async def run() -> None:
        async with simulated_cluster(1, minutes=0, brokers=1) as cluster:
            process = cluster.process(work)
            await asyncio.sleep(1)
            process.kill()

    asyncio.run(run())
    gc.collect()
    assert complaints == []
