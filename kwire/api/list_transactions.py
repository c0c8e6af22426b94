"""ListTransactions, versions 0-2: the transactional ids that this broker coordinates.

Filtered by state and producer id, from version 1 by how long a transaction has been open, from
version 2 by a pattern over transactional ids (RE2 syntax; one that does not compile is
INVALID_REGULAR_EXPRESSION). State names that are not known are listed in the answer and otherwise
match nothing. Source: KIP-664, KIP-994, KIP-1152; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kwire.coordinator.transaction.queries import ListFilter
from kwire.coordinator.transaction.states import BY_TEXT
from kwire.pending import Answer, Pending, after, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
DESCRIBE_TRANSACTION = Requires(
    Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, denied=Denied.LEFT_OUT
)
AUTHORIZATION = (DESCRIBE_TRANSACTION,)

State: TypeAlias = "m.ListTransactionsResponse.TransactionState"


def handle(
    context: RequestContext, request: m.ListTransactionsRequest
) -> Answer[m.ListTransactionsResponse]:
    """See the module."""
    try:
        matches = _matcher(request.transactional_id_pattern)
    except KafkaError as error:
        return m.ListTransactionsResponse(error_code=int(error.code))
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in BY_TEXT]
    states = frozenset(BY_TEXT[name] for name in request.state_filters if name in BY_TEXT)
    response = m.ListTransactionsResponse(unknown_state_filters=unknown)
    if unknown and not states:
        return response
    wanted = ListFilter(
        states, frozenset(request.producer_id_filters), request.duration_filter, matches
    )
    pendings = context.parts.coordinators.transactions.list_transactions(wanted)
    return after(gather(pendings), lambda done: _answer(context, response, done.result()))


def _answer(
    context: RequestContext,
    response: m.ListTransactionsResponse,
    pendings: list[Pending[list[State]]],
) -> m.ListTransactionsResponse:
    for pending in pendings:
        error = pending.error()
        if isinstance(error, KafkaError):
            return m.ListTransactionsResponse(error_code=int(error.code))
        response.transaction_states += [
            state
            for state in pending.result()
            if context.allows(DESCRIBE_TRANSACTION, state.transactional_id)
        ]
    return response


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """Whether a whole id matches `pattern`; None for no pattern or an empty one."""
    if not pattern:
        return None
    from kwire.protocol.regex import compile_pattern

    return compile_pattern(pattern)
