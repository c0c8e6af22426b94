"""A small client over kwire's own typed messages, for tests of the broker: one call a time.

The codec itself is checked against golden vectors and real clients; here it is only a convenience.
What shares no code with kwire, for any broker, is `tests/wire`; both send by `frames.py`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch, read_records
from tests.support.frames import FrameSocket

TIMEOUT_S = 60.0
TRANSIENT = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


class WireClient:
    """`call(request, version)` sends and receives; `send`/`receive` for pipelining."""

    def __init__(
        self, bootstrap: str, timeout_s: float = TIMEOUT_S, client_id: str = "test"
    ) -> None:
        self._client_id = client_id
        self._frames = FrameSocket(bootstrap, timeout_s)
        self.socket = self._frames.sock
        self._correlation_id = 0
        self._sent: list[tuple[int, int, int]] = []

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._frames.close()

    def send(self, request: Any, version: int) -> int:
        """Send without waiting; returns the correlation id."""
        self._frames.send_raw(self._encoded(request, version))
        return self._correlation_id

    def pipeline(self, requests: Sequence[tuple[Any, int]]) -> list[Any]:
        """Send requests in one piece, then receive; None for a Produce without acks."""
        unanswered = len(self._sent)
        self._frames.send_raw(b"".join(self._encoded(*asked) for asked in requests))
        asked_back = self._sent[unanswered:]
        is_answered = [getattr(request, "acks", 1) != 0 for request, _ in requests]
        self._sent[unanswered:] = itertools.compress(asked_back, is_answered)
        return [self.receive() if answered else None for answered in is_answered]

    def _encoded(self, request: Any, version: int) -> bytes:
        self._correlation_id += 1
        key = type(request).API_KEY
        self._sent.append((self._correlation_id, key, version))
        return b"".join(
            frame.encode_request(key, version, self._correlation_id, self._client_id, request)
        )

    def receive(self) -> Any:
        """The next response, which must answer the oldest request that was sent."""
        body = self.receive_frame()
        expected, key, version = self._sent.pop(0)
        correlation_id, response = frame.decode_response(key, version, body)
        assert correlation_id == expected, "answers leave in request order"
        return response

    def receive_frame(self) -> bytes:
        return self._frames.recv_frame()

    def expect_closed(self) -> None:
        """Wait for the broker to close; nothing may come before."""
        self._frames.expect_close(TIMEOUT_S)

    def call_frame(self, request: Any, version: int) -> bytes:
        """What answers, not decoded: a correlation id of four bytes, and the rest of the frame."""
        self.send(request, version)
        body = self.receive_frame()
        expected, _, _ = self._sent.pop(0)
        assert int.from_bytes(body[:4], "big") == expected, "answers leave in request order"
        return body

    def call(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    # -- the metadata, in short form

    def metadata(self, names: list[str] | None = None, version: int = 12) -> Any:
        shape = m.MetadataRequest.MetadataRequestTopic
        topics = None if names is None else [shape(name=name) for name in names]
        request = m.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return self.call(request, version)

    def cluster_id(self) -> str:
        return str(self.metadata([]).cluster_id)

    def brokers(self) -> dict[int, tuple[str, int]]:
        return {b.node_id: (b.host, b.port) for b in self.metadata([]).brokers}

    def topics(self) -> list[str]:
        return [topic.name for topic in self.metadata(None).topics]

    def topic(self, name: str) -> Any:
        """The topic's metadata once all of its partitions have a leader."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            topic = self.metadata([name]).topics[0]
            if topic.error_code == 0 and all(p.leader_id >= 0 for p in topic.partitions):
                return topic
            assert time.monotonic() < deadline, topic

    def topic_id(self, name: str) -> bytes:
        return bytes(self.topic(name).topic_id)

    def partition_count(self, name: str) -> int:
        return len(self.topic(name).partitions)

    def create_topic(
        self, name: str, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> None:
        shape = m.CreateTopicsRequest
        request = shape(
            timeout_ms=10_000,
            topics=[
                shape.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=-1,
                    configs=[
                        shape.CreatableTopicConfig(name=key, value=value)
                        for key, value in (configs or {}).items()
                    ],
                )
            ],
        )
        answer = self.call(request, 7).topics[0]
        assert answer.error_code == 0, answer
        self.topic(name)

    def config(self, topic: str, name: str) -> str | None:
        shape = m.DescribeConfigsRequest
        request = shape(
            resources=[
                shape.DescribeConfigsResource(
                    resource_type=2, resource_name=topic, configuration_keys=[name]
                )
            ]
        )
        result = self.call(request, 4).results[0]
        assert result.error_code == 0, result
        value: str | None = result.configs[0].value
        return value


def batch_of(values: list[bytes], **options: Any) -> bytes:
    """One batch with these values."""
    now_ms = time.time_ns() // 1_000_000
    return bytes(
        build_batch(
            [Record(i, now_ms, None, value, []) for i, value in enumerate(values)], **options
        )
    )


def produce_request(
    topic: str, partitions: dict[int, bytes], acks: int = -1, timeout_ms: int = 10_000
) -> Any:
    """A ProduceRequest (by name, up to version 12) for partitions of one topic."""
    shape = m.ProduceRequest
    return shape(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            shape.TopicProduceData(
                name=topic,
                partition_data=[
                    shape.PartitionProduceData(index=index, records=records)
                    for index, records in partitions.items()
                ],
            )
        ],
    )


def produce_values(client: WireClient, topic: str, partition: int, values: list[bytes]) -> int:
    """Append one batch with acks=all; returns its base offset. Waits for a leader."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        request = produce_request(topic, {partition: batch_of(values)})
        answer = client.call(request, 9).responses[0].partition_responses[0]
        if answer.error_code in TRANSIENT and time.monotonic() < deadline:
            continue
        assert answer.error_code == 0, answer
        return int(answer.base_offset)


def fetch_request(
    topic: str, offsets: dict[int, int], *, wait_ms: int = 0, bytes_min: int = 1, **fields: Any
) -> Any:
    """A FetchRequest (by name, up to version 12) for partitions of one topic."""
    shape = m.FetchRequest
    return shape(
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        topics=[
            shape.FetchTopic(
                topic=topic,
                partitions=[
                    shape.FetchPartition(
                        partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                    for index, offset in offsets.items()
                ],
            )
        ],
        **fields,
    )


def fetch_values(client: WireClient, topic: str, partition: int, offset: int = 0) -> list[bytes]:
    """The values of a partition from `offset` to the high watermark."""
    values: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        response = client.call(fetch_request(topic, {partition: offset}), 12)
        answer = response.responses[0].partitions[0]
        if answer.error_code in TRANSIENT and time.monotonic() < deadline:
            continue
        assert answer.error_code == 0, answer
        found = [r for r in read_records(bytes(answer.records or b"")) if r.offset >= offset]
        if not found:
            assert offset == answer.high_watermark
            return values
        values += [record.value or b"" for record in found]
        offset = found[-1].offset + 1
