"""What the coordinator knows of one transactional id: an immutable value, made from its record.

`TransactionMetadata` corresponds to TransactionLogValue field by field. Every change is a new
value, turned into a record by `to_record`, and becomes the state only when the record is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from kwire.coordinator.transaction.states import TransactionState
from kwire.protocol import messages as m
from kwire.protocol.bare_classes import bare_class
from kwire.protocol.coordinator_records import encode_key

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
#: A producer id has to be replaced once its epoch has reached this (one bump is left for a fence).
EXHAUSTED_EPOCH = 32766
#: Keys that are kept as they stand in the log, at most so many characters of each.
KEYS_REMEMBERED = 8192
KEY_LENGTH_MAX = 128

Partitions = tuple[tuple[str, int], ...]


class TransactionMetadata(NamedTuple):
    """One transactional id. Times are wall-clock milliseconds; -1 is none."""

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: Partitions
    start_ms: int
    last_update_ms: int
    client_transaction_version: int

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= EXHAUSTED_EPOCH


@dataclass(frozen=True, slots=True)
class Prepared:
    """An ended transaction whose markers are not written yet, and what they say."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    partitions: Partitions
    transaction_version: int


def check(condition: bool, message: str) -> None:
    """An invariant that stays on in production."""
    if not condition:
        raise AssertionError(message)


def fresh(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    """A transactional id's first value."""
    return TransactionMetadata(
        producer_id=producer_id,
        previous_producer_id=producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=0,
        next_producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=(),
        start_ms=-1,
        last_update_ms=now_ms,
        client_transaction_version=0,
    )


@lru_cache(KEYS_REMEMBERED)
def _known_key(transactional_id: str) -> tuple[m.TransactionLogKey, bytes]:
    key = m.TransactionLogKey(transactional_id=transactional_id)
    return key, encode_key(key)


def key_of(transactional_id: str) -> tuple[m.TransactionLogKey, bytes | None]:
    """The key of its records, and the same as it stands in the log unless that is long: each
    transaction has three records."""
    if len(transactional_id) > KEY_LENGTH_MAX:
        return m.TransactionLogKey(transactional_id=transactional_id), None
    return _known_key(transactional_id)


def from_record(value: m.TransactionLogValue) -> TransactionMetadata:
    """The value that a TransactionLogValue message says."""
    topics = value.transaction_partitions
    partitions = (
        tuple([(topic.topic, index) for topic in topics for index in topic.partition_ids])
        if topics
        else ()
    )
    return TransactionMetadata(
        value.producer_id,
        value.previous_producer_id,
        value.next_producer_id,
        value.producer_epoch,
        value.next_producer_epoch,
        value.transaction_timeout_ms,
        TransactionState(value.transaction_status),
        partitions,
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.client_transaction_version,
    )


def to_record(metadata: TransactionMetadata, version: int = 1) -> m.TransactionLogValue:
    """The TransactionLogValue message of a value. An empty transaction has null partitions; what
    came with version 1 (transaction.version 1) is left out of version 0."""
    topics: dict[str, list[int]] = {}
    for topic, partition in metadata.partitions:
        topics.setdefault(topic, []).append(partition)
    partitions = None
    if metadata.state != TransactionState.EMPTY:
        partitions = [_partitions_of(topic, ids) for topic, ids in topics.items()]
    if version < 1:
        return m.TransactionLogValue(
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            transaction_timeout_ms=metadata.timeout_ms,
            transaction_status=int(metadata.state),
            transaction_partitions=partitions,
            transaction_last_update_timestamp_ms=metadata.last_update_ms,
            transaction_start_timestamp_ms=metadata.start_ms,
        )
    value = _BareValue()  # without the price of keywords
    value._tagged = None
    value.producer_id = metadata.producer_id
    value.previous_producer_id = metadata.previous_producer_id
    value.next_producer_id = metadata.next_producer_id
    value.producer_epoch = metadata.producer_epoch
    value.next_producer_epoch = metadata.next_producer_epoch
    value.transaction_timeout_ms = metadata.timeout_ms
    value.transaction_status = int(metadata.state)
    value.transaction_partitions = partitions
    value.transaction_last_update_timestamp_ms = metadata.last_update_ms
    value.transaction_start_timestamp_ms = metadata.start_ms
    value.client_transaction_version = metadata.client_transaction_version
    return value


_BareValue = bare_class(m.TransactionLogValue)
_BarePartitions = bare_class(m.TransactionLogValue.PartitionsSchema)


def _partitions_of(topic: str, indexes: list[int]) -> m.TransactionLogValue.PartitionsSchema:
    found = _BarePartitions()
    found._tagged = None
    found.topic = topic
    found.partition_ids = indexes
    return found
