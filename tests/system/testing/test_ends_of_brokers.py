"""Brokers of tests that are shared, ended twice, asked after their end, and left by Ctrl-C or by
a test process that was killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.testing import Broker, BrokerFailed, Cluster, wait_until
from kwire.testing.cluster.process import ServeProcess

THREADS = 8


def in_threads(work: Callable[[int], object]) -> list[BaseException]:
    """What `work` raises, begun by all threads at once."""
    errors: list[BaseException] = []
    gate = threading.Barrier(THREADS)

    def turn(number: int) -> None:
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_threads_share_a_broker_from_their_first_call_on() -> None:
    """Each made a loop of its own: what one had begun there, another waited for here. Brokers of
    other tests may be there, and their threads with them."""
    others = set(threading.enumerate())
    with Broker() as broker:
        assert in_threads(lambda number: broker.topics()) == []
        broker.restart()
        assert in_threads(lambda number: broker.topic("t").send(f"{number}")) == []
        assert len(broker.topic("t").records()) == THREADS
    left = set(threading.enumerate()) - others
    assert [one.name for one in left if one.name == "kwire-testing-client"] == []


@pytest.mark.parametrize("make", [Broker, lambda: Cluster(1)], ids=["broker", "cluster"])
def test_closed_twice_and_never_started(make: Callable[[], Broker | Cluster]) -> None:
    make().close()
    one = make()
    one.start()
    one.close()
    one.close()
    with pytest.raises(BrokerFailed, match="is closed, and its data is gone: make another one"):
        one.start()
    for call in (one.snapshot, one.reset, one.fork):
        with pytest.raises(BrokerFailed, match="is closed"):
            call()


def test_a_broker_of_a_directory_that_stays_may_start_after_its_end(tmp_path: Path) -> None:
    broker = Broker(directory=tmp_path)
    with broker:
        broker.topic("t").send("a")
    with broker:
        assert broker.topic("t").values() == [b"a"]


LEAVING = """
import os
import sys

from kwire.testing import Broker, BrokerFailed, Cluster

try:
    with MADE as brokers:
        brokers.topic("t").send("a")
        with FAULT, brokers.snapshot() as kept:
            if os.fork() == 0:
                assert brokers.topic("t").values() == [b"a"]
                brokers.topic("t").send("b")
                for call in (brokers.kill, brokers.stop, brokers.restart, brokers.pause,
                             brokers.snapshot, brokers.reset, lambda: brokers.restore(kept),
                             brokers.start, brokers.faults.clear):
                    try:
                        call()
                    except BrokerFailed as error:
                        assert "of which this one is a fork" in str(error), error
                    else:
                        raise AssertionError(call)
                sys.exit(5)  # out of all contexts
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 5
            STANDS
            brokers.topic("t").assert_records("a", "b")
            brokers.restart()
            brokers.topic("t").assert_records("a", "b")
            brokers.restore(kept)
            brokers.topic("t").assert_records("a")
except SystemExit as end:
    os._exit(end.code)  # as a fork ends: libuv waits for its threads in an exit in order
"""


@pytest.mark.parametrize(
    ("made", "has_faults"),
    [("Broker()", True), ("Broker(process=True)", False), ("Cluster(2)", True)],
)
def test_a_fork_that_leaves_its_contexts_ends_nothing_of_the_process_that_made_it(
    tmp_path: Path, made: str, has_faults: bool
) -> None:
    """It removed the data, and killed brokers that are processes; threads that it does not have it
    asked for a minute."""
    fault = 'brokers.faults.add("delay", ms=1, api="Produce")'
    stands = "assert brokers.faults.standing()"
    text = LEAVING.replace("MADE", made)
    if has_faults:
        text = text.replace("FAULT", fault).replace("STANDS", stands)
    else:
        text = text.replace("FAULT, ", "").replace("            STANDS\n", "")
        text = text.replace("brokers.start, brokers.faults.clear", "brokers.start")
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr
    assert list(tmp_path.glob("kwire*")) == []


@pytest.mark.parametrize("make", [Broker, lambda: Cluster(1)], ids=["broker", "cluster"])
def test_what_is_asked_of_a_closed_broker_is_told_at_once(
    make: Callable[[], Broker | Cluster],
) -> None:
    """It was looked for until all attempts were used up, by a thread that stayed."""
    others = set(threading.enumerate())
    with make() as one:
        topic, group = one.topic("t"), one.group("g")
        topic.send("a")
    for call in (topic.records, lambda: topic.send("b"), group.lag, one.topics):
        with pytest.raises(BrokerFailed, match="is closed"):
            call()
    left = set(threading.enumerate()) - others
    assert [thread.name for thread in left if thread.name == "kwire-testing-client"] == []


LEFT = """
import pathlib
import threading
import pytest

