"""EndTxn, versions 0-5: commit or abort a producer's transaction.

Answered as soon as the decision is durable; the markers follow. From version 5 on every end takes
the producer to a new epoch, which the answer carries (KIP-890). PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH before version 2. Source: KIP-98, KIP-890; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.transaction.end import EndAnswer, EndRequest
from kwire.kept_errors import anew
from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 5)
AUTHORIZATION = (
    Requires(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", checked=Checked.BEFORE
    ),
)
EPOCH_BUMP_FROM = 5
FENCED_CODE_FROM = 2


def handle(context: RequestContext, request: m.EndTxnRequest) -> Answer[m.EndTxnResponse]:
    """See the module."""
    pending = context.parts.coordinators.transactions.end_transaction(
        EndRequest(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            context.api_version >= EPOCH_BUMP_FROM,
        )
    )
    return after(pending, lambda done: _answer(context, done))


def _answer(context: RequestContext, done: Pending[EndAnswer]) -> m.EndTxnResponse:
    error = done.error()
    if error is None:
        producer_id, producer_epoch = done.result()
        if context.api_version < EPOCH_BUMP_FROM:
            return m.EndTxnResponse()
        return m.EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)
    if not isinstance(error, KafkaError):
        raise anew(error)
    if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_CODE_FROM:
        return _error(ErrorCode.INVALID_PRODUCER_EPOCH)
    return _error(error.code)


def _error(code: ErrorCode) -> m.EndTxnResponse:
    return m.EndTxnResponse(error_code=int(code), producer_id=-1, producer_epoch=-1)
