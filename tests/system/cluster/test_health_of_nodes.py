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

pytest.importorskip("uvicorn")

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
