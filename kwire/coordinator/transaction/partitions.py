"""AddPartitionsToTxn and AddOffsetsToTxn: what a transaction writes to, and asking about it.

Adding begins the transaction when none is open. Verifying (a partition leader asks before the
first write of a transaction, KIP-890) changes nothing. Error codes in the order in which Apache
Kafka 4.4 checks.
"""

from __future__ import annotations

from kwire.coordinator.shard_interface import Moment, Result
from kwire.coordinator.transaction.metadata import TransactionMetadata
from kwire.coordinator.transaction.shard import TransactionShard
from kwire.coordinator.transaction.states import COMPLETED_BY, TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError

Partition = tuple[str, int]


def add_partitions(
    shard: TransactionShard,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: list[Partition],
    client_transaction_version: int,
    moment: Moment,
) -> Result[None]:
    """Make `partitions` part of the transaction; the response is None.

    Raises KafkaError with INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS.
    """
    current = _owned(shard, transactional_id, producer_id, producer_epoch)
    if current.state in COMPLETED_BY:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    ongoing = current.state == TransactionState.ONGOING
    known = dict.fromkeys(current.partitions if ongoing else ())
    added = [partition for partition in partitions if partition not in known]
    if ongoing and not added:
        return Result()
    known.update(dict.fromkeys(added))
    after = current._replace(
        state=TransactionState.ONGOING,
        previous_producer_id=current.producer_id,
        partitions=tuple(known),
        start_ms=current.start_ms if ongoing else moment.wall_ms,
        last_update_ms=moment.wall_ms,
        client_transaction_version=client_transaction_version,
    )
    return shard.change(transactional_id, after, None)


def verify_partitions(
    shard: TransactionShard,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: list[Partition],
) -> dict[Partition, ErrorCode]:
    """Which of `partitions` are part of the open transaction: NONE, else TRANSACTION_ABORTABLE.

    Raises KafkaError as `add_partitions` does, for all of them.
    """
    current = _owned(shard, transactional_id, producer_id, producer_epoch)
    if current.state in COMPLETED_BY:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    open_ones = current.partitions if current.state == TransactionState.ONGOING else ()
    return {
        partition: ErrorCode.NONE if partition in open_ones else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _owned(
    shard: TransactionShard, transactional_id: str, producer_id: int, producer_epoch: int
) -> TransactionMetadata:
    current = shard.transactions.get(transactional_id)
    if current is None or current.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return current
