"""Brokers and controllers that talk TLS with each other, each with a certificate of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Cluster, wait_for
from kwire.testing.cluster.process import NodeFailed
from tests.support.certificates import Authority, Certificate
from tests.support.topics import create_topics

RECORDS = 200


def settings_of(directory: Path, certificate: Certificate, authority: Authority) -> dict[str, str]:
    """Every listener with TLS, and nobody without a certificate."""
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.write(directory, certificate.name)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(directory)),
        "ssl.client.auth": "required",
    }


def test_three_nodes_replicate_and_elect_over_tls(tmp_path: Path) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

    authority = Authority()
    client = authority.sign("client", ()).write(tmp_path, "client")
    with Cluster(tmp_path / "cluster") as cluster:
        for node in cluster:
            certificate = authority.sign(f"node-{node.node_id}")
            node.settings |= settings_of(tmp_path, certificate, authority)
        cluster.start()
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(tmp_path / "authority.pem"),
            "ssl.certificate.location": str(client),
            "ssl.key.location": str(client),
            "acks": "all",
        }
        create_topics(AdminClient(settings), {"t": 3})
        produce(Producer(settings))
        cluster[1].kill()
        produce(Producer(settings | {"message.timeout.ms": "60000"}))
        cluster[1].start()
        cluster[1].wait_ready()
        produce(Producer(settings))


def produce(producer: Any) -> None:
    errors = []
    for index in range(RECORDS):
        producer.produce("t", str(index), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None] * RECORDS


def test_a_node_that_nobody_trusts_is_named(tmp_path: Path) -> None:
    """Its certificate is another authority's: it starts and waits, and both logs say why."""
    ours, theirs = Authority("ours"), Authority("theirs")
    with Cluster(tmp_path / "cluster", combined=(1,), brokers=(2,)) as cluster:
        for node, authority in ((cluster[1], ours), (cluster[2], theirs)):
            directory = tmp_path / str(node.node_id)
            directory.mkdir()
            certificate = authority.sign(f"node-{node.node_id}")
            node.settings |= settings_of(directory, certificate, authority)
        cluster[1].start()
        cluster[1].wait_ready()
        cluster[2].start()
        controller = cluster[1].controller_address
        told = f"{controller} cannot be reached: TLS handshake: the certificate is not trusted"
        wait_for(lambda: told in cluster[2].log_text(), "node 2 says why")
        wait_for(lambda: "handshake with 127.0.0.1" in cluster[1].log_text(), "node 1 says who")
        assert cluster[2].log_text().count(told) <= 4  # not at every attempt


def test_a_node_whose_store_is_damaged_says_so_in_one_line(tmp_path: Path) -> None:
    authority = Authority()
    with Cluster(tmp_path / "cluster", combined=(1,)) as cluster:
        settings = settings_of(tmp_path, authority.sign("node"), authority)
        (tmp_path / "node.pem").write_text("nothing")
        cluster[1].settings |= settings
        cluster[1].start()
        with pytest.raises(NodeFailed) as failed:
            cluster[1].wait_ready()
        assert "node.pem: Private key not provided" in str(failed.value)
        assert "Traceback" not in str(failed.value)
