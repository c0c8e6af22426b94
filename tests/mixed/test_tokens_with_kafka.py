"""kwire and Apache Kafka in one cluster that log in at each other by tokens of one issuer."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.testing.cluster import Cluster, wait_for
from tests.support.issued_logins import IssuedLogins
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode
from tests.wire import Conn

LIFETIME_S = 15  # a JVM that starts takes its time


def logged_in(bootstrap: str, logins: IssuedLogins) -> Conn:
    client = Conn(bootstrap)
    assert client.send("sasl_handshake", 1, mechanism="OAUTHBEARER").error_code == 0
    token = f"n,,\x01auth=Bearer {logins.issuer.token()}\x01\x01".encode()
    answer = client.send("sasl_authenticate", 2, auth_bytes=token)
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    return client


@pytest.mark.parametrize(("controls", "follows"), [(1, 2), (2, 1)])
def test_nodes_of_both_kinds_log_in_by_tokens(
    controls: int, follows: int, monkeypatch: Any
) -> None:
    """Node 1 is kwire's, node 2 Kafka's; they stay in sync beyond the end of their first tokens."""
    kafka_libs()
    logins = IssuedLogins(LIFETIME_S)
    with logins.endpoint:
        for name in ("KAFKA_OPTS", "JAVA_TOOL_OPTIONS"):  # of kwire and of the JVM
            monkeypatch.setenv(name, logins.allowed)
        with Cluster(
            combined=(controls,),
            brokers=(follows,),
            kinds={2: KafkaNode},
            settings={**logins.node(), "broker.session.timeout.ms": 9000},
        ) as cluster:
            cluster.start()
            topic = {"name": "both", "num_partitions": 4, "replication_factor": 2}
            topic |= {"assignments": [], "configs": []}
            with logged_in(cluster[follows].bootstrap, logins) as client:
                made = client.send("create_topics", 5, topics=[topic], timeout_ms=30_000)
                assert made.topics[0].error_code == 0, made
            before = logins.tokens
            wait_for(lambda: logins.tokens >= before + 4, "tokens are renewed")

            def is_in_sync(node: int) -> bool:
                with logged_in(cluster[node].bootstrap, logins) as client:
                    asked = [{"name": "both"}]
                    answer = client.send(
                        "metadata", 9, topics=asked, allow_auto_topic_creation=False
                    )
                    return all(len(each.isr_nodes) == 2 for each in answer.topics[0].partitions)

            for node in (1, 2):
                wait_for(lambda node=node: is_in_sync(node), "the replicas are in sync")
