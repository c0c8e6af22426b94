"""AddOffsetsToTxn, versions 0-4: a transaction is about to commit offsets of a group.

It adds the group's partition of `__consumer_offsets` to the transaction, also before that topic
exists: who asks for the group's coordinator next makes it. PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH before version 2. Source: KIP-98, KIP-447; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.group.coordinator import TOPIC as OFFSETS_TOPIC
from kwire.coordinator.partitioner import partition_for
from kwire.kept_errors import anew
from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 4)
AUTHORIZATION = (
    Requires(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", checked=Checked.BEFORE
    ),
    Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),
)
FENCED_CODE_FROM = 2


def handle(
    context: RequestContext, request: m.AddOffsetsToTxnRequest
) -> Answer[m.AddOffsetsToTxnResponse]:
    """See the module."""
    parts = context.parts
    offsets = parts.metadata.image.topics.by_name.get(OFFSETS_TOPIC)
    count = (
        parts.config["offsets.topic.num.partitions"] if offsets is None else len(offsets.partitions)
    )
    pending = parts.coordinators.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(OFFSETS_TOPIC, partition_for(request.group_id, count))],
        0,
    )
    return after(pending, lambda done: _answer(context, done))


def _answer(context: RequestContext, done: Pending[None]) -> m.AddOffsetsToTxnResponse:
    error = done.error()
    if error is None:
        return _response(ErrorCode.NONE)
    if not isinstance(error, KafkaError):
        raise anew(error)
    if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_CODE_FROM:
        return _response(ErrorCode.INVALID_PRODUCER_EPOCH)
    return _response(error.code)


def _response(code: ErrorCode) -> m.AddOffsetsToTxnResponse:
    return m.AddOffsetsToTxnResponse(error_code=int(code))
