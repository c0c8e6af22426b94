"""A node with nothing attached loads no code for what it does not do: a start would pay for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import asyncio, sys
from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import new_event_loop
from kwire.node.node import Node

UNUSED = (
    "kwire.client", "kwire.http.", "kwire.metrics", "kwire.network.tls_connection",
    "kwire.node.audit", "kwire.node.authentication", "kwire.node.jwks", "kwire.quota.client_quotas",
    "kwire.quota.mutations", "kwire.security.acls.standard_authorizer", "kwire.security.audit",
    "kwire.security.sasl", "kwire.security.tls", "kwire.server.sasl_connection", "cryptography",
)
USED = ("kwire.node.audit_settings",)

async def started(directory):
    overrides = {
        "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory, "http.listeners": ""
    }
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    await node.stop()

loop = new_event_loop()
loop.run_until_complete(started(sys.argv[1]))
loop.close()
print(*[name for name in sorted(sys.modules) if name.startswith(UNUSED) and name not in USED])
"""


def test_a_plain_node_loads_nothing_for_security_quotas_http_and_metrics(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
