"""TxnOffsetCommit, versions 0-6: store consumed offsets as part of a transaction.

They become visible with the transaction's commit marker. From version 3 the group's membership is
checked where it is given (KIP-447). Before the first commit of a transaction its coordinator is
asked whether the group's partition belongs to it; from version 5 it adds it (KIP-890). Topics go
by name until version 5 and by id in version 6. Many partitions are made in slices and committed
together. Source: KIP-98, KIP-447, KIP-890; measured on
Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.shared.commits_in_slices import AskedPartitions, commit_in_slices
from kwire.api.shared.committed_topics import READ_TOPIC, TopicSorter
from kwire.coordinator.group.coordinator import TOPIC as OFFSETS_TOPIC
from kwire.coordinator.group.made_offsets import MadeOffsets, are_many
from kwire.coordinator.group.offsets import TransactionalTopic
from kwire.coordinator.group.refusals import txn_offset_commit_error
from kwire.coordinator.replies import convert_all
from kwire.coordinator.transaction.verifier import Support
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 6)
AUTHORIZATION = (
    Requires(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", checked=Checked.BEFORE
    ),
    Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),
    READ_TOPIC,
)
ABORTABLE_ERROR_FROM = 4
ADDS_PARTITIONS_FROM = 5
TOPIC_IDS_FROM = 6

Asked: TypeAlias = "m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic"
Refused: TypeAlias = "m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic"
Sorter: TypeAlias = "TopicSorter[Asked, Refused]"


def handle(
    context: RequestContext, request: m.TxnOffsetCommitRequest
) -> Answer[m.TxnOffsetCommitResponse]:
    """See the module."""
    asked = AskedPartitions(request.topics) if are_many(request.topics) else None
    sorter = TopicSorter(context, _refusal, by_id=context.api_version >= TOPIC_IDS_FROM)
    request.topics = sorter.pass_topics(request.topics)
    if not request.topics:
        return m.TxnOffsetCommitResponse(topics=sorter.merge([]))
    if not request.group_id:
        return _merged(sorter, txn_offset_commit_error(request, ErrorCode.INVALID_GROUP_ID))
    if asked is None:
        pending = _committed(context, request)
        return convert_all(pending, lambda done: _merged(sorter, done.result()))
    made = context.parts.coordinators.groups.make_transactional_commit(request)

    def decide() -> Answer[m.TxnOffsetCommitResponse]:
        pending = _committed(context, request, made)
        return convert_all(pending, lambda done: _merged(sorter, done.result()))

    def ask_again() -> Answer[m.TxnOffsetCommitResponse]:
        request.topics = asked.restored()
        return handle(context, request)

    return commit_in_slices(context, request.topics, made, decide, ask_again)


def error_response(context: RequestContext, error: KafkaError) -> m.TxnOffsetCommitResponse:
    """No topics: the request is not at hand any more."""
    return m.TxnOffsetCommitResponse(topics=[])


def denied_response(
    context: RequestContext, request: m.TxnOffsetCommitRequest, error: KafkaError
) -> m.TxnOffsetCommitResponse:
    """The code at every partition."""
    return txn_offset_commit_error(request, error.code)


def _refusal(topic: Asked, indexes: list[int], code: ErrorCode) -> Refused:
    """The topic of the response that refuses these partitions."""
    shape = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    return m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[shape(partition_index=index, error_code=code) for index in indexes],
    )


def _merged(sorter: Sorter, response: m.TxnOffsetCommitResponse) -> m.TxnOffsetCommitResponse:
    response.topics = sorter.merge(response.topics)
    return response


def _committed(
    context: RequestContext,
    request: m.TxnOffsetCommitRequest,
    made: MadeOffsets[TransactionalTopic] | None = None,
) -> Pending[m.TxnOffsetCommitResponse]:
    """Verify with the transaction's coordinator where that is due, then commit."""
    groups = context.parts.coordinators.groups
    partition = context.parts.replicas.partition(
        OFFSETS_TOPIC, groups.partition_for(request.group_id)
    )
    if partition is None or not partition.is_leader or partition.log is None:
        refused = txn_offset_commit_error(request, ErrorCode.NOT_COORDINATOR)
        return Pending.completed(refused)
    if partition.log.producers.is_stale(request.producer_id, request.producer_epoch):
        stale = txn_offset_commit_error(request, ErrorCode.INVALID_PRODUCER_EPOCH)
        return Pending.completed(stale)
    adds = context.api_version >= ADDS_PARTITIONS_FROM
    guard = partition.log.begin_verification(
        request.producer_id, request.producer_epoch, supports_epoch_bump=adds
    )
    if not partition.log.needs_verification(guard):
        return as_pending(
            groups.commit_offsets_in_transaction(request, guard, context.api_version, made)
        )
    answer: Pending[m.TxnOffsetCommitResponse] = Pending()
    asked = (OFFSETS_TOPIC, partition.index)

    def verified(done: Pending[dict[tuple[str, int], ErrorCode]]) -> None:
        code = done.result()[asked]
        if code != ErrorCode.NONE:
            answer.complete(txn_offset_commit_error(request, _as_group_error(code)))
            return
        committing = as_pending(
            groups.commit_offsets_in_transaction(request, guard, context.api_version, made)
        )
        answer.set_on_cancel(committing.cancel)
        committing.add_done_callback(lambda settled: answer.complete(settled.result()))

    context.parts.coordinators.verifier.ask(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [asked],
        _support(context.api_version),
    ).add_done_callback(verified)
    return answer


def _support(api_version: int) -> Support:
    if api_version >= ADDS_PARTITIONS_FROM:
        return Support.ADDS_PARTITIONS
    return Support.ABORTABLE_ERROR if api_version >= ABORTABLE_ERROR_FROM else Support.OLDEST


def _as_group_error(code: ErrorCode) -> ErrorCode:
    """What passes is told as a coordinator would tell it."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code == ErrorCode.NOT_ENOUGH_REPLICAS else code
