"""REST beside replicas that come and go, with and without logins: what is acknowledged, and what
is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("msgspec")

from kwire.testing.cluster import Cluster, free_ports
from tests.support.rest import Answer, Rest, text64
from tests.support.wire import WireClient
from tests.system.cluster.test_sasl import SECURE, Client
from tests.system.test_http import wait_for
from tests.system.test_http_callers import ADMIN, USERS

V = {"value": text64("v")}


SECURED = {
    **SECURE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "http.authentication": "basic",
}


class World(NamedTuple):
    """Two brokers, a caller who may do everything, and a client beside."""

    cluster: Cluster
    rest: Rest
    root: WireClient


@pytest.fixture(params=["open", "secured"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    is_secured = request.param == "secured"
    (port,) = free_ports(1)
    settings = SECURED if is_secured else {}
    with Cluster(tmp_path, combined=(1,), brokers=(2,), settings=settings) as cluster:
        cluster[1].settings["http.listeners"] = f"http://127.0.0.1:{port}"
        cluster.start()
        headers = {"Authorization": ADMIN} if is_secured else {}
        bootstrap = cluster[1].bootstrap
        with (
            Client(bootstrap, "admin", USERS["admin"]) if is_secured else WireClient(bootstrap)
        ) as root:
            yield World(cluster, Rest(port, headers), root)


def test_too_few_replicas_are_503_until_there_are_enough(world: World) -> None:
    cluster, rest, root = world
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
