"""Listeners with TLS beside one without: clients, bytes, and who does not speak TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kwire.cli.client import Client
from kwire.cli.cluster import free_ports
from kwire.client.errors import ClientError
from kwire.testing.cluster import Broker
from tests.support.certificates import Authority, Certificate, secure_options

HALF_OPEN = 300
RECORDS = 3000
PAYLOAD = bytes(range(256)) * 40


class Secure(NamedTuple):
    """A broker with the listeners PLAINTEXT, SSL and MUTUAL."""

    broker: Broker
    plain: str
    tls: str
    mutual: str
    directory: Path
    client: Certificate

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.directory / "authority.pem"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority()
    plain, tls, mutual = (f"127.0.0.1:{port}" for port in free_ports(3))
    options = secure_options(directory, authority.sign(), authority) | {
        "listeners": f"PLAINTEXT://{plain},SSL://{tls},MUTUAL://{mutual}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL",
        "listener.name.mutual.ssl.client.auth": "required",
    }
    client = authority.sign("client", ())
    client.write(directory, "client")
    with Broker(options=options, pass_listen=False) as broker:
        yield Secure(broker, plain, tls, mutual, directory, client)


def settings_of_librdkafka(secure: Secure, address: str) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SSL",
        "ssl.ca.location": str(secure.directory / "authority.pem"),
        "ssl.certificate.location": str(secure.directory / "client.pem"),
        "ssl.key.location": str(secure.directory / "client.pem"),
    }


def test_what_is_read_over_tls_is_what_was_written_byte_for_byte(secure: Secure) -> None:
    """Large replies are files handed to the kernel without TLS, and read here with it."""
    confluent_kafka = pytest.importorskip("confluent_kafka")

    producer = confluent_kafka.Producer(
        settings_of_librdkafka(secure, secure.mutual) | {"linger.ms": "50", "acks": "all"}
    )
    values = [f"{index}:".encode() + PAYLOAD for index in range(RECORDS)]
    for value in values:
        producer.produce("bytes", value)
        producer.poll(0)
    assert producer.flush(60) == 0
    plain = {"bootstrap.servers": secure.plain}
    for settings in (settings_of_librdkafka(secure, secure.tls), plain):
        consumer = confluent_kafka.Consumer(
            settings
            | {
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "fetch.message.max.bytes": "20000000",
            }
        )
        consumer.subscribe(["bytes"])
        read: list[bytes | None] = []
        while len(read) < RECORDS:
            found = consumer.consume(RECORDS, 60)
            assert found, f"only {len(read)} records"
            read += [message.value() for message in found]
        consumer.close()
        assert read == values


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python's
def test_kafka_python_and_aiokafka_are_served(secure: Secure) -> None:
    aiokafka, kafka = pytest.importorskip("aiokafka"), pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=secure.tls,
        security_protocol="SSL",
        ssl_cafile=str(secure.directory / "authority.pem"),
    )
    producer.send("python", b"one").get(timeout=60)
    producer.close()

    async def consumed() -> bytes | None:
        consumer = aiokafka.AIOKafkaConsumer(
            "python",
            bootstrap_servers=secure.tls,
            security_protocol="SSL",
            ssl_context=secure.context,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            return (await asyncio.wait_for(consumer.getone(), 60)).value
        finally:
            await consumer.stop()

    assert asyncio.run(consumed()) == b"one"


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def test_a_client_without_a_certificate_is_refused_where_one_is_required(secure: Secure) -> None:
    with socket.create_connection(address_of(secure.mutual), 30) as plain:
        plain.settimeout(30)
        # TLS 1.3: a client is done before the server has looked at its certificate.
        with (
            secure.context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
            pytest.raises(ssl.SSLError, match="certificate required"),
        ):
            connection.recv(1)


def test_who_does_not_speak_tls_is_disconnected(secure: Secure) -> None:
    api_versions = bytes.fromhex("0000000e0012000000000001000474657374")
    for sent in (
        api_versions,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    ):
        with socket.create_connection(address_of(secure.tls), 30) as connection:
            connection.settimeout(30)
            connection.sendall(sent)
            answer = connection.recv(1000)
            assert not answer or answer[0] == 0x15  # TLS's alert
            assert not answer or connection.recv(1000) == b""


def test_tls_on_a_port_without_it_is_disconnected(secure: Secure) -> None:
    with (
        socket.create_connection(address_of(secure.plain), 30) as connection,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        secure.context.wrap_socket(connection, server_hostname="127.0.0.1")


def test_commands_connect_by_a_file_of_client_properties(secure: Secure, tmp_path: Path) -> None:
    """The settings that Kafka's own commands take; what is wrong with them is one line."""
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={secure.directory}/authority.pem\n"
    own = f"ssl.keystore.type=PEM\nssl.keystore.location={secure.directory}/client.pem\n"
    told = {}
    for name, text in {
        "good": trust + own,
        "no certificate": trust,
        "nobody trusted": own,
        "no file": "ssl.truststore.type=PEM\nssl.truststore.location=/no/such.pem\n",
    }.items():
        path = tmp_path / "client.properties"
        path.write_text("security.protocol=SSL\n" + text)
        command = [sys.executable, "-m", "kwire", "topic", "list", "--bootstrap", secure.mutual]
        done = subprocess.run(
            [*command, "--command-config", str(path)], capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr
        told[name] = (done.returncode, done.stderr)
    assert told["good"][0] == 0, told
    assert told["no certificate"][0] == 1
    assert "certificate required" in told["no certificate"][1]
    assert "TLS handshake: the certificate is not trusted" in told["nobody trusted"][1]
    assert "trust store /no/such.pem cannot be read" in told["no file"][1]
    with pytest.raises(ClientError, match="if it wants TLS"), Client(secure.tls) as client:
        client.metadata([])


def test_half_open_handshakes_keep_nobody_else_out(secure: Secure) -> None:
    """Some have sent nothing, some half of what begins a handshake."""
    hello = half_a_hello(secure.context)
    waiting = []
    try:
        for index in range(HALF_OPEN):
            connection = socket.create_connection(address_of(secure.tls), 30)
            waiting.append(connection)
            if index % 2:
                connection.sendall(hello)
        with Client(secure.plain) as client:
            assert client.metadata([]).brokers
        with (
            socket.create_connection(address_of(secure.tls), 30) as plain,
            secure.context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            connection.settimeout(30)
            connection.sendall(bytes.fromhex("0000000e0012000000000001000474657374"))
            assert connection.recv(4)
    finally:
        for connection in waiting:
            connection.close()


def half_a_hello(context: ssl.SSLContext) -> bytes:
    outgoing = ssl.MemoryBIO()
    side = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        side.do_handshake()
    hello = outgoing.read()
    return hello[: len(hello) // 2]
