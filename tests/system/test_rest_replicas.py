"""REST beside replicas that come and go: what is acknowledged, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from kwire.testing.cluster import Cluster, free_ports
from tests.support.rest import Answer, Rest, text64
from tests.support.wire import WireClient
from tests.system.test_http import wait_for

V = {"value": text64("v")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root: Path = tmp_path_factory.mktemp("replicas")
    (port,) = free_ports(1)
    with Cluster(root, combined=(1,), brokers=(2,)) as cluster:
        cluster[1].settings["http.listeners"] = f"http://127.0.0.1:{port}"
        cluster.start()
        yield cluster


def test_too_few_replicas_are_503_until_there_are_enough(cluster: Cluster) -> None:
    rest = Rest(int(cluster[1].settings["http.listeners"].rpartition(":")[2]))
    with WireClient(f"127.0.0.1:{cluster[1].port}") as root:
        root.create_topic("replicated", configs={"min.insync.replicas": "2"})

    def isr() -> list[int]:
        told = rest.ask("GET", "/topics/replicated/metadata").told
        return sorted(told["partitions"][0]["isr"]) if "partitions" in told else []

    def refused() -> Answer | None:
        answer = rest.publish("replicated", V)
        return answer if answer.status != 200 else None

    assert wait_for(lambda: isr() == [1, 2])
    assert rest.publish("replicated", V).status == 200
    cluster[2].kill()
    assert wait_for(lambda: isr() == [1])  # the leader is 1, or becomes it
    answer = wait_for(refused)
    assert (answer.status, answer.told["error"]) == (503, "not_enough_replicas")
    assert int(answer.headers["retry-after"]) >= 1
    assert rest.publish("replicated", V, acks="1").status == 200
    cluster[2].start()
    assert wait_for(lambda: rest.publish("replicated", V).status == 200)
    assert isr() == [1, 2]
