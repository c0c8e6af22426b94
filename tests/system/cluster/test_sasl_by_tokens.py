"""Nodes that log in at each other by tokens of an issuer, and clients that do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.client.connection import Connection, open_connection
from kwire.client.properties import settings_of
from kwire.clock import SystemClock, SystemRandom
from kwire.network.buffers import BufferPool
from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.issued_logins import SECRET, IssuedLogins

LIFETIME_S = 10
"""A token that a slow machine uses late is still one."""


@pytest.fixture(scope="module")
def logins() -> Iterator[IssuedLogins]:
    """An issuer, whom everybody may ask."""
    logins = IssuedLogins(LIFETIME_S)
    with logins.endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", logins.allowed)
        yield logins


@pytest.fixture(scope="module")
def cluster(logins: IssuedLogins) -> Iterator[Cluster]:
    with Cluster(
        combined=(1,), brokers=(2,), settings={**logins.node(), "min.insync.replicas": 2}
    ) as cluster:
        cluster.start()
        yield cluster


def properties(path: Path, logins: IssuedLogins) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in logins.client().items()))
    return path


def test_nodes_renew_their_tokens_and_stay_in_sync(
    cluster: Cluster, logins: IssuedLogins, tmp_path: Path
) -> None:
    """Brokers and controllers stay connected beyond the end of their first tokens."""
    config = properties(tmp_path / "client.properties", logins)
    command = [sys.executable, "-m", "kwire", "topic", "create", "t", "-r", "2"]
    command += ["-b", cluster[2].bootstrap, "--command-config", str(config)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    before = logins.tokens
    wait_for(lambda: logins.tokens >= before + 4, "tokens are renewed")
    for node in (1, 2):
        isr = asyncio.run(_in_sync(cluster[node].bootstrap, logins))
        assert isr == [1, 2]
        log = cluster[node].log_text()
        assert SECRET not in log
        assert "does not let this node log in" not in log
    assert all(SECRET not in str(asked.headers) + asked.body for asked in logins.endpoint.asked)


async def _in_sync(bootstrap: str, logins: IssuedLogins) -> list[int]:
    connection = await _connected(bootstrap, logins)
    try:
        topics = [m.MetadataRequest.MetadataRequestTopic(name="t")]
        answer = await connection.call(m.MetadataRequest(topics=topics))
        return sorted(answer.topics[0].partitions[0].isr_nodes)
    finally:
        connection.close()


async def _connected(bootstrap: str, logins: IssuedLogins) -> Connection:
    settings = settings_of(logins.client(), SystemRandom(), SystemClock().wall_ms, bootstrap)
    host, port = bootstrap.split(":")
    loop = asyncio.get_running_loop()
    return await open_connection(loop, BufferPool(), settings, host, int(port))


def test_a_client_whose_issuer_does_not_answer_is_told_so(
    cluster: Cluster, logins: IssuedLogins, tmp_path: Path
) -> None:
    config = properties(tmp_path / "client.properties", logins)
    with config.open("a") as file:
        file.write("sasl.login.retry.backoff.max.ms=50\n")
    command = [sys.executable, "-m", "kwire", "topic", "list"]
    command += ["-b", cluster[1].bootstrap, "--command-config", str(config)]
    logins.is_silent = True
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        logins.is_silent = False
    assert ended.returncode == 1
    assert "/token: it answers 503" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert SECRET not in ended.stderr
