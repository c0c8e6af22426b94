"""Random requests sent to Apache Kafka and to kwire, whose answers must be equal.

    python -m tests.differential.random_requests KAFKA KWIRE SEED COUNT [API...]

Requests are made from the schema of each API: fields take values from pools by their meaning, so
that most requests reach the code behind the first check. Both brokers see the same requests in the
same order, so their states go the same way. What differs is printed, each kind of difference once.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol import schema, uuids
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey
from kwire.protocol.records import Record, build_batch, read_records
from tests.support.frames import Closed
from tests.support.wire import TRANSIENT, WireClient, produce_request

TRACE = bool(os.environ.get("TRACE"))
BASE_MS = 1_700_000_000_000
TOPICS = {"t0": (1, {}), "t1": (3, {}), "c0": (2, {"cleanup.policy": "compact"})}
NAMES = [*TOPICS, *TOPICS, "nope", "", "bad/name", "x" * 250, "__consumer_offsets", "..", "new1"]
UNKNOWN_ID = bytes(range(16))
#: Not asked: what is not built, ends the broker or spoils the comparison, and what Kafka answers
#: by closing the connection, with UNKNOWN_SERVER_ERROR or not at all.
LEFT_OUT = {
    *UNBUILT,
    *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS),
    *(ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UNREGISTER_BROKER),
    *(ApiKey.WRITE_TXN_MARKERS, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.UPDATE_FEATURES),
    *(ApiKey.UNREGISTER_CONTROLLER, ApiKey.DESCRIBE_QUORUM, ApiKey.CREATE_DELEGATION_TOKEN),
    *(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
    *(ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
}
CONFIG_NAMES = [
    *("retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes", "no.such.config"),
    *("min.insync.replicas", "compression.type", "message.timestamp.type", "log.cleaner.threads"),
    *("consumer.session.timeout.ms", "interval.ms", "retention.bytes", "flush.messages", ""),
    *("follower.replication.throttled.replicas", "leader.replication.throttled.rate"),
]
CONFIG_VALUES = [
    *("1000", "-1", "-2", "0", "compact", "delete", "compact,delete", "zstd", "soon", "", None),
    *("LogAppendTime", "9223372036854775807", "9223372036854775808", "1:1", "*", " 5 ", "1.5"),
]
#: By the end of a field's name (the longest that fits wins): the values it takes.
POOLS: dict[str, list[Any]] = {
    "topic": NAMES,
    "topic_name": NAMES,
    "topics": NAMES,
    "topic_names": NAMES,
    "subscribed_topic_names": NAMES,
    "topic_id": ["@t0", "@t1", "@c0", UNKNOWN_ID],
    "partition": [0, 0, 0, 1, 2, 7, -1],
    "partition_index": [0, 0, 0, 1, 2, 7, -1],
    "partition_indexes": [0, 1, 2, 7, -1],
    "partitions": [0, 0, 1, 2, 7, -1],
    "index": [0, 0, 1, 7],
    "group_id": ["g0", "g1", "g2", "nobody", "", None],
    "groups": ["g0", "g1", "nobody", ""],
    "groups_names": ["g0", "g1", "nobody", ""],
    "group_ids": ["g0", "g1", "nobody", ""],
    "transactional_id": ["tx0", "tx1", "nobody", "", None],
    "transactional_ids": ["tx0", "tx1", "nobody", ""],
    "member_id": ["", "unknown-member"],
    "generation_id": [-1, 0, 1],
    "generation_id_or_member_epoch": [-1, 0, 1],
    "member_epoch": [0, -1, -2, 1],
    "offset": [0, 1, 3, 5, 100, -1, -2, -3],
    "committed_offset": [0, 1, 7, -1, -5],
    "timestamp": [-1, -2, -3, -4, -5, -6, -7, 0, BASE_MS, BASE_MS + 2, BASE_MS + 99, 1 << 62],
    "leader_epoch": [-1, -1, 0, 1, 5],
    "producer_id": [-1, 0, 1, 5000],
    "producer_epoch": [-1, 0, 1],
    "replica_id": [-1, -1, -1, -2, 1],
    "broker_id": [1, 2, -1],
    "broker_ids": [1, 2, -1],
    "replicas": [1, 1, 1, 2, -1],
    "max_wait_ms": [0, 1],
    "timeout_ms": [1000, 5000],
    "session_timeout_ms": [10_000, 1, 6000, 10_000_000],
    "rebalance_timeout_ms": [10_000, 0, -1],
    "transaction_timeout_ms": [60_000, 0, -1, 2_000_000_000],
    "min_bytes": [0, 1],
    "max_bytes": [1, 1 << 20, 0],
    "partition_max_bytes": [1 << 20, 1, 0],
    "session_id": [0, 0, 5],
    "session_epoch": [-1, -1, 0, 3],
    "isolation_level": [0, 1],
    "key_type": [0, 1, 3, -1],
    "key": ["g0", "tx0", "nobody", "", "a:b:0"],
    "coordinator_keys": ["g0", "tx0", "nobody", ""],
    "resource_type": [2, 4, 8, 16, 32, 1, 0, 3, 127],
    "resource_types": [2, 4, 8, 16, 32, 1, 127],
    "resource_name": ["t0", "c0", "1", "", "nope", "g0", "2", "bad/name"],
    "configuration_keys": CONFIG_NAMES,
    "config_operation": [0, 1, 2, 3],
    "num_partitions": [1, 2, -1, 0, 3],
    "count": [1, 2, 3, 4, 5, 0, -1],
    "replication_factor": [1, -1, 0, 2],
    "protocol_type": ["consumer", "", "connect"],
    "server_assignor": ["uniform", "range", "none", None],
    "subscribed_topic_regex": ["t.*", "[", "", None],
    "states_filter": ["Empty", "stable", "none", "Dead"],
    "types_filter": ["classic", "consumer", "Streams", "none"],
    "state_filters": ["Empty", "Ongoing", "none"],
    "producer_id_filters": [0, 1, -1],
    "duration_filter": [-1, 0, 1],
    "transactional_id_pattern": ["tx.*", "[", "", None],
    "election_type": [0, 1, 2],
    "metadata": ["", "note", "x" * 5000, None],
    "committed_metadata": ["", "note", "x" * 5000, None],
    "retention_time_ms": [-1, 0, 1000],
    "match_type": [0, 1, 2, 3],
    "entity_type": ["user", "client-id", "ip", "none", ""],
    "match": ["alice", "app", "127.0.0.1", "", None],
    "entity_name": ["alice", "app", "127.0.0.1", "not an ip", "", None],
    "mechanism": [1, 2, 0, 3],
    "iterations": [4096, 8192, 100, 20_000_000],
    "users": ["alice", ""],
    "log_dir": ["/nowhere", "relative", ""],
    "feature": ["group.version", "no.such"],
    "acks": [-1, 1],
    "response_partition_limit": [2000, 1, 0, -1],
    "endpoint_type": [1, 2, 0],
    "operation": [2, 3, 0],
    "value": [1.0, 1024.0, -5.0, 0.5],
}
NAME_POOLS = {
    "CreatableTopicConfig": CONFIG_NAMES,
    "AlterableConfig": CONFIG_NAMES,
    "EntityData": ["alice"],
    "UserName": ["alice", "bob", ""],
    "ScramCredentialUpsertion": ["alice", "bob", ""],
    "ScramCredentialDeletion": ["alice", "bob", ""],
    "JoinGroupRequestProtocol": ["range", "roundrobin", ""],
}
#: Fields that differ from run to run: shown only as set or not.
EMPTY: dict[str, Any] = {"bytes": b"", "records": b""}
VOLATILE = {
    *("throttle_time_ms", "port", "host", "cluster_id", "session_id", "producer_id", "log_dir"),
    *("log_append_time_ms", "last_timestamp", "total_bytes", "usable_bytes", "broker_epoch"),
    *("member_id", "leader", "members", "transaction_start_time_ms", "partition_size"),
    *("finalized_features_epoch", "issue_timestamp_ms", "salt", "client_id"),
}
TEXTS = ("error_message", "batch_index_error_message", "assignment_error_message")
ID = re.compile(r"(?<![\w-])[A-Za-z0-9_-]{22}(?![\w-])")


class Maker:
    """Makes requests; both brokers get theirs from one, with their own topic ids."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self, api: ApiKey) -> tuple[Any, int]:
        info = API_KEYS[api]
        version = self.random.randint(info.min, info.max)
        return self._struct(m.request_class(api), None, version), version

    def _struct(self, cls: Any, struct: schema.Struct | None, version: int) -> Any:
        definition = cls.SCHEMA.root if struct is None else struct
        root = cls
        made = root if struct is None else getattr(root, struct.name)
        values = {}
        for field, name in zip(definition.fields, made.FIELDS, strict=True):
            if schema.within(version, field.versions):
                values[name] = self._field(cls, field, name, definition.name, version)
        return made(**values)

    def _field(self, cls: Any, field: schema.Field, name: str, owner: str, version: int) -> Any:
        nullable = schema.within(version, field.nullable)
        if field.is_array:
            if nullable and self.random.random() < 0.15:
                return None
            count = self.random.choice([0, 1, 1, 1, 2, 3])
            made = [self._value(cls, field, name, owner, version) for _ in range(count)]
            return _without_doubles(made)
        if nullable and field.type != "records" and self.random.random() < 0.1:
            return None
        value = self._value(cls, field, name, owner, version)
        return value if value is not None or nullable else EMPTY.get(field.type, "")

    def _value(self, cls: Any, field: schema.Field, name: str, owner: str, version: int) -> Any:
        if field.struct is not None:
            return self._struct(cls, field.struct, version)
        if field.type == "bool":
            return self.random.random() < 0.5
        if owner in ("DeleteTopicState", "DeleteTopicsRequest") and field.type == "string":
            return self.random.choice(["t0", "c0", "nope", "", "bad/name"])
        if field.type == "string" and name == "name":
            return self.random.choice(NAME_POOLS.get(owner, NAMES)) or ""
        if name == "value" and field.type == "string":
            return self.random.choice(CONFIG_VALUES)
        pool = self._pool(name)
        fitting = [value for value in pool if _fits(value, field.type)] if pool else []
        if fitting:
            return self.random.choice(fitting)
        if field.type == "records":
            return self._records()
        if field.type == "bytes":
            return self.random.choice([b"", b"x", b"some bytes of no form"])
        if field.type == "uuid":
            return self.random.choice([uuids.ZERO, UNKNOWN_ID])
        if field.type == "string":
            return self.random.choice(["", "a", "1"])
        if field.type == "float64":
            return self.random.choice([0.0, 1.5])
        return self.random.choice([0, 1, -1, 2])

    @staticmethod
    def _pool(name: str) -> list[Any] | None:
        parts = name.split("_")
        for start in range(len(parts)):
            pool = POOLS.get("_".join(parts[start:]))
            if pool is not None:
                return pool
        return None

    def _records(self) -> bytes:
        key = self.random.choice([b"k", b"l", None])
        records = [
            Record(i, BASE_MS + i, key, b"v%d" % i, []) for i in range(self.random.randint(1, 3))
        ]
        batch = build_batch(records)
        if self.random.random() < 0.1:
            batch[-1] ^= 1
        return bytes(batch)


