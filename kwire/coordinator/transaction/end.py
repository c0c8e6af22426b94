"""Ending a transaction: EndTxn, the abort of one that timed out or was taken over, and the record
that says that all markers are written.

With transaction version 2 (EndTxn 5 and later) every end takes the producer to the next epoch, so
that nothing sent before it can land in the next transaction; the answer carries the new epoch, or
a new producer id when the epoch is exhausted. A repeated EndTxn is recognised by its epoch being
one behind. Decisions measured on Apache Kafka 4.4; KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from kwire.coordinator.shard_interface import Moment, Result
from kwire.coordinator.transaction.metadata import (
    EXHAUSTED_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Prepared,
    TransactionMetadata,
)
from kwire.coordinator.transaction.states import COMPLETED_BY, TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")


class Transactions(Protocol):
    """What an end needs of the shard."""

    @property
    def transactions(self) -> Mapping[str, TransactionMetadata]:
        """By transactional id."""
        ...

    @property
    def transaction_version(self) -> Callable[[], int]:
        """The finalized level of the feature."""
        ...

    def change(
        self,
        transactional_id: str,
        after: TransactionMetadata,
        response: R,
        *,
        last_epoch: int | None = None,
    ) -> Result[R]: ...

    def markers_given_up(self, transactional_id: str) -> None: ...


class EndRequest(NamedTuple):
    """What a producer asks; `epoch_bump` with EndTxn 5 and later under transaction version 2."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    epoch_bump: bool


class EndAnswer(NamedTuple):
    producer_id: int
    producer_epoch: int


#: How an end is answered by state: "begin" the end, "abort nothing" (version 2 only), "repeat"
#: of the same end, "wait" for its markers, or "invalid". By (state, commit asked).
_BEGIN, _EMPTY_ABORT, _DONE, _WAIT, _INVALID = "begin", "empty abort", "done", "wait", "invalid"
ANSWERS: dict[tuple[TransactionState, bool], str] = {
    (TransactionState.EMPTY, True): _INVALID,
    (TransactionState.EMPTY, False): _EMPTY_ABORT,
    (TransactionState.ONGOING, True): _BEGIN,
    (TransactionState.ONGOING, False): _BEGIN,
    (TransactionState.PREPARE_COMMIT, True): _WAIT,
    (TransactionState.PREPARE_COMMIT, False): _INVALID,
    (TransactionState.PREPARE_ABORT, True): _INVALID,
    (TransactionState.PREPARE_ABORT, False): _WAIT,
    (TransactionState.COMPLETE_COMMIT, True): _DONE,
    (TransactionState.COMPLETE_COMMIT, False): _EMPTY_ABORT,
    (TransactionState.COMPLETE_ABORT, True): _INVALID,
    (TransactionState.COMPLETE_ABORT, False): _DONE,
}


#: States in which an end that was decided may be asked for again.
_ENDED = frozenset(COMPLETED_BY) | frozenset(COMPLETED_BY.values())


def end_transaction(
    shard: Transactions, request: EndRequest, new_producer_id: int | None, moment: Moment
) -> Result[EndAnswer]:
    """Decide on EndTxn; the response is an EndAnswer.

    `new_producer_id` is needed where the epoch is exhausted (see `needs_producer_id`). Raises
    KafkaError with INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE or
    CONCURRENT_TRANSACTIONS.
    """
    current = shard.transactions.get(request.transactional_id)
    if current is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    repeated = request.epoch_bump and _is_repeat(request, current)
    if current.producer_id != request.producer_id and not repeated:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != request.producer_epoch and not repeated:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    answer = ANSWERS.get((current.state, request.commit), _INVALID)
    if answer == _WAIT:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if repeated and answer == _DONE:
        return Result((), EndAnswer(current.producer_id, current.producer_epoch))
    if answer == _BEGIN and not repeated:
        return _prepare(shard, request, current, new_producer_id, moment)
    if request.epoch_bump and not repeated and not request.commit and answer != _INVALID:
        return _prepare(shard, request, current, new_producer_id, moment)
    if not request.epoch_bump and answer == _DONE:
        return Result((), EndAnswer(current.producer_id, current.producer_epoch))
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def needs_producer_id(shard: Transactions, request: EndRequest) -> bool:
    """Whether this end will use up the producer id's last epoch."""
    current = shard.transactions.get(request.transactional_id)
    return request.epoch_bump and current is not None and current.is_epoch_exhausted


