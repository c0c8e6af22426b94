"""`kwire proxy` in front of Apache Kafka: clients get what they get of kwire, and a trace of one is
answered alike by the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.testing import Broker
from tests.support.kafka import running_kafka
from tests.support.proxies import CLIENTS, ProxyProcess, kwire

INTERNAL = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_kafka(tmp_path_factory.mktemp("kafka"), INTERNAL) as bootstrap:
        yield bootstrap


def recorded(target: str, path: Path, beside: str | None = None) -> None:
    """What all clients do at `target`, with the same results as at `beside`."""
    with ProxyProcess(target, "--trace", str(path)) as proxy:
        for number, run in enumerate(CLIENTS):
            names = f"{path.stem}-{number}", f"{path.stem}-group-{number}"
            through = run(proxy.address, *names)
            if beside is not None:
                assert through == run(beside, *names)
    assert proxy.stop() == 0


def test_clients_of_kafka_behind_a_proxy(kafka: str, tmp_path: Path) -> None:
    path = tmp_path / "kafka.trace"
    with Broker() as beside, Broker() as fresh:
        recorded(kafka, path, beside.bootstrap)
        again = kwire("trace", "replay", str(path), fresh.bootstrap)
        assert (again.returncode, again.stderr) == (0, ""), again.stdout


def test_a_trace_of_kwire_is_answered_alike_by_kafka(kafka: str, tmp_path: Path) -> None:
    path = tmp_path / "kwire.trace"
    with Broker() as broker:
        recorded(broker.bootstrap, path)
    again = kwire("trace", "replay", str(path), kafka)
    assert (again.returncode, again.stderr) == (0, ""), again.stdout
