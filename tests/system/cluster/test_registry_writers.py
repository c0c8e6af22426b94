"""Registries of three nodes write by turns, and ids are never given twice: not at once, not over
kills of the process that writes, of its broker, of the broker that leads the topic."""

from __future__ import annotations

import http.client
import itertools
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, KwireNode, Node, free_ports, wait_for
from tests.support.registry_client import RegistryClient
from tests.support.wire import WireClient
from tests.system.test_http import children

WAIT_S = 90.0
WRITERS = 6
SCHEMAS_EACH = 12


class Registries:
    """Three nodes, each with a registry."""

    def __init__(self, nodes: Cluster) -> None:
        self.nodes = nodes
        self.clients: dict[int, RegistryClient] = {}
        for node, port in zip(nodes, free_ports(3), strict=True):
            self.clients[node.node_id] = RegistryClient(f"127.0.0.1:{port}")
            node.settings["http.listeners"] = f"http://127.0.0.1:{port}"

    def register(self, number: int, subject: str, schema: str) -> int:
        """The id, from whichever node answers: who gets no answer asks the next one again."""
        for node_id in itertools.islice(itertools.cycle((1, 2, 3)), number % 3, 300):
            try:
                answer = self.clients[node_id].register(subject, schema)
            except (OSError, http.client.HTTPException):
                continue
            if answer.status == 503:
                continue
            assert answer.status == 200, answer.body
            assert isinstance(answer.body, dict)
            return int(str(answer.body["id"]))
        raise AssertionError(f"{subject} was not registered")


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registries]:
    with Cluster(tmp_path_factory.mktemp("nodes"), settings={"min.insync.replicas": 2}) as nodes:
        found = Registries(nodes)
        nodes.start()
        yield found


def fixed(size: int) -> str:
    return f'{{"type":"fixed","name":"F","size":{size}}}'


def leader_of_schemas(nodes: Cluster, but: int) -> Node:
    """The node that leads the topic, asked of one that runs."""
    with WireClient(nodes[but].bootstrap) as client:
        topic = m.MetadataRequest.MetadataRequestTopic(name="_schemas")
        answer = client.call(m.MetadataRequest(topics=[topic]), 9)
    return nodes[answer.topics[0].partitions[0].leader_id]


def test_one_schema_by_fifty_at_once_on_three_nodes_has_one_id(registries: Registries) -> None:
    with ThreadPoolExecutor(50) as pool:
        found = list(
            pool.map(lambda at: registries.register(at, f"at-once-{at % 4}", fixed(9)), range(50))
        )
    assert len(set(found)) == 1


def test_ids_are_given_once_over_kills(registries: Registries) -> None:
    nodes = registries.nodes
    ids: dict[int, int] = {}
    progress = threading.Semaphore(0)

    def write(writer: int) -> None:
        for at in range(SCHEMAS_EACH):
            size = 1 + writer * SCHEMAS_EACH + at
            ids[size] = registries.register(writer + at, f"s{writer}", fixed(size))
            progress.release()

    def wait_for_some(count: int) -> None:
        for _ in range(count):
            assert progress.acquire(timeout=WAIT_S)

    for client in registries.clients.values():
        client.ask("PUT", "/config", {"compatibility": "NONE"})
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        wait_for_some(6)
        for node in nodes:  # wherever it is that writes now
            assert isinstance(node, KwireNode)
            for pid in children(node.process.pid):
                os.kill(pid, signal.SIGKILL)
            wait_for_some(6)
        victim = leader_of_schemas(nodes, 1)
        victim.kill()
        wait_for_some(12)
        victim.start()
        for future in writing:
            future.result(WAIT_S)
    victim.wait_ready()
    total = WRITERS * SCHEMAS_EACH
    assert len(set(ids.values())) == len(ids) == total
    for client in registries.clients.values():

        def all_known(asked: RegistryClient = client) -> bool:
            return len(asked.get("/schemas?subjectPrefix=s").body or []) == total  # type: ignore[arg-type]

        wait_for(all_known, "all schemas on each node", WAIT_S)
        for size, schema_id in ids.items():
            found = client.get(f"/schemas/ids/{schema_id}").body
            assert isinstance(found, dict)
            assert found["schema"] == fixed(size)
