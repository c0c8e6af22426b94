"""AddPartitionsToTxn, versions 0-5: make partitions part of a transaction.

Up to version 3 a producer names the partitions it is about to write to; if one of them is unknown
or forbidden, nothing is attempted for the others. From version 4 on brokers ask, for many
producers at once: they verify partitions, or add them in the name of a producer that no longer
does so itself (KIP-890). PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before version 2. Source:
KIP-98, KIP-890; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias, TypeVar

from kwire.api.shared.local_transactions import CLIENT_VERSION_OF_BROKER
from kwire.kept_errors import anew
from kwire.pending import Answer, Pending, after, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import INTERNAL_TOPICS
from kwire.server.context import RequestContext

VERSIONS = (0, 5)
VERIFY = Requires(
    Operation.CLUSTER_ACTION,
    ResourceType.CLUSTER,
    note="from version 4",
)
WRITE_TRANSACTION = Requires(
    Operation.WRITE,
    ResourceType.TRANSACTIONAL_ID,
    "v3_and_below_transactional_id",
    denied=Denied.ENTRY,
    note="to version 3",
)
WRITE_TOPIC = Requires(
    Operation.WRITE,
    ResourceType.TOPIC,
    "v3_and_below_topics[].name",
    denied=Denied.ENTRY,
    note="to version 3",
)
AUTHORIZATION = (VERIFY, WRITE_TRANSACTION, WRITE_TOPIC)
BATCHED_FROM = 4
FENCED_CODE_FROM = 2
CLIENT_VERSION_OF_PRODUCER = 0

Partition = tuple[str, int]
Codes = dict[Partition, int]
Transaction: TypeAlias = "m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction"
Topic: TypeAlias = "m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic"
TopicResult: TypeAlias = "m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult"
PartitionResult: TypeAlias = "m.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult"
T = TypeVar("T")


def handle(
    context: RequestContext, request: m.AddPartitionsToTxnRequest
) -> Answer[m.AddPartitionsToTxnResponse]:
    """See the module."""
    if context.api_version < BATCHED_FROM:
        return _one(context, request)
    if not context.allows(VERIFY):
        return m.AddPartitionsToTxnResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    pendings = [_batched(context, transaction) for transaction in request.transactions]
    return after(gather(pendings), lambda done: _results(request.transactions, done.result()))


def error_response(context: RequestContext, error: KafkaError) -> m.AddPartitionsToTxnResponse:
    """The top-level code exists from version 4 on."""
    return m.AddPartitionsToTxnResponse(error_code=int(error.code))


def _one(
    context: RequestContext, request: m.AddPartitionsToTxnRequest
) -> Answer[m.AddPartitionsToTxnResponse]:
    asked = _partitions(request.v3_and_below_topics)
    transactional_id = request.v3_and_below_transactional_id

    def respond(codes: Codes) -> m.AddPartitionsToTxnResponse:
        return m.AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_topics(request.v3_and_below_topics, codes)
        )

    if not context.allows(WRITE_TRANSACTION, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return respond(dict.fromkeys(asked, int(code)))
    forbidden = {
        topic
        for topic in dict.fromkeys(topic for topic, _ in asked)
        if topic in INTERNAL_TOPICS or not context.allows(WRITE_TOPIC, topic)
    }
    refused = _refused(context, asked, forbidden)
    if refused:
        others = dict.fromkeys(asked, int(ErrorCode.OPERATION_NOT_ATTEMPTED))
        return respond(others | refused)
    pending = context.parts.coordinators.transactions.add_partitions(
        transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        asked,
        CLIENT_VERSION_OF_PRODUCER,
    )
    return after(
        pending, lambda done: respond(dict.fromkeys(asked, _code(done, context.api_version)))
    )


def _batched(context: RequestContext, transaction: Transaction) -> Pending[Codes]:
    asked = _partitions(transaction.topics)
    transactions = context.parts.coordinators.transactions
    refused = _refused(context, asked, ())
    if refused:
        others = dict.fromkeys(asked, int(ErrorCode.OPERATION_NOT_ATTEMPTED))
        return Pending.completed(others | refused)
    if transaction.verify_only:
        return after(
            transactions.verify_partitions(
                transaction.transactional_id,
                transaction.producer_id,
                transaction.producer_epoch,
                asked,
            ),
            lambda done: _verified(asked, done),
        )
    pending = transactions.add_partitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        asked,
        CLIENT_VERSION_OF_BROKER,
    )
    return after(pending, lambda done: dict.fromkeys(asked, _code(done, BATCHED_FROM)))


def _verified(asked: list[Partition], done: Pending[dict[Partition, ErrorCode]]) -> Codes:
    if done.error() is not None:
        return dict.fromkeys(asked, _code(done, BATCHED_FROM))
    return {partition: int(code) for partition, code in done.result().items()}


def _refused(context: RequestContext, asked: list[Partition], forbidden: Container[str]) -> Codes:
    """The partitions that cannot be part of a transaction, with the reason."""
    refused: Codes = {}
    topics = context.parts.metadata.image.topics.by_name
    for topic, index in asked:
        if topic in forbidden:
            refused[topic, index] = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif topic not in topics or index not in topics[topic].partitions:
            refused[topic, index] = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return refused


def _code(done: Pending[T], version: int) -> int:
    error = done.error()
    if error is None:
        return 0
    if not isinstance(error, KafkaError):
        raise anew(error)
    if error.code == ErrorCode.PRODUCER_FENCED and version < FENCED_CODE_FROM:
        return int(ErrorCode.INVALID_PRODUCER_EPOCH)
    return int(error.code)


def _partitions(topics: list[Topic]) -> list[Partition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _topics(topics: list[Topic], codes: Codes) -> list[TopicResult]:
    # Measured: a topic without partitions is left out, unless none has any.
    has_any = any(topic.partitions for topic in topics)
    by_topic: dict[str, list[PartitionResult]] = {
        topic.name: [] for topic in topics if topic.partitions or not has_any
    }
    result = m.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    for topic, index in _partitions(topics):
        by_topic[topic].append(
            result(partition_index=index, partition_error_code=codes[topic, index])
        )
    return [
        m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
            name=topic, results_by_partition=results
        )
        for topic, results in by_topic.items()
    ]


def _results(
    transactions: list[Transaction], pendings: list[Pending[Codes]]
) -> m.AddPartitionsToTxnResponse:
    return m.AddPartitionsToTxnResponse(
        results_by_transaction=[
            m.AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_topics(transaction.topics, pending.result()),
            )
            for transaction, pending in zip(transactions, pendings)
        ]
    )
