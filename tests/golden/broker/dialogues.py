"""Requests of the data plane whose answers are compared with Apache Kafka's, answer by answer.

`run(bootstrap)` talks to a broker and returns every answer in a form without what differs from run
to run (ids, ports, times). `tests/golden/data/broker_answers.json.gz` holds what Apache Kafka 4.4
gave; made by `python -m tests.golden.broker.dialogues HOST:PORT OUT`, against a single node with
replication factors 1 and `offsets.topic.num.partitions=4`.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.records import Codec, Record, build_batch, read_records
from tests.support.frames import Closed
from tests.support.wire import WireClient, produce_request

TOPIC = "dialogue"
COMPACTED = "dialogue-compacted"
MISSING = "dialogue-missing"
BASE_MS = 1_700_000_000_000
UNKNOWN_ID = bytes(range(16))


class Dialogue:
    """One connection's worth of requests; what is answered is normalised and kept."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.client = WireClient(bootstrap)
        self.answers: dict[str, Any] = {}
        self.names: dict[bytes, str] = {uuids.ZERO: "zero", UNKNOWN_ID: "unknown"}

    def ask(self, label: str, request: Any, version: int) -> Any:
        """Send, keep the answer under `label vVERSION`; a close is an answer too."""
        assert f"{label} v{version}" not in self.answers, label
        try:
            response = self.client.call(request, version)
        except Closed:
            self.client.close()
            self.client = WireClient(self.bootstrap)
            self.answers[f"{label} v{version}"] = "closed"
            return None
        self.answers[f"{label} v{version}"] = self.plain(response)
        return response

    def plain(self, value: Any) -> Any:
        """JSON of an answer: uuids by name, records as their values, volatile fields masked."""
        if hasattr(value, "FIELDS"):
            return {
                name: self._field(name, getattr(value, name))
                for name in value.FIELDS
                if name not in ("unknown_tags",)
            }
        if isinstance(value, list):
            return sorted((self.plain(item) for item in value), key=_order)
        if isinstance(value, bytes | bytearray | memoryview):
            return self.names.get(bytes(value), f"<{len(value)} bytes>")
        return value

    def _field(self, name: str, value: Any) -> Any:
        if name == "records":
            data = bytes(value or b"")
            kind = "null" if value is None else "records"
            return [kind, [(r.offset, str(r.value)) for r in read_records(data)]]
        if name in ("port", "host", "cluster_id", "finalized_features_epoch", "session_id"):
            return f"<{name}>" if value not in (0, -1, None, "") else value
        if name in ("log_append_time_ms", "last_timestamp") and value > 0:
            return f"<{name}>"
        if name == "error_message":
            return None if value is None else "<text>"
        if name == "batch_index_error_message":
            return None if value is None else "<text>"
        return self.plain(value)


def _order(item: Any) -> Any:
    """Topics by name, partitions by index: the order in an answer is a hash's in Kafka."""
    if isinstance(item, dict):
        names = ("partition_index", "index", "partition", "name", "topic", "producer_id")
        return [str(item.get(name)).zfill(6) for name in names]
    return str(item).zfill(6)


def _stamped(*timestamps: int, codec: Codec = Codec.NONE) -> bytes:
    records = [Record(i, t, None, b"v%d" % i, []) for i, t in enumerate(timestamps)]
    return bytes(build_batch(records, codec=codec))


def _produce_by_id(
    topic_id: bytes, partitions: dict[int, Any], acks: int = -1, name: str = ""
) -> Any:
    request = produce_request(name, partitions, acks)
    request.topic_data[0].topic_id = topic_id
    return request


