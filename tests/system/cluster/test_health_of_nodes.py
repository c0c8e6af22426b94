"""A broker that has lost its controller lives and is not ready; `kwire info` and the probe of the
image say so in the words of `/health/ready`."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Cluster, Node, free_ports, wait_for
from tests.support.metrics import scrape

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

WAIT_S = 60.0


def asked(node: Node, path: str) -> tuple[int, dict[str, Any]]:
    """(status, answer)"""
    address = node.settings["http.listeners"].removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=WAIT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def info(node: Node, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kwire", "info", *arguments, "--bootstrap", node.bootstrap]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)


def test_a_broker_without_a_controller_is_not_ready(tmp_path: Path) -> None:
    with Cluster(tmp_path, combined=(), controllers=(1,), brokers=(2,)) as nodes:
        for node, port in zip(nodes, free_ports(2)):
            node.settings["http.listeners"] = f"http://127.0.0.1:{port}"
        nodes.start()
        controller, broker = nodes[1], nodes[2]
        up = (200, {"status": "up", "reasons": []})
        assert asked(broker, "/health/ready") == asked(controller, "/health/ready") == up
        controller.kill()
        reason = "node 2: no controller answers its heartbeats"
        wait_for(lambda: asked(broker, "/health/ready")[1]["reasons"] == [reason], reason, WAIT_S)
        assert asked(broker, "/health/ready")[0] == 503
        assert asked(broker, "/health/live") == up
        told = info(broker, "--json")
        assert told.returncode == 1
        assert json.loads(told.stdout)["reasons"] == [reason]
        assert info(broker, "--quiet").returncode == 1
        controller.start()
        controller.wait_ready()
        wait_for(lambda: asked(broker, "/health/ready") == up, "the broker is ready again", WAIT_S)


def test_a_node_that_waits_for_the_others_lives_and_is_not_ready(tmp_path: Path) -> None:
    """An orchestrator that got no answer while a quorum was missing ended the nodes one by one."""
    with Cluster(tmp_path) as nodes:
        for node, port in zip(nodes, free_ports(3)):
            node.settings["http.listeners"] = f"http://127.0.0.1:{port}"
        first = nodes[1]
        first.start()
        wait_for(lambda: _answers(first), "HTTP is answered", WAIT_S)
        assert asked(first, "/health/live") == (200, {"status": "up", "reasons": []})
        status, told = asked(first, "/health/ready")
        assert (status, told["status"]) == (503, "down")
        assert "node 1: no active controller is known" in told["reasons"]
        url = f"{first.settings['http.listeners']}/metrics"
        assert scrape(url).value("kafka_server_kafkaserver_brokerstate") < 3
        for other in (nodes[2], nodes[3]):
            other.start()
        for node in nodes:
            node.wait_ready()
        up = (200, {"status": "up", "reasons": []})
        wait_for(lambda: asked(first, "/health/ready") == up, "it is ready", WAIT_S)


def _answers(node: Node) -> bool:
    try:
        return asked(node, "/health/live")[0] == 200
    except ConnectionRefusedError:  # it has no address yet
        return False
