"""Limits on connections hold on a controller's listener by themselves, as with Apache Kafka 4.4."""

from __future__ import annotations

from pathlib import Path

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, free_adjacent_ports, wait_for
from tests.support.frames import Closed
from tests.support.limit_dialogue import BROKER, set_config
from tests.support.wire import WireClient

PER_ADDRESS = "max.connections.per.ip"


def is_refused(address: str) -> bool:
    with WireClient(address) as client:
        try:
            client.call(m.ApiVersionsRequest(), 0)
        except (Closed, OSError):
            return True
    return False


def test_a_controller_has_the_same_limits_as_a_broker_each_for_itself(tmp_path: Path) -> None:
    port = free_adjacent_ports()
    controller = f"127.0.0.1:{port + 1}"
    options = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.name.controller.max.connections": "2",
    }
    with (
        Broker(data_dir=tmp_path / "data", options=options, pass_listen=False) as broker,
        WireClient(broker.bootstrap) as admin,
        WireClient(broker.bootstrap) as another,
    ):
        with WireClient(controller) as first, WireClient(controller) as second:
            for client in (first, second):
                client.call(m.ApiVersionsRequest(), 0)
            with WireClient(controller) as third:
                third.send(m.ApiVersionsRequest(), 0)
                assert another.cluster_id(), "others are not held up"
                first.close()
                assert third.receive().error_code == 0
        assert set_config(admin, BROKER, "", PER_ADDRESS, "1") == [0, None]
        wait_for(lambda: is_refused(broker.bootstrap), "an address may have one connection", 30)
        assert another.cluster_id(), "those that are open stay"
        with WireClient(controller) as first:
            first.call(m.ApiVersionsRequest(), 0)
            assert is_refused(controller)