def produce(d: Dialogue) -> None:
    """Where errors are placed, at every version."""
    good = _stamped(BASE_MS)
    damaged = bytearray(good)
    damaged[-1] ^= 1
    two = good + good
    old_codec = _stamped(BASE_MS, codec=Codec.ZSTD)
    control = bytearray(build_batch([Record(0, BASE_MS, b"\0\0\0\0", b"\0\0\0\0\0\0", [])],
                                    control=True))  # fmt: skip
    future = _stamped(BASE_MS, 4_000_000_000_000)
    unsequenced = _idempotent(77, 0, -1)
    for version in range(3, 13):
        d.ask("produce good", produce_request(TOPIC, {0: good}), version)
        d.ask("produce zstd", produce_request(TOPIC, {0: old_codec}), version)
        d.ask("produce damaged", produce_request(TOPIC, {0: bytes(damaged)}), version)
        d.ask("produce future", produce_request(TOPIC, {0: future}), version)
        d.ask("produce control", produce_request(TOPIC, {0: bytes(control)}), version)
        d.ask("produce two", produce_request(TOPIC, {0: two, 1: good}), version)
        d.ask("produce unknown", produce_request(MISSING, {0: good}), version)
        d.ask("produce unknown partition", produce_request(TOPIC, {9: good, 1: good}), version)
        d.ask("produce acks 2", produce_request(TOPIC, {0: good}, acks=2), version)
        d.ask("produce empty", produce_request(TOPIC, {0: b""}), version)
        d.ask("produce trailing", produce_request(TOPIC, {1: good + b"rest"}), version)
        d.ask("produce unsequenced", produce_request(TOPIC, {0: unsequenced}), version)
        d.ask("produce internal", produce_request("__consumer_offsets", {0: good}), version)
        d.ask("produce nothing", produce_request(TOPIC, {}), version)
        d.ask("produce without key", produce_request(COMPACTED, {0: good}), version)
    topic_id = next(key for key, name in d.names.items() if name == TOPIC)
    d.ask("produce good", _produce_by_id(topic_id, {0: good}), 13)
    d.ask("produce unknown partition", _produce_by_id(topic_id, {9: good}), 13)
    d.ask("produce unknown id", _produce_by_id(UNKNOWN_ID, {0: good}), 13)
    d.ask("produce zero id", _produce_by_id(uuids.ZERO, {0: good}), 13)


def _idempotent(producer_id: int, epoch: int, sequence: int, count: int = 1) -> bytes:
    records = [Record(i, BASE_MS, None, b"i", []) for i in range(count)]
    return bytes(
        build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )


def idempotence(d: Dialogue) -> None:
    """Sequences, epochs and duplicates."""
    steps = [
        ("first", 500, 0, 0), ("second", 500, 0, 1), ("again", 500, 0, 1), ("gap", 500, 0, 5),
        ("old", 500, 0, 0), ("epoch up not at 0", 500, 1, 3), ("epoch up", 500, 1, 0),
        ("epoch down", 500, 0, 2), ("new producer not at 0", 501, 0, 7),
    ]  # fmt: skip
    for label, producer_id, epoch, sequence in steps:
        request = produce_request(TOPIC, {2: _idempotent(producer_id, epoch, sequence)})
        d.ask(f"idempotent {label}", request, 9)
    shape = m.DescribeProducersRequest
    request = shape(
        topics=[
            shape.TopicRequest(name=TOPIC, partition_indexes=[2, 9]),
            shape.TopicRequest(name=MISSING, partition_indexes=[0]),
        ]
    )
    d.ask("describe producers", request, 0)
    init = m.InitProducerIdRequest
    for version in range(6):
        d.ask("init half", init(producer_id=5 if version > 2 else -1), version) if (
            version > 2
        ) else None
        d.ask("init empty transactional id", init(transactional_id=""), version)


def _fetch(
    topics: dict[Any, dict[int, int]], version: int, *, epoch: int = -1, leader: int = -1,
    last_epoch: int = -1, **fields: Any,
) -> Any:  # fmt: skip
    shape = m.FetchRequest
    listed = []
    for name, offsets in topics.items():
        partitions = [
            shape.FetchPartition(
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=1 << 20,
                current_leader_epoch=leader if version >= 9 else -1,
                last_fetched_epoch=last_epoch if version >= 12 else -1,
            )
            for index, offset in offsets.items()
        ]
        key = {"topic_id": name} if version >= 13 else {"topic": name}
        listed.append(shape.FetchTopic(partitions=partitions, **key))
    return shape(max_wait_ms=0, min_bytes=1, session_epoch=epoch, topics=listed, **fields)


