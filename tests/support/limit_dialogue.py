"""What a broker answers about limits: one conversation, with Apache Kafka and with kwire.

The broker is a single node whose connections are served by one thread (`PROPERTIES`). Times that
are told are rounded, so that they are the same whoever answers.
"""

from __future__ import annotations

import itertools
import select
from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import wait_for
from tests.support.frames import Closed
from tests.support.wire import WireClient

PROPERTIES = {"num.network.threads": "1"}
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
TIMEOUT_MS = 30_000
ROUND_MS = 100_000

Said = list[Any]
"""A step's name, and what came of it: JSON."""


def dialogue(bootstrap: str) -> list[Said]:
    """All steps, in order. Those that leave connections behind which are not read come last."""
    return [*_malformed(bootstrap), *_connections(bootstrap), *_mutations(bootstrap)]


# -- asking


def ask(bootstrap: str, request: Any, version: int, client_id: str = "test") -> Any:
    """By a connection of its own: one that has to wait is not read any further."""
    with WireClient(bootstrap, client_id=client_id) as client:
        return client.call(request, version)


def set_quota(
    client: WireClient, kind: str, name: str | None, key: str, value: float | None
) -> Said:
    """(error code, message)."""
    shape = m.AlterClientQuotasRequest
    op = shape.OpData(key=key, value=value or 0.0, remove=value is None)
    entity = shape.EntityData(entity_type=kind, entity_name=name)
    answer = client.call(shape(entries=[shape.EntryData(entity=[entity], ops=[op])]), 1)
    return [answer.entries[0].error_code, answer.entries[0].error_message]


def set_config(client: WireClient, kind: int, name: str, key: str, value: str | None) -> Said:
    """(error code, message); None takes the config away."""
    shape = m.IncrementalAlterConfigsRequest
    operation = DELETE if value is None else SET
    config = shape.AlterableConfig(name=key, config_operation=operation, value=value)
    resource = shape.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    answer = client.call(shape(resources=[resource]), 1)
    return [answer.responses[0].error_code, answer.responses[0].error_message]


def in_force(client: WireClient, kind: str, name: str) -> None:
    """Wait until a quota that was set stands in the metadata of the broker: Apache Kafka answers
    before."""
    shape = m.DescribeClientQuotasRequest
    asked = shape(components=[shape.ComponentData(entity_type=kind, match_type=0, match=name)])
    wait_for(lambda: bool(client.call(asked, 1).entries), f"{kind} {name} has a quota", 30)


def rounded(throttle_ms: int) -> int:
    return round(throttle_ms / ROUND_MS) * ROUND_MS


def create(bootstrap: str, version: int, client_id: str = "test", /, **partitions: int) -> Said:
    """(code and message of each topic, throttle time)."""
    shape = m.CreateTopicsRequest.CreatableTopic
    topics = [
        shape(name=name, num_partitions=count, replication_factor=1)
        for name, count in partitions.items()
    ]
    request = m.CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    answer = ask(bootstrap, request, version, client_id)
    told = sorted([one.name, one.error_code, one.error_message] for one in answer.topics)
    return [told, rounded(answer.throttle_time_ms)]


def add_partitions(bootstrap: str, version: int, topic: str, count: int) -> Said:
    shape = m.CreatePartitionsRequest
    asked = [shape.CreatePartitionsTopic(name=topic, count=count, assignments=None)]
    answer = ask(bootstrap, shape(topics=asked, timeout_ms=TIMEOUT_MS), version)
    told = [[one.error_code, one.error_message] for one in answer.results]
    return [told, rounded(answer.throttle_time_ms)]


def delete(bootstrap: str, version: int, topic: str) -> Said:
    shape = m.DeleteTopicsRequest
    request = shape(topic_names=[topic], timeout_ms=TIMEOUT_MS)
    if version >= 6:
        request = shape(topics=[shape.DeleteTopicState(name=topic)], timeout_ms=TIMEOUT_MS)
    answer = ask(bootstrap, request, version)
    told = [[one.error_code, one.error_message] for one in answer.responses]
    return [told, rounded(answer.throttle_time_ms)]


# -- steps


def _malformed(bootstrap: str) -> Iterator[Said]:
    with WireClient(bootstrap) as client:
        for kind, name, key, value in (
            ("ip", "127.0.0.1", "connection_creation_rate", -1.0),
            ("ip", "127.0.0.1", "connection_creation_rate", 1.5),
            ("ip", "127.0.0.1", "connection_creation_rate", float("nan")),
            ("ip", "127.0.0.1", "connection_creation_rate", 1e12),
            ("ip", "127.0.0.1", "controller_mutation_rate", 1.0),
            ("ip", "no such host.", "connection_creation_rate", 1.0),
            ("user", "u", "connection_creation_rate", 1.0),
            ("user", "u", "controller_mutation_rate", 0.0),
            ("user", "u", "controller_mutation_rate", -3.5),
            ("user", "u", "controller_mutation_rate", float("nan")),
            ("user", "u", "controller_mutation_rate", float("inf")),
        ):
            yield [f"{kind} {key}={value}", set_quota(client, kind, name, key, value)]
        for key, text in (
            ("max.connections", "-1"),
            ("max.connections", "many"),
            ("max.connection.creation.rate", "0"),
            ("max.connection.creation.rate", "-1"),
            ("listener.name.plaintext.max.connections", "0"),
            ("max.connections.per.ip.overrides", "127.0.0.1"),
            ("leader.replication.throttled.rate", "-1"),
            ("follower.replication.throttled.rate", "x"),
            ("replica.alter.log.dirs.io.max.bytes.per.second", "-1"),
        ):
            yield [f"{key}={text}", set_config(client, BROKER, "", key, text)]
    create(bootstrap, 7, malformed=1)
    with WireClient(bootstrap) as client:
        for text in ("0", "0:1:2", "a:1", "*,0:1", "none", "0:1,"):
            key = "leader.replication.throttled.replicas"
            yield [f"{key}={text}", set_config(client, TOPIC, "malformed", key, text)]


