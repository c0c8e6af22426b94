"""Three nodes that log in at each other's listeners, brokers and controllers alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.sasl import sasl_settings
from tests.support.wire import WireClient, produce_values
from tests.wire import Conn

SECURE = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    **sasl_settings("PLAINTEXT", "CONTROLLER", own="admin"),
}
SESSION_MS = 2000
SHORT_SESSIONS = {"connections.max.reauth.ms": str(SESSION_MS)}


def secured(settings: Mapping[str, str] = SECURE, **nodes: object) -> Cluster:
    return Cluster(settings={**settings, "min.insync.replicas": 2}, **nodes)  # type: ignore[arg-type]


class Client(WireClient):
    """One that has logged in by PLAIN."""

    def __init__(self, bootstrap: str, user: str = "alice", password: str = "alice-secret") -> None:
        super().__init__(bootstrap)
        handshake = self.call(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert handshake.error_code == 0
        token = f"\0{user}\0{password}".encode()
        answer = self.call(m.SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == 0, answer.error_message


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secured({**SECURE, **SHORT_SESSIONS}) as cluster:
        cluster.start()
        yield cluster


def create(client: WireClient, name: str) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=3, replication_factor=3, assignments=[], configs=[]
    )
    answer = client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    assert answer.topics[0].error_code == 0, answer


def test_records_are_replicated_and_requests_forwarded_by_brokers_that_log_in(
    cluster: Cluster,
) -> None:
    """A topic is made through every broker, two of which forward; all replicas get in sync, and
    stay so when the sessions between nodes have ended several times."""
    for node in cluster.brokers:
        with Client(node.bootstrap) as client:
            create(client, f"by-{node.node_id}")

    def is_in_sync() -> bool:
        with Client(cluster[1].bootstrap) as client:
            topic = client.metadata(["by-1"]).topics[0]
            return all(len(partition.isr_nodes) == 3 for partition in topic.partitions)

    wait_for(is_in_sync, "all replicas are in sync")
    end_s = time.monotonic() + 2.5 * SESSION_MS / 1000
    while time.monotonic() < end_s:  # each by a connection of its own, which is short
        with Client(cluster[1].bootstrap) as client:
            leader = client.metadata(["by-1"]).topics[0].partitions[0].leader_id
        with Client(cluster[leader].bootstrap) as client:
            produce_values(client, "by-1", 0, [b"x"])  # acks=all, two replicas at least
    assert is_in_sync()


def test_nobody_gets_in_at_a_controllers_listener(cluster: Cluster) -> None:
    with Conn(cluster[1].controller_address) as connection:
        connection.post("metadata", 12, topics=None)
        assert connection.closed_within(30)


def test_a_node_with_a_wrong_password_stays_outside() -> None:
    """It says why, once an attempt; the others go on."""
    with secured() as cluster:
        name = "listener.name.controller.plain.sasl.jaas.config"
        cluster[3].settings[name] = (
            cluster[3].settings[name].replace('password="admin-secret"', 'password="wrong-secret"')
        )
        for node in cluster:
            node.start()
        cluster[1].wait_ready()
        cluster[2].wait_ready()
        wait_for(lambda: "does not let this node log in" in cluster[3].log_text(), "it is refused")
        text = cluster[3].log_text()
        assert "Invalid username or password" in text
        assert "secret" not in text
