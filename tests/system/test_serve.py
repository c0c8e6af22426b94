"""`kwire serve` as a process: ready line, signals, restarts, refusals, what it costs when idle."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.cli.interpreter import advice
from kwire.testing.cluster import Broker, NodeFailed
from kwire.testing.cluster.waiting import wait_for
from tests.support.wire import WireClient, fetch_values, produce_values

READY_LINE_S = 5.0  # generous: the goal of 0.3 s is measured by bench/


def serve(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run `kwire serve` to its end; (exit status, stderr)."""
    done = subprocess.run(
        [sys.executable, "-m", "kwire", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **(environment or {})},
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_it_cleanly(tmp_path: Path, number: int) -> None:
    with Broker(data_dir=tmp_path) as broker, WireClient(broker.bootstrap) as client:
        client.create_topic("t")
        assert broker.stop(number) == 0
        client.expect_closed()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_topics_and_records_are_there_after_a_restart(tmp_path: Path, how: str) -> None:
    with Broker(data_dir=tmp_path) as broker:
        with WireClient(broker.bootstrap) as client:
            client.create_topic("kept", partitions=2)
            topic_id = client.topic_id("kept")
            produce_values(client, "kept", 0, [b"a", b"b"])
            produce_values(client, "kept", 1, [b"c"])
        for turn in range(2):
            getattr(broker, how)()
            broker.start()
            with WireClient(broker.bootstrap) as client:
                assert client.topic_id("kept") == topic_id
                assert fetch_values(client, "kept", 0)[:2] == [b"a", b"b"]
                assert fetch_values(client, "kept", 1) == [b"c"]
                produce_values(client, "kept", 0, [b"%d" % turn])
        with WireClient(broker.bootstrap) as client:
            assert fetch_values(client, "kept", 0) == [b"a", b"b", b"0", b"1"]


def test_an_interpreter_that_could_be_faster_is_named_once() -> None:
    """And none that is built with PGO and LTO, or does not say how it is built."""
    told = advice()
    with Broker() as broker:
        wait_for(lambda: told is None or told in broker.log_text(), "the line")
        assert broker.stop(signal.SIGTERM) == 0
        assert broker.log_text().count("this Python") == (told is not None)


def test_a_kept_cluster_keeps_its_identity(tmp_path: Path) -> None:
    ids = []
    with Broker(data_dir=tmp_path) as broker:
        for _ in range(2):
            with WireClient(broker.bootstrap) as client:
                ids.append(client.cluster_id())
            broker.restart()
    assert ids[0] == ids[1]
    assert f"cluster.id={ids[0]}" in (tmp_path / "meta.properties").read_text()


def test_an_ephemeral_broker_leaves_nothing(tmp_path: Path) -> None:
    with Broker(environment={"TMPDIR": str(tmp_path)}) as broker:
        assert len(list(tmp_path.iterdir())) == 1
        broker.stop()
    assert list(tmp_path.iterdir()) == []


def test_without_a_data_directory_it_is_the_users(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    broker = Broker(environment=environment)
    broker.command = lambda: [  # type: ignore[method-assign]
        sys.executable, "-m", "kwire", "serve", "--listen", broker.bootstrap,
    ]  # fmt: skip
    try:
        broker.start()
        with WireClient(broker.bootstrap) as client:
            client.create_topic("mine")
        broker.stop()
        broker.start()
        with WireClient(broker.bootstrap) as client:
            assert "mine" in client.topics()
    finally:
        broker.close()
    assert (tmp_path / "data" / "kwire" / "meta.properties").exists()


def test_a_data_directory_in_use_names_the_process(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        status, text = serve("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0")
        assert status == 1
        assert str(broker.pid) in text
        assert str(tmp_path) in text


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        status, text = serve("--ephemeral", "--listen", address)
    assert status == 1
    assert address in text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--listen", "nonsense"], "nonsense"),
        (["--listen", "host:70000"], "70000"),
        (["--advertise", "0.0.0.0:9092"], "0.0.0.0"),
        (["--nonsense"], "--nonsense"),
        (["-o", "novalue"], "novalue"),
        (["-o", "no.such.setting=1"], "no.such.setting"),
        (["-o", "log.segment.bytes=x"], "log.segment.bytes"),
        (["-o", "num.partitions=0"], "num.partitions"),
        (["--config", "/nonexistent/server.properties"], "/nonexistent/server.properties"),
        (["--data-dir", "x", "--ephemeral"], "--ephemeral"),
        (["--data-dir"], "--data-dir"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(arguments: list[str], named: str) -> None:
    status, text = serve("--ephemeral", *arguments)
    assert status == 2
    assert named in text
    assert len(text.strip().splitlines()) == 1


def test_a_misspelt_environment_setting_is_refused() -> None:
    status, text = serve("--ephemeral", environment={"KAFKA_NUM_PARTITION": "1"})
    assert status == 2
    assert "num.partition=1: did you mean num.partitions? (from KAFKA_NUM_PARTITION)" in text


def test_settings_come_from_every_source(tmp_path: Path) -> None:
    with (
        Broker(
            data_dir=tmp_path,
            options={"num.partitions": 4},
            environment={"KAFKA_NUM_PARTITIONS": "3", "KAFKA_MESSAGE_MAX_BYTES": "5000"},
        ) as broker,
        WireClient(broker.bootstrap) as client,
    ):
        client.create_topic("t", partitions=-1)
        assert client.partition_count("t") == 4
        assert client.config("t", "max.message.bytes") == "5000"


def test_it_serves_a_kafka_configuration_file(tmp_path: Path) -> None:
    properties = {
        "process.roles": "broker,controller",
        "node.id": 7,
        "controller.quorum.voters": "7@localhost:19093",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:19092",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        "offsets.topic.replication.factor": 1,
    }
    with (
        Broker(properties=properties, pass_listen=False) as broker,
        WireClient(broker.bootstrap) as client,
    ):
        assert client.brokers() == {7: ("127.0.0.1", 19092)}
    assert (tmp_path / "b" / "meta.properties").exists()


@pytest.mark.parametrize(
    ("listen", "advertise", "expected"),
    [
        ("127.0.0.1:0", None, "127.0.0.1"),
        ("localhost:0", None, "localhost"),
        ("[::1]:0", None, "::1"),
        ("0.0.0.0:0", "localhost:1234", "localhost"),
        ("127.0.0.1:0", "broker.example:1234", "broker.example"),
    ],
)
def test_what_clients_are_told_to_connect_to(
    listen: str, advertise: str | None, expected: str
) -> None:
    if "::1" in listen and not _has_ipv6_loopback():
        pytest.skip("no IPv6 loopback on this machine")
    arguments = ["--listen", listen] + (["--advertise", advertise] if advertise else [])
    with Broker(arguments=arguments, pass_listen=False) as broker:
        broker.host = listen.rpartition(":")[0]
        with WireClient(broker.bootstrap) as client:
            host, port = client.brokers()[1]
    assert host == expected
    assert port == (1234 if advertise else broker.port)


@pytest.mark.parametrize("host", ["localhost", ""])
def test_localhost_and_every_address_answer_on_both_families(host: str) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this machine")
    with Broker(host=host) as broker:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as connection:
                try:
                    connection.connect((address, broker.port))
                except OSError:
                    if family == socket.AF_INET6 and not _has_ipv6_loopback():
                        pytest.skip("no IPv6 loopback on this machine")
                    raise


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_idle_memory_is_bounded_with_a_thousand_connections() -> None:
    with Broker() as broker:
        host, port = broker.host, broker.port
        connections = [socket.create_connection((host, port)) for _ in range(1000)]
        with WireClient(broker.bootstrap) as client:
            assert client.brokers()  # all of them were accepted before this one
            used_kb = broker.rss_kb()
        for connection in connections:
            connection.close()
    assert used_kb < 60_000


def test_a_failed_start_says_why() -> None:
    broker = Broker(options={"log.dirs": "/proc/kwire"}, arguments=[])
    broker.command = lambda: [  # type: ignore[method-assign]
        sys.executable, "-m", "kwire", "serve", "--data-dir", "/proc/kwire",
    ]  # fmt: skip
    try:
        with pytest.raises(NodeFailed, match="/proc/kwire"):
            broker.start()
    finally:
        broker.close()


def test_a_broker_whose_standard_streams_are_closed_serves(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m kwire serve --listen 127.0.0.1:0 --data-dir {tmp_path}"
    process = subprocess.Popen(
        ["sh", "-c", f"{command} <&- >&-"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process.stderr:
        try:
            lines = iter(process.stderr.readline, "")
            assert any("is unfenced" in line for line in lines)
            # Else a file of a partition would have what is printed.
            for number in (0, 1):
                assert os.readlink(f"/proc/{process.pid}/fd/{number}") == os.devnull
        finally:
            process.terminate()
            status = process.wait(60)
    assert status == 0
