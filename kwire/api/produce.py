"""Produce, versions 3-13: append record batches.

From version 13 topics are named by id. Every partition succeeds or fails on its own, with Kafka's
code; a record that broke a rule is named in record_errors from version 8 (KIP-467). acks=1 answers
when the batch is written, acks=-1 when the high watermark has passed it, within timeout_ms. acks=0
is never answered; a failure then closes the connection. From version 10 an error of leadership
names the current leader (KIP-951). A transactional batch is appended once its transaction's
coordinator has confirmed that the partition belongs to it, from version 12 on by adding it
(KIP-890); the whole request waits for that. Source: KIP-467, KIP-516, KIP-890, KIP-951; placement
of errors measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from kwire.api.shared.leader_hints import HINTED_ERRORS, LeaderHints, missing_partition_error
from kwire.kept_errors import anew
from kwire.log.partition.deferred_checks import CheckLaterError
from kwire.log.types import AppendInfo
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.bare_classes import bare_class
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.records import parse_header
from kwire.protocol.records.header import NoBatchError
from kwire.protocol.records.validation import CheckedBatch, check_produced
from kwire.replica.partition import CommitCallback, Partition
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import INTERNAL_TOPICS
from kwire.server.context import DISCONNECT, NO_REPLY, Disconnect, NoReply, RequestContext

VERSIONS = (3, 13)
WAITS_FOR_WRITES = False
WRITE_TRANSACTION = Requires(
    Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", denied=Denied.ENTRY
)
WRITE_TOPIC = Requires(
    Operation.WRITE, ResourceType.TOPIC, "topic_data[].name", denied=Denied.ENTRY
)
AUTHORIZATION = (WRITE_TRANSACTION, WRITE_TOPIC)
TOPIC_IDS_FROM = 13
LEADER_HINTS_FROM = 10
ABORTABLE_ERROR_FROM = 11
ADDS_PARTITIONS_FROM = 12
ADMIN_CLIENT_ID = "__admin_client"
ACKS_ALL = -1
# Records up to which a copy is cheaper than a new receive buffer.
COPIED_BYTES_MAX = 16 * 1024

# What is told beside the coordinator's verdict.
UNVERIFIED = {ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction"}
# Errors that carry neither the log's start offset nor a message (measured on Apache Kafka 4.4).
BARE_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)

Outcome: TypeAlias = "m.ProduceResponse | NoReply | Disconnect"


def handle(context: RequestContext, request: m.ProduceRequest) -> Answer[Outcome]:
    """Append every partition's batches; see the module."""
    topics = request.topic_data
    if len(topics) > 1 or (topics and len(topics[0].partition_data) > 1):
        request.topic_data = _each_once(topics, context.api_version >= TOPIC_IDS_FROM)
    work = _Produce(context, request)
    if request.transactional_id is None:
        work.run()
        return work.outcome()
    questions = work.questions()
    if not questions:
        work.run()
        return work.outcome()
    work.detach()
    return _Verified(context, request.transactional_id, work).ask(questions)


def _each_once(topics: list[Any], by_id: bool) -> list[Any]:
    """Every topic and partition once: of a partition that is named twice the last records count,
    those before it are neither stored nor answered (measured on Apache Kafka 4.4)."""
    merged: dict[Any, Any] = {}
    for topic in topics:
        data = topic.partition_data
        if len({item.index for item in data}) != len(data):
            topic.partition_data = list({item.index: item for item in data}.values())
        key = topic.topic_id if by_id else topic.name
        known = merged.setdefault(key, topic)
        if known is not topic:
            both = (*known.partition_data, *topic.partition_data)
            known.partition_data = list({item.index: item for item in both}.values())
    return topics if len(merged) == len(topics) else list(merged.values())


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Nothing in a ProduceResponse can carry an error of the whole request."""
    return DISCONNECT


class Question(NamedTuple):
    """A partition about which the transaction's coordinator has to be asked."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int


def _new_answer(index: int) -> Any:
    """A PartitionProduceResponse with its defaults, made without the price of keywords."""
    answer = _BareAnswer()
    answer.index = index
    answer.error_code = 0
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1
    answer.record_errors = []
    answer.error_message = None
    answer._tagged = None
    return answer


