"""InitProducerId with a transactional id: begin, continue or take over.

An unknown id starts at epoch 0 of a new producer id. A known one gets the next epoch, which
fences its earlier owner; over an open transaction that transaction is aborted first, and the
caller, told CONCURRENT_TRANSACTIONS, comes again. A producer that names the id and epoch it had
(KIP-360) goes on if it is still the owner, and gets the same answer again if it repeats itself.
An exhausted epoch (32766) means a new producer id. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kwire.coordinator.shard_interface import Moment, Result
from kwire.coordinator.transaction.end import Refused, fence
from kwire.coordinator.transaction.metadata import (
    EXHAUSTED_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    fresh,
)
from kwire.coordinator.transaction.shard import TransactionShard
from kwire.coordinator.transaction.states import COMPLETED_BY, TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError


class InitRequest(NamedTuple):
    """What a producer asks; -1 for a producer id and epoch that it does not name."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class ProducerIdentity(NamedTuple):
    producer_id: int
    producer_epoch: int


InitAnswer: TypeAlias = ProducerIdentity | Refused
"""Refused: an open transaction was aborted, the caller has to come again."""


class ProducerIdNeededError(KafkaError):
    """The operation needs a new producer id: allocate one and run it again with it."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def init_producer_id(
    shard: TransactionShard, request: InitRequest, new_producer_id: int | None, moment: Moment
) -> Result[InitAnswer]:
    """Decide on `request`; the response is a ProducerIdentity.

    Raises ProducerIdNeededError when `new_producer_id` is None and one is needed, KafkaError with
    INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS.
    """
    if not 0 < request.timeout_ms <= shard.settings.transaction_max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    current = shard.transactions.get(request.transactional_id)
    if current is None:
        after = fresh(_needed(new_producer_id), request.timeout_ms, moment.wall_ms)
        return _answer(shard, request.transactional_id, after, NO_PRODUCER_EPOCH)
    if not _may_continue(request, current):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state in COMPLETED_BY:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state == TransactionState.ONGOING:
        refused = Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        return fence(shard, request.transactional_id, current, moment, refused)
    return _next_epoch(shard, request, current, new_producer_id, moment)


def _next_epoch(
    shard: TransactionShard,
    request: InitRequest,
    current: TransactionMetadata,
    new_producer_id: int | None,
    moment: Moment,
) -> Result[InitAnswer]:
    named = request.producer_id != NO_PRODUCER_ID
    expected = request.producer_epoch if named else NO_PRODUCER_EPOCH
    idle = current._replace(
        state=TransactionState.EMPTY,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=request.timeout_ms,
        partitions=(),
        start_ms=-1,
        last_update_ms=moment.wall_ms,
    )
    if current.is_epoch_exhausted and expected in (NO_PRODUCER_EPOCH, current.producer_epoch):
        rotated = idle._replace(producer_id=_needed(new_producer_id), producer_epoch=0)
        last = current.producer_epoch if named else NO_PRODUCER_EPOCH
        return _answer(shard, request.transactional_id, rotated, last)
    if not named or expected == NO_PRODUCER_EPOCH or expected == current.producer_epoch:
        bumped = idle._replace(producer_epoch=current.producer_epoch + 1)
        last = current.producer_epoch if named else NO_PRODUCER_EPOCH
        return _answer(shard, request.transactional_id, bumped, last)
    last = shard.last_epochs.get(request.transactional_id, NO_PRODUCER_EPOCH)
    if expected == last:
        # The answer to the same request was lost: give it again.
        return _answer(shard, request.transactional_id, idle, last)
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _may_continue(request: InitRequest, current: TransactionMetadata) -> bool:
    """Whether a producer that names its id and epoch may be the one that owns this id."""
    if request.producer_id == NO_PRODUCER_ID or request.producer_id == current.producer_id:
        return True
    return (
        request.producer_id == current.previous_producer_id
        and request.producer_epoch >= EXHAUSTED_EPOCH
    )


def _needed(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeededError
    return new_producer_id


def _answer(
    shard: TransactionShard, transactional_id: str, after: TransactionMetadata, last_epoch: int
) -> Result[InitAnswer]:
    identity: InitAnswer = ProducerIdentity(after.producer_id, after.producer_epoch)
    return shard.change(transactional_id, after, identity, last_epoch=last_epoch)
