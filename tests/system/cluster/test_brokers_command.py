"""`kwire serve --brokers 3`: one ready line, one signal, nodes that come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from kwire.cli.cluster import READY_PREFIX
from kwire.config.properties import read_properties
from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, BrokersCommand, wait_for
from tests.support.kafka import ROOT
from tests.support.wire import WireClient


def start(directory: Path, *arguments: str, is_users: bool = False) -> BrokersCommand:
    """The command, started; its data is in the user's data directory if `is_users`."""
    data = directory / "data"
    at_home = {"HOME": str(data), "XDG_DATA_HOME": str(data)}
    command = BrokersCommand(
        data_dir=None if is_users else data,
        log_path=directory / "err.txt",
        environment=at_home if is_users else None,
        arguments=arguments,
    )
    command.start()
    return command


def log_lines(command: BrokersCommand) -> list[str]:
    return command.process.log_text().splitlines()


def output_lines(command: BrokersCommand) -> list[str]:
    return command.process.output_text().splitlines()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


@pytest.fixture
def command(tmp_path: Path) -> Iterator[BrokersCommand]:
    command = start(tmp_path)
    try:
        yield command
    finally:
        command.close()
        for pid in command.pids():
            wait_for(lambda pid=pid: is_gone(pid), f"process {pid} is gone")  # type: ignore[misc]


def brokers(address: str) -> list[int]:
    with WireClient(address) as client:
        return sorted(b.node_id for b in client.call(m.MetadataRequest(), 9).brokers)


def test_one_ready_line_three_nodes_one_signal(command: BrokersCommand, tmp_path: Path) -> None:
    addresses = command.wait_ready()
    assert [brokers(address) for address in addresses] == [[1, 2, 3]] * 3
    pids = command.pids()
    assert len(pids) == 3
    nodes_with_http = 3 if find_spec("uvicorn") else 0
    wait_for(lambda: len(output_lines(command)) == 1 + nodes_with_http, "each has HTTP of its own")
    first, *others = output_lines(command)
    assert first.startswith(READY_PREFIX)
    assert [line[: len("http on ")] for line in others] == ["http on "] * nodes_with_http
    assert len({*others}) == nodes_with_http
    # The last that a start tells: each controller has reached the two other brokers.
    wait_for(
        lambda: sum("accepts connections" in line for line in log_lines(command)) == 6,
        "every listener was reached",
    )
    before = len(log_lines(command))
    clients = [WireClient(address) for address in addresses]
    assert command.stop(signal.SIGINT) == 0
    assert all(is_gone(pid) for pid in pids)
    for client in clients:
        client.close()
    lines = log_lines(command)[before:]
    expected = (
        "no controller lets us go",
        "is gone: it refuses connections",
        "accepts connections",  # a listener is probed until 5 s after its broker serves
    )
    assert [line for line in lines if not any(text in line for text in expected)] == []
    assert not any("WARNING" in line or "ERROR" in line for line in lines)
    properties = read_properties(str(tmp_path / "data" / "broker-2.properties"))
    assert properties["default.replication.factor"] == "3"
    again = start(tmp_path, "-o", "log.retention.ms=1234567")
    try:
        again.wait_ready()
        properties = read_properties(str(tmp_path / "data" / "broker-2.properties"))
        assert properties["log.retention.ms"] == "1234567"
        assert again.stop() == 0
    finally:
        again.close()


def test_a_single_node_beside_a_cluster_leaves_its_data_alone(tmp_path: Path) -> None:
    cluster = start(tmp_path, is_users=True)
    try:
        cluster.wait_ready()
        assert cluster.stop(signal.SIGINT) == 0
    finally:
        cluster.close()
    home = tmp_path / "data"
    environment = {"HOME": str(home), "XDG_DATA_HOME": str(home)}
    with Broker(environment=environment, pass_storage=False):
        pass
    directory = home / "kwire-cluster-3"
    assert sorted(path.name for path in home.iterdir()) == ["kwire", directory.name]
    told = subprocess.run(
        [sys.executable, "-m", "kwire", "serve", "--data-dir", str(directory)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (
        2,
        f"kwire: {directory} is the data directory of a cluster: --brokers N\n",
    )


def test_nodes_that_are_killed_come_back_by_themselves(command: BrokersCommand) -> None:
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
        assert told in log_lines(command)
    assert command.process.is_running
    ready = [line for line in output_lines(command) if line.startswith(READY_PREFIX)]
    assert len(ready) == 1, "one ready line"
    pids = command.pids()
    assert command.stop(signal.SIGINT) == 0
    assert all(is_gone(pid) for pid in pids)


def test_the_command_ends_when_no_node_can_be_started_again(
    command: BrokersCommand, tmp_path: Path
) -> None:
    command.wait_ready()
    for path in (tmp_path / "data").glob("broker-*.properties"):
        path.unlink()
    for pid in command.pids():
        os.kill(pid, signal.SIGKILL)
    assert command.process.wait(60) == 1
    told = log_lines(command)
    assert told[-1] == "kwire: no broker is left"
    assert sum("before it was ready" in line for line in told) == 3
    assert sum("No such file or directory" in line for line in told) == 3


def test_the_nodes_end_with_the_command_however_it_ends(command: BrokersCommand) -> None:
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
