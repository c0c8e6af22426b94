"""`kwire serve --brokers 3`: one ready line, one signal, nodes that come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.config.properties import read_properties
from kwire.protocol import messages as m
from tests.support.broker import BrokerProcess
from tests.support.cluster import READY, ROOT, wait_for
from tests.support.wire import WireClient


class Command:
    """The supervisor and what it wrote; `data` is the user's data directory if `is_users`."""

    def __init__(self, directory: Path, *arguments: str, is_users: bool = False) -> None:
        self.output = directory / "out.txt"
        self.errors = directory / "err.txt"
        self.data = directory / "data"
        data = ["--data-dir", str(self.data)]
        environment = dict(os.environ)
        if is_users:
            data = []
            environment |= {"HOME": str(self.data), "XDG_DATA_HOME": str(self.data)}
        with self.output.open("ab") as output, self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kwire", "serve", "--brokers", "3"]
                + [*data, "--listen", "127.0.0.1:0", *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def wait_ready(self) -> list[str]:
        """The addresses of the ready line."""

        def ready() -> str:
            assert self.process.poll() is None, self.errors.read_text()
            lines = self.output.read_text().splitlines()
            return next((line for line in lines if line.startswith(READY)), "")

        line = str(wait_for(ready, "the ready line"))
        assert len(self.output.read_text().splitlines()) == 1
        return line.removeprefix(READY).split(",")

    def pids(self) -> list[int]:
        """The nodes' processes as the command names them, in their order."""
        found = {}
        for line in self.errors.read_text().splitlines():
            words = line.split()
            if line.startswith("kwire: broker") and "process" in words:
                found[int(words[2])] = int(words[5].rstrip(","))
        return [found[node] for node in sorted(found)]

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.wait(30)
        for pid in command.pids():
            wait_for(lambda pid=pid: is_gone(pid), f"process {pid} is gone")  # type: ignore[misc]


def brokers(address: str) -> list[int]:
    with WireClient(address) as client:
        return sorted(b.node_id for b in client.call(m.MetadataRequest(), 9).brokers)


def test_one_ready_line_three_nodes_one_signal(command: Command, tmp_path: Path) -> None:
    addresses = command.wait_ready()
    assert [brokers(address) for address in addresses] == [[1, 2, 3]] * 3
    pids = command.pids()
    assert len(pids) == 3
    before = command.errors.stat().st_size
    clients = [WireClient(address) for address in addresses]
    assert command.end() == 0
    assert all(is_gone(pid) for pid in pids)
    for client in clients:
        client.close()
    with command.errors.open() as told:
        told.seek(before)
        lines = told.read().splitlines()
    expected = ("no controller lets us go", "is gone: it refuses connections")
    assert [line for line in lines if not any(text in line for text in expected)] == []
    assert not any("WARNING" in line or "ERROR" in line for line in lines)
    properties = read_properties(str(command.data / "broker-2.properties"))
    assert properties["default.replication.factor"] == "3"
    again = Command(tmp_path / ".", "-o", "log.retention.ms=1234567")
    try:
        wait_for(lambda: len(again.output.read_text().splitlines()) == 2, "a second ready line")
        properties = read_properties(str(command.data / "broker-2.properties"))
        assert properties["log.retention.ms"] == "1234567"
    finally:
        assert again.end(signal.SIGTERM) == 0


def test_a_single_node_beside_a_cluster_leaves_its_data_alone(tmp_path: Path) -> None:
    cluster = Command(tmp_path, is_users=True)
    try:
        cluster.wait_ready()
    finally:
        assert cluster.end() == 0
    environment = {"HOME": str(cluster.data), "XDG_DATA_HOME": str(cluster.data)}
    broker = BrokerProcess(environment=environment)
    broker.command = lambda: [  # type: ignore[method-assign]
        sys.executable, "-m", "kwire", "serve", "--listen", broker.bootstrap,
    ]  # fmt: skip
    try:
        broker.start()
    finally:
        broker.close()
    directory = cluster.data / "kwire-cluster-3"
    assert sorted(path.name for path in cluster.data.iterdir()) == ["kwire", directory.name]
    told = subprocess.run(
        [sys.executable, "-m", "kwire", "serve", "--data-dir", str(directory)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (
        2,
        f"kwire: {directory} is the data directory of a cluster: --brokers N\n",
    )


def test_nodes_that_are_killed_come_back_by_themselves(command: Command) -> None:
    addresses = command.wait_ready()
    for node in (1, 2, 3):
        victim = command.pids()[node - 1]
        os.kill(victim, signal.SIGKILL)
        wait_for(
            lambda node=node, old=victim: command.pids()[node - 1] != old,  # type: ignore[misc]
            "its process is told",
        )
        for at in addresses:
            wait_for(lambda at=at: brokers(at) == [1, 2, 3], "it is back")  # type: ignore[misc]
        told = f"kwire: broker {node} ended by SIGKILL; starting it again"
        assert told in command.errors.read_text().splitlines()
    assert command.process.poll() is None
    assert len(command.output.read_text().splitlines()) == 1, "one ready line"
    pids = command.pids()
    assert command.end() == 0
    assert all(is_gone(pid) for pid in pids)


def test_the_command_ends_when_no_node_can_be_started_again(command: Command) -> None:
    command.wait_ready()
    for path in command.data.glob("broker-*.properties"):
        path.unlink()
    for pid in command.pids():
        os.kill(pid, signal.SIGKILL)
    assert command.process.wait(60) == 1
    told = command.errors.read_text().splitlines()
    assert told[-1] == "kwire: no broker is left"
    assert sum("before it was ready" in line for line in told) == 3
    assert sum("No such file or directory" in line for line in told) == 3


def test_the_nodes_end_with_the_command_however_it_ends(command: Command) -> None:
    command.wait_ready()
    command.process.kill()
    for pid in command.pids():
        wait_for(lambda pid=pid: is_gone(pid), f"process {pid} is gone")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--brokers", "0"], "--brokers 0: expected a number from 1 on"),
        (["--brokers", "3", "--config", "x"], "--brokers and --config exclude each other"),
        (["--brokers", "99"], "--brokers 99: expected 1 to 9"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kwire", "serve", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"kwire: {told}")
    assert len(done.stderr.splitlines()) == 1
