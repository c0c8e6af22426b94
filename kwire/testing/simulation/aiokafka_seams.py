"""Where aiokafka reaches around the loop: the time of records, and the order of its sets.

Its compiled builder of batches stamps records with the machine's time unless it is given one: in
a run it is given the run's. Partitions, brokers and topics are in sets, whose order goes out in
requests and differs from process to process (PYTHONHASHSEED): the tuples get a hash of their own,
and lists of topics are sorted. It numbers its producers, whose client ids have the number: each run
begins with the first. Nothing else of it is touched. Processes that are started for runs
have one PYTHONHASHSEED besides, which orders the application's own sets too.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any

from kwire.testing.simulation.stand_ins import Replacement, current


def seams() -> list[Replacement]:
    """Of an aiokafka that has been imported."""
    found: list[Replacement] = []
    structs = sys.modules.get("aiokafka.structs")
    for name in ("TopicPartition", "BrokerMetadata", "OffsetAndMetadata"):
        known = getattr(structs, name, None)
        if known is not None:
            found.append((known, "__hash__", _hash_of_text))
    client = getattr(sys.modules.get("aiokafka.client"), "AIOKafkaClient", None)
    if client is not None and hasattr(client, "_metadata_update"):
        found.append((client, "_metadata_update", _sorted_topics(client._metadata_update)))
    subscription = getattr(
        sys.modules.get("aiokafka.consumer.subscription_state"), "Subscription", None
    )
    if subscription is not None:
        found.append((subscription, "__init__", _sorted_subscription(subscription.__init__)))
    producer = getattr(sys.modules.get("aiokafka.producer"), "AIOKafkaProducer", None)
    if hasattr(producer, "_PRODUCER_CLIENT_ID_SEQUENCE"):
        found.append((producer, "_PRODUCER_CLIENT_ID_SEQUENCE", 0))
    builder = getattr(
        sys.modules.get("aiokafka.producer.message_accumulator"), "BatchBuilder", None
    )
    if builder is not None:
        found.append((builder, "append", _stamped(builder.append)))
    return found


def _stamped(real: Callable[..., Any]) -> Callable[..., Any]:
    def append(self: Any, *, timestamp: int | None, **record: Any) -> Any:
        if timestamp is None and current.run is not None:
            timestamp = current.run.wall_ns() // 1_000_000
        return real(self, timestamp=timestamp, **record)

    return append


def _hash_of_text(self: Any) -> int:
    return zlib.crc32("\0".join(map(str, self)).encode())


def _sorted_topics(real: Callable[..., Any]) -> Callable[..., Any]:
    def metadata_update(self: Any, cluster_metadata: Any, topics: Any) -> Any:
        return real(self, cluster_metadata, sorted(topics))

    return metadata_update


class _SortedTopics(frozenset[str]):
    """Topics in one order."""

    def __iter__(self) -> Any:
        return iter(sorted(frozenset.__iter__(self)))


def _sorted_subscription(real: Callable[..., None]) -> Callable[..., None]:
    def subscription(self: Any, topics: Any, *args: Any, **options: Any) -> None:
        real(self, topics, *args, **options)
        self._topics = _SortedTopics(self._topics)

    return subscription