def fetch(d: Dialogue) -> None:
    """Errors, limits, epochs and sessions."""
    topic_id = next(key for key, name in d.names.items() if name == TOPIC)
    for version in range(4, 19):
        by_id = version >= 13
        topic: Any = topic_id if by_id else TOPIC
        other: Any = UNKNOWN_ID if by_id else MISSING
        d.ask("fetch", _fetch({topic: {2: 0}}, version), version)
        d.ask("fetch committed", _fetch({topic: {2: 1}}, version, isolation_level=1), version)
        d.ask("fetch beyond", _fetch({topic: {2: 1000}}, version), version)
        d.ask("fetch unknown", _fetch({other: {0: 0}, topic: {9: 0}}, version), version)
        d.ask("fetch nothing", _fetch({}, version), version)
        if version >= 9:
            d.ask("fetch old epoch", _fetch({topic: {2: 0}}, version, leader=-2), version)
            d.ask("fetch new epoch", _fetch({topic: {2: 0}}, version, leader=50), version)
        if version >= 12:
            d.ask("fetch diverging", _fetch({topic: {2: 1}}, version, last_epoch=40), version)
            d.ask("fetch same epoch", _fetch({topic: {2: 1}}, version, last_epoch=0), version)
        if version >= 7:
            _session(d, topic, other, version)


def _session(d: Dialogue, topic: Any, other: Any, version: int) -> None:
    first = d.ask("session open", _fetch({topic: {0: 0, 2: 1}}, version, epoch=0), version)
    number = first.session_id
    ask = d.ask
    ask("session 1", _fetch({}, version, epoch=1, session_id=number), version)
    ask("session again 1", _fetch({}, version, epoch=1, session_id=number), version)
    ask("session wrong id", _fetch({}, version, epoch=1, session_id=number + 1), version)
    ask("session 2", _fetch({other: {0: 0}}, version, epoch=2, session_id=number), version)
    shape = m.FetchRequest.ForgottenTopic
    key = {"topic_id": topic} if version >= 13 else {"topic": topic}
    forget = [shape(partitions=[0, 2], **key)]
    ask(
        "session 3 forget",
        _fetch({}, version, epoch=3, session_id=number, forgotten_topics_data=forget),
        version,
    )
    ask("session close", _fetch({topic: {0: 0}}, version, session_id=number), version)
    ask("session closed", _fetch({}, version, epoch=4, session_id=number), version)
    if version in (12, 13):
        opened = d.ask("session mixed", _fetch({topic: {0: 0}}, version, epoch=0), version)
        mixed = 25 - version
        request = _fetch({}, mixed, epoch=1, session_id=opened.session_id)
        d.ask(f"session of v{version} used by", request, mixed)


def list_offsets(d: Dialogue) -> None:
    """Every special timestamp at every version, isolation and epochs."""
    shape = m.ListOffsetsRequest

    def request(topic: str, *asked: tuple[int, int, int], **fields: Any) -> Any:
        partitions = [
            shape.ListOffsetsPartition(
                partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
            )
            for index, timestamp, epoch in asked
        ]
        listed = [shape.ListOffsetsTopic(name=topic, partitions=partitions)]
        return shape(replica_id=-1, topics=listed, **fields)

    for version in range(1, 12):
        for timestamp in (*range(-8, 1), BASE_MS, BASE_MS + 1, BASE_MS + 10**12):
            d.ask(f"offset of {timestamp}", request(TOPIC, (0, timestamp, -1)), version)
            d.ask(f"offset in nothing {timestamp}", request(TOPIC, (3, timestamp, -1)), version)
        d.ask("offset twice", request(TOPIC, (0, -1, -1), (0, -2, -1), (1, -1, -1)), version)
        d.ask("offset unknown", request(MISSING, (0, -1, -1)), version)
        d.ask("offset unknown partition", request(TOPIC, (9, -1, -1)), version)
        if version >= 2:
            d.ask("offset committed", request(TOPIC, (0, -1, -1), isolation_level=1), version)
        if version >= 4:
            d.ask("offset old epoch", request(TOPIC, (0, -1, -2)), version)
            d.ask("offset new epoch", request(TOPIC, (0, -1, 9)), version)


