"""Transactional batches of a Produce: what their coordinator says before the log takes them.

    Verification        begins to verify the batches at their logs, and keeps what the logs and the
                        coordinator have said of each partition
    VerifiedProduce     asks the coordinator, then lets the request be appended

Source: KIP-890; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.api.shared.acknowledgements import Outcome
from kwire.coordinator.transaction.verifier import Support
from kwire.log.partition.producers import VerificationGuard
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.records import parse_header
from kwire.replica.partition import Partition
from kwire.server.context import RequestContext

TOPIC_IDS_FROM = 13
ABORTABLE_ERROR_FROM = 11
ADDS_PARTITIONS_FROM = 12
# Records up to which a copy is cheaper than a new receive buffer.
COPIED_BYTES_MAX = 16 * 1024
# What is told beside the coordinator's verdict.
UNVERIFIED = {ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction"}


class Question(NamedTuple):
    """A partition about which the transaction's coordinator has to be asked."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int


class Verification:
    """See the module. `verdicts` are the errors of partitions that must not be appended."""

    __slots__ = ("_context", "_guards", "_topics", "verdicts")

    def __init__(self, context: RequestContext, request: m.ProduceRequest) -> None:
        self._context = context
        self._topics = request.topic_data
        self._guards: dict[tuple[str, int], VerificationGuard] = {}
        self.verdicts: dict[tuple[str, int], ErrorCode] = {}

    def guard_of(self, partition: Partition) -> VerificationGuard | None:
        """What the log gave for a batch; raises the verdict on a partition that has one."""
        key = (partition.topic, partition.index)
        verdict = self.verdicts.get(key)
        if verdict is not None:
            raise KafkaError(verdict, UNVERIFIED.get(verdict))
        return self._guards.get(key)

    def questions(self) -> list[Question]:
        """Begin to verify the transactional batches; what has to be asked first."""
        found: list[Question] = []
        self._guards = {}
        self.verdicts = {}
        for topic in self._topics:
            name = name_of(self._context, topic)
            for data in topic.partition_data:
                if name is not None and data.records is not None:
                    question = self._question(name, data)
                    if question is not None:
                        found.append(question)
        return found

    def copy_small_records(self) -> None:
        """Who keeps a view costs the loop its buffer of received bytes."""
        for topic in self._topics:
            for data in topic.partition_data:
                if data.records is not None and len(data.records) <= COPIED_BYTES_MAX:
                    data.records = memoryview(bytearray(view_of(data) or b""))

    def release_request(self) -> None:
        """Forget the request, which holds the received bytes: nothing more will be asked."""
        self._topics = []

    def _question(self, topic: str, data: m.ProduceRequest.PartitionProduceData) -> Question | None:
        partition = self._context.parts.replicas.partition(topic, data.index)
        if partition is None or not partition.is_leader or partition.log is None:
            return None
        try:
            header = parse_header(view_of(data) or b"")
        except (KafkaError, MalformedError):
            return None  # the append says what is wrong with it
        if not header.is_transactional or not header.has_producer_id:
            return None
        log = partition.log
        if log.producers.is_stale(header.producer_id, header.producer_epoch):
            self.verdicts[topic, data.index] = ErrorCode.INVALID_PRODUCER_EPOCH
            return None
        guard = log.begin_verification(
            header.producer_id,
            header.producer_epoch,
            sequence=header.base_sequence,
            supports_epoch_bump=self._context.api_version >= ADDS_PARTITIONS_FROM,
        )
        self._guards[topic, data.index] = guard
        if not log.needs_verification(guard):
            return None
        return Question(topic, data.index, header.producer_id, header.producer_epoch)


def has_transactional_batch(request: m.ProduceRequest) -> bool:
    """Whether a request needs a right on its transactional id: by the first batch of a
    partition, as in Kafka."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                if parse_header(view_of(data) or b"").is_transactional:
                    return True
            except (KafkaError, MalformedError):
                continue  # the append says what is wrong with it
    return False


def view_of(data: m.ProduceRequest.PartitionProduceData) -> bytes | bytearray | memoryview | None:
    """The records of a decoded request, which lie in one piece."""
    records = data.records
    if isinstance(records, list):
        raise MalformedError("records in pieces")
    return records


def name_of(context: RequestContext, topic: m.ProduceRequest.TopicProduceData) -> str | None:
    """The topic's name; None for an id that the metadata does not know."""
    if context.api_version < TOPIC_IDS_FROM:
        return topic.name
    known = context.parts.metadata.image.topics.by_id.get(topic.topic_id)
    return None if known is None else known.name


class VerifiedProduce(Pending[Outcome]):
    """Asks the coordinator about a request's partitions, then appends what it allows.

    While the markers of the producer's transaction before are on their way, adding a partition is
    tried again for a while, as the client would have to; all of it, because a marker that arrives
    voids what the log was told about the verification. It is itself the Pending of the response;
    `append()` appends the request.
    """

    __slots__ = (
        "_append",
        "_appending",
        "_context",
        "_transactional_id",
        "_until_s",
        "_verification",
    )

    def __init__(
        self,
        context: RequestContext,
        transactional_id: str,
        verification: Verification,
        append: Callable[[], Answer[Outcome]],
    ) -> None:
        super().__init__(self._give_up)
        self._context = context
        self._transactional_id = transactional_id
        self._verification = verification
        self._append: Callable[[], Answer[Outcome]] | None = append
        self._appending: Pending[Outcome] | None = None
        retried_ms = context.parts.config["add.partitions.to.txn.retry.backoff.max.ms"]
        self._until_s = context.parts.loop.time() + retried_ms / 1000

    def ask(self, questions: list[Question]) -> VerifiedProduce:
        """Ask, and go on when it is answered."""
        support = Support.OLDEST
        if self._context.api_version >= ADDS_PARTITIONS_FROM:
            support = Support.ADDS_PARTITIONS
        elif self._context.api_version >= ABORTABLE_ERROR_FROM:
            support = Support.ABORTABLE_ERROR
        first = questions[0]
        self._context.parts.coordinators.verifier.ask(
            self._transactional_id,
            first.producer_id,
            first.producer_epoch,
            [(question.topic, question.partition) for question in questions],
            support,
        ).add_done_callback(self._answered)
        return self

    def _again(self) -> None:
        if not self.cancelled:
            questions = self._verification.questions()
            if questions:
                self.ask(questions)
            else:
                self._go_on()

    def _answered(self, done: Pending[dict[tuple[str, int], ErrorCode]]) -> None:
        codes = done.result()
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values():
            parts = self._context.parts
            backoff_ms = parts.config["add.partitions.to.txn.retry.backoff.ms"]
            retry_s = parts.loop.time() + backoff_ms / 1000
            if retry_s < self._until_s:
                parts.loop.call_at(retry_s, self._again)
                return
        self._verification.verdicts |= {
            partition: code for partition, code in codes.items() if code != ErrorCode.NONE
        }
        self._go_on()

    def _go_on(self) -> None:
        append, self._append = self._append, None  # it holds the received bytes
        self._verification.release_request()
        if self.cancelled or append is None:
            return  # nobody waits for the answer, and nothing has been promised
        outcome = append()
        if isinstance(outcome, Pending):
            self._appending = outcome
            outcome.add_done_callback(self._appended)
        else:
            self.complete(outcome)

    def _appended(self, done: Pending[Outcome]) -> None:
        self._appending = None
        error = done.error()
        if error is not None:
            self.fail(error)
        else:
            self.complete(done.result())

    def _give_up(self) -> None:
        if self._appending is not None:
            self._appending.cancel()