@pytest.mark.kafka(brokers=BROKERS, process=True)
def test_left(kafka):
    kafka.topic("t").send("a")
    pathlib.Path("ready").touch()
    threading.Event().wait(60)
"""


PYTEST = """
import signal, sys

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""
"""Also where this process was started in the background, and ignores interrupts."""


@pytest.mark.parametrize("brokers", [1, 2])
def test_an_interrupt_leaves_no_process_and_no_directory_behind(
    tmp_path: Path, brokers: int
) -> None:
    (tmp_path / "test_it.py").write_text(LEFT.replace("BROKERS", str(brokers)))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", PYTEST, "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until((tmp_path / "ready").exists, "the test runs", timeout_s=60)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of the group
    told, _ = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in told, told
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert list(temporary.glob("kwire*")) == [], told


KILLED = """
import pathlib
import threading

from kwire.testing import Broker, Cluster

brokers = MADE
brokers.start()
brokers.topic("t").send("a")
for each in brokers if isinstance(brokers, Cluster) else [brokers]:
    PAUSED and each.pause()
pathlib.Path("ready.new").write_text(brokers.bootstrap)
pathlib.Path("ready.new").rename("ready")
threading.Event().wait(60)
"""

FORKED = """
import os
import pathlib
import threading

from kwire.testing import Broker

broker = Broker(process=True, directory="data").start()
if os.fork() == 0:
    threading.Event().wait(60)
    os._exit(0)
pathlib.Path("ready.new").write_text(broker.bootstrap)
pathlib.Path("ready.new").rename("ready")
threading.Event().wait(60)
"""


def test_a_fork_of_a_test_process_that_is_killed_keeps_no_broker(tmp_path: Path) -> None:
    """It had the pipe with which the broker ends, as pools of processes have it."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    try:
        wait_until((tmp_path / "ready").exists, "the broker runs", timeout_s=60)
        process.kill()
        process.wait(60)
        host, _, port = (tmp_path / "ready").read_text().rpartition(":")
        wait_until(lambda: _is_refused((host, int(port))), "the broker is gone", timeout_s=30)
        os.killpg(process.pid, 0)  # the fork is there
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("made", "paused"),
    [
        ("Broker(process=True, directory='data')", False),
        ("Broker(process=True, directory='data')", True),
        ("Broker(process=True, faults=True, directory='data')", False),
        ("Cluster(2, process=True)", True),
    ],
    ids=["broker", "paused-broker", "broker-with-faults", "paused-cluster"],
)
def test_a_test_process_that_is_killed_leaves_no_broker_behind(
    tmp_path: Path, made: str, paused: bool
) -> None:
    """They ran on without end, and their directory refused the next start."""
    script = KILLED.replace("MADE", made).replace("PAUSED", str(paused))
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    wait_until((tmp_path / "ready").exists, "the brokers run", timeout_s=60)
    addresses = (tmp_path / "ready").read_text().split(",")
    process.kill()
    process.wait(60)
    for address in addresses:
        host, _, port = address.rpartition(":")
        wait_until(lambda at=(host, int(port)): _is_refused(at), f"{address} is gone", timeout_s=30)
    if (tmp_path / "data").exists():
        broker = Broker(directory=tmp_path / "data")
        with wait_until(lambda: _started(broker), "its directory is free", timeout_s=30):
            assert broker.topic("t").values() == [b"a"]


def test_a_paused_process_that_somebody_else_kills_is_not_what_the_next_pause_guards() -> None:
    """Its guard stayed: it would have killed whoever has the number by then, and nobody else."""
    one = ServeProcess("one", is_supervised=True)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    guards = []
    try:
        for _ in range(2):
            one.start(command)
            one.pause()
            assert one._guard is not None
            assert one._guard.args[-1] == str(one.pid)  # type: ignore[index]
            guards.append(one._guard)
            os.kill(one.pid, signal.SIGKILL)
            one.wait()
    finally:
        one.close()
    assert [guard.poll() is None for guard in guards] == [False, False]


def _started(broker: Broker) -> Broker | None:
    """None while another one has its directory."""
    try:
        return broker.start()
    except BrokerFailed as error:
        if "is in use" not in str(error):
            raise
        return None


def _is_refused(address: tuple[str, int]) -> bool:
    """A process that is stopped still has its listener: connections are made."""
    try:
        socket.create_connection(address, 5).close()
    except ConnectionRefusedError:
        return True
    return False