def _without_doubles(values: list[Any]) -> list[Any]:
    """One of those that name the same thing by their first field."""
    kept: dict[str, Any] = {}
    for value in values:
        key = value
        if hasattr(value, "FIELDS"):
            first = [getattr(value, name) for name in value.FIELDS][:2]
            key = [part for part in first if isinstance(part, str | int)] or first
        kept.setdefault(repr(key), value)
    return list(kept.values())


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return kind in ("string", "bytes")
    if kind == "string":
        return isinstance(value, str) and not value.startswith("@")
    if kind == "uuid":
        return isinstance(value, bytes) or (isinstance(value, str) and value.startswith("@"))
    if kind == "float64":
        return isinstance(value, float)
    bits = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint16": 16, "uint32": 32}.get(kind)
    if bits is None or isinstance(value, bool) or not isinstance(value, int):
        return False
    low = 0 if kind.startswith("u") else -(1 << bits)
    return low <= value < 1 << bits


class Side:
    """One of the two brokers."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.client = WireClient(bootstrap, 10)
        self.ids: dict[str, bytes] = {}

    def prepare(self) -> None:
        """The topics that requests name, their ids."""
        for name, (partitions, configs) in TOPICS.items():
            if self.client.metadata([name]).topics[0].error_code == 3:
                self.client.create_topic(name, partitions, configs)
                for index in range(partitions):
                    records = [Record(i, BASE_MS + i, b"k", b"v", []) for i in range(5)]
                    request = produce_request(name, {index: bytes(build_batch(records))})
                    code = TRANSIENT[0]
                    while code in TRANSIENT:
                        code = self.client.call(request, 9).responses[0].partition_responses[0]
                        code = code.error_code
                    assert code == 0, (name, index, code)
            self.ids[name] = self.client.topic_id(name)

    def prepare_coordinators(self) -> None:
        """The internal topics are there and loaded, so that no answer tells of that."""
        coordinators = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g0", "g1", "g2"])
        while any(c.error_code for c in self.client.call(coordinators, 6).coordinators):
            pass
        for group in ("g0", "g1", "g2", "nobody", "fresh"):
            request = m.DescribeGroupsRequest(groups=[group])
            while self.client.call(request, 4).groups[0].error_code:
                pass
        for name in ("tx0", "tx1", "x2"):
            request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            coordinators = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
            while any(c.error_code for c in self.client.call(coordinators, 6).coordinators):
                pass
            while self.client.call(request, 4).error_code:
                pass

    def ask(self, request: Any, version: int) -> Any:
        """The plain answer, or how there was none."""
        own = self._own(request)
        try:
            return self.plain(self.client.call(own, version))
        except (Closed, TimeoutError) as error:
            self.client.close()
            self.client = WireClient(self.bootstrap, 10)
            return "closed" if isinstance(error, Closed) else "no answer"

    def _own(self, value: Any) -> Any:
        if hasattr(value, "FIELDS"):
            return value.copy(**{name: self._own(getattr(value, name)) for name in value.FIELDS})
        if isinstance(value, list):
            return [self._own(item) for item in value]
        if isinstance(value, str) and value.startswith("@"):
            return self.ids[value[1:]]
        return value

    def plain(self, value: Any, name: str = "") -> Any:
        if name in VOLATILE and value is not None:
            return f"<{name}>" if value not in (0, -1, "", []) else value
        if name in TEXTS:
            return None if value is None else "text:" + self._text(value)
        if name == "records":
            data = bytes(value or b"")
            return [(r.offset, str(r.key), str(r.value)) for r in read_records(data)]
        if hasattr(value, "FIELDS"):
            return {
                field: self.plain(getattr(value, field), field)
                for field in value.FIELDS
                if field != "unknown_tags"
            }
        if isinstance(value, list):
            return sorted((self.plain(item) for item in value), key=_identity)
        if isinstance(value, bytes | bytearray | memoryview):
            known = {i: f"@{n}" for n, i in self.ids.items()}
            return known.get(bytes(value), f"<{len(value)} bytes>")
        return value

    def _text(self, text: str) -> str:
        return re.sub(r"\d{4,}", "<n>", ID.sub("<id>", text))


def _identity(item: Any) -> str:
    """What an element of an answer is about, so that answers in any order are compared alike."""
    if not isinstance(item, dict):
        return repr(item)
    names = ("name", "topic", "topic_name", "topic_id", "partition_index", "partition", "index")
    names += (
        "entity_type",
        "entity_name",
        "group_id",
        "transactional_id",
        "resource_type",
        "resource_name",
        "entity",
        "user",
    )
    return repr([item.get(name) for name in (*names, "key", "coordinator_key", "leader_epoch")])


def differences(left: Any, right: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers part."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in left:
            yield from differences(left[name], right.get(name), f"{path}.{name}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for one, other in zip(left, right, strict=True):
            yield from differences(one, other, path + "[]")
    elif left != right:
        yield path, left, right


def compare(kafka: str, kwire: str, seed: int, count: int, only: list[str]) -> int:
    """Send `count` requests to both; prints each kind of difference once; how many there were."""
    maker = Maker(seed)
    sides = [Side("kafka", kafka), Side("kwire", kwire)]
    for side in sides:
        side.prepare_coordinators()
    apis = [
        key
        for key, info in API_KEYS.items()
        if "broker" in info.listeners and key not in LEFT_OUT and info.max >= 0
    ]
    apis = [ApiKey(key) for key in apis if not only or ApiKey(key).name in only]
    seen: set[tuple[str, str, str, str]] = set()
    for number in range(count):
        if number % 25 == 0:
            for side in sides:
                side.prepare()
        api = maker.random.choice(apis)
        request, version = maker.request(api)
        answers = [side.ask(request, version) for side in sides]
        if TRACE:
            print(f"trace #{number} {request!r:.1500}", *answers, sep="\n    ", file=sys.stderr)
        for path, one, other in differences(*answers):
            kind = (api.name, path, repr(one)[:60], repr(other)[:60])
            if kind not in seen:
                seen.add(kind)
                print(f"#{number} {api.name} v{version} {path}")
                print(f"    kafka {one!r:.600}\n    kwire {other!r:.600}\n    {request!r:.1500}")
                sys.stdout.flush()
    print(f"{count} requests, {len(seen)} kinds of difference")
    return len(seen)


if __name__ == "__main__":
    found = compare(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
    raise SystemExit(bool(found))
