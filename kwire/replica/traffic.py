"""What the partitions of a topic have been asked on this node, and what went in and out.

Plain integers that the partitions add to; only `kwire/metrics` reads them. They are those of
Apache Kafka's BrokerTopicMetrics, by topic; sums over all topics keep those that are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from kwire.protocol.errors import ErrorCode

EXPECTED_PRODUCE_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
EXPECTED_FETCH_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors that do not make a request a failed one, as Apache Kafka counts."""
NO_KEY = "Compacted topic cannot accept message without key"
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Traffic:
    """The counts of one topic. What clients wrote is `bytes_in`, what followers got of us
    `replication_bytes_out`, what we got as a follower `replication_bytes_in`; `expired_produces`
    were acknowledged too late."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "expired_produces",
        "failed_fetch_requests",
        "failed_produce_requests",
        "failed_share_acknowledge_requests",
        "failed_share_fetch_requests",
        "fetch_requests",
        "invalid_crc_records",
        "messages_in",
        "no_key_records",
        "produce_requests",
        "replication_bytes_in",
        "replication_bytes_out",
        "share_acknowledge_requests",
        "share_fetch_requests",
    )

    def __init__(self) -> None:
        self.produce_requests = 0
        self.messages_in = 0
        self.bytes_in = 0
        self.fetch_requests = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.expired_produces = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.invalid_crc_records = 0
        self.no_key_records = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.share_fetch_requests = 0
        self.failed_share_fetch_requests = 0
        self.share_acknowledge_requests = 0
        self.failed_share_acknowledge_requests = 0

    def produce_failed(self, code: ErrorCode, size_bytes: int) -> None:
        """Records of that size are refused."""
        if code in TOO_LARGE:
            self.bytes_rejected += size_bytes
        elif code == ErrorCode.CORRUPT_MESSAGE:
            self.invalid_crc_records += 1
        if code not in EXPECTED_PRODUCE_ERRORS:
            self.failed_produce_requests += 1

    def records_refused(self, messages: Iterable[str | None]) -> None:
        """Records are refused, each for a reason."""
        self.no_key_records += sum(
            message is not None and message.startswith(NO_KEY) for message in messages
        )

    def fetch_failed(self, code: ErrorCode) -> None:
        """A read gives an error."""
        if code not in EXPECTED_FETCH_ERRORS:
            self.failed_fetch_requests += 1

    def add(self, other: Traffic) -> None:
        """Count what `other` has counted too."""
        for name in Traffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class LateCounts(Protocol):
    """Someone whose reads are not counted yet."""

    def count(self) -> None:
        """Count them, and be late no more."""
        ...


class TopicTraffic:
    """The traffic of all topics that this node has partitions of, and of those it had. Who is in
    `late` has something to count, before anybody looks."""

    def __init__(self) -> None:
        self.late: dict[LateCounts, None] = {}
        self._topics: dict[str, tuple[Traffic, int]] = {}  # and how many partitions count there
        self._gone = Traffic()

    def __iter__(self) -> Iterator[tuple[str, Traffic]]:
        for late in list(self.late):
            late.count()
        for topic, (traffic, _) in list(self._topics.items()):
            yield topic, traffic

    def of(self, topic: str) -> Traffic:
        """What one more partition of a topic counts in."""
        traffic, partitions = self._topics.get(topic) or (Traffic(), 0)
        self._topics[topic] = traffic, partitions + 1
        return traffic

    def left(self, topic: str) -> None:
        """A partition of the topic is gone."""
        traffic, partitions = self._topics.pop(topic)
        if partitions > 1:
            self._topics[topic] = traffic, partitions - 1
        else:
            self._gone.add(traffic)

    def total(self) -> Traffic:
        """The sum over all topics, the ones that are gone too."""
        total = Traffic()
        total.add(self._gone)
        for _, traffic in self:
            total.add(traffic)
        return total