def epochs(d: Dialogue) -> None:
    """OffsetForLeaderEpoch."""
    shape = m.OffsetForLeaderEpochRequest
    for version in (2, 3, 4):
        for current, asked in ((-1, 0), (0, 0), (0, 1), (1, 0), (-2, 0), (-1, -1), (-1, 5)):
            request = shape(
                replica_id=-1,
                topics=[
                    shape.OffsetForLeaderTopic(
                        topic=name,
                        partitions=[
                            shape.OffsetForLeaderPartition(
                                partition=2, current_leader_epoch=current, leader_epoch=asked
                            )
                        ],
                    )
                    for name in (TOPIC, MISSING)
                ],
            )
            d.ask(f"epoch {asked} at {current}", request, version)


def delete_records(d: Dialogue) -> None:
    """Log starts, and what cannot be deleted."""
    shape = m.DeleteRecordsRequest

    def request(topic: str, *asked: tuple[int, int]) -> Any:
        partitions = [shape.DeleteRecordsPartition(partition_index=i, offset=o) for i, o in asked]
        return shape(
            timeout_ms=5000, topics=[shape.DeleteRecordsTopic(name=topic, partitions=partitions)]
        )

    for version in (0, 1, 2):
        d.ask("delete to 1", request(TOPIC, (2, 1)), version)
        d.ask("delete back", request(TOPIC, (2, 0)), version)
        d.ask("delete beyond", request(TOPIC, (2, 1000), (9, 0), (1, -2)), version)
        d.ask("delete unknown", request(MISSING, (0, 0)), version)
        d.ask("delete internal", request("__consumer_offsets", (0, -1)), version)
        d.ask("delete compacted", request(COMPACTED, (0, -1)), version)
    d.ask("fetch deleted", _fetch({TOPIC: {2: 0}}, 12), 12)
    d.ask("delete all", request(TOPIC, (2, -1)), 2)


def metadata(d: Dialogue) -> None:
    """Names, ids, what cannot exist."""
    topic_id = next(key for key, name in d.names.items() if name == TOPIC)
    shape = m.MetadataRequest

    def request(version: int, *topics: Any, **fields: Any) -> Any:
        if version >= 4:
            fields.setdefault("allow_auto_topic_creation", False)
        return shape(topics=list(topics), **fields)

    named = shape.MetadataRequestTopic
    for version in range(14):
        asked = [named(name=name) for name in (TOPIC, COMPACTED)]
        d.ask("metadata two", request(version, *asked), version)
        if version:
            d.ask("metadata none", request(version), version)
        if version >= 4:
            for label, name in (("unknown", MISSING), ("bad name", "a b"), ("long", "x" * 250)):
                d.ask(f"metadata {label}", request(version, named(name=name)), version)
        twice = [named(name=TOPIC), named(name=TOPIC)]
        d.ask("metadata twice", request(version, *twice), version)
        d.ask("metadata internal", request(version, named(name="__consumer_offsets")), version)
        if 8 <= version <= 10:
            fields = {"include_cluster_authorized_operations": True}
            d.ask("metadata operations", request(version, **fields), version)
        if version >= 8:
            fields = {"include_topic_authorized_operations": True}
            d.ask("metadata may", request(version, named(name=TOPIC), **fields), version)
        if version >= 10:
            for label, uuid in (("id", topic_id), ("unknown id", UNKNOWN_ID)):
                asked = [named(topic_id=uuid, name=None)]
                d.ask(f"metadata {label}", request(version, *asked), version)
            d.ask("metadata nobody", request(version, named(name=None)), version)
            both = named(topic_id=topic_id, name=MISSING)
            d.ask("metadata id and name", request(version, both), version)


