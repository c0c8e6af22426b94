"""What the simulation does with applications: examples/simulation/orders.py, refusals, options.

The searches for a faulty one begin at a seed that shows it, so that they are short; another one
soon shows it too. `KWIRE_EFFORT` multiplies the seeds of the mended one (`make stress`).
"""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from kwire.testing.simulation import (
    CannotSimulate,
    NothingDoubled,
    NothingLost,
    OffsetsForward,
    SimulationFailed,
    simulate,
    simulated_cluster,
)
from kwire.testing.simulation.plans import KINDS, drawn
from kwire.testing.simulation.run import RunFailed
from tests.support.settling import LIMIT_S, settled

aiokafka = pytest.importorskip("aiokafka")
EXAMPLES = Path(__file__).parents[2] / "examples" / "simulation"
sys.path.insert(0, str(EXAMPLES))

import orders  # noqa: E402

EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))


async def _orders(cluster, commit_first: bool) -> None:
    await cluster.create_topic(orders.TOPIC, 2)
    await orders.begin(cluster.bootstrap)
    check, forward = NothingLost(), OffsetsForward(orders.GROUP)

    async def book(order: bytes) -> None:
        await asyncio.sleep(0.1)
        check.received(order)

    numbers = cluster.operations(30)

    async def booked() -> bool:
        return not check.problems()

    async def taking() -> None:
        await orders.take_orders(cluster.bootstrap, numbers, check.sent)

    async def booking() -> None:
        await orders.book_orders(cluster.bootstrap, book, commit_first=commit_first)

    taken = cluster.process(taking)
    cluster.process(booking)
    await taken.finished()
    await cluster.faults_over()
    await settled(booked, 30 if commit_first else LIMIT_S)
    check.verify()
    await forward.read_commits(cluster)
    forward.verify()


KILLS = ("process killed", "broker killed")


@simulate(first_seed=5, seeds=30, minutes=0.5, faults=KILLS, processes=1, shrink_runs=10)
async def orders_committed_first(cluster) -> None:
    await _orders(cluster, commit_first=True)


@simulate(seeds=2 * EFFORT, minutes=0.5, processes=1)
async def orders_booked_first(cluster) -> None:
    await _orders(cluster, commit_first=False)


def test_a_consumer_that_commits_before_it_processes_is_caught() -> None:
    with pytest.raises(SimulationFailed, match="was acknowledged and is lost") as caught:
        orders_committed_first()
    text = str(caught.value)
    assert "kwire.testing.simulation replay" in text
    assert "--faults" in text


def test_one_that_processes_before_it_commits_passes() -> None:
    orders_booked_first()


REFUSED = {
    "time.sleep": "import time; time.sleep(1)",
    "asyncio.to_thread(print)": "await asyncio.to_thread(print)",
    "loop.run_in_executor": "await asyncio.get_running_loop().run_in_executor(None, print)",
    "threading.Thread.start": "import threading; threading.Thread(target=print).start()",
    "socket.socket": "import socket; socket.socket()",
    "subprocess.Popen": "import subprocess; subprocess.run(['true'])",
    "loop.subprocess_exec": "await asyncio.create_subprocess_exec('true')",
    "os.kill": "import os; os.kill(os.getpid(), 0)",
    "os.execv": "import os; os.execvp('true', ['true'])",
    "os.posix_spawnp": "import os; os.posix_spawnp('true', ['true'], {})",
    "signal.signal": "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
    "signal.setitimer": "import signal; signal.setitimer(signal.ITIMER_REAL, 0)",
    "_thread.start_new_thread": "import _thread; _thread.start_new_thread(print, ())",
    "select.select": "import select; select.select([], [], [], 0)",
    "selectors.": "import selectors; selectors.DefaultSelector()",
    "selectors.PollSelector": "import selectors; selectors.PollSelector()",
    "asyncio.new_event_loop": "asyncio.new_event_loop()",
    "confluent_kafka.Producer": "import confluent_kafka; confluent_kafka.Producer({})",
}


@simulate(seeds=1, minutes=0, brokers=1, processes=1)
async def a_loop_that_is_never_let_go(cluster) -> None:
    while True:
        pass


def test_an_application_that_holds_the_loop_for_ever_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kwire.testing.simulation.workers.RUN_LIMIT_S", 1.0)
    with pytest.raises(SimulationFailed, match="seed 0 is not over after 1 s of real time"):
        a_loop_that_is_never_let_go()


def test_what_cannot_be_simulated_fails_by_its_name() -> None:
    pytest.importorskip("confluent_kafka")

    async def one(call: str, source: str) -> None:
        scope: dict[str, object] = {"asyncio": asyncio}
        exec(f"async def calls():\n    {source}", scope)
        failure = ""
        try:
            async with simulated_cluster(1, minutes=0, brokers=1):
                with pytest.raises(CannotSimulate):
                    await scope["calls"]()
                await asyncio.sleep(1)
        except RunFailed as error:
            failure = str(error)
        assert failure.startswith(f"{call}")
        assert "cannot be simulated" in failure

    for call, source in REFUSED.items():
        asyncio.run(one(call, source))


