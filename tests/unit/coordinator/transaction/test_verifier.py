"""What a write asks the coordinator of its transaction, and what the client is told."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.transaction.verifier import Support, TransactionVerifier, for_client
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.coordinators import ManualLoop

PASSING = [
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
]


@pytest.mark.parametrize("support", list(Support))
@pytest.mark.parametrize("code", PASSING)
def test_what_passes_is_told_so_that_every_client_comes_again(
    code: ErrorCode, support: Support
) -> None:
    assert for_client(code, support) == ErrorCode.NOT_ENOUGH_REPLICAS


def test_the_newest_clients_know_concurrent_transactions() -> None:
    told = [for_client(ErrorCode.CONCURRENT_TRANSACTIONS, support) for support in Support]
    assert told == [
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    ]


def test_the_coordinator_elsewhere_is_asked_once_a_turn() -> None:
    loop, sent = ManualLoop(), []

    def send(node_id: int, request: Any) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        sent.append((node_id, request, pending))
        return pending

    verifier = TransactionVerifier(loop=loop, coordinator_of=lambda name: 2, send=send)
    told = [
        verifier.ask(name, 7, 3, [("topic", 0)], Support.ADDS_PARTITIONS) for name in ("t", "u")
    ]
    loop.run()
    assert [(node_id, len(request.transactions)) for node_id, request, _ in sent] == [(2, 2)]
    shape = m.AddPartitionsToTxnResponse
    results = [
        shape.AddPartitionsToTxnResult(
            transactional_id=name,
            topic_results=[
                shape.AddPartitionsToTxnTopicResult(
                    name="topic",
                    results_by_partition=[
                        shape.AddPartitionsToTxnPartitionResult(
                            partition_index=0, partition_error_code=int(code)
                        )
                    ],
                )
            ],
        )
        for name, code in (("u", ErrorCode.PRODUCER_FENCED), ("t", ErrorCode.NONE))
    ]
    sent[0][2].complete(shape(results_by_transaction=results))
    assert told[0].result() == {("topic", 0): ErrorCode.NONE}
    assert told[1].result() == {("topic", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
    lost = verifier.ask("t", 7, 3, [("topic", 0)], Support.OLDEST)
    loop.run()
    sent[1][2].fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert lost.result() == {("topic", 0): ErrorCode.NOT_ENOUGH_REPLICAS}
