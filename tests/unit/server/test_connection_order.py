"""DESIGN.md, decision 10 (docs/adr/0007): a test for each of its sentences."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server import connection as connection_module
from kwire.server import paused_connection
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext
from tests.support.connections import (
    ConnectionUnderTest,
    Waiting,
    list_offsets_request,
    list_offsets_response,
    metadata_request,
    metadata_response,
    produce_request,
    produce_response,
)
from tests.support.parts import made_parts


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


@pytest.fixture
def under_test(waiting: Waiting) -> ConnectionUnderTest:
    return ConnectionUnderTest(waiting)


def test_requests_of_a_connection_are_executed_in_order(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    for number in range(5):
        waiting.immediate[number] = metadata_response()
    under_test.receive(b"".join(metadata_request(number) for number in range(5)))
    assert under_test.started == [0, 1, 2, 3, 4]
    assert under_test.answered() == [0, 1, 2, 3, 4]


def test_while_one_is_pending_the_next_is_not_started(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[2] = metadata_response()
    under_test.receive(metadata_request(1) + metadata_request(2) + metadata_request(3))
    assert under_test.started == [1]
    assert under_test.answered() == []
    waiting.complete(1, metadata_response())
    assert under_test.started == [1, 2, 3]
    assert under_test.answered() == [1, 2]
    waiting.complete(3, metadata_response())
    assert under_test.answered() == [1, 2, 3]


def test_a_produce_that_only_waits_for_its_acks_lets_the_next_start(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    under_test.receive(b"".join(produce_request(number) for number in (1, 2, 3)))
    assert under_test.started == [1, 2, 3]
    waiting.complete(3, produce_response())
    assert under_test.answered() == [], "replies leave in request order"
    waiting.complete(1, produce_response())
    assert under_test.answered() == [1]
    waiting.complete(2, produce_response())
    assert under_test.answered() == [1, 2, 3]


def test_a_produce_whose_append_has_not_happened_holds_the_next_back(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.effects_done[1] = False
    under_test.receive(produce_request(1) + produce_request(2))
    assert under_test.started == [1]
    waiting.complete(1, produce_response())
    assert under_test.started == [1, 2]


def test_another_request_waits_behind_its_own_pending_but_starts_behind_a_produce(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[2] = metadata_response()
    under_test.receive(produce_request(1) + metadata_request(2) + metadata_request(3))
    assert under_test.started == [1, 2, 3]
    assert under_test.answered() == []
    waiting.complete(1, produce_response())
    assert under_test.answered() == [1, 2]


def test_what_looks_at_the_log_starts_behind_every_write_in_front_of_it(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[3] = list_offsets_response()
    under_test.receive(produce_request(1) + produce_request(2) + list_offsets_request(3))
    under_test.receive(produce_request(4))
    assert under_test.started == [1, 2]
    waiting.complete(2, produce_response())
    assert under_test.started == [1, 2], "the reply before that one is still to come"
    waiting.complete(1, produce_response())
    assert under_test.started == [1, 2, 3, 4]
    assert under_test.answered() == [1, 2, 3]


def test_what_looks_at_the_log_starts_behind_a_write_that_has_no_reply(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[1] = waiting.immediate[2] = NO_REPLY
    waiting.immediate[3] = list_offsets_response()
    written: Pending[None] = Pending()
    also_written: Pending[None] = Pending()
    under_test.receive(produce_request(1, acks=0) + produce_request(2, acks=0))
    under_test.connection.unreplied_writes += [written, written, also_written]
    under_test.receive(list_offsets_request(3) + produce_request(4))
    assert under_test.started == [1, 2]
    written.complete(None)
    assert under_test.started == [1, 2]
    also_written.complete(None)
    assert under_test.started == [1, 2, 3, 4]


def test_a_write_without_reply_that_fails_holds_nothing_back_for_good(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[1] = NO_REPLY
    waiting.immediate[2] = list_offsets_response()
    written: Pending[None] = Pending()
    under_test.receive(produce_request(1, acks=0))
    under_test.connection.unreplied_writes.append(written)
    under_test.receive(list_offsets_request(2))
    assert under_test.started == [1]
    written.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert under_test.answered() == [2]


def test_writes_that_have_ended_are_forgotten(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    kept = connection_module.UNREPLIED_WRITES_KEPT
    for number in range(1, 10 * kept):
        waiting.immediate[number] = NO_REPLY
        under_test.connection.unreplied_writes.append(Pending.completed(None))
        under_test.receive(produce_request(number, acks=0))
        assert len(under_test.connection.unreplied_writes) <= kept


def test_a_connection_that_closes_while_a_request_waits_for_a_write(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[1] = waiting.immediate[3] = NO_REPLY
    written: Pending[None] = Pending()
    under_test.receive(produce_request(1, acks=0))
    under_test.connection.unreplied_writes.append(written)
    under_test.receive(list_offsets_request(2) + produce_request(3, acks=0))
    under_test.connection.connection_lost(None)
    assert under_test.started == [1, 3]
    written.complete(None)
    assert under_test.started == [1, 3]
    assert under_test.listener.events == ["opened", "closed"]


def test_a_client_that_has_ended_its_side_gets_what_waited_for_a_write(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[2] = list_offsets_response()
    under_test.receive(produce_request(1) + list_offsets_request(2))
    assert under_test.connection.eof_received() is True
    waiting.complete(1, produce_response())
    assert under_test.answered() == [1, 2]
    assert under_test.transport.closed


def test_an_unanswered_produce_leaves_no_gap(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[1] = NO_REPLY
    waiting.immediate[2] = metadata_response()
    under_test.receive(produce_request(1, acks=0) + metadata_request(2))
    assert under_test.answered() == [2]


def test_at_the_bound_of_queued_requests_the_connection_pauses_reading(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    under_test.receive(metadata_request(0))
    for number in range(1, paused_connection.QUEUED_REQUESTS_MAX):
        under_test.receive(metadata_request(number))
    assert under_test.transport.reading
    under_test.receive(metadata_request(paused_connection.QUEUED_REQUESTS_MAX))
    assert not under_test.transport.reading
    waiting.complete(0, metadata_response())
    assert under_test.transport.reading


def test_at_the_bound_of_queued_bytes_the_connection_pauses_reading(
    under_test: ConnectionUnderTest, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paused_connection, "QUEUED_BYTES_MAX", 50)
    under_test.receive(metadata_request(0) + metadata_request(1))
    assert under_test.transport.reading
    under_test.receive(metadata_request(2) + metadata_request(3))
    assert not under_test.transport.reading


def test_at_the_bound_of_reply_bytes_nothing_is_read_or_started(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[1] = waiting.immediate[2] = metadata_response()
    assert under_test.transport.limits[0] == connection_module.REPLY_BYTES_HIGH
    under_test.connection.pause_writing()
    assert not under_test.transport.reading
    under_test.receive(metadata_request(1) + metadata_request(2))  # what was read already
    assert under_test.started == []
    under_test.connection.resume_writing()
    assert under_test.transport.reading
    assert under_test.answered() == [1, 2]


def test_when_it_closes_everything_pending_of_it_is_cancelled(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    under_test.receive(produce_request(1) + produce_request(2) + metadata_request(3))
    under_test.receive(metadata_request(4))
    closed: list[str] = []
    under_test.connection.add_close_callback(lambda: closed.append("closed"))
    under_test.connection.connection_lost(None)
    assert sorted(waiting.cancelled) == [1, 2, 3]
    assert under_test.started == [1, 2, 3], "a queued request that nobody waits for is dropped"
    assert closed == ["closed"]
    assert under_test.listener.events == ["opened", "closed"]


def test_a_completely_received_produce_is_executed_although_the_client_is_gone(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    """KAFKA-3703."""
    waiting.immediate[2] = waiting.immediate[4] = NO_REPLY
    under_test.receive(
        metadata_request(1) + produce_request(2, 0) + metadata_request(3) + produce_request(4, 0)
    )
    assert under_test.started == [1]
    under_test.connection.connection_lost(None)
    assert under_test.started == [1, 2, 4]
    assert waiting.cancelled == [1]


def test_received_produces_follow_one_that_is_checked_beside_the_loop(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    """In their order, and none of them is dropped."""
    contexts: dict[int, RequestContext] = {}

    def answer(context: RequestContext, request: Any) -> Any:
        contexts[context.correlation_id] = context
        context.is_promised = context.correlation_id in (2, 3)
        return waiting(context, request)

    waiting.effects_done[2] = waiting.effects_done[3] = False
    waiting.immediate[4] = NO_REPLY
    under_test.listener.dispatcher.answer = answer
    under_test.receive(
        metadata_request(1) + produce_request(2) + produce_request(3) + produce_request(4, 0)
    )
    under_test.connection.connection_lost(None)
    assert under_test.started == [1, 2]
    contexts[2].let_next_start()
    assert under_test.started == [1, 2, 3]
    contexts[3].let_next_start()
    assert under_test.started == [1, 2, 3, 4]


def test_a_client_that_has_ended_its_side_gets_every_answer(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    """Measured on Apache Kafka 4.4: it does not read, so it does not see an end, while it works."""
    waiting.immediate[2] = waiting.immediate[4] = metadata_response()
    under_test.receive(b"".join(metadata_request(number) for number in (1, 2, 3, 4)))
    assert under_test.connection.eof_received() is True
    assert under_test.started == [1]
    assert not under_test.transport.closed
    assert not under_test.connection.is_waiting, "it may be closed when it has been idle"
    waiting.complete(1, metadata_response())
    assert under_test.started == [1, 2, 3]
    waiting.complete(3, metadata_response())
    assert under_test.answered() == [1, 2, 3, 4]
    assert under_test.transport.closed
    assert waiting.cancelled == []


def test_a_client_that_ends_its_side_with_nothing_open_is_gone(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    assert under_test.connection.eof_received() is False


def test_a_frame_that_cannot_be_parsed_closes_after_the_replies_before_it(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    unknown = bytearray(metadata_request(2))
    unknown[4:6] = (999).to_bytes(2, "big")
    under_test.receive(metadata_request(1) + bytes(unknown) + metadata_request(3))
    assert not under_test.transport.closed
    waiting.complete(1, metadata_response())
    assert under_test.answered() == [1]
    assert under_test.transport.closed
    assert under_test.started == [1]


@pytest.mark.parametrize("size", [0, -1, -(2**31), (1 << 20) + 1, 2**31 - 1])
def test_an_impossible_size_closes_at_once(under_test: ConnectionUnderTest, size: int) -> None:
    under_test.receive(size.to_bytes(4, "big", signed=True))
    assert under_test.transport.closed


def test_an_impossible_size_closes_after_the_replies_before_it(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    under_test.receive(metadata_request(1) + b"\xff\xff\xff\xff" + metadata_request(3))
    assert not under_test.transport.closed
    waiting.complete(1, metadata_response())
    assert under_test.answered() == [1]
    assert under_test.transport.closed


def test_a_failed_produce_without_acks_closes_after_the_replies_before_it(
    under_test: ConnectionUnderTest, waiting: Waiting
) -> None:
    waiting.immediate[2] = DISCONNECT
    under_test.receive(produce_request(1) + produce_request(2, 0) + metadata_request(3))
    assert under_test.started == [1, 2]
    waiting.complete(1, produce_response())
    assert under_test.answered() == [1]
    assert under_test.transport.closed


@pytest.mark.parametrize("is_late", [True, False])
def test_a_response_that_cannot_be_encoded_closes(
    under_test: ConnectionUnderTest, waiting: Waiting, is_late: bool
) -> None:
    broken = metadata_response()
    broken.topics = None
    if is_late:
        under_test.receive(metadata_request(1))
        waiting.complete(1, broken)
    else:
        waiting.immediate[1] = broken
        under_test.receive(metadata_request(1))
    assert under_test.transport.closed
    assert under_test.listener.dispatcher.counts[3].total == 1


def test_a_body_that_does_not_parse_closes(under_test: ConnectionUnderTest) -> None:
    broken = bytearray(metadata_request(1))
    del broken[-2:]
    broken[:4] = (len(broken) - 4).to_bytes(4, "big")
    under_test.receive(bytes(broken))
    assert under_test.transport.closed
    assert under_test.started == []


def test_a_request_of_the_node_itself_may_do_everything() -> None:
    class DenyAll:
        def authorize(self, *_: object) -> bool:
            return False

    parts = made_parts(authorizer=DenyAll())
    own = RequestContext(parts, None, 3, 9, 1, None)
    own.is_internal = True
    clients = RequestContext(parts, None, 3, 9, 1, None)
    assert own.authorize(3, 2, "t")
    assert not clients.authorize(3, 2, "t")
