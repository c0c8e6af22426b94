"""Limits on connections, seen by clients: who waits, who is closed, and that others notice nothing.

Measured beside Apache Kafka 4.4 by `tests/differential/test_connection_limits.py`.
"""

from __future__ import annotations

import contextlib

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, free_ports, wait_for
from tests.support.frames import Closed
from tests.support.wire import WireClient

SET, DELETE = 0, 1
BROKER = 4
CONFIGS = m.IncrementalAlterConfigsRequest


def alter(client: WireClient, **settings: str | None) -> None:
    """Set dynamic configs of the cluster, None takes one away."""
    resource = CONFIGS.AlterConfigsResource(
        resource_type=BROKER,
        resource_name="",
        configs=[
            CONFIGS.AlterableConfig(
                name=name.replace("_", "."),
                config_operation=DELETE if text is None else SET,
                value=text,
            )
            for name, text in settings.items()
        ],
    )
    response = client.call(CONFIGS(resources=[resource]), 1)
    assert [one.error_code for one in response.responses] == [0], response


def set_address_rate(client: WireClient, address: str | None, rate: int) -> None:
    request = m.AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntityData(entity_type="ip", entity_name=address)],
        ops=[request.OpData(key="connection_creation_rate", value=float(rate))],
    )
    response = client.call(request(entries=[entry]), 1)
    assert [one.error_code for one in response.entries] == [0], response


def test_beyond_max_connections_a_client_waits_until_another_has_gone() -> None:
    broker = Broker(options={"max.connections": 2})
    with broker, WireClient(broker.bootstrap) as first, WireClient(broker.bootstrap) as second:
        cluster_id = first.cluster_id()
        second.cluster_id()
        with WireClient(broker.bootstrap) as third:
            third.send(m.MetadataRequest(topics=[]), 12)
            first.cluster_id()  # the third was accepted in between, and is not served
            third.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                third.socket.recv(1)
            third.socket.setblocking(True)
            second.close()
            assert third.receive().cluster_id == cluster_id


def test_a_lowered_limit_closes_the_least_recently_used_and_no_broker() -> None:
    outside, inside = free_ports(2)
    options = {
        "listeners": f"OUT://127.0.0.1:{outside},IN://127.0.0.1:{inside}",
        "listener.security.protocol.map": "OUT:PLAINTEXT,IN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "IN",
    }
    broker = Broker(options=options, pass_listen=False, port=outside)
    with broker, WireClient(f"127.0.0.1:{inside}") as between:
        between.cluster_id()
        with WireClient(broker.bootstrap) as old, WireClient(broker.bootstrap) as new:
            old.cluster_id()
            new.cluster_id()
            alter(between, max_connections="2")
            old.expect_closed()
            assert new.cluster_id() == between.cluster_id()
            alter(between, max_connections=None)


def test_a_flood_of_one_address_is_turned_away() -> None:
    with Broker() as broker, WireClient(broker.bootstrap) as client:
        set_address_rate(client, "127.0.0.1", 1)

        def is_closed() -> bool:
            with WireClient(broker.bootstrap) as flood:
                try:
                    flood.cluster_id()
                except Closed:
                    return True
                return False

        wait_for(is_closed, "a connection that comes too early is closed", 30)
        set_address_rate(client, "127.0.0.1", 1_000_000)
        wait_for(lambda: not is_closed(), "the next is served", 30)


def test_new_connections_beyond_the_creation_rate_are_served_later() -> None:
    broker = Broker(options={"max.connection.creation.rate": 5, "quota.window.num": 2})
    with broker, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(WireClient(broker.bootstrap)) for _ in range(20)]
        for client in clients:  # ten of them are a burst
            client.send(m.MetadataRequest(topics=[]), 12)
        assert len({client.receive().cluster_id for client in clients}) == 1
