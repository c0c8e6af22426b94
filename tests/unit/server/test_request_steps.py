"""The arrival step, the response step, and which requests may go past them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.quota.client_quotas import ClientQuotas
from kwire.server import in_process
from kwire.server.arrival import Arrival, Refusal, arrive
from kwire.server.connection import BrokerConnection
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext
from kwire.server.request_steps import PlainInputs, RequestSteps, plain_allowed
from kwire.server.response import Answered, error_counts, responded
from tests.support.connections import (
    ConnectionUnderTest,
    FakeDispatcher,
    FakeListener,
    FakeLoop,
    RecordingTransport,
    Waiting,
    metadata_request,
    metadata_response,
    produce_request,
)

ARRIVAL = Arrival(ApiKey.METADATA, 9, "User:alice", "app", "/192.0.2.1", "OUTSIDE", 40, 1.0)
ANSWERED = Answered({0: 2}, 60, 0, 1.5, 2.0)


class Seen:
    """A response hook that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[Arrival, Answered]] = []

    def __call__(self, arrival: Arrival, answered: Answered) -> None:
        self.told.append((arrival, answered))


class OwnContext(RequestContext):
    """A request of the node to itself."""

    __slots__ = ()
    listener_name = "PLAINTEXT"


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


# -- the arrival step


def test_without_hooks_everything_passes() -> None:
    assert arrive(ARRIVAL, True, ()) is None


def test_before_authentication_only_what_leads_to_it_passes() -> None:
    for key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
        assert arrive(ARRIVAL._replace(api_key=key), False, ()) is None
    refusal = arrive(ARRIVAL, False, ())
    assert refusal is not None
    assert refusal.code is None, "the connection is closed"


def test_the_first_hook_that_refuses_decides() -> None:
    asked: list[str] = []

    def hook(name: str, answer: Refusal | None) -> Callable[[Arrival], Refusal | None]:
        def see(arrival: Arrival) -> Refusal | None:
            assert arrival == ARRIVAL
            asked.append(name)
            return answer

        return see

    busy = Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "as ordered")
    hooks = (hook("a", None), hook("b", busy), hook("c", None))
    assert arrive(ARRIVAL, True, hooks) == busy
    assert asked == ["a", "b"]


# -- the response step


def test_everybody_who_watches_is_told() -> None:
    first, second = Seen(), Seen()
    responded(ARRIVAL, ANSWERED, (first, second))
    assert first.told == second.told == [(ARRIVAL, ANSWERED)]


def test_errors_are_counted_wherever_they_stand_in_a_response() -> None:
    topic = m.MetadataResponse.MetadataResponseTopic
    partition = m.MetadataResponse.MetadataResponsePartition
    response = m.MetadataResponse(
        topics=[
            topic(error_code=0, partitions=[partition(error_code=5), partition(error_code=0)]),
            topic(error_code=3, partitions=[]),
        ]
    )
    assert error_counts(response) == {0: 3, 3: 1, 5: 1}  # its own error_code among them
    assert error_counts(m.HeartbeatResponse(error_code=27)) == {27: 1}


# -- which requests go past both


def test_plain_needs_every_input_to_be_quiet() -> None:
    assert plain_allowed(PlainInputs(), True)
    assert not plain_allowed(PlainInputs(), False)
    for name in PlainInputs._fields:
        assert not plain_allowed(PlainInputs(**{name: True}), True), name


class NoTap:
    """Is shown everything, and looks at nothing."""

    def arrived(self, context: RequestContext, body: memoryview) -> None:
        pass

    def answered(self, context: RequestContext, response: object, size_bytes: int) -> None:
        pass


