"""kwire and Apache Kafka in one cluster whose listeners are all TLS, either one in control.

Each node has a PKCS12 key store and asks the others for their certificates; Kafka's tools connect
with Java's properties.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kwire.testing.cluster import Cluster
from tests.support.certificates import Authority, Certificate
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode

pytest.importorskip("confluent_kafka")

RECORDS = 500
PASSWORD = "a word of the test"


def stores(directory: Path, certificate: Certificate, authority: Authority) -> dict[str, str]:
    path = directory / f"{certificate.name}.p12"
    path.write_bytes(certificate.pkcs12(PASSWORD))
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(directory)),
    }


def topics_tool(bootstrap: str, properties: Path, *arguments: str) -> str:
    done = subprocess.run(
        [
            *("java", "-Xmx128m", "-cp", f"{kafka_libs()}/*"),
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", bootstrap, "--command-config", str(properties), *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "KAFKA_OPTS": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kafka", [2, 1], ids=["kwire controls", "Kafka controls"])
def test_both_kinds_replicate_over_tls(kafka: int, tmp_path: Path) -> None:
    from confluent_kafka import Consumer, Producer

    kafka_libs()
    authority = Authority()
    settings = {
        "min.insync.replicas": 2,
        "broker.session.timeout.ms": 9000,
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.client.auth": "required",
    }
    with Cluster(
        tmp_path / "cluster",
        combined=(1,),
        brokers=(2,),
        kinds={kafka: KafkaNode},
        settings=settings,
    ) as cluster:
        for node in cluster:
            node.settings |= stores(tmp_path, authority.sign(f"node-{node.node_id}"), authority)
        cluster.start()
        client = authority.sign("client", ())
        pem = client.write(tmp_path, "client")
        properties = tmp_path / "client.properties"
        lines = stores(tmp_path, client, authority) | {"security.protocol": "SSL"}
        properties.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
        made = ("--create", "--topic", "t", "--partitions", "2", "--replication-factor", "2")
        topics_tool(cluster[1].bootstrap, properties, *made)
        shared = {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(tmp_path / "authority.pem"),
            "ssl.certificate.location": str(pem),
            "ssl.key.location": str(pem),
        }
        producer = Producer(shared | {"acks": "all"})
        errors = []
        for index in range(RECORDS):
            producer.produce(
                "t", str(index).encode(), on_delivery=lambda error, _: errors.append(error)
            )
        assert producer.flush(120) == 0
        assert errors == [None] * RECORDS
        consumer = Consumer(shared | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        read = [message.value() for message in consumer.consume(RECORDS, 120)]
        consumer.close()
        assert sorted(read) == sorted(str(index).encode() for index in range(RECORDS))
        assert "Isr: 1,2" in topics_tool(
            cluster[2].bootstrap, properties, "--describe", "--topic", "t"
        ).replace("2,1", "1,2")
