"""kwire and Apache Kafka in one cluster whose brokers and controllers log in at each other by TLS;
users and tokens made by one are used at the other, together and in each other's data directory."""

from __future__ import annotations

import base64
import hashlib
import shutil
import ssl
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kwire.testing.cluster import Cluster, KwireNode, Node, wait_for
from tests.support.certificates import Authority, secure_options
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode
from tests.support.sasl import SCRAM_MODULE, sasl_settings
from tests.wire import Conn
from tests.wire.scram import Scram

SHA = "SCRAM-SHA-256"
SECURE = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "connections.max.reauth.ms": 5000,
    "delegation.token.secret.key": "of-both-kinds",
    "min.insync.replicas": 2,
    # A JVM that starts takes its time: no session ends meanwhile.
    "broker.session.timeout.ms": 9000,
    **sasl_settings("PLAINTEXT", "CONTROLLER", own="admin"),
    "sasl.enabled.mechanisms": f"PLAIN,{SHA}",
    **{
        f"listener.name.{name}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;"
        for name in ("plaintext", "controller")
    },
}
KWIRE, KAFKA = 1, 2
AUTHORITY = Authority()
TLS = ssl.create_default_context(cadata=AUTHORITY.pem)


@pytest.fixture(scope="module", params=["kwire controls", "Kafka controls"])
def cluster(request: Any) -> Iterator[Cluster]:
    """Node 1 is kwire's, node 2 Kafka's; one of them is the controller, too."""
    kafka_libs()
    first, other = (KWIRE, KAFKA) if request.param == "kwire controls" else (KAFKA, KWIRE)
    with Cluster(
        combined=(first,), brokers=(other,), kinds={KAFKA: KafkaNode}, settings=SECURE
    ) as cluster:
        for node in cluster:
            directory = cluster.root / f"stores-{node.node_id}"
            directory.mkdir()
            node.settings |= secure_options(directory, AUTHORITY.sign("node"), AUTHORITY)
        cluster.start()
        yield cluster


def logged_in(cluster: Cluster, node: int) -> Conn:
    return Conn(cluster[node].bootstrap, tls=TLS, sasl=("PLAIN", "alice", "alice-secret"))


def is_accepted(node: Node, name: str, password: str, token: bool = False) -> bool:
    with Conn(node.bootstrap, tls=TLS) as client:
        assert client.send("sasl_handshake", 1, mechanism=SHA).error_code == 0
        scram = Scram(SHA, name, password)
        first = scram.first()
        if token:
            first += b",tokenauth=true"
            scram.first_bare += ",tokenauth=true"
        answer = client.send("sasl_authenticate", 2, auth_bytes=first)
        if answer.error_code:
            return False
        final = scram.final(answer.auth_bytes)
        return not client.send("sasl_authenticate", 2, auth_bytes=final).error_code


def test_replicas_of_both_kinds_are_in_sync_through_the_end_of_sessions(cluster: Cluster) -> None:
    topic = {"name": "both", "num_partitions": 4, "replication_factor": 2}
    topic |= {"assignments": [], "configs": []}
    with logged_in(cluster, KWIRE) as client:
        made = client.send("create_topics", 5, topics=[topic], timeout_ms=30_000)
        assert made.topics[0].error_code == 0, made

    def is_in_sync() -> bool:
        with logged_in(cluster, KWIRE) as client:
            asked = [{"name": "both"}]
            answer = client.send("metadata", 9, topics=asked, allow_auto_topic_creation=False)
            return all(len(each.isr_nodes) == 2 for each in answer.topics[0].partitions)

    wait_for(is_in_sync, "the replicas of both kinds are in sync")


class Made(NamedTuple):
    """A user and a token: the name and the password of each."""

    name: str
    password: str
    token_id: str
    secret: str

    def are_known(self, node: Node) -> bool:
        return is_accepted(node, self.name, self.password) and is_accepted(
            node, self.token_id, self.secret, True
        )


def make(cluster: Cluster, node: int, name: str) -> Made:
    """A user of that name and a token, by way of that node."""
    password = "a password"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"a salt", 4096)
    user = {"name": name, "mechanism": 1, "iterations": 4096, "salt": b"a salt"}
    user["salted_password"] = salted
    with logged_in(cluster, node) as client:
        answer = client.send("alter_user_scram_credentials", 0, deletions=[], upsertions=[user])
        assert not answer.results[0].error_code, answer
        create = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
        token = client.send("create_delegation_token", 3, **create, max_lifetime=600_000)
        assert token.error_code == 0, token
    return Made(name, password, token.token_id, base64.b64encode(token.hmac).decode())


@pytest.mark.parametrize(("made", "used"), [(KWIRE, KAFKA), (KAFKA, KWIRE)])
def test_users_and_tokens_of_one_are_the_others(cluster: Cluster, made: int, used: int) -> None:
    found = make(cluster, made, f"user-{made}")
    for node in (cluster[made], cluster[used]):
        wait_for(lambda node=node: found.are_known(node), "the user and the token are known")
        assert not is_accepted(node, found.name, "another password")
        assert not is_accepted(node, found.token_id, "another", True)


def test_users_and_tokens_are_in_the_data_directory_of_either(cluster: Cluster) -> None:
    """The last one: the directory of the controller is opened by the other kind of node."""
    (first,) = cluster.controllers
    found = make(cluster, first.node_id, "of-the-directory")
    for node in cluster.brokers:
        if node is not first:
            node.kill()
    first.stop()
    kind = KafkaNode if isinstance(first, KwireNode) else KwireNode
    other = kind(first.place)
    shutil.copytree(first.data, other.data)
    other.settings = {**first.settings, "log.dirs": str(other.data)}
    try:
        other.start()
        other.wait_ready()
        wait_for(lambda: found.are_known(other), "the user and the token are known")
        assert not is_accepted(other, found.name, "another password")
    finally:
        other.close()
