"""Certificates are replaced and users removed while clients write: nobody else's connection ends.

Three brokers that ask everybody for TLS and a login, each other too. Every client has one
connection, logs in anew on it (KIP-368), and writes with acks=all; what ends a connection, or
answers it with an error, is told.
"""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Cluster, wait_for
from tests.support.certificates import Authority, secure_options
from tests.support.sasl import SCRAM_MODULE, USERS, sasl_settings
from tests.wire import Conn, batch, produce_fields

SCRAM, SHA_512, ITERATIONS = "SCRAM-SHA-512", 2, 4096
SESSION_MS = 12_000
LOGIN_EVERY_S = 1.0
"""Far within a session, so that a machine that stands still for a moment ends none."""

CLIENTS = ("one", "two", "three", "four", "five", "six")
REMOVED, SILENT = "removed", "silent"
PASSWORD = "a-password-of-the-test"
TOPIC, PARTITIONS = "load", 3
OWN = "listener.name.plaintext.ssl."
BROKER, SET, INVALID_REQUEST, NO_RIGHTS = 4, 0, 42, 58
# Slow machines: no broker is taken for dead, and no leadership moves.
CALM = {
    "broker.session.timeout.ms": 60_000,
    "controller.quorum.fetch.timeout.ms": 60_000,
}


def settings_of(directory: Path, authority: Authority) -> dict[str, Any]:
    directory.mkdir()
    return secure_options(directory, authority.sign("node"), authority)


class Client(threading.Thread):
    """Writes until it is told to end, or its connection does; `ended_by` says what ended it."""

    def __init__(self, address: str, tls: ssl.SSLContext, name: str, partition: int) -> None:
        super().__init__(daemon=True)
        self.name, self.partition = name, partition
        self.acknowledged = 0
        self.ended_by: BaseException | None = None
        self._ending = threading.Event()
        self._renews = name != SILENT
        self._connection = Conn(address, tls=tls)
        try:
            self._login()
        except BaseException:
            self._connection.close()
            raise

    def _login(self) -> None:
        self._connection.sasl(SCRAM, self.name, PASSWORD)
        self._next_login_s = time.monotonic() + LOGIN_EVERY_S

    def run(self) -> None:
        records = batch([self.name.encode()])
        try:
            while not self._ending.is_set():
                if self._renews and time.monotonic() > self._next_login_s:
                    self._login()
                fields = produce_fields(TOPIC, {self.partition: records})
                answer = self._connection.send("produce", 9, **fields)
                code = answer.responses[0].partition_responses[0].error_code
                assert code == 0, f"produce is answered {code}"
                self.acknowledged += 1
        except BaseException as error:
            self.ended_by = error
        finally:
            self._connection.close()

    def end(self) -> None:
        self._ending.set()
        self.join(60)


class Secured:
    """The cluster, its authority, and what an administrator does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.authority = Authority()
        self.tls = ssl.create_default_context(cadata=self.authority.pem)
        self.cluster = Cluster(
            root / "cluster",
            settings={
                "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "connections.max.reauth.ms": SESSION_MS,
                "min.insync.replicas": 2,
                **CALM,
                **sasl_settings("PLAINTEXT", "CONTROLLER", own="admin"),
                "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
                f"listener.name.plaintext.{SCRAM.lower()}.sasl.jaas.config": (
                    f"{SCRAM_MODULE} required;"
                ),
            },
        )
        for node in self.cluster:
            node.settings |= settings_of(self.folder(node.node_id), self.authority)
        self.cluster.start()

    def folder(self, node_id: int) -> Path:
        return self.root / f"stores-{node_id}"

    def admin(self, node_id: int = 1) -> Conn:
        login = ("PLAIN", "admin", USERS["admin"])
        return Conn(self.cluster[node_id].bootstrap, tls=self.tls, sasl=login)

    def serial(self, node_id: int) -> str:
        """Of the certificate that a broker shows to who connects now."""
        with Conn(self.cluster[node_id].bootstrap, tls=self.tls) as connection:
            assert isinstance(connection.sock, ssl.SSLSocket)
            certificate = connection.sock.getpeercert()
            assert certificate is not None
            return str(certificate["serialNumber"])

    def change_user(self, name: str, removed: bool = False) -> None:
        salted = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), b"a salt", ITERATIONS)
        user = {"name": name, "mechanism": SHA_512}
        upsertion = user | {"iterations": ITERATIONS, "salt": b"a salt", "salted_password": salted}
        with self.admin() as connection:
            answer = connection.send(
                "alter_user_scram_credentials",
                0,
                deletions=[user] if removed else [],
                upsertions=[] if removed else [upsertion],
            )
        assert not answer.results[0].error_code, answer

    def change_store(self, node_id: int, path: Path) -> tuple[int, str]:
        """What `kafka-configs --alter` of a broker's key store is answered."""
        config = {"name": f"{OWN}keystore.location", "config_operation": SET, "value": str(path)}
        resource = {"resource_type": BROKER, "resource_name": str(node_id), "configs": [config]}
        with self.admin(node_id) as connection:
            answer = connection.send(
                "incremental_alter_configs", 1, resources=[resource], validate_only=False
            )
        return answer.responses[0].error_code, answer.responses[0].error_message

    def leaders(self) -> dict[int, int]:
        """Of the topic's partitions."""
        with self.admin() as connection:
            answer = connection.send(
                "metadata", 9, topics=[{"name": TOPIC}], allow_auto_topic_creation=False
            )
        topic = answer.topics[0]
        return {each.partition_index: each.leader_id for each in topic.partitions}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("load"))
    with made.cluster:
        for name in (*CLIENTS, REMOVED, SILENT):
            made.change_user(name)
        topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 3}
        topic |= {"assignments": [], "configs": []}
        with made.admin() as connection:
            answer = connection.send("create_topics", 5, topics=[topic], timeout_ms=30_000)
            assert answer.topics[0].error_code == 0, answer
        yield made


