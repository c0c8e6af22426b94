"""AllocateProducerIds: blocks of producer ids for brokers (KIP-730)."""

from __future__ import annotations

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.results import Result
from kwire.kraft.controller.state import ControllerState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
_MAX = (1 << 63) - 1


def allocate(
    state: ControllerState,
    request: m.AllocateProducerIdsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.AllocateProducerIdsResponse]:
    """Answer an AllocateProducerIdsRequest (version 0). Raises KafkaError(STALE_BROKER_EPOCH)."""
    state.check_epoch(request.broker_id, request.broker_epoch)
    first = max(state.image.next_producer_id, 0)
    if first > _MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producer ids.")
    record = m.ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    response = m.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return [(record, 0)], response
