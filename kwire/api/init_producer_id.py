"""InitProducerId, versions 0-5: a producer id, for an idempotent or a transactional producer.

Without a transactional id: a new id with epoch 0 (any id and epoch that the client names are those
it gave up). With one: the transaction coordinator answers (KIP-98, KIP-360, KIP-890). Naming only
one of producer id and epoch, or an empty transactional id, is INVALID_REQUEST. Source: KIP-98,
KIP-360; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.transaction.init_producer import InitRequest, ProducerIdentity
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
    Requires(
        Operation.IDEMPOTENT_WRITE,
        ResourceType.CLUSTER,
        checked=Checked.BEFORE,
        unless="transactional_id",
        instead=(Requires(Operation.WRITE, ResourceType.TOPIC),),
    ),
)
FENCED_CODE_FROM = 4


def handle(
    context: RequestContext, request: m.InitProducerIdRequest
) -> Answer[m.InitProducerIdResponse]:
    """See the module."""
    transactional_id = request.transactional_id
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _error(ErrorCode.INVALID_REQUEST)
    if transactional_id is None:
        answer: Pending[m.InitProducerIdResponse] = Pending()
        context.parts.producer_ids.take().add_done_callback(lambda taken: _answer(answer, taken))
        return answer.result() if answer.done else answer
    pending = context.parts.coordinators.transactions.init_producer_id(
        InitRequest(
            transactional_id,
            request.transaction_timeout_ms,
            request.producer_id,
            request.producer_epoch,
        )
    )
    return after(pending, lambda done: _transactional_answer(context, done))


def error_response(context: RequestContext, error: KafkaError) -> m.InitProducerIdResponse:
    """No id and no epoch beside an error."""
    return _error(error.code)


def _transactional_answer(
    context: RequestContext, done: Pending[ProducerIdentity]
) -> m.InitProducerIdResponse:
    error = done.error()
    if error is None:
        producer_id, producer_epoch = done.result()
        return m.InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)
    if not isinstance(error, KafkaError):
        raise anew(error)
    if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_CODE_FROM:
        return _error(ErrorCode.INVALID_PRODUCER_EPOCH)
    return _error(error.code)


def _error(code: ErrorCode) -> m.InitProducerIdResponse:
    response = m.InitProducerIdResponse()
    response.error_code = int(code)
    response.producer_id = -1
    response.producer_epoch = -1
    return response


def _answer(pending: Pending[m.InitProducerIdResponse], taken: Pending[int]) -> None:
    error = taken.error()
    if isinstance(error, KafkaError):
        pending.complete(_error(error.code))
        return
    response = m.InitProducerIdResponse()
    response.producer_id = taken.result()
    response.producer_epoch = 0
    pending.complete(response)
