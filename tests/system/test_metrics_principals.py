"""`/metrics` of a listener with SASL: who authenticated, who was refused, what each has moved."""

from __future__ import annotations

import asyncio
import base64
import socket

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from kwire.client.admin import Admin
from kwire.http.callers import Refused
from kwire.testing.cluster import Broker, free_ports
from tests.support.metrics import Scrape, scrape
from tests.support.sasl import USERS, sasl_settings
from tests.system.test_http import port_of, wait_for
from tests.system.test_http_callers import callers_at

WAIT_S = 60.0
SOCKETS = "kafka_server_socket_server_metrics_"
LISTENER = {"listener": "SASL_PLAINTEXT", "networkProcessor": "0"}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def ask(bootstrap: str) -> None:
    """Two users ask something, a third one has another password."""
    callers = callers_at(bootstrap, ["PLAIN"])
    try:
        for user in ("admin", "alice"):
            caller = await callers.of(basic(user, USERS[user]))
            await Admin(caller.cluster).topics.listed()
        with pytest.raises(Refused):
            await callers.of(basic("u", "another"))
    finally:
        await callers.close()


@pytest.fixture(scope="module")
def scraped() -> Scrape:
    port, sasl_port = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    options = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "http.listeners": "http://127.0.0.1:0",
        "connection.failed.authentication.delay.ms": "0",
        **sasl_settings("SASL_PLAINTEXT"),
    }
    with Broker(port=port, options=options) as broker:
        asyncio.run(asyncio.wait_for(ask(f"127.0.0.1:{sasl_port}"), WAIT_S))
        url = f"http://127.0.0.1:{port_of(broker)}/metrics"

        def without_clients() -> Scrape | None:
            found = scrape(url)
            return None if found.value(f"{SOCKETS}connection_count", **LISTENER) else found

        shown: Scrape = wait_for(without_clients)
        return shown


def test_authentications_are_counted_by_listener(scraped: Scrape) -> None:
    successful = scraped.value(f"{SOCKETS}successful_authentication_total", **LISTENER)
    failed = scraped.value(f"{SOCKETS}failed_authentication_total", **LISTENER)
    assert failed == 1
    assert successful >= 2
    created = scraped.value(f"{SOCKETS}connection_creation_total", **LISTENER)
    assert successful + failed == created
    other = {"listener": "PLAINTEXT", "networkProcessor": "0"}
    assert scraped.value(f"{SOCKETS}failed_authentication_total", **other) == 0


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the kernel does not tell")
def test_bytes_of_connections_that_have_ended_are_those_of_their_principals(
    scraped: Scrape,
) -> None:
    received, sent = (
        {
            dict(labels)["principal"]: value
            for (name, labels), value in scraped.values.items()
            if name == f"kwire_principal_{way}_bytes_total"
            and dict(labels)["listener"] == "SASL_PLAINTEXT"
        }
        for way in ("received", "sent")
    )
    assert set(received) == {"User:admin", "User:alice", "User:ANONYMOUS"}, (
        "the one refused is none"
    )
    assert min(received.values()) > 0
    assert min(sent.values()) > 0
    assert sum(received.values()) == scraped.value(f"{SOCKETS}incoming_byte_total", **LISTENER)
    assert sum(sent.values()) == scraped.value(f"{SOCKETS}outgoing_byte_total", **LISTENER)
