"""Asking a transaction's coordinator about a write, before the log takes it (KIP-890).

The first batch of a transaction on a partition is appended only when the coordinator confirms
that the partition is part of it: producers up to Produce 11 have added it, so it is verified;
from Produce 12 (and TxnOffsetCommit 5) on the broker adds it in the producer's name. What is
asked in one turn of the loop for one coordinator travels in one AddPartitionsToTxn request; the
coordinator of this broker is asked without one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Protocol

from kwire.coordinator.shard_interface import Loop
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

Partition = tuple[str, int]

RECENT_MAX = 1024


class Support(Enum):
    """What a client understands, by the version of its request."""

    OLDEST = "neither of the below: Produce up to 10, TxnOffsetCommit up to 3"
    ABORTABLE_ERROR = "TRANSACTION_ABORTABLE: Produce 11, TxnOffsetCommit 4"
    ADDS_PARTITIONS = "the broker adds partitions: Produce 12, TxnOffsetCommit 5"


#: Errors that pass; a client too old to know them retries on NOT_ENOUGH_REPLICAS.
_PASSING = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class _Question:
    """One producer's partitions."""

    __slots__ = ("add", "answer", "partitions", "producer_epoch", "producer_id", "transactional_id")

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Partition],
        add: bool,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.partitions = partitions
        self.add = add
        self.answer: Pending[dict[Partition, ErrorCode]] = Pending()

    def answer_all(self, code: ErrorCode) -> None:
        self.answer.complete(dict.fromkeys(self.partitions, code))


class LocalCoordinator(Protocol):
    """The coordinator of this broker."""

    @property
    def node_id(self) -> int: ...

    def ask(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Partition],
        add: bool,
    ) -> Pending[dict[Partition, ErrorCode]]:
        """Add or verify; never fails."""
        ...


class TransactionVerifier:
    """`coordinator_of(transactional_id)` gives the node that leads its partition, or None;
    `send(node_id, request)` asks it, `local` the coordinator of this broker."""

    def __init__(
        self,
        *,
        loop: Loop,
        coordinator_of: Callable[[str], int | None],
        send: Callable[[int, m.AddPartitionsToTxnRequest], Pending[m.AddPartitionsToTxnResponse]],
        local: LocalCoordinator | None = None,
    ) -> None:
        self._local = local
        self._loop = loop
        self._coordinator_of = coordinator_of
        self._send = send
        self._questions: dict[int, list[_Question]] = {}
        self._flush_due = False
        self.verifications = self.failures = 0
        self.recent_s: deque[float] = deque(maxlen=RECENT_MAX)
        """How long the last verifications took; only metrics read it, and the two counts."""

    def ask(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Partition],
        support: Support,
    ) -> Pending[dict[Partition, ErrorCode]]:
        """Verify the partitions (or add them, by `support`); the answer names a code for each,
        as the client of that version is to see it. Never fails."""
        question = _Question(
            transactional_id,
            producer_id,
            producer_epoch,
            partitions,
            support is Support.ADDS_PARTITIONS,
        )
        answer: Pending[dict[Partition, ErrorCode]] = Pending()
        begun_s = self._loop.time()

        def verified(done: Pending[dict[Partition, ErrorCode]]) -> None:
            codes = done.result()
            self.verifications += 1
            self.failures += sum(code != ErrorCode.NONE for code in codes.values())
            self.recent_s.append(self._loop.time() - begun_s)
            answer.complete({part: for_client(code, support) for part, code in codes.items()})

        question.answer.add_done_callback(verified)
        self._ask(question)
        return answer

    def _ask(self, question: _Question) -> None:
        node = self._coordinator_of(question.transactional_id)
        if node is None:
            question.answer_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        local = self._local
        if local is not None and node == local.node_id:
            local.ask(
                question.transactional_id,
                question.producer_id,
                question.producer_epoch,
                question.partitions,
                question.add,
            ).add_done_callback(lambda done: question.answer.complete(done.result()))
            return
        self._questions.setdefault(node, []).append(question)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        questions, self._questions = self._questions, {}
        for node, asked in questions.items():
            for batch in _without_repeats(asked):
                request = m.AddPartitionsToTxnRequest(transactions=[_entry(q) for q in batch])
                pending = self._send(node, request)
                pending.add_done_callback(partial(_answered, sent=batch))


def for_client(code: ErrorCode, support: Support) -> ErrorCode:
    """The coordinator's code as a client of that version is to see it (measured on 4.4)."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and support is Support.OLDEST:
        return ErrorCode.INVALID_TXN_STATE
    if code in _PASSING:
        newest = support is Support.ADDS_PARTITIONS
        if newest and code == ErrorCode.CONCURRENT_TRANSACTIONS:
            return code
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code


def _without_repeats(asked: list[_Question]) -> list[list[_Question]]:
    """Requests in which no transactional id stands twice: it is the key of the answer."""
    requests: list[dict[str, _Question]] = []
    for question in asked:
        for request in requests:
            if question.transactional_id not in request:
                request[question.transactional_id] = question
                break
        else:
            requests.append({question.transactional_id: question})
    return [list(request.values()) for request in requests]


def _entry(
    question: _Question,
) -> m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, partition in question.partitions:
        topics.setdefault(topic, []).append(partition)
    return m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=not question.add,
        topics=[
            m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in topics.items()
        ],
    )


def _answered(done: Pending[m.AddPartitionsToTxnResponse], sent: list[_Question]) -> None:
    error = done.error()
    if error is not None:
        code = error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
        for question in sent:
            question.answer_all(code)
        return
    response = done.result()
    if response.error_code:
        refused = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        code = ErrorCode.INVALID_TXN_STATE if refused else ErrorCode(response.error_code)
        for question in sent:
            question.answer_all(code)
        return
    by_id = {result.transactional_id: result for result in response.results_by_transaction}
    for question in sent:
        result = by_id.get(question.transactional_id)
        codes = dict.fromkeys(question.partitions, ErrorCode.INVALID_TXN_STATE)
        for topic in result.topic_results if result is not None else ():
            for partition in topic.results_by_partition:
                codes[(topic.name, partition.partition_index)] = ErrorCode(
                    partition.partition_error_code
                )
        question.answer.complete(codes)