def auto_creation(d: Dialogue) -> None:
    """What a client is told while its topic is being created."""
    shape = m.MetadataRequest
    for version in (0, 4, 9, 12, 13):
        name = f"dialogue-auto-{version}"
        topics = [shape.MetadataRequestTopic(name=name), shape.MetadataRequestTopic(name="a/b")]
        d.ask("auto first", shape(topics=topics), version)
        made = d.client.topic(name)
        d.answers[f"auto made v{version}"] = len(made.partitions)


def api_versions(d: Dialogue) -> None:
    """Names and identities."""
    shape = m.ApiVersionsRequest
    texts = ["x", "x-1.0", "-x", "x-", "", "a b", "a.b-c", "é", ".", "1.2.3"]
    for version in (3, 4, 5):
        for text in texts:
            for fields in (
                {"client_software_name": text, "client_software_version": "1"},
                {"client_software_name": "n", "client_software_version": text},
            ):
                answer = d.client.call(shape(**fields), version)
                label = f"software {text!r} as {next(iter(k for k in fields if fields[k] == text))}"
                d.answers[f"{label} v{version}"] = (answer.error_code, bool(answer.api_keys))


def describe_log_dirs(d: Dialogue) -> None:
    """Sizes are the log's; here only who is listed."""
    shape = m.DescribeLogDirsRequest
    for version in range(1, 6):
        for label, topics in (
            ("all", None),
            ("none", []),
            ("one", [shape.DescribableLogDirTopic(topic=TOPIC, partitions=[0, 9])]),
            ("missing", [shape.DescribableLogDirTopic(topic=MISSING, partitions=[0])]),
        ):
            answer = d.client.call(shape(topics=topics), version)
            d.answers[f"log dirs {label} v{version}"] = [
                (
                    result.error_code,
                    sorted(
                        (topic.name, p.partition_index, p.offset_lag, p.is_future_key)
                        for topic in result.topics
                        for p in topic.partitions
                        if topic.name in (TOPIC, MISSING)
                    ),
                    result.total_bytes > 0,
                    result.usable_bytes > 0,
                    result.is_cordoned,
                )
                for result in answer.results
            ]


PARTS: list[Callable[[Dialogue], None]] = [
    produce,
    idempotence,
    fetch,
    list_offsets,
    epochs,
    delete_records,
    metadata,
    auto_creation,
    api_versions,
    describe_log_dirs,
]


def _prepare(d: Dialogue) -> None:
    d.client.create_topic(TOPIC, partitions=4, configs={"retention.ms": "-1"})
    d.client.create_topic(COMPACTED, configs={"cleanup.policy": "compact"})
    d.client.call(m.FindCoordinatorRequest(key="group", key_type=0), 3)
    for name in (TOPIC, COMPACTED, "__consumer_offsets"):
        d.names[d.client.topic_id(name)] = name
    deadline = time.monotonic() + 20
    while not _leads(d.client):
        assert time.monotonic() < deadline


def _leads(client: WireClient) -> bool:
    """Whether every partition takes records (a fresh leader may say no for a moment)."""
    asked = {3: _stamped(BASE_MS)}
    answer = client.call(produce_request(TOPIC, asked), 9)
    ready = answer.responses[0].partition_responses[0].error_code == 0
    shape = m.ListOffsetsRequest
    partitions = [shape.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(4)]
    listed = client.call(
        shape(replica_id=-1, topics=[shape.ListOffsetsTopic(name=TOPIC, partitions=partitions)]), 7
    )
    return ready and all(p.error_code == 0 for p in listed.topics[0].partitions)


def run(bootstrap: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(part, label -> answer) of every part, against a broker without these topics."""
    d = Dialogue(bootstrap)
    _prepare(d)
    for part in PARTS:
        d.answers = {}
        part(d)
        yield part.__name__, json.loads(json.dumps(d.answers))
    d.client.close()


def main() -> None:
    answers = dict(run(sys.argv[1]))
    with open(sys.argv[2], "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(answers, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