class _Verified(Pending[Outcome]):
    """Asks the coordinator about a request's partitions, then appends what it allows.

    While the markers of the producer's transaction before are on their way, adding a partition is
    tried again for a while, as the client would have to; all of it, because a marker that arrives
    voids what the log was told about the verification. It is itself the Pending of the response.
    """

    __slots__ = ("_appending", "_context", "_transactional_id", "_until_s", "_work")

    def __init__(self, context: RequestContext, transactional_id: str, work: _Produce) -> None:
        super().__init__(self._give_up)
        self._context = context
        self._transactional_id = transactional_id
        self._work = work
        self._appending: Pending[Outcome] | None = None
        parts = context.parts
        retried_ms = parts.config["add.partitions.to.txn.retry.backoff.max.ms"]
        self._until_s = parts.loop.time() + retried_ms / 1000

    def ask(self, questions: list[Question]) -> _Verified:
        """Ask, and go on when it is answered."""
        from kwire.coordinator.transaction.verifier import Support

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
            questions = self._work.questions()
            if questions:
                self.ask(questions)
            else:
                self._append()

    def _answered(self, done: Pending[Any]) -> None:
        codes = done.result()
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values():
            parts = self._context.parts
            backoff_ms = parts.config["add.partitions.to.txn.retry.backoff.ms"]
            retry_s = parts.loop.time() + backoff_ms / 1000
            if retry_s < self._until_s:
                parts.loop.call_at(retry_s, self._again)
                return
        self._work.verdicts |= {k: code for k, code in codes.items() if code != ErrorCode.NONE}
        self._append()

    def _append(self) -> None:
        if self.cancelled:
            return  # nobody waits for the answer, and nothing has been promised
        self._work.run()
        outcome = self._work.outcome()
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


_NOTHING: dict[Any, Any] = {}  # never changed
_BareAnswer: Any = bare_class(m.ProduceResponse.PartitionProduceResponse)