def test_every_clock_and_name_of_the_machine_is_the_run_s() -> None:
    """clock_gettime, asctime, times, uname, getnode and getppid were the machine's."""

    async def look() -> list[object]:
        async with simulated_cluster(1, minutes=0, brokers=1):
            told: list[object] = []
            for _ in range(2):
                told += [
                    round(time.clock_gettime(time.CLOCK_REALTIME) - time.time(), 2),
                    round(time.clock_gettime(time.CLOCK_MONOTONIC) - time.monotonic(), 2),
                    time.clock_gettime_ns(time.CLOCK_REALTIME) // 10**9 - int(time.time()),
                    time.asctime() == time.ctime(),
                    round(os.times().elapsed - time.monotonic(), 2),
                ]
                await asyncio.sleep(600)
            told += [os.uname().nodename, platform.node(), uuid.getnode(), os.getppid()]
            return told

    first = asyncio.run(look())
    assert first[:10] == [0, 0, 0, True, 0] * 2
    assert first[10] == first[11] == "app"
    assert asyncio.run(look()) == first


PROGRAM = """
import asyncio, datetime, os, random, secrets, time, uuid
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kwire.testing.simulation import simulated_cluster

async def main():
    async with simulated_cluster(3, minutes=0.5) as cluster:
        for topic in ("a", "b"):
            await cluster.create_topic(topic, 2)
        chance = [uuid.uuid4(), uuid.uuid1(), random.random(), os.urandom(4), secrets.token_hex()]
        cluster.note(f"{chance} {time.time()} {datetime.datetime.now(datetime.UTC)}")
        async def produce():
            async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
                for number in range(40):
                    await producer.send_and_wait("ab"[number % 2], b"%d" % number)
                    await asyncio.sleep(0.5)
        async def consume():
            async with AIOKafkaConsumer("a", "b", bootstrap_servers=cluster.bootstrap,
                    group_id="g", auto_offset_reset="earliest") as consumer:
                async for record in consumer:
                    cluster.note(f"{record.topic} {record.partition} {record.value}")
        cluster.process(consume)
        await cluster.process(produce).finished()
        await cluster.faults_over()
    print(cluster.fingerprint(), len(cluster.history))
asyncio.run(main())
"""


def test_a_seed_is_one_history_whatever_the_hash_seed_of_the_process() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1] != ""


def test_a_seed_is_one_history_whatever_ran_before_in_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """aiokafka numbers its producers: later ones of a process sent longer client ids."""

    async def produce(bootstrap: str) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for number in range(200):
                await producer.send_and_wait("t", b"%d" % number)

    async def run() -> tuple[str, float]:
        async with simulated_cluster(3, minutes=0, brokers=1) as cluster:
            await cluster.create_topic("t")
            await cluster.process(produce, cluster.bootstrap).finished()
        return cluster.fingerprint(), cluster.now

    first = asyncio.run(run())
    monkeypatch.setattr(aiokafka.AIOKafkaProducer, "_PRODUCER_CLIENT_ID_SEQUENCE", 10**60)
    assert asyncio.run(run()) == first


def test_the_faults_of_a_seed_are_data_and_another_seed_has_others() -> None:
    kinds = tuple(KINDS)
    assert drawn(5, 600, kinds) == drawn(5, 600, kinds) != drawn(6, 600, kinds)
    assert drawn(5, 600, ()) == drawn(5, 0, kinds) == ()
    assert {fault.kind for seed in range(40) for fault in drawn(seed, 600, kinds)} == set(KINDS)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seeds": 0}, "seeds=0: accepted are whole numbers from 1"),
        ({"minutes": -1}, "minutes=-1: accepted are 0"),
        ({"brokers": 10}, "brokers=10: accepted are 1 to 9"),
        ({"faults": ["rain"]}, "faults: 'rain' is none; accepted are broker killed"),
        ({"config": 3}, "config=3: accepted is a dictionary"),
        ({"processes": True}, "processes=True: accepted are"),
        ({"shrink_runs": -1}, "shrink_runs=-1: accepted are whole numbers from 0"),
    ],
)
def test_an_option_that_cannot_be_is_named(options, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        simulate(**options)


def test_checks_tell_what_broke() -> None:
    lost, doubled, forward = NothingLost(), NothingDoubled(), OffsetsForward()
    for check in (lost, doubled):
        check.sent(b"a")
        check.sent(b"b")
        check.received(b"a")
        check.received(b"a")
    assert lost.problems() == ["b'b' was acknowledged and is lost"]
    assert doubled.problems() == ["b'a' is there 2 times"]
    forward.committed("t", 0, 5)
    forward.committed("t", 0, 4)
    assert forward.problems() == ["group '': t-0 goes back from 5 to 4"]