CHANGES: dict[str, Callable[[RequestSteps, bool], None]] = {
    "has_fault_rules": lambda steps, on: steps.set_fault_rules(*[lambda arrival: None] * on),
    "has_quotas": lambda steps, on: steps.set_throttles(ClientQuotas() if on else None),
    "is_audited": lambda steps, on: steps.set_audit(*[Seen()] * on),
    "is_watched": lambda steps, on: steps.set_observers(*[Seen()] * on),
    "is_traced": lambda steps, on: steps.set_tap(NoTap() if on else None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_flag_follows_what_is_attached(name: str, waiting: Waiting) -> None:
    under_test = ConnectionUnderTest(waiting)
    connection, steps = under_test.connection, under_test.steps
    assert connection.plain_allowed
    CHANGES[name](steps, True)
    assert getattr(steps.inputs, name)
    assert not connection.plain_allowed
    assert not ConnectionUnderTest(waiting, steps).connection.plain_allowed, "of one that comes"
    CHANGES[name](steps, False)
    assert connection.plain_allowed


def test_the_flag_follows_what_is_attached_before_a_connection_is_open(waiting: Waiting) -> None:
    """A loop makes a connection's protocol in one turn, and opens it in a later one."""
    steps = RequestSteps()
    connection = BrokerConnection(FakeListener(waiting, steps).setup)
    steps.set_observers(Seen())
    connection.connection_made(RecordingTransport())  # type: ignore[arg-type]
    assert not connection.plain_allowed


def test_the_flag_follows_the_image(waiting: Waiting) -> None:
    authorizers: list[str] = []
    steps = RequestSteps(lambda: bool(authorizers))
    connection = ConnectionUnderTest(waiting, steps).connection
    assert connection.plain_allowed
    authorizers.append("one")
    steps.image_published()
    assert not connection.plain_allowed
    authorizers.clear()
    steps.image_published()
    assert connection.plain_allowed


def test_the_flag_follows_what_is_known_of_the_client(waiting: Waiting) -> None:
    connection = ConnectionUnderTest(waiting).connection
    connection.set_principal("User:ANONYMOUS", False)
    assert not connection.plain_allowed
    connection.set_principal("User:alice", True)
    assert connection.plain_allowed


def test_nobody_is_told_of_what_did_not_change() -> None:
    steps, told = RequestSteps(), []
    steps.on_change(lambda: told.append(steps.inputs))
    steps.image_published()
    steps.set_audit()
    assert told == []
    steps.set_audit(Seen())
    assert told == [PlainInputs(is_audited=True)]


# -- a connection and both steps


def test_plain_requests_go_past_both_steps(waiting: Waiting) -> None:
    waiting.immediate[1] = metadata_response()
    under_test = ConnectionUnderTest(waiting)
    seen = Seen()
    under_test.steps.response_hooks = (seen,)  # as if somebody had been forgotten
    under_test.receive(metadata_request(1))
    assert (under_test.answered(), seen.told) == ([1], [])


def test_whoever_watches_sees_what_a_request_was_and_what_became_of_it(waiting: Waiting) -> None:
    under_test, seen = ConnectionUnderTest(waiting), Seen()
    under_test.steps.set_observers(seen)
    waiting.immediate[1] = metadata_response()
    request = metadata_request(1)
    under_test.receive(request + metadata_request(2))
    assert len(seen.told) == 1
    arrival, answered = seen.told[0]
    assert arrival == Arrival(
        3, 9, "User:ANONYMOUS", "test", "/127.0.0.1", "PLAINTEXT", len(request) - 4, 0.0
    )
    assert answered.errors == {0: 1}
    assert answered.response_bytes == len(under_test.transport.written) - 4
    waiting.complete(2, metadata_response())
    assert len(seen.told) == 2


def test_an_authorizer_alone_lets_nobody_watch(waiting: Waiting) -> None:
    under_test = ConnectionUnderTest(waiting, RequestSteps(lambda: True))
    assert not under_test.connection.plain_allowed
    under_test.receive(metadata_request(1))
    assert under_test.started == [1]
    assert not under_test.connection._watched.open
    seen = Seen()
    under_test.steps.set_observers(seen)
    waiting.complete(1, metadata_response())
    under_test.receive(metadata_request(2))
    waiting.complete(2, metadata_response())
    assert len(seen.told) == 1


def test_requests_without_a_reply_are_seen_too(waiting: Waiting) -> None:
    under_test, seen = ConnectionUnderTest(waiting), Seen()
    under_test.steps.set_audit(seen)
    waiting.immediate[1] = NO_REPLY
    waiting.immediate[2] = DISCONNECT
    under_test.receive(produce_request(1, acks=0) + produce_request(2, acks=0))
    assert [(answered.errors, answered.response_bytes) for _, answered in seen.told] == [
        ({}, 0),
        ({}, 0),
    ]
    assert under_test.transport.closed


def test_a_request_that_became_watched_on_the_way_is_not_half_seen(waiting: Waiting) -> None:
    under_test, seen = ConnectionUnderTest(waiting), Seen()
    under_test.receive(metadata_request(1))
    under_test.steps.set_observers(seen)
    waiting.complete(1, metadata_response())
    assert (under_test.answered(), seen.told) == ([1], [])
    under_test.receive(metadata_request(2))
    under_test.steps.set_observers()
    waiting.complete(2, metadata_response())
    assert under_test.answered() == [1, 2]
    assert seen.told == [], "nobody is there any more"


def test_a_refused_request_is_answered_in_its_place(waiting: Waiting) -> None:
    under_test = ConnectionUnderTest(waiting)
    busy = Refusal(ErrorCode.REQUEST_TIMED_OUT, "as ordered")
    under_test.receive(produce_request(1))
    under_test.steps.set_fault_rules(lambda arrival: busy if arrival.api_key == 3 else None)
    under_test.receive(metadata_request(2) + produce_request(3))
    assert under_test.started == [1, 3]
    assert under_test.answered() == []
    waiting.complete(1, m.ProduceResponse(responses=[]))
    assert under_test.answered() == [1, 2]
    assert not under_test.transport.closed


def test_a_refused_request_that_cannot_be_parsed_ends_the_connection(waiting: Waiting) -> None:
    under_test = ConnectionUnderTest(waiting)
    busy = Refusal(ErrorCode.REQUEST_TIMED_OUT, "as ordered")
    under_test.steps.set_fault_rules(lambda arrival: busy)
    broken = bytearray(metadata_request(1))
    del broken[-2:]
    broken[:4] = (len(broken) - 4).to_bytes(4, "big")
    under_test.receive(bytes(broken))
    assert under_test.started == []
    assert under_test.transport.closed


def test_a_request_before_authentication_ends_the_connection(waiting: Waiting) -> None:
    under_test = ConnectionUnderTest(waiting)
    under_test.connection.set_principal("User:ANONYMOUS", False)
    under_test.receive(metadata_request(1) + metadata_request(2))
    assert under_test.started == []
    assert under_test.transport.closed


def test_a_connection_that_goes_forgets_what_was_watched(waiting: Waiting) -> None:
    under_test, seen = ConnectionUnderTest(waiting), Seen()
    under_test.steps.set_observers(seen)
    under_test.receive(metadata_request(1))
    under_test.connection.connection_lost(None)
    pending: Pending[Any] | None = waiting.pendings.get(1)
    assert pending is not None
    assert pending.cancelled
    assert seen.told == []


# -- requests from within the process


def test_the_nodes_own_requests_are_seen_without_sizes() -> None:
    loop, seen = FakeLoop(), Seen()
    steps = RequestSteps()
    steps.set_fault_rules(lambda arrival: Refusal(None, "no faults for the node itself"))
    steps.set_observers(seen)
    dispatcher = FakeDispatcher(lambda context, request: m.MetadataResponse(error_code=5))

    def ask() -> Any:
        context = OwnContext(None, None, 3, 9, 1, None)
        done = in_process.execute(dispatcher, steps, loop, context, None)  # type: ignore[arg-type]
        assert context.is_internal
        return done.result()

    assert ask().error_code == 5
    arrival, answered = seen.told[0]
    assert (arrival.api_key, arrival.request_bytes) == (3, 0)
    assert (answered.errors, answered.response_bytes) == ({5: 1}, 0)
    failure = Pending.failed(KafkaError(ErrorCode.NOT_CONTROLLER))
    dispatcher.answer = lambda context, request: failure
    with pytest.raises(KafkaError):
        ask()
    assert seen.told[1][1].errors == {ErrorCode.NOT_CONTROLLER: 1}
    steps.set_observers()
    with pytest.raises(KafkaError):
        ask()
    assert len(seen.told) == 2
