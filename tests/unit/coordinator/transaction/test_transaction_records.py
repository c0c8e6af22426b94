"""What a transaction's record says, and its key, however they are made."""

from __future__ import annotations

import pytest

from kwire.coordinator.batches import encode
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.coordinator.transaction.metadata import (
    KEY_LENGTH_MAX,
    TransactionMetadata,
    from_record,
    key_of,
    to_record,
)
from kwire.coordinator.transaction.states import TransactionState
from kwire.protocol import messages as m
from kwire.protocol.coordinator_records import encode_key, encode_value

PARTITIONS = (("a", 0), ("a", 3), ("b", 1))


def metadata(state: TransactionState) -> TransactionMetadata:
    partitions = () if state == TransactionState.EMPTY else PARTITIONS
    return TransactionMetadata(7, 6, 8, 3, 4, 60_000, state, partitions, 11, 12, 2)


@pytest.mark.parametrize("state", list(TransactionState))
def test_a_value_is_the_message_that_keywords_make(state: TransactionState) -> None:
    shape = m.TransactionLogValue
    topics = [
        shape.PartitionsSchema(topic="a", partition_ids=[0, 3]),
        shape.PartitionsSchema(topic="b", partition_ids=[1]),
    ]
    expected = shape(
        producer_id=7, previous_producer_id=6, next_producer_id=8, producer_epoch=3,
        next_producer_epoch=4, transaction_timeout_ms=60_000, transaction_status=int(state),
        transaction_partitions=None if state == TransactionState.EMPTY else topics,
        transaction_last_update_timestamp_ms=12, transaction_start_timestamp_ms=11,
        client_transaction_version=2,
    )  # fmt: skip
    made = to_record(metadata(state))
    assert made == expected
    assert encode_value(made, 1) == encode_value(expected, 1)
    assert from_record(made) == metadata(state)


@pytest.mark.parametrize("transactional_id", ["", "t", "ü" * KEY_LENGTH_MAX, "x" * 3000])
def test_a_key_is_the_same_whether_it_is_remembered_or_not(transactional_id: str) -> None:
    message = m.TransactionLogKey(transactional_id=transactional_id)
    for _ in range(2):
        key, encoded = key_of(transactional_id)
        assert key == message
        assert (encoded is None) == (len(transactional_id) > KEY_LENGTH_MAX)
        assert encode(CoordinatorRecord(key, None, 0, encoded))[0] == encode_key(message)
