"""A restore or reset that fails, or is killed, leaves half a data directory: no broker starts on it
as if nothing were missing, and the next restore or reset makes it whole."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.testing import Broker, BrokerFailed, Cluster
from kwire.testing.brokers import copies

REFUSED = r"is half of what it was to be: .*; restore\(snapshot\) or reset\(\) makes it whole$"


def full_after(calls: int, real: Callable[..., object]) -> Callable[..., object]:
    """A disk that is full once it was asked for so much."""
    left = iter(range(calls))

    def call(*arguments: object, **named: object) -> object:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize(("process", "asked", "calls"), [(False, "link", 0), (True, "open", 3)])
def test_no_broker_starts_on_half_a_restore(
    monkeypatch: pytest.MonkeyPatch, process: bool, asked: str, calls: int
) -> None:
    with Broker(process=process) as broker:
        broker.topic("t").send_all(["a", "b"])
        with broker.snapshot() as taken:
            broker.topic("t").send("c")
            with monkeypatch.context() as patched:
                patched.setattr(copies.os, asked, full_after(calls, getattr(os, asked)))
                with pytest.raises(BrokerFailed, match=r"cannot be restored: .*No space left"):
                    broker.restore(taken)
            for refused in (broker.start, broker.restart, broker.snapshot, broker.fork):
                with pytest.raises(BrokerFailed, match=REFUSED):
                    refused()
            broker.restore(taken)
            assert broker.topic("t").values() == [b"a", b"b"]
            assert not [one for one in os.listdir(broker.directory) if "kwire" in one]


def test_no_broker_starts_on_half_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        broker.topic("t").send("a")
        with monkeypatch.context() as patched:
            patched.setattr(copies.os, "rename", full_after(2, os.rename))
            with pytest.raises(BrokerFailed, match="cannot be emptied"):
                broker.reset()
        with pytest.raises(BrokerFailed, match=REFUSED):
            broker.start()
        broker.reset()
        assert broker.topics() == []


KILLED = """
import os, sys
from kwire.testing import Broker
from kwire.testing.brokers import copies
broker = Broker(directory=sys.argv[1])
broker.start().topic("t").send("a")
taken = broker.snapshot()
broker.topic("t").send("b")
copies.os.link = lambda *_, **__: os._exit(9)
broker.restore(taken)
"""


def test_no_broker_starts_on_a_restore_that_was_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(data)], check=False)
    assert ended.returncode == 9
    broker = Broker(directory=data)
    with pytest.raises(BrokerFailed, match=REFUSED):
        broker.start()
    with broker.reset():
        assert broker.topics() == []


def test_no_cluster_starts_where_one_broker_is_half_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Cluster(2) as cluster:
        cluster.topic("t").send("a")
        taken = cluster.snapshot()
        cluster.topic("t").send("b")
        with monkeypatch.context() as patched:
            patched.setattr(copies.os, "link", full_after(0, os.link))
            with pytest.raises(BrokerFailed, match=r"cannot be restored: .*No space left"):
                cluster.restore(taken)
        for refused in (cluster.start, cluster[1].start, cluster[2].start, cluster.snapshot):
            with pytest.raises(BrokerFailed, match=REFUSED):
                refused()
        cluster.restore(taken)
        assert cluster.topic("t").values() == [b"a"]
