"""Rights in a cluster of kwire and Apache Kafka: granted by way of either, kept to by both.

Clients log in by PLAIN; the nodes among themselves do not, and are super users. Node 2 hands what
concerns the cluster on to node 1, of the other kind, in its client's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.testing.cluster import Cluster, free_ports, wait_for
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode
from tests.support.rights.world import login
from tests.support.wire import batch_of, fetch_request, produce_request

NODES = (1, 2)
ADMIN, USER = "admin", "u"
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
UNKNOWN_TOPIC, REFUSED_TOPIC, REFUSED_CLUSTER = 3, 29, 31
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{ADMIN}="{ADMIN}" user_{USER}="{USER}";'
)


class Rights:
    """The cluster, and where clients log in at its nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.ports = dict(zip(NODES, free_ports(len(NODES))))
        for number, port in self.ports.items():
            settings = cluster[number].settings
            for name in ("listeners", "advertised.listeners"):
                settings[name] += f",SASL_PLAINTEXT://127.0.0.1:{port}"

    def ask(self, node: int, request: Any, version: int, user: str = ADMIN) -> Any:
        with login(f"127.0.0.1:{self.ports[node]}", user) as client:
            return client.call(request, version)

    def seen(self, node: int, *names: str) -> list[int]:
        """The codes of topics that the user asks a node for, in this order."""
        shape = m.MetadataRequest
        topics = [shape.MetadataRequestTopic(name=name) for name in names]
        request = shape(topics=topics, allow_auto_topic_creation=False)
        answer = self.ask(node, request, 9, USER)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        return [codes[name] for name in names]

    def seen_everywhere(self, names: tuple[str, ...], codes: list[int]) -> None:
        wait_for(
            lambda: all(self.seen(node, *names) == codes for node in NODES),
            f"{names} are {codes} at both nodes",
        )


@pytest.fixture(scope="module", params=["kwire controls", "Kafka controls"])
def rights(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rights]:
    kafka_libs()
    kafka = 1 if request.param == "Kafka controls" else 2
    settings = {
        "min.insync.replicas": 1,
        "broker.session.timeout.ms": 9000,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }
    root = tmp_path_factory.mktemp("rights")
    with Cluster(
        root, combined=(1,), brokers=(2,), kinds={kafka: KafkaNode}, settings=settings
    ) as cluster:
        made = Rights(cluster)
        cluster.start()
        yield made


def create(rights: Rights, node: int, name: str, user: str = ADMIN) -> int:
    shape = m.CreateTopicsRequest
    topic = shape.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    answer = rights.ask(node, shape(topics=[topic], timeout_ms=10_000), 5, user)
    return int(answer.topics[0].error_code)


def entry(
    operation: Operation,
    name: str,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: int = LITERAL,
    permission: int = ALLOW,
    host: str = "*",
) -> Any:
    return m.CreateAclsRequest.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{USER}",
        host=host,
        operation=operation,
        permission_type=permission,
    )


def grant(rights: Rights, node: int, *entries: Any, user: str = ADMIN) -> list[int]:
    answer = rights.ask(node, m.CreateAclsRequest(creations=list(entries)), 3, user)
    return [result.error_code for result in answer.results]


