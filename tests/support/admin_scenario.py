"""Admin requests to a broker, one after the other, as a dialogue over the wire.

`play(bootstrap)` has it with any broker and gives the answers as plain data, ids and epochs by
name; `python -m tests.support.admin_scenario BOOTSTRAP` records those of Apache Kafka (one node,
id 1, broker and controller, no authorizer, one PLAINTEXT listener).
"""

from __future__ import annotations

import gzip
import json
import pathlib
import socket
import struct
import sys
import time
from collections.abc import Generator
from typing import Any

from kwire.protocol import frame
from kwire.protocol import messages as m

DATA = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data" / "admin_answers.json.gz"
Dialogue = Generator[tuple[int, Any], Any, None]
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


class Connection:
    """One blocking connection."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._correlation_id = 0

    def call(self, version: int, request: Any) -> Any:
        self._correlation_id += 1
        key = type(request).API_KEY
        parts = frame.encode_request(key, version, self._correlation_id, "admin", request)
        self._socket.sendall(b"".join(parts))
        size = struct.unpack(">i", self._read(4))[0]
        return frame.decode_response(key, version, self._read(size))[1]

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


def topic(name: str, partitions: int = 1, **configs: str) -> Any:
    shape = m.CreateTopicsRequest
    return shape.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            shape.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def scenario() -> Dialogue:
    for part in (
        clusters, topics, partition_pages, configs, old_configs, resources, quotas, credentials,
        acls, tokens, leaders, features, deletions,
    ):  # fmt: skip
        yield from part()


def clusters() -> Dialogue:
    shape = m.DescribeClusterRequest
    for version in (0, 1, 2):
        yield version, shape()
        yield version, shape(include_cluster_authorized_operations=True)
    yield 1, shape(endpoint_type=2)
    yield 1, shape(endpoint_type=9)
    yield 2, shape(include_fenced_brokers=True)


def topics() -> Dialogue:
    shape = m.CreateTopicsRequest
    yield 7, shape(topics=[topic("alpha", 3), topic("beta"), topic("a b")], timeout_ms=9000)
    yield 5, shape(topics=[topic("gamma", 5), topic("alpha")], timeout_ms=9000)
    yield 3, shape(topics=[topic("delta"), topic("delta")], timeout_ms=9000)
    yield 7, shape(topics=[topic("dry", 2, retention_ms="5")], timeout_ms=9000, validate_only=True)
    yield 7, shape(topics=[topic("__cluster_metadata")], timeout_ms=9000)
    more = m.CreatePartitionsRequest
    count = more.CreatePartitionsTopic
    yield 3, more(topics=[count(name="beta", count=2, assignments=None)], timeout_ms=9000)
    yield 3, more(topics=[count(name="nosuch", count=2, assignments=None)], timeout_ms=9000)
    doubled = [count(name="beta", count=9, assignments=None)] * 2
    yield 3, more(topics=doubled, timeout_ms=9000)


def partition_pages() -> Dialogue:
    shape = m.DescribeTopicPartitionsRequest

    def ask(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
        at = None
        if cursor is not None:
            at = shape.Cursor(topic_name=cursor[0], partition_index=cursor[1])
        return shape(
            topics=[shape.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=at,
        )

    yield 0, ask()
    yield 0, ask("gamma", "nosuch", "a b", "alpha", "alpha")
    for limit in (1, 3, 4, 8, 0, -1):
        yield 0, ask(limit=limit)
    yield 0, ask("alpha", "beta", limit=3)
    yield 0, ask("alpha", "nosuch", limit=3)
    yield 0, ask(cursor=("alpha", 1), limit=3)
    yield 0, ask(cursor=("beta", 0), limit=2)
    yield 0, ask(cursor=("b", 7), limit=2)
    yield 0, ask("alpha", "gamma", cursor=("gamma", 2), limit=2)
    yield 0, ask("alpha", "gamma", cursor=("gamma", 5), limit=2)


def _incremental(kind: int, name: str, *ops: tuple[str, int, str | None]) -> Any:
    shape = m.IncrementalAlterConfigsRequest
    return shape.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            shape.AlterableConfig(name=key, config_operation=op, value=value)
            for key, op, value in ops
        ],
    )


def configs() -> Dialogue:
    one = ("retention.ms", SET, "5000")
    for resources in (
        [_incremental(TOPIC, "alpha", one), _incremental(TOPIC, "nosuch", one)],
        [_incremental(TOPIC, "alpha", one), _incremental(TOPIC, "alpha", one)],
        [_incremental(TOPIC, "alpha", one, ("retention.ms", DELETE, None))],
        [_incremental(TOPIC, "alpha", ("retention.ms", SET, None), ("segment.ms", APPEND, None))],
        [_incremental(99, "alpha", one), _incremental(0, "alpha", one)],
        [_incremental(BROKER, "2", ("log.cleaner.threads", SET, "2"))],
        [_incremental(BROKER, "abc", ("log.cleaner.threads", SET, "2"))],
        [_incremental(BROKER, "1", ("log.cleaner.threads", SET, "2"))],
        [_incremental(BROKER, "1", ("log.cleaner.threads", 7, "2"))],
        [_incremental(BROKER, "", ("log.cleaner.threads", SET, "x"))],
        [_incremental(BROKER, "", ("node.id", SET, "7"))],
        [_incremental(BROKER, "", ("min.insync.replicas", DELETE, None))],
        [_incremental(BROKER, "1", ("min.insync.replicas", SET, "1"))],
        [_incremental(BROKER, "1", ("log.cleaner.threads", DELETE, None))],
        [_incremental(LOGGER, "1", ("root", SET, "NOPE"))],
        [_incremental(LOGGER, "1", ("root", DELETE, None))],
        [_incremental(LOGGER, "1", ("no.such.logger", SET, "INFO"))],
        [_incremental(LOGGER, "1", ("root", APPEND, "INFO"))],
        [_incremental(LOGGER, "2", ("root", SET, "INFO"))],
        [_incremental(LOGGER, "x", ("root", SET, "INFO")), _incremental(TOPIC, "alpha", one)],
        [_incremental(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))],
        [_incremental(METRICS, "m", ("interval.ms", SET, "1000"))],
        [_incremental(METRICS, "", ("interval.ms", SET, "1000"))],
        [],
    ):
        yield 1, m.IncrementalAlterConfigsRequest(resources=resources)
    resource = _incremental(TOPIC, "alpha", ("retention.ms", SET, "abc"))
    yield 0, m.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


def old_configs() -> Dialogue:
    shape = m.AlterConfigsRequest

    def resource(kind: int, name: str, *pairs: tuple[str, str | None]) -> Any:
        return shape.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[shape.AlterableConfig(name=key, value=value) for key, value in pairs],
        )

    for resources in (
        [resource(TOPIC, "alpha", ("segment.ms", "9000")), resource(TOPIC, "nosuch")],
        [resource(TOPIC, "alpha", ("segment.ms", None))],
        [resource(TOPIC, "alpha", ("segment.ms", "1"), ("segment.ms", "2"))],
        [resource(LOGGER, "1", ("root", "INFO"))],
        [resource(77, "1", ("root", "INFO"))],
        [resource(BROKER, "7", ("log.cleaner.threads", "2"))],
        [resource(BROKER, "1", ("log.cleaner.threads", "2"))],
        [resource(BROKER, "1")],
        [resource(TOPIC, "alpha")],
    ):
        yield 2, shape(resources=resources)


def resources() -> Dialogue:
    shape = m.ListConfigResourcesRequest
    yield 0, shape()
    yield 1, shape()
    for kinds in ([TOPIC], [BROKER], [LOGGER], [METRICS, GROUP], [GROUP, GROUP], [99], [0]):
        yield 1, shape(resource_types=kinds)


def quotas() -> Dialogue:
    alter = m.AlterClientQuotasRequest

    def entry(entity: list[tuple[str, str | None]], key: str, value: float) -> Any:
        return alter.EntryData(
            entity=[alter.EntityData(entity_type=k, entity_name=n) for k, n in entity],
            ops=[alter.OpData(key=key, value=value)],
        )

    yield (
        1,
        alter(
            entries=[
                entry([("user", "u")], "producer_byte_rate", 5.0),
                entry([("user", "u"), ("client-id", "c")], "consumer_byte_rate", 6.0),
                entry([("user", None)], "request_percentage", 7.5),
                entry([("client-id", "c")], "nosuch", 1.0),
                entry([("ip", "10.0.0.9")], "connection_creation_rate", 9.0),
            ]
        ),
    )
    yield 1, alter(entries=[entry([("user", "u")], "producer_byte_rate", 5.0)] * 2)
    shape = m.DescribeClientQuotasRequest

    def ask(*wanted: tuple[str, int, str | None], strict: bool = False) -> Any:
        return shape(
            components=[
                shape.ComponentData(entity_type=kind, match_type=how, match=match)
                for kind, how, match in wanted
            ],
            strict=strict,
        )

    yield 1, ask()
    yield 0, ask()
    yield 1, ask(strict=True)
    yield 1, ask(("user", 0, "u"))
    yield 1, ask(("user", 0, "u"), strict=True)
    yield 1, ask(("user", 1, None))
    yield 1, ask(("user", 2, None))
    yield 1, ask(("user", 0, "u"), ("client-id", 2, None), strict=True)
    yield 1, ask(("ip", 2, None))
    yield 1, ask(("ip", 2, None), ("user", 2, None))
    yield 1, ask(("user", 2, None), ("user", 2, None))
    yield 1, ask(("", 2, None))
    yield 1, ask(("group", 2, None))
    yield 1, ask(("user", 0, None))
    yield 1, ask(("user", 1, "u"))
    yield 1, ask(("user", 2, "u"))
    yield 1, ask(("user", 9, None))


def credentials() -> Dialogue:
    alter = m.AlterUserScramCredentialsRequest
    put = alter.ScramCredentialUpsertion
    yield (
        0,
        alter(
            upsertions=[
                put(name=name, mechanism=how, iterations=4096, salt=b"s", salted_password=b"p" * 32)
                for name, how in (("ann", 1), ("bob", 2), ("eve", 9))
            ]
        ),
    )
    shape = m.DescribeUserScramCredentialsRequest
    user = shape.UserName
    yield 0, shape(users=None)
    yield 0, shape(users=[])
    yield 0, shape(users=[user(name="ann"), user(name="nosuch"), user(name="bob")])
    yield 0, shape(users=[user(name="ann"), user(name="ann")])


def acls() -> Dialogue:
    create = m.CreateAclsRequest
    one = create.AclCreation(
        resource_type=2, resource_name="t", principal="User:u", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    yield 3, create(creations=[one])
    delete = m.DeleteAclsRequest
    every: dict[str, Any] = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    yield 3, delete(filters=[delete.DeleteAclsFilter(**every)])
    yield 3, m.DescribeAclsRequest(**every)


def tokens() -> Dialogue:
    yield 3, m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    yield 1, m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    yield 2, m.RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1)
    yield 2, m.ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=1)
    yield 3, m.DescribeDelegationTokenRequest(owners=None)


def leaders() -> Dialogue:
    shape = m.ElectLeadersRequest
    yield 2, shape(election_type=0, topic_partitions=None)
    some = shape.TopicPartitions(topic="alpha", partitions=[0, 7])
    yield 2, shape(election_type=1, topic_partitions=[some])
    yield 0, shape(topic_partitions=[some])
    yield 0, m.ListPartitionReassignmentsRequest(topics=None)
    move = m.AlterPartitionReassignmentsRequest
    moved = move.ReassignablePartition(partition_index=0, replicas=[7])
    yield 1, move(topics=[move.ReassignableTopic(name="alpha", partitions=[moved])])
    yield 0, m.UnregisterBrokerRequest(broker_id=77)
    yield 0, m.UnregisterControllerRequest(controller_id=77)


def features() -> Dialogue:
    shape = m.UpdateFeaturesRequest
    update = shape.FeatureUpdateKey
    bad = update(feature="share.version", max_version_level=9, upgrade_type=1)
    yield 1, shape(feature_updates=[bad])
    yield 2, shape(feature_updates=[bad])
    down = update(feature="share.version", max_version_level=1, upgrade_type=2)
    yield 2, shape(feature_updates=[down], validate_only=True)
    old = update(feature="share.version", max_version_level=1, allow_downgrade=True)
    yield 0, shape(feature_updates=[old])
    up = update(feature="share.version", max_version_level=2, upgrade_type=1)
    yield 2, shape(feature_updates=[up])


def deletions() -> Dialogue:
    shape = m.DeleteTopicsRequest
    yield 4, shape(topic_names=["beta", "nosuch"], timeout_ms=9000)
    state = shape.DeleteTopicState
    yield (
        6,
        shape(topics=[state(name="gamma"), state(topic_id=b"\x07" * 16), state()], timeout_ms=9000),
    )


def _plain(value: Any, names: dict[bytes, str], key: str = "") -> Any:
    """A message as plain data; topic ids by name, lists in no order."""
    if isinstance(value, list):
        return sorted((_plain(item, names, key) for item in value), key=repr)
    if hasattr(value, "unknown_tags"):
        return {field: _plain(getattr(value, field), names, field) for field in value.FIELDS}
    if key == "topic_id":
        return names.get(bytes(value), bytes(value).hex())
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if key in ("cluster_id", "port", "host"):
        return key
    return "infinity" if value == float("inf") else value


def _wait_for(connection: Connection, names: list[str]) -> None:
    """Until the broker itself knows the topics that the controller has created."""
    request = m.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    for _ in range(200):
        known = {topic.name for topic in connection.call(12, request).topics}
        if known >= set(names):
            return
        time.sleep(0.02)
    raise AssertionError(f"topics {names} do not appear")


def play(bootstrap: str) -> list[Any]:
    """The answers of the broker at `bootstrap`: [API, version, plain response]."""
    connection = Connection(bootstrap)
    answers = []
    ids: dict[bytes, str] = {}
    dialogue = scenario()
    version, request = next(dialogue)
    while True:
        try:
            response = connection.call(version, request)
        except OSError as error:
            raise AssertionError(f"no answer to version {version} of {request}") from error
        name = type(request).NAME.removesuffix("Request")
        if name == "CreateTopics":
            created = [t for t in response.topics if t.error_code == 0]
            for made in created:
                if version >= 7:
                    ids[bytes(made.topic_id)] = made.name if not request.validate_only else "new"
            if not request.validate_only:
                _wait_for(connection, [made.name for made in created])
                ids.update(_ids(connection))
        elif name in ("AlterClientQuotas", "AlterUserScramCredentials", "CreatePartitions",
                      "IncrementalAlterConfigs", "AlterConfigs"):  # fmt: skip
            time.sleep(0.1)
        answers.append([name, version, _plain(response, ids)])
        try:
            version, request = dialogue.send(response)
        except StopIteration:
            connection.close()
            return answers


def _ids(connection: Connection) -> dict[bytes, str]:
    request = m.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    return {bytes(t.topic_id): t.name for t in connection.call(12, request).topics}


def main() -> None:
    answers = play(sys.argv[1])
    with gzip.GzipFile(DATA, "wb", mtime=0) as file:
        file.write(json.dumps(answers, separators=(",", ":")).encode())
    print(f"{len(answers)} answers")


if __name__ == "__main__":
    main()
