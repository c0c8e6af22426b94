"""TLS settings of a listener that change while it serves: answered as Kafka answers, taken over."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
from pathlib import Path
from typing import Any

from kwire.cli.client import Client
from kwire.cli.cluster import free_ports
from kwire.testing.cluster import Broker, wait_for
from tests.support.certificates import Authority
from tests.support.config_scenario import BROKER, DELETE, SET
from tests.support.config_scenario import _change as change
from tests.support.tls_scenario import OWN, RECORDED, play, prepare
from tests.system.test_http import port_of

API_VERSIONS = bytes.fromhex("0000000e0012000000000001000474657374")


def broker_of(settings: dict[str, str]) -> tuple[Broker, str, str]:
    plain, tls = (f"127.0.0.1:{port}" for port in free_ports(2))
    options = settings | {"listeners": f"PLAINTEXT://{plain},SSL://{tls}"}
    return Broker(options=options, pass_listen=False), plain, tls


def without_order(answer: Any) -> Any:
    """Java lists alternative names in an order of its own."""
    return re.sub(r"SAN=\[\[.*?\]\]", "SAN", json.dumps(answer))


def is_meant(changes: Any, kafka: Any, ours: Any) -> bool:
    """What Kafka takes, and no client can connect with; what Java cannot decrypt."""
    text = json.dumps(changes)
    if "mismatched.pem" in text:
        return kafka[0] == 0 and "Failed to load PEM SSL keystore" in ours[1]
    return "encrypted.pem" in text and len(changes) == 2 and ours[0] == 0


def test_changes_are_answered_as_kafka_answers_them(tmp_path: Path) -> None:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    broker, plain, _ = broker_of(prepare(tmp_path))
    with broker:
        answers = play(plain, tmp_path)
    assert [answer[:2] for answer in answers] == [answer[:2] for answer in recorded]
    differences = [
        (changes, kafka, ours)
        for (_, changes, kafka), (_, _, ours) in zip(recorded, answers)
        if without_order(kafka) != without_order(ours) and not is_meant(changes, kafka, ours)
    ]
    assert differences == []


def connected(address: str, trusted: str) -> ssl.SSLSocket:
    host, _, port = address.rpartition(":")
    plain = socket.create_connection((host, int(port)), 30)
    context = ssl.create_default_context(cadata=trusted)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def serial_of(address: str, trusted: str) -> Any:
    with connected(address, trusted) as connection:
        certificate = connection.getpeercert()
        assert certificate is not None
        return certificate["serialNumber"]


def test_a_file_that_changes_is_taken_over_and_connections_go_on(tmp_path: Path) -> None:
    """A bad one is not: the listener serves with the one before."""
    authority = Authority()
    path = authority.sign("node").write(tmp_path, "node")
    settings = {OWN + "keystore.type": "PEM", OWN + "keystore.location": str(path)}
    broker, plain, tls = broker_of(settings)
    with broker, Client(plain) as client:
        before = serial_of(tls, authority.pem)
        with connected(tls, authority.pem) as connection:
            path.write_text("half a file")
            # Files are looked at every few seconds, and with every change of a setting.
            assert change(client, BROKER, "", [("max.connections", SET, "1000")]) == [0, None]
            wait_for(lambda: "those before stay" in broker.process.log_text(), "it is refused")
            assert serial_of(tls, authority.pem) == before
            authority.sign("node").write(tmp_path, "node")
            wait_for(lambda: serial_of(tls, authority.pem) != before, "the new one is shown")
            after = serial_of(tls, authority.pem)
            # Whoever writes the same setting again need not wait for the next look.
            authority.sign("node").write(tmp_path, "node")
            changes = [(OWN + "keystore.location", SET, str(path))]
            assert change(client, BROKER, "1", changes) == [0, None]
            wait_for(lambda: serial_of(tls, authority.pem) != after, "the newest is shown")
            connection.sendall(API_VERSIONS)
            assert connection.recv(4)


OF_HTTPS = "listener.name.https.ssl.keystore.location"


def test_https_follows_changed_settings_and_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    authority = Authority()
    first = authority.sign("node").write(tmp_path, "first")
    second = authority.sign("node").write(tmp_path, "second")
    third = authority.sign("node").write(tmp_path, "third")
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(first)}
    listener = {"http.listeners": "https://127.0.0.1:0"}
    with Broker(options=settings | listener) as broker, Client(broker.bootstrap) as client:
        address = f"127.0.0.1:{port_of(broker)}"

        def change_to(path: Path) -> Any:
            return change(client, BROKER, "1", [(OF_HTTPS, SET, str(path))])

        # One that is not served yet has the settings of the time when it is.
        assert change_to(second) == [0, None]
        before = serial_of(address, authority.pem)
        assert change_to(third) == [0, None]
        wait_for(lambda: serial_of(address, authority.pem) != before, "the new store is shown")
        after = serial_of(address, authority.pem)
        (tmp_path / "none").write_text("nothing")
        code, message = change_to(tmp_path / "none")
        assert code == 42
        assert "SSLFactory" in message
        assert serial_of(address, authority.pem) == after
        change(client, BROKER, "1", [(OF_HTTPS, DELETE, None)])
        wait_for(
            lambda: serial_of(address, authority.pem) not in (before, after),
            "the one of the configuration is shown",
        )
