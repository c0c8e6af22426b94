"""What `kwire.testing.cluster` promises beside what every test of processes uses of it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kwire.node.start_error import StartError
from kwire.testing.cluster import (
    Broker,
    Cluster,
    NodeFailed,
    NodeInThread,
    NotInTime,
    ServeProcess,
    logs,
    wait_for,
)
from tests.support.kafka import ROOT
from tests.support.wire import WireClient, fetch_values, produce_values


def test_a_wait_names_what_did_not_come() -> None:
    with pytest.raises(NotInTime, match="the moon: not within 0 s"):
        wait_for(lambda: None, "the moon", timeout_s=0)
    assert wait_for(lambda: "found", "a word") == "found"


def test_a_paused_broker_is_stopped_in_order_and_keeps_its_port(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        address = broker.bootstrap
        with WireClient(address) as client:
            client.create_topic("t")
            produce_values(client, "t", 0, [b"kept"])
        broker.pause()
        assert broker.stop() == 0
        broker.start()
        assert broker.bootstrap == address
        with WireClient(address) as client:
            assert fetch_values(client, "t", 0) == [b"kept"]
        assert "broker" in logs()
    assert "broker" not in logs()


def test_an_error_in_a_clusters_block_carries_the_logs() -> None:
    cluster = Cluster(combined=(1,))

    def fails() -> None:
        with cluster:
            cluster.start()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        fails()
    (note,) = caught.value.__notes__
    assert note.startswith("node 1, the end of its log:\n")
    assert "is unfenced" in note
    assert not cluster.root.exists()


def test_a_node_that_ends_says_why() -> None:
    with Cluster(combined=(1,), settings={"log.segment.bytes": "few"}) as cluster:
        cluster[1].start()
        with pytest.raises(NodeFailed, match=r"(?s)node 1: ended with status 2.*log.segment.bytes"):
            cluster[1].wait_ready()


def test_the_log_of_a_process_that_nobody_closes_goes_with_it() -> None:
    process = ServeProcess("forgotten")
    path = process.log_path
    assert path.exists()
    del process
    gc.collect()
    assert not path.exists()


def test_a_failed_test_shows_the_logs(tmp_path: Path) -> None:
    """By the hook of tests/conftest.py."""
    (tmp_path / "test_it.py").write_text(
        "from kwire.testing.cluster import Broker\n"
        "def test_it():\n"
        "    with Broker(data_dir=__file__ + '.data') as broker:\n"
        "        broker.close = lambda: None\n"
        "    try:\n"
        "        assert 0\n"
        "    finally:\n"
        "        broker.kill()\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert "log of broker" in done.stdout
    assert "is unfenced" in done.stdout


def test_a_node_in_a_thread_that_does_not_start_leaves_no_thread(tmp_path: Path) -> None:
    node = NodeInThread(tmp_path, settings={"listeners": "PLAINTEXT://192.0.2.1:1"})
    with pytest.raises(StartError, match=r"192\.0\.2\.1"), node:
        pass
    assert node.loop.is_closed()
    assert node.thread_id not in [thread.ident for thread in threading.enumerate()]
    node.stop()  # nothing more