def revoke(rights: Rights, node: int, name: str) -> int:
    """How many entries of a topic's name there were."""
    shape = m.DeleteAclsRequest
    wanted = shape.DeleteAclsFilter(
        resource_type_filter=ResourceType.TOPIC,
        resource_name_filter=name,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    answer = rights.ask(node, shape(filters=[wanted]), 3)
    return len(answer.filter_results[0].matching_acls)


@pytest.mark.parametrize("by", NODES)
def test_an_entry_made_by_way_of_either_is_kept_to_by_both(rights: Rights, by: int) -> None:
    ok, denied, secret = f"ok{by}-a", f"ok{by}-b", f"secret{by}"
    assert [create(rights, by, name) for name in (ok, denied, secret)] == [0, 0, 0]
    names = (ok, denied, secret)
    rights.seen_everywhere(names, [REFUSED_TOPIC] * 3)
    assert grant(rights, by, entry(Operation.READ, f"ok{by}", pattern=PREFIXED)) == [0]
    rights.seen_everywhere(names, [0, 0, REFUSED_TOPIC])
    other = 3 - by
    assert grant(rights, other, entry(Operation.DESCRIBE, denied, permission=DENY)) == [0]
    rights.seen_everywhere(names, [0, REFUSED_TOPIC, REFUSED_TOPIC])
    assert revoke(rights, by, denied) == 1
    rights.seen_everywhere(names, [0, 0, REFUSED_TOPIC])
    assert revoke(rights, other, f"ok{by}") == 1
    rights.seen_everywhere(names, [REFUSED_TOPIC] * 3)


@pytest.mark.parametrize("by", NODES)
def test_what_is_handed_on_is_decided_for_its_client(rights: Rights, by: int) -> None:
    """Node 2's own name may do everything; the client whose request it hands on may not. Its
    address goes along."""
    everything = entry(Operation.ALL, CLUSTER_NAME, ResourceType.CLUSTER)
    assert grant(rights, by, everything, user=USER) == [REFUSED_CLUSTER]
    name = f"made-by-{by}"
    assert create(rights, by, name, USER) == REFUSED_TOPIC
    elsewhere = entry(Operation.CREATE, name, host="10.9.9.9")
    assert grant(rights, by, elsewhere, entry(Operation.READ, name)) == [0, 0]
    rights.seen_everywhere((name,), [UNKNOWN_TOPIC])
    assert create(rights, by, name, USER) == REFUSED_TOPIC
    assert grant(rights, by, entry(Operation.CREATE, name, host="127.0.0.1")) == [0]
    wait_for(lambda: create(rights, by, name, USER) in (0, 36), f"{name} is created")
    deletion = m.DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
    assert rights.ask(by, deletion, 5, USER).responses[0].error_code == REFUSED_TOPIC


def test_records_are_refused_by_the_leader_of_either_kind(rights: Rights) -> None:
    """A topic with a partition at each node."""
    shape = m.CreateTopicsRequest
    assigned = [
        shape.CreatableReplicaAssignment(partition_index=index, broker_ids=[node])
        for index, node in enumerate(NODES)
    ]
    topic = shape.CreatableTopic(
        name="split", num_partitions=-1, replication_factor=-1, assignments=assigned
    )
    answer = rights.ask(1, shape(topics=[topic], timeout_ms=10_000), 5)
    assert answer.topics[0].error_code == 0, answer
    for operation, codes in ((Operation.WRITE, (0, 29)), (Operation.READ, (0, 0))):
        for index, node in enumerate(NODES):
            wait_for(lambda i=index, n=node: write(rights, n, i, ADMIN) == 0, "it has a leader")
        if operation is Operation.WRITE:
            assert [write(rights, n, i, USER) for i, n in enumerate(NODES)] == [REFUSED_TOPIC] * 2
            assert [read(rights, n, i, USER) for i, n in enumerate(NODES)] == [REFUSED_TOPIC] * 2
        assert grant(rights, 2, entry(operation, "split")) == [0]
        for index, node in enumerate(NODES):
            wait_for(
                lambda i=index, n=node, codes=codes: (
                    (write(rights, n, i, USER), read(rights, n, i, USER)) == codes
                ),
                f"node {node} lets {operation.name}",
            )


def write(rights: Rights, node: int, index: int, user: str) -> int:
    answer = rights.ask(node, produce_request("split", {index: batch_of([b"value"])}), 9, user)
    return int(answer.responses[0].partition_responses[0].error_code)


def read(rights: Rights, node: int, index: int, user: str) -> int:
    answer = rights.ask(node, fetch_request("split", {index: 0}), 12, user)
    return int(answer.responses[0].partitions[0].error_code)


@pytest.mark.parametrize("by", NODES)
def test_quotas_set_by_way_of_either_are_told_by_both(rights: Rights, by: int) -> None:
    alter, describe = m.AlterClientQuotasRequest, m.DescribeClientQuotasRequest
    entity = alter.EntityData(entity_type="user", entity_name=f"of-{by}")
    change = alter.EntryData(
        entity=[entity], ops=[alter.OpData(key="producer_byte_rate", value=1024.0 * by)]
    )
    answer = rights.ask(by, alter(entries=[change]), 1, USER)
    assert answer.entries[0].error_code == REFUSED_CLUSTER
    answer = rights.ask(by, alter(entries=[change]), 1)
    assert answer.entries[0].error_code == 0
    wanted = describe.ComponentData(entity_type="user", match_type=0, match=f"of-{by}")

    def told(node: int) -> list[tuple[str, float]]:
        answer = rights.ask(node, describe(components=[wanted], strict=True), 1)
        return [(v.key, v.value) for entry in answer.entries or () for v in entry.values]

    for node in NODES:
        wait_for(
            lambda node=node: told(node) == [("producer_byte_rate", 1024.0 * by)],
            f"node {node} tells the quota",
        )
