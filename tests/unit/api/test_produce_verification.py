"""Transactional batches of a Produce while their coordinator is asked, and afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.api.shared.produce_verification import Question, Verification, VerifiedProduce
from kwire.coordinator.transaction.verifier import Support
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.server.context import RequestContext
from tests.support.parts import made_parts

Codes = dict[tuple[str, int], ErrorCode]


class Verifier:
    """A coordinator that answers when the test says so."""

    def __init__(self) -> None:
        self.answer: Pending[Codes] = Pending()

    def ask(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[tuple[str, int]],
        support: Support,
    ) -> Pending[Codes]:
        return self.answer


def is_free(received: bytearray) -> bool:
    """Whether nobody has a view of it."""
    try:
        received.append(0)
    except BufferError:
        return False
    return True


def test_what_was_received_is_free_while_the_acknowledgements_are_awaited() -> None:
    verifier = Verifier()
    parts: dict[str, Any] = {
        "config": {"add.partitions.to.txn.retry.backoff.max.ms": 100},
        "loop": SimpleNamespace(time=lambda: 0.0),
        "coordinators": SimpleNamespace(verifier=verifier),
    }
    context = RequestContext(made_parts(**parts), None, 0, 12, 1, None)
    received = bytearray(100_000)
    data = m.ProduceRequest.PartitionProduceData(index=0, records=memoryview(received))
    topic = m.ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    request = m.ProduceRequest(transactional_id="a", acks=-1, timeout_ms=9, topic_data=[topic])
    acknowledged: Pending[Any] = Pending()
    produce = VerifiedProduce(context, "a", Verification(context, request), lambda: acknowledged)
    produce.ask([Question("t", 0, 1, 0)])
    del data, topic, request
    assert not is_free(received)
    verifier.answer.complete({("t", 0): ErrorCode.NONE})
    assert not produce.done
    assert is_free(received)
    acknowledged.complete(m.ProduceResponse())
    assert produce.done