class Load:
    """The clients of a cluster, while the block runs."""

    def __init__(self, secured: Secured, names: tuple[str, ...]) -> None:
        self._secured = secured
        wait_for(lambda: set(secured.leaders()) == set(range(PARTITIONS)), "there are leaders")
        leaders = secured.leaders()
        self.clients = [
            Client(
                secured.cluster[leaders[index % PARTITIONS]].bootstrap,
                secured.tls,
                name,
                index % PARTITIONS,
            )
            for index, name in enumerate(names)
        ]

    def __enter__(self) -> Load:
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.end()

    def goes_on(self, *gone: str) -> None:
        """Everybody writes, but who is gone."""
        before = {client: client.acknowledged for client in self.clients}
        for client in self.clients:
            if client.name not in gone:
                wait_for(
                    lambda client=client: (
                        client.ended_by is not None
                        or client.acknowledged > before[client] + PARTITIONS
                    ),
                    f"{client.name} goes on",
                )
                assert client.ended_by is None, (client.name, client.ended_by)

    def __getitem__(self, name: str) -> Client:
        (found,) = [client for client in self.clients if client.name == name]
        return found


def test_certificates_are_replaced_under_load(secured: Secured) -> None:
    with Load(secured, CLIENTS) as load:
        load.goes_on()
        before = {node: secured.serial(node) for node in (1, 2, 3)}
        for node in (1, 2, 3):  # by files that change
            secured.authority.sign("node").write(secured.folder(node), "node")
        for node in (1, 2, 3):
            wait_for(lambda node=node: secured.serial(node) != before[node], "it is shown")
        load.goes_on()
        for node in (1, 2, 3):  # by settings
            serial = secured.serial(node)
            path = secured.authority.sign("node").write(secured.folder(node), "next")
            code, text = secured.change_store(node, path)
            assert code == 0, text
            wait_for(lambda node=node, serial=serial: secured.serial(node) != serial, "it is shown")
        load.goes_on()


def test_an_expired_certificate_is_refused_and_the_old_one_stays(secured: Secured) -> None:
    with Load(secured, CLIENTS) as load:
        for node in (1, 2, 3):
            serial = secured.serial(node)
            bad = secured.authority.sign("node", days=(-30, -3))
            code, text = secured.change_store(node, bad.write(secured.folder(node), "expired"))
            assert code == INVALID_REQUEST, text
            assert "certificate has expired" in text
            assert secured.serial(node) == serial
        load.goes_on()


def test_a_removed_user_is_out_at_its_next_login_and_nobody_else(secured: Secured) -> None:
    names = (*CLIENTS, REMOVED, SILENT)
    with Load(secured, names) as load:
        load.goes_on()
        for name in (REMOVED, SILENT):
            secured.change_user(name, removed=True)
        wait_for(lambda: load[REMOVED].ended_by is not None, "the removed user is out")
        assert f"error {NO_RIGHTS}" in str(load[REMOVED].ended_by)
        # Who does not log in anew goes on until the session ends, and not for longer.
        wait_for(lambda: load[SILENT].ended_by is not None, "the silent one is out")
        load.goes_on(REMOVED, SILENT)
        with pytest.raises(AssertionError, match=f"error {NO_RIGHTS}"):
            Client(secured.cluster[1].bootstrap, secured.tls, REMOVED, 0)