def _mutations(bootstrap: str) -> Iterator[Said]:
    """One partition in 100 seconds; the bucket holds a part of one."""
    create(bootstrap, 7, c=1)
    with WireClient(bootstrap) as admin:
        yield ["set", set_quota(admin, "client-id", "test", "controller_mutation_rate", 0.01)]
        # What is published later is in force later: once another client feels its quota, so does
        # this one.
        set_quota(admin, "client-id", "probe", "controller_mutation_rate", 0.01)
        in_force(admin, "client-id", "probe")
        probes = itertools.count()

        def is_refused() -> bool:
            ((_, code, _),), _ = create(bootstrap, 7, "probe", **{f"probe-{next(probes)}": 1})
            return bool(code == ErrorCode.THROTTLING_QUOTA_EXCEEDED)

        wait_for(is_refused, "the quota is in force", 30)
        yield ["create 7", create(bootstrap, 7, a=2)]
        yield ["create 7", create(bootstrap, 7, b=1)]
        yield ["create 6", create(bootstrap, 6, b=1)]
        yield ["create 7, refused otherwise", create(bootstrap, 7, a=1)]
        yield ["add 3", add_partitions(bootstrap, 3, "a", 3)]
        yield ["add 3, refused otherwise", add_partitions(bootstrap, 3, "a", 1)]
        yield ["delete 6", delete(bootstrap, 6, "a")]
        yield ["delete 5", delete(bootstrap, 5, "a")]
        yield ["delete 6, unknown", delete(bootstrap, 6, "unknown")]
        yield ["create 5", create(bootstrap, 5, b=1)]
        yield ["add 2", add_partitions(bootstrap, 2, "a", 3)]
        yield ["delete 4", delete(bootstrap, 4, "c")]
        key = "controller_mutation_rate"
        yield ["remove", set_quota(admin, "client-id", "test", key, None)]
        served = [[["d", 0, None]], 0]
        wait_for(lambda: create(bootstrap, 7, d=1) == served, "it is served without a quota", 30)


def _connections(bootstrap: str) -> Iterator[Said]:
    with (
        WireClient(bootstrap) as old,
        WireClient(bootstrap) as middle,
        WireClient(bootstrap) as new,
    ):
        for client in (old, middle, new):
            client.cluster_id()
        yield ["lower max.connections", set_config(new, BROKER, "", "max.connections", "2")]
        select.select([old.socket, middle.socket, new.socket], [], [], 30)
        yield ["least recently used", _closed(old), _closed(middle), _closed(new)]
        with WireClient(bootstrap) as third:
            third.send(m.MetadataRequest(topics=[]), 12)
            for _ in range(20):
                new.cluster_id()
            third.socket.setblocking(False)
            try:
                third.socket.recv(1)
                yield ["beyond max.connections", "answered"]
            except BlockingIOError:
                yield ["beyond max.connections", "waits"]
            third.socket.setblocking(True)
            middle.close()
            yield ["one has ended", bool(third.receive().cluster_id)]
            yield ["no limit", set_config(new, BROKER, "", "max.connections", None)]
        yield ["per address", set_config(new, BROKER, "", "max.connections.per.ip", "2")]
        with WireClient(bootstrap) as second:
            wait_for(lambda: _refused(bootstrap), "the third is refused", 30)
            yield ["second", _closed(second)]
        yield ["no limit", set_config(new, BROKER, "", "max.connections.per.ip", None)]
        wait_for(lambda: not _refused(bootstrap), "one more is served", 30)
        key = "connection_creation_rate"
        yield ["rate of the address", set_quota(new, "ip", "127.0.0.1", key, 1.0)]
        in_force(new, "ip", "127.0.0.1")
        served = 0
        while not _refused(bootstrap) and served < 100:
            served += 1
        yield ["a burst of all windows but one", 9 <= served <= 30]
        yield ["no rate", set_quota(new, "ip", "127.0.0.1", key, None)]
        wait_for(lambda: not _refused(bootstrap), "one more is served", 30)


def _closed(client: WireClient) -> bool:
    try:
        client.cluster_id()
    except Closed:
        return True
    return False


def _refused(bootstrap: str) -> bool:
    try:
        with WireClient(bootstrap) as client:
            return _closed(client)
    except OSError:
        return True
