"""Produce, versions 3-13: append record batches.

From version 13 topics are named by id. Every partition succeeds or fails on its own, with Kafka's
code; a record that broke a rule is named in record_errors from version 8 (KIP-467). acks=1 answers
when the batch is written, acks=-1 when the high watermark has passed it, within timeout_ms. acks=0
is never answered; a failure then closes the connection. From version 10 an error of leadership
names the current leader (KIP-951). A transactional batch is appended once its transaction's
coordinator has confirmed that the partition belongs to it, from version 12 on by adding it
(KIP-890); the whole request waits for that. A topic may ask that its records have registered
schemas, as Confluent Server's may: INVALID_RECORD names those that have none (ADR 51). Batches of
many partitions are appended in slices, in the order of the request (ADR 52). Source: KIP-467,
KIP-516, KIP-890, KIP-951; placement of errors measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kwire.api.plain.produces import PlainProduces
from kwire.api.shared.acknowledgements import ACKS_ALL, Acknowledgements, Outcome
from kwire.api.shared.produce_verification import (
    ADDS_PARTITIONS_FROM,
    TOPIC_IDS_FROM,
    Verification,
    VerifiedProduce,
    has_transactional_batch,
    name_of,
)
from kwire.kept_errors import anew
from kwire.log.partition.deferred_checks import CheckLaterError
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.bare_classes import bare_class
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import NoBatchError, parse_header
from kwire.protocol.records.validation import (
    CheckedBatch,
    InvalidRecordsError,
    check_produced,
)
from kwire.protocol.structs import Buffer, Records
from kwire.replica.partition import Partition
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import INTERNAL_TOPICS
from kwire.server.context import DISCONNECT, NO_REPLY, Disconnect, RequestContext
from kwire.server.leader_hints import missing_partition_error

VERSIONS = (3, 13)
WAITS_FOR_WRITES = False
plain_road = PlainProduces
WRITE_TRANSACTION = Requires(
    Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", denied=Denied.ENTRY
)
WRITE_TOPIC = Requires(
    Operation.WRITE, ResourceType.TOPIC, "topic_data[].name", denied=Denied.ENTRY
)
AUTHORIZATION = (WRITE_TRANSACTION, WRITE_TOPIC)
ADMIN_CLIENT_ID = "__admin_client"
SLICE_PARTITIONS = 100
"""A slice is about 2 ms. Fewer partitions are appended to at once."""

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

Topic: TypeAlias = "m.ProduceRequest.TopicProduceData"
Data: TypeAlias = "m.ProduceRequest.PartitionProduceData"
TopicResult: TypeAlias = "m.ProduceResponse.TopicProduceResponse"
Result: TypeAlias = "m.ProduceResponse.PartitionProduceResponse"


def handle(context: RequestContext, request: m.ProduceRequest) -> Answer[Outcome]:
    """Append every partition's batches; see the module."""
    topics = request.topic_data
    if len(topics) > 1 or (topics and len(topics[0].partition_data) > 1):
        request.topic_data = _each_once(topics, context.api_version >= TOPIC_IDS_FROM)
    if request.transactional_id is None:
        return _Append(context, request, None).run()
    verification = Verification(context, request)
    append = _Append(context, request, verification)
    questions = verification.questions()
    if not questions:
        return append.run()
    verification.copy_small_records()
    verified = VerifiedProduce(context, request.transactional_id, verification, append.run)
    return verified.ask(questions)


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Nothing in a ProduceResponse can carry an error of the whole request."""
    return DISCONNECT


def denied_response(
    context: RequestContext, request: m.ProduceRequest, error: KafkaError
) -> m.ProduceResponse | Disconnect:
    """A request that is not executed: each partition has the code; acks=0 is not answered, and
    its client learns of the refusal by the end of the connection."""
    if request.acks == 0:
        return DISCONNECT
    response = _new_response()
    for topic in request.topic_data:
        results = [_new_result(data.index) for data in topic.partition_data]
        for result in results:
            result.error_code = int(error.code)
            result.error_message = error.message
        response.responses.append(_new_topic(topic, results))
    return response


def _each_once(topics: list[Topic], by_id: bool) -> list[Topic]:
    """Every topic and partition once: of a partition that is named twice the last records count,
    those before it are neither stored nor answered (measured on Apache Kafka 4.4)."""
    merged: dict[bytes | str, Topic] = {}
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


# Structs of the response with their defaults, made without the price of keywords.


def _new_response() -> m.ProduceResponse:
    response = _BareResponse()
    response.responses = []
    response.throttle_time_ms = 0
    response._tagged = None
    return response


def _new_topic(topic: Topic, results: list[Result]) -> TopicResult:
    made = _BareTopic()
    made.name = topic.name
    made.topic_id = topic.topic_id
    made.partition_responses = results
    made._tagged = None
    return made


def _new_result(index: int) -> Result:
    result = _BareResult()
    result.index = index
    result.error_code = 0
    result.base_offset = -1
    result.log_append_time_ms = -1
    result.log_start_offset = -1
    result.record_errors = []
    result.error_message = None
    result._tagged = None
    return result


_BareResponse = bare_class(m.ProduceResponse)
_BareTopic = bare_class(m.ProduceResponse.TopicProduceResponse)
_BareResult = bare_class(m.ProduceResponse.PartitionProduceResponse)


class _Append:
    """Appends one request, partition by partition, and fills its response."""

    __slots__ = (
        "_checking",
        "_context",
        "_denied",
        "_is_under_way",
        "_parts",
        "_request",
        "_response",
        "_verification",
        "_waiting",
        "_wall_ms",
    )

    def __init__(
        self,
        context: RequestContext,
        request: m.ProduceRequest,
        verification: Verification | None,
    ) -> None:
        self._context = context
        self._parts = parts = context.parts
        self._request = request
        self._verification = verification
        self._response = response = _new_response()
        self._wall_ms = parts.clock.wall_ms()
        self._waiting = Acknowledgements(context, response)
        self._checking = 0  # partitions whose batch is being checked, and not appended yet
        self._is_under_way = False
        self._denied: KafkaError | None = None

    def run(self) -> Answer[Outcome]:
        """Append everything that can be appended: the response, a Pending of it, or what acks=0
        does."""
        context, request = self._context, self._request
        if (
            request.transactional_id is not None
            and self._parts.authorizer is not None
            and has_transactional_batch(request)
            and not context.allows(WRITE_TRANSACTION, request.transactional_id)
        ):
            self._denied = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        by_id = context.api_version >= TOPIC_IDS_FROM
        topics = request.topic_data
        if sum([len(topic.partition_data) for topic in topics]) > SLICE_PARTITIONS:
            return self._run_in_slices(by_id)
        responses = self._response.responses
        for topic in topics:
            if not topic.partition_data:
                continue
            name = name_of(context, topic) if by_id else topic.name
            topic_id = topic.topic_id if by_id else None
            results = [self._partition(name, topic_id, data) for data in topic.partition_data]
            responses.append(_new_topic(topic, results))
        if self._checking:
            self._is_under_way = True
            return self._waiting
        return self._outcome()

    def _run_in_slices(self, by_id: bool) -> Answer[Outcome]:
        """`run`, some partitions a turn of the loop. All that was sent is appended, also when its
        client has gone, and before the connection's next request."""
        self._checking += 1  # all of it counts as a batch that is not appended yet
        self._is_under_way = True
        self._promise()
        slices = self._context.slices if self._request.acks else self._parts.slices
        walk = slices.run(self._append_in_slices(by_id), lambda: None)
        walk.add_done_callback(self._walked)
        return self._waiting

    def _promise(self) -> None:
        """What was sent is appended later, also when its client has gone. Not what comes behind a
        request without acks whose failure ends the connection: that is cancelled."""
        self._context.is_promised = True
        self._waiting.set_on_cancel(self._cancelled)

    def _cancelled(self) -> None:
        self._context.is_promised = False

    def _append_in_slices(self, by_id: bool) -> Iterator[None]:
        context, responses, count = self._context, self._response.responses, 0
        for topic in self._request.topic_data:
            if not topic.partition_data:
                continue
            name = name_of(context, topic) if by_id else topic.name
            topic_id = topic.topic_id if by_id else None
            results: list[Result] = []
            responses.append(_new_topic(topic, results))
            for data in topic.partition_data:
                if count >= SLICE_PARTITIONS:
                    count = 0
                    yield
                    if self._waiting.done:
                        return
                    self._wall_ms = self._parts.clock.wall_ms()
                results.append(self._partition(name, topic_id, data))
                count += 1

    def _walked(self, walk: Pending[None]) -> None:
        self._checking -= 1
        error = walk.error()
        if error is not None:
            self._waiting.fail(error)
        elif not self._checking and not self._waiting.done:
            self._end()

    def _end(self) -> None:
        """Answer, or wait for what is appended."""
        outcome = self._outcome()
        if not isinstance(outcome, Pending):
            self._waiting.complete(outcome)

    def _outcome(self) -> Answer[Outcome]:
        """`run` once everything is appended that can be."""
        if self._request.acks == 0 and self._waiting.has_failed:
            return DISCONNECT  # with which the next request ends: it does not start
        self._context.let_next_start()
        if self._request.acks == 0:
            return NO_REPLY
        return self._waiting.outcome(self._request.acks, self._request.timeout_ms)

    def _partition(self, topic: str | None, topic_id: bytes | None, data: Data) -> Result:
        result = _new_result(data.index)
        partition: Partition | None = None
        try:
            partition, records = self._find(topic, topic_id, data)
            try:
                if partition.topic not in self._parts.schema_checks.topics:
                    self._append(result, partition, records)
                else:
                    self._check_schemas(result, partition, records)
            except CheckLaterError as later:
                self._check(result, partition, records, later)
        except KafkaError as error:
            self._fail(result, partition, error, data.records)
        return result

    def _find(
        self, topic: str | None, topic_id: bytes | None, data: Data
    ) -> tuple[Partition, Buffer]:
        """The partition and its batch, after everything that Kafka checks before it looks at the
        log."""
        if self._denied is not None:
            raise anew(self._denied)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        parts = self._parts
        if parts.authorizer is not None and not self._context.allows(WRITE_TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic_id is None:
            partition = parts.replicas.partition(topic, data.index)
        else:
            partition = parts.replicas.partition_by_id(topic_id, data.index)
        missing = ErrorCode.NONE
        if partition is None:
            missing = missing_partition_error(parts.metadata.image.topics, topic, data.index)
            if missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KafkaError(missing)
        records = data.records
        if isinstance(records, list):
            raise AssertionError("the records of a decoded request lie in one piece")
        header = check_produced(records, self._context.api_version)
        if header.is_transactional and self._verification is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if records is None:
            raise AssertionError("no records passed the check")
        if header.size_bytes != len(records):
            records = records[: header.size_bytes]
        if self._request.acks not in (-1, 0, 1):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL_TOPICS and self._context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if partition is None:
            raise KafkaError(missing)
        return partition, records

    def _append(
        self,
        result: Result,
        partition: Partition,
        records: Buffer,
        checked: CheckedBatch | None = None,
    ) -> None:
        acks = self._request.acks
        info = partition.append(
            records,
            acks=acks,
            wall_ms=self._wall_ms,
            guard=None if self._verification is None else self._verification.guard_of(partition),
            transaction_version=2 if self._context.api_version >= ADDS_PARTITIONS_FROM else 0,
            may_wait=True,
            checked=checked,
        )
        connection = self._context.connection
        if connection is not None:
            connection.bytes_stored += info.size_bytes
        if info.written.done and info.written.error() is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        result.base_offset = info.base_offset
        result.log_append_time_ms = info.log_append_time_ms
        result.log_start_offset = info.log_start_offset
        if acks == ACKS_ALL:
            self._waiting.wait_for_commit(result, partition, info.last_offset + 1, info.written)
        elif acks == 1 and not info.written.done:
            self._waiting.wait_for_write(result, info.written)
        elif connection is not None and not info.written.done:
            connection.unreplied_writes.append(info.written)

    def _fail(
        self,
        result: Result,
        partition: Partition | None,
        error: KafkaError,
        records: Records | None,
    ) -> None:
        self._waiting.has_failed = True
        verdicts = () if self._verification is None else self._verification.verdicts
        is_verdict = partition is not None and (partition.topic, partition.index) in verdicts
        if partition is not None and not is_verdict:
            partition.traffic.produce_failed(error.code, 0 if records is None else len(records))
        result.error_code = int(error.code)
        if isinstance(error, InvalidRecordsError) and error.record_errors:
            if partition is not None:
                partition.traffic.records_refused(item.message for item in error.record_errors)
            result.record_errors = [
                m.ProduceResponse.BatchIndexAndErrorMessage(
                    batch_index=item.batch_index, batch_index_error_message=item.message
                )
                for item in error.record_errors
            ]
            result.error_message = error.message
        elif isinstance(error, NoBatchError):
            result.error_message = error.message
        if partition is None or partition.log is None or error.code in BARE_ERRORS:
            return
        if is_verdict:
            result.error_message = error.message  # and its log was not looked at
        else:
            result.log_start_offset = partition.log.log_start_offset

    # -- batches of topics that ask for schemas

    def _check_schemas(self, result: Result, partition: Partition, records: Buffer) -> None:
        """Append once every record has its schema; after that nothing is known to be in the way."""
        partition.check_append(self._request.acks)
        header = parse_header(records)
        answer = self._parts.schema_checks.check(partition.topic, records, header)
        if not isinstance(answer, Pending):
            self._append(result, partition, records)
            return
        self._checking += 1
        self._promise()
        answer.add_done_callback(lambda done: self._checked(result, partition, records, done))

    # -- batches whose check would hold up the loop

    def _check(
        self, result: Result, partition: Partition, records: Buffer, later: CheckLaterError
    ) -> None:
        self._checking += 1
        self._promise()
        checked = self._parts.check_later(later)
        checked.add_done_callback(lambda done: self._checked(result, partition, records, done))

    def _checked(
        self,
        result: Result,
        partition: Partition,
        records: Buffer,
        done: Pending[CheckedBatch] | Pending[None],
    ) -> None:
        self._checking -= 1
        if self._waiting.done:
            return
        try:
            self._append(result, partition, records, done.result())
        except KafkaError as error:
            self._fail(result, partition, error, records)
        except CheckLaterError as later:  # the topic's configs have changed
            self._check(result, partition, records, later)
        except Exception as error:
            self._waiting.fail(error)
            return
        if not self._checking and self._is_under_way:
            self._end()
