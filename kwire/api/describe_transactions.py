"""DescribeTransactions, version 0: the state of transactional ids.

An id that the principal may not describe is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, one that is not
known TRANSACTIONAL_ID_NOT_FOUND; topics that it may not describe are left out. Source: KIP-664;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.pending import Answer, Pending, after, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
DESCRIBE_TRANSACTION = Requires(
    Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional_ids[]", denied=Denied.ENTRY
)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE, ResourceType.TOPIC, denied=Denied.LEFT_OUT, note="topics of a transaction"
)
AUTHORIZATION = (DESCRIBE_TRANSACTION, DESCRIBE_TOPIC)

State: TypeAlias = "m.DescribeTransactionsResponse.TransactionState"


def handle(
    context: RequestContext, request: m.DescribeTransactionsRequest
) -> Answer[m.DescribeTransactionsResponse]:
    """See the module."""
    pendings = [_one(context, transactional_id) for transactional_id in request.transactional_ids]
    return after(
        gather(pendings),
        lambda done: m.DescribeTransactionsResponse(
            transaction_states=[pending.result() for pending in done.result()]
        ),
    )


def error_response(context: RequestContext, error: KafkaError) -> m.DescribeTransactionsResponse:
    """Nothing in the response can carry an error of the whole request."""
    return m.DescribeTransactionsResponse()


def _one(context: RequestContext, transactional_id: str) -> Pending[State]:
    if not context.allows(DESCRIBE_TRANSACTION, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return Pending.completed(_failed(transactional_id, code))
    if not transactional_id:
        return Pending.completed(_failed(transactional_id, ErrorCode.INVALID_REQUEST))
    pending = context.parts.coordinators.transactions.describe(transactional_id)
    return after(pending, lambda done: _described(context, transactional_id, done))


def _described(context: RequestContext, transactional_id: str, done: Pending[State]) -> State:
    error = done.error()
    if isinstance(error, KafkaError):
        return _failed(transactional_id, error.code)
    state = done.result()
    state.topics = [topic for topic in state.topics if context.allows(DESCRIBE_TOPIC, topic.topic)]
    return state


def _failed(transactional_id: str, code: ErrorCode) -> State:
    return m.DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id, error_code=int(code)
    )