def fence(
    shard: Transactions,
    transactional_id: str,
    current: TransactionMetadata,
    moment: Moment,
    response: R,
) -> Result[R]:
    """Abort an open transaction under its owner; `response` is for whoever asked."""
    return shard.change(
        transactional_id,
        _fenced(shard, current, moment),
        response,
        last_epoch=_last_epoch_of_fenced(shard, current),
    )


def abort_timed_out(
    shard: Transactions, transactional_id: str, moment: Moment
) -> Result[None] | None:
    """Abort a transaction that is open for longer than it may; None when it is not."""
    current = shard.transactions.get(transactional_id)
    if current is None or current.state != TransactionState.ONGOING:
        return None
    if current.start_ms + current.timeout_ms >= moment.wall_ms:
        return None
    return shard.change(
        transactional_id,
        _fenced(shard, current, moment),
        None,
        last_epoch=_last_epoch_of_fenced(shard, current),
    )


def complete(shard: Transactions, prepared: Prepared, moment: Moment) -> Result[None]:
    """All markers of `prepared` are written: complete it, unless it is no longer the one."""
    shard.markers_given_up(prepared.transactional_id)
    current = shard.transactions.get(prepared.transactional_id)
    if (
        current is None
        or current.state not in COMPLETED_BY
        or (current.producer_id, current.producer_epoch)
        != (prepared.producer_id, prepared.producer_epoch)
    ):
        return Result()
    after = current._replace(
        state=COMPLETED_BY[current.state],
        previous_producer_id=current.producer_id,
        partitions=(),
        last_update_ms=moment.wall_ms,
    )
    if current.next_producer_id != NO_PRODUCER_ID:
        after = after._replace(
            producer_id=current.next_producer_id,
            producer_epoch=0,
            next_producer_id=NO_PRODUCER_ID,
        )
    return shard.change(prepared.transactional_id, after, None)


class Refused(NamedTuple):
    """A reply that is an error although records were written."""

    code: ErrorCode


def _is_repeat(request: EndRequest, current: TransactionMetadata) -> bool:
    """Whether this end was decided before: the epoch (or the producer id) has moved on by it, and
    nothing has happened since."""
    if current.state not in _ENDED:
        return False
    if request.producer_id == current.producer_id:
        return current.producer_epoch == request.producer_epoch + 1
    return (
        request.producer_id == current.previous_producer_id
        and request.producer_epoch == EXHAUSTED_EPOCH
        and current.producer_epoch == 0
    )


def _prepare(
    shard: Transactions,
    request: EndRequest,
    current: TransactionMetadata,
    new_producer_id: int | None,
    moment: Moment,
) -> Result[EndAnswer]:
    state = TransactionState.PREPARE_COMMIT if request.commit else TransactionState.PREPARE_ABORT
    nothing_begun = current.state != TransactionState.ONGOING
    after = current._replace(
        state=state,
        previous_producer_id=current.producer_id,
        producer_epoch=current.producer_epoch + int(request.epoch_bump),
        start_ms=moment.wall_ms if nothing_begun else current.start_ms,
        last_update_ms=moment.wall_ms,
        client_transaction_version=2 if request.epoch_bump else 0,
    )
    if request.epoch_bump and current.is_epoch_exhausted and new_producer_id is not None:
        after = after._replace(next_producer_id=new_producer_id)
    answer = EndAnswer(after.producer_id, after.producer_epoch)
    if after.next_producer_id != NO_PRODUCER_ID:
        answer = EndAnswer(after.next_producer_id, 0)
    last_epoch = current.producer_epoch if request.epoch_bump else None
    return shard.change(request.transactional_id, after, answer, last_epoch=last_epoch)


def _last_epoch_of_fenced(shard: Transactions, current: TransactionMetadata) -> int:
    """With version 2 the owner may go on at the epoch that fenced it (InitProducerId that names
    the one it had); before, it may not."""
    return current.producer_epoch if shard.transaction_version() >= 2 else NO_PRODUCER_EPOCH


def _fenced(
    shard: Transactions, current: TransactionMetadata, moment: Moment
) -> TransactionMetadata:
    """`current` aborted with an epoch that its owner does not have."""
    return current._replace(
        state=TransactionState.PREPARE_ABORT,
        previous_producer_id=current.producer_id,
        producer_epoch=current.producer_epoch + 1,
        last_update_ms=moment.wall_ms,
        client_transaction_version=2 if shard.transaction_version() >= 2 else 0,
    )
