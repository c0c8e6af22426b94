"""Work in slices counts for the request_percentage of who asked for it, as what is done at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.pending import Pending, then
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.quota.client_quotas import ClientQuotas
from kwire.server.context import NO_REPLY, RequestContext
from kwire.server.request_steps import RequestSteps
from kwire.slices import Slices
from tests.support.connections import (
    ConnectionUnderTest,
    TurningLoop,
    metadata_request,
    metadata_response,
    produce_request,
    produce_response,
)
from tests.support.parts import made_parts

CLIENT = (("client-id", "test"),)
SLICE_NS = 100_000_000
SLICES = 3
WAIT_NS = 5_000_000_000


class Sliced:
    """A connection whose requests are answered in slices, or at once, and a clock that only work
    and waiting move. Requests from 200 on wait for the test between two works."""

    def __init__(self, **rates: float) -> None:
        self.busy_ns = 1
        self.steps = RequestSteps(ticks_ns=lambda: self.busy_ns)
        self.quotas = ClientQuotas()
        self.quotas.changed(CLIENT, rates)
        self.steps.set_throttles(self.quotas)
        self.under_test = ConnectionUnderTest(self._answer, self.steps)
        self.turning = TurningLoop()
        self.slices = Slices(self.turning.call_soon)
        self.under_test.connection._parts = made_parts(slices=self.slices)
        self.receive = self.under_test.receive
        self.are_sliced = True
        self.waits: list[Pending[None]] = []

    def _answer(self, context: RequestContext, request: Any) -> Any:
        made = produce_response if context.api_key == ApiKey.PRODUCE else metadata_response
        if not self.are_sliced:
            self.busy_ns += SLICES * SLICE_NS
            return made()
        slices = context.slices
        first: Pending[Any] = slices.run(self._work(), made)
        if context.correlation_id < 200:
            return first
        wait: Pending[None] = Pending()
        self.waits.append(wait)
        both = then(first, lambda _: wait)
        return then(both, lambda _: slices.run(self._work(), made))

    def _work(self) -> Iterator[None]:
        for number in range(SLICES):
            if number:
                yield
            self.busy_ns += SLICE_NS

    def turns(self) -> None:
        while self.turning.soon:
            self.turning.turn()

    def counted(self) -> float:
        """The percents of a second that the client has used."""
        (found,) = [
            sensor for name, sensor in self.quotas.sensors() if name == "request_percentage"
        ]
        return found.measure(0) * 10

    def throttle_times(self) -> list[int]:
        written = bytes(self.under_test.transport.written)
        found, position = [], 0
        while position < len(written):
            size = int.from_bytes(written[position : position + 4], "big")
            body = written[position + 4 : position + 4 + size]
            response, _ = m.MetadataResponse.decode_from(body, 5, 9)
            found.append(response.throttle_time_ms)
            position += 4 + size
        return found


def test_who_asks_in_slices_waits_as_long_as_who_is_answered_at_once() -> None:
    waits = []
    for are_sliced in (True, False):
        one = Sliced(request_percentage=2.0)
        one.are_sliced = are_sliced
        one.receive(metadata_request(100))
        one.turns()
        waits += one.throttle_times()
        assert not one.under_test.transport.reading
        assert one.counted() == pytest.approx(SLICES * 10.0)
    assert waits[0] == waits[1] > 0


def test_what_a_request_waits_for_counts_for_nobody() -> None:
    one = Sliced(request_percentage=1000.0)
    one.receive(metadata_request(200))
    one.turns()
    assert one.counted() == pytest.approx(SLICES * 10.0), "what is done counts before the answer"
    one.busy_ns += WAIT_NS
    one.waits[0].complete(None)
    one.busy_ns += WAIT_NS
    one.turns()
    assert one.throttle_times() == [0]
    assert one.counted() == pytest.approx(2 * SLICES * 10.0)


def test_works_of_others_in_between_do_not_count() -> None:
    one = Sliced(request_percentage=1000.0)
    one.receive(metadata_request(100))
    one.slices.run(one._work(), lambda: None)
    one.turns()
    assert one.counted() == pytest.approx(SLICES * 10.0)


def test_a_request_out_of_the_sample_counts_for_its_slices_and_for_no_more() -> None:
    one = Sliced(request_percentage=1000.0)
    one.are_sliced = False
    one.receive(metadata_request(100))  # of a rate that is new nothing is known: by itself
    one.receive(metadata_request(101))
    (_, sensor), *_ = one.quotas.sensors()
    assert sensor.skipped > 2
    before, one.are_sliced = one.counted(), True
    one.receive(metadata_request(102))
    one.turns()
    assert one.counted() - before == pytest.approx(SLICES * 10.0)


def test_what_follows_in_the_same_turn_counts_once() -> None:
    """The answer that is made in a slice lets the next request begin in it."""
    one = Sliced(request_percentage=11.0)  # after two nobody stands for others
    one.receive(metadata_request(100) + metadata_request(101) + metadata_request(102))
    assert one.under_test.started == [100]
    while one.under_test.started != [100, 101]:
        one.turning.turn()
    ((_, sensor),) = one.quotas.sensors()
    one.are_sliced, sensor.skipped = False, 0
    one.turns()
    assert one.under_test.answered() == [100, 101, 102]
    assert one.counted() == pytest.approx(3 * SLICES * 10.0)


def test_who_goes_before_the_answer_is_charged_for_what_was_done() -> None:
    one = Sliced(request_percentage=1000.0)
    one.receive(metadata_request(100))
    for _ in range(SLICES - 1):
        one.turning.turn()
    one.under_test.connection.connection_lost(None)
    one.turns()
    assert one.counted() == pytest.approx((SLICES - 1) * 10.0)
    assert not one.under_test.connection._watched.open


def test_the_bytes_of_a_produce_in_slices_count_once() -> None:
    one = Sliced(request_percentage=1000.0, producer_byte_rate=1e6)
    for number in range(3):  # asked for at the response, then counted when it comes
        request = produce_request(number)
        one.receive(request)
        one.turns()
        (found,) = [x for name, x in one.quotas.sensors() if name == "producer_byte_rate"]
        assert found.measure(0) * 10 == pytest.approx((number + 1) * (len(request) - 4))
        assert one.counted() == pytest.approx((number + 1) * SLICES * 10.0)


def test_nodes_and_who_has_no_quota_of_time_are_not_measured() -> None:
    one = Sliced(producer_byte_rate=1e6)
    found: list[Slices] = []

    def answer(context: RequestContext, request: Any) -> Any:
        found.append(context.slices)
        return NO_REPLY

    one.under_test.listener.dispatcher.answer = answer
    one.receive(metadata_request(100))
    one.quotas.changed(CLIENT, {"request_percentage": 1000.0})
    connection = one.under_test.connection
    parts = connection._parts
    asked = RequestContext(parts, connection, ApiKey.ALLOCATE_PRODUCER_IDS, 0, 1, "test")
    found.append(asked.slices)
    found.append(RequestContext(parts, None, ApiKey.METADATA, 9, 1, "test").slices)
    assert found == [one.slices] * 3
    one.receive(metadata_request(101))
    assert found[-1] is not one.slices


def test_a_request_behind_the_end_of_its_connection_goes_on_when_quotas_have_gone() -> None:
    """A closed connection does not hear that quotas change; its late request ended the node's turn
    with an error."""
    steps, quotas = RequestSteps(), ClientQuotas()
    quotas.changed((("client-id", "a"),), {"producer_byte_rate": 1e9})
    connection = ConnectionUnderTest(None, steps).connection
    steps.set_throttles(quotas)
    known = quotas.known_clients("User:ANONYMOUS")
    connection.closed()
    quotas.changed((("client-id", "a"),), {})
    steps.quotas = None  # as on_change does not reach it
    assert connection._meets(known, "new")
    assert connection.rates is None