class _Produce(Pending[Outcome]):
    """One request on its way: the response being filled, and what it still waits for.

    It is itself the Pending of the response, for a request that has to wait.
    """

    __slots__ = (
        "_acks",
        "_checking",
        "_context",
        "_count",
        "_deadline",
        "_denied",
        "_failed",
        "_guards",
        "_is_under_way",
        "_open",
        "_request",
        "_response",
        "_timeout_ms",
        "_waits",
        "_wall_ms",
        "verdicts",
    )

    def __init__(self, context: RequestContext, request: Any) -> None:
        super().__init__()
        self._context = context
        self._request = request
        self._acks: int = request.acks
        self._timeout_ms: int = request.timeout_ms
        self._response = m.ProduceResponse()
        self._wall_ms: int = context.parts.clock.wall_ms()
        self._failed = False
        self._is_under_way = False
        self._checking = 0  # partitions whose batch is being checked, and not appended yet
        self._open: dict[int, tuple[Any, CommitCallback | None]] = {}  # what still waits
        self._count = 0
        self._waits = False
        self._deadline: Any = None
        self._denied: KafkaError | None = None
        self._guards: dict[tuple[str, int], Any] = _NOTHING
        self.verdicts: dict[tuple[str, int], ErrorCode] = _NOTHING

    def questions(self) -> list[Question]:
        """Begin to verify the transactional batches; what has to be asked first."""
        found: list[Question] = []
        self._guards = {}
        self.verdicts = {}
        for topic in self._request.topic_data:
            name = self._name(topic)
            for data in topic.partition_data:
                if name is not None and data.records is not None:
                    question = self._question(name, data)
                    if question is not None:
                        found.append(question)
        return found

    def detach(self) -> None:
        """Copy small records: who keeps a view costs the loop its buffer of received bytes."""
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                if data.records is not None and len(data.records) <= COPIED_BYTES_MAX:
                    data.records = memoryview(bytearray(data.records))

    def _question(self, topic: str, data: Any) -> Question | None:
        partition = self._context.parts.replicas.partition(topic, data.index)
        if partition is None or not partition.is_leader or partition.log is None:
            return None
        try:
            header = parse_header(data.records)
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

    def _name(self, topic: Any) -> str | None:
        if self._context.api_version < TOPIC_IDS_FROM:
            return str(topic.name)
        known = self._context.parts.metadata.image.topics.by_id.get(topic.topic_id)
        return None if known is None else str(known.name)

    def run(self) -> None:
        """Append everything that can be appended."""
        if self._request.transactional_id is not None:
            self._denied = self._denial()
        by_id = self._context.api_version >= TOPIC_IDS_FROM
        responses = self._response.responses
        topic_class = m.ProduceResponse.TopicProduceResponse
        for topic in self._request.topic_data:
            if not topic.partition_data:
                continue
            name = self._name(topic)
            entry = topic_class()
            entry.name = topic.name
            entry.topic_id = topic.topic_id
            entry.partition_responses = [
                self._partition(name, topic.topic_id if by_id else None, data)
                for data in topic.partition_data
            ]
            responses.append(entry)

    def _denial(self) -> KafkaError | None:
        """The error that every partition gets, if there is one."""
        if not self._context.allows(WRITE_TRANSACTION, self._request.transactional_id):
            return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return None

    def _partition(self, topic: str | None, topic_id: bytes | None, data: Any) -> Any:
        answer = _new_answer(data.index)
        partition: Partition | None = None
        try:
            partition = self._find(topic, topic_id, data)
            self._append(answer, partition, data)
        except KafkaError as error:
            self._fail(answer, partition, error)
        except CheckLaterError as later:
            self._check(answer, partition, data, later)
        return answer

    def _find(self, topic: str | None, topic_id: bytes | None, data: Any) -> Partition:
        """The partition, after everything that Kafka checks before it looks at its log."""
        index = data.index
        if self._denied is not None:
            raise anew(self._denied)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        parts = self._context.parts
        if parts.authorizer is not None and not self._context.allows(WRITE_TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic_id is None:
            partition = parts.replicas.partition(topic, index)
        else:
            partition = parts.replicas.partition_by_id(topic_id, index)
        missing = ErrorCode.NONE
        if partition is None:
            missing = missing_partition_error(parts.metadata.image.topics, topic, index)
            if missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KafkaError(missing)
        header = check_produced(data.records, self._context.api_version)
        if header.is_transactional and self._request.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if header.size_bytes != len(data.records):
            data.records = data.records[: header.size_bytes]
        if self._acks not in (-1, 0, 1):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL_TOPICS and self._context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if partition is None:
            raise KafkaError(missing)
        found: Partition = partition
        return found

    def _append(
        self, answer: Any, partition: Partition, data: Any, checked: CheckedBatch | None = None
    ) -> None:
        guard = None
        if self._guards or self.verdicts:
            key = (partition.topic, partition.index)
            verdict = self.verdicts.get(key)
            if verdict is not None:
                raise KafkaError(verdict, UNVERIFIED.get(verdict))
            guard = self._guards.get(key)
        info = partition.append(
            data.records,
            acks=self._acks,
            wall_ms=self._wall_ms,
            guard=guard,
            transaction_version=2 if self._context.api_version >= ADDS_PARTITIONS_FROM else 0,
            may_wait=True,
            checked=checked,
        )
        answer.base_offset = info.base_offset
        answer.log_append_time_ms = info.log_append_time_ms
        answer.log_start_offset = info.log_start_offset
        self._wait(answer, partition, info)

    # -- batches whose check would hold up the loop

    def _check(
        self, answer: Any, partition: Partition | None, data: Any, later: CheckLaterError
    ) -> None:
        assert partition is not None
        known: Partition = partition
        self._checking += 1
        self._context.is_promised = True
        checked = self._context.parts.check_later(later)
        checked.add_done_callback(lambda done: self._checked(answer, known, data, done))

    def _checked(
        self, answer: Any, partition: Partition, data: Any, done: Pending[CheckedBatch]
    ) -> None:
        self._checking -= 1
        if self.done:
            return
        try:
            self._append(answer, partition, data, done.result())
        except KafkaError as error:
            self._fail(answer, partition, error)
        except CheckLaterError as later:  # the topic's configs have changed
            self._check(answer, partition, data, later)
        except Exception as error:
            self.fail(error)
            return
        if not self._checking and self._is_under_way:
            outcome = self._appended()
            if not isinstance(outcome, Pending):
                self.complete(outcome)

    def _fail(self, answer: Any, partition: Partition | None, error: KafkaError) -> None:
        self._failed = True
        answer.error_code = int(error.code)
        record_errors = getattr(error, "record_errors", ())
        if record_errors:
            answer.record_errors = [
                m.ProduceResponse.BatchIndexAndErrorMessage(
                    batch_index=item.batch_index, batch_index_error_message=item.message
                )
                for item in record_errors
            ]
            answer.error_message = error.message
        elif isinstance(error, NoBatchError):
            answer.error_message = error.message
        if partition is None or partition.log is None or error.code in BARE_ERRORS:
            return
        if (partition.topic, partition.index) in self.verdicts:
            answer.error_message = error.message  # and its log was not looked at
        else:
            answer.log_start_offset = partition.log.log_start_offset

    # -- waiting for acknowledgements

    def _wait(self, answer: Any, partition: Partition, info: AppendInfo) -> None:
        if self._acks == ACKS_ALL:
            self._count += 1
            key = self._count
            waiter = partition.wait_for_commit(
                info.last_offset + 1, lambda code: self._committed(key, partition, code)
            )
            if waiter is not None:
                self._open[key] = answer, waiter
        elif info.written.done:
            if info.written.error() is not None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        elif self._acks == 1:
            self._count += 1
            key = self._count
            self._open[key] = answer, None
            info.written.add_done_callback(lambda done: self._written(key, done))
        elif self._context.connection is not None:
            self._context.connection.unreplied_writes.append(info.written)

    def _written(self, key: int, done: Pending[None]) -> None:
        entry = self._open.get(key)
        if entry is not None and done.error() is not None:
            entry[0].error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
            entry[0].base_offset = -1
        self._settled(key)

    def _committed(self, key: int, partition: Partition, code: ErrorCode) -> None:
        if code == ErrorCode.NONE and not partition.enough_replicas():
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        entry = self._open.get(key)
        if entry is not None and code != ErrorCode.NONE:
            entry[0].error_code = int(code)
            self._failed = True
        self._settled(key)

    def _settled(self, key: int) -> None:
        if self._open.pop(key, None) is not None and not self._open:
            self._answer()

    def _answer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._waits:
            self._hint_leaders()
            self.complete(self._response)

    def _timed_out(self) -> None:
        self._deadline = None
        for answer, _ in self._open.values():
            answer.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
        self._forget()
        self._answer()

    def _forget(self) -> None:
        """Nobody waits for the acknowledgements any more."""
        for _, waiter in self._open.values():
            if waiter is not None:
                waiter.cancel()
        self._open.clear()
        if self._deadline is not None:
            self._deadline.cancel()

    def outcome(self) -> Answer[Outcome]:
        """The response, a Pending of it, or what acks=0 does."""
        if self._checking:
            self._is_under_way = True
            return self
        return self._appended()

    def _appended(self) -> Answer[Outcome]:
        """`outcome` once everything is appended that can be."""
        self._context.let_next_start()
        self._request = None  # it holds the received bytes
        if self._acks == 0:
            return DISCONNECT if self._failed else NO_REPLY
        if not self._open:
            self._hint_leaders()
            return self._response
        self._waits = True
        self.set_on_cancel(self._forget)
        if self._acks == ACKS_ALL:
            timeout_ms = max(0, self._timeout_ms)
            self._deadline = self._context.parts.deadlines.add(timeout_ms, self._timed_out)
        return self

    def _hint_leaders(self) -> None:
        """KIP-951: who leads the partitions that we do not."""
        if self._context.api_version < LEADER_HINTS_FROM or not self._failed:
            return
        hints = LeaderHints(self._context.parts.metadata.image, self._context.listener_name)
        topics = self._context.parts.metadata.image.topics
        for topic in self._response.responses:
            for answer in topic.partition_responses:
                if answer.error_code in HINTED_ERRORS:
                    known = topics.by_id.get(topic.topic_id) or topics.by_name.get(topic.name)
                    if known is not None:
                        leader_id, epoch = hints.leader_of(known.name, answer.index)
                        answer.current_leader = m.ProduceResponse.LeaderIdAndEpoch(
                            leader_id=leader_id, leader_epoch=epoch
                        )
        self._response.node_endpoints = hints.endpoints(m.ProduceResponse.NodeEndpoint)
