"""A connection and the quotas of its client: what is counted, told, and not run meanwhile."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.structs import Struct
from kwire.quota.client_quotas import ClientQuotas
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext
from kwire.server.request_steps import RequestSteps
from kwire.server.watched_requests import EXEMPT, SAMPLE_MAX
from tests.support.connections import (
    ConnectionUnderTest,
    FakeTimer,
    Waiting,
    metadata_request,
    metadata_response,
    produce_request,
    produce_response,
)

CLIENT = (("client-id", "test"),)
LITTLE, MUCH = 0.001, 10.0**9


class Quotas:
    """A connection whose client has quotas, and a clock of what takes time."""

    def __init__(self, waiting: Waiting, **rates: float) -> None:
        self.waiting = waiting
        self.busy_ns = 1
        self.steps = RequestSteps(ticks_ns=lambda: self.busy_ns)
        self.quotas = ClientQuotas()
        self.quotas.changed(CLIENT, rates)
        self.steps.set_throttles(self.quotas)
        self.under_test = ConnectionUnderTest(self._answer, self.steps)
        self.receive = self.under_test.receive
        self.spent_ns = 0

    def _answer(self, context: Any, request: Any) -> Any:
        self.busy_ns += self.spent_ns
        answer = self.waiting(context, request)
        return copy.copy(answer) if isinstance(answer, Struct) else answer

    @property
    def is_reading(self) -> bool:
        return self.under_test.transport.reading

    def timer(self) -> FakeTimer:
        (timer,) = [x for x in self.under_test.listener.loop.timers if not x.cancelled]
        return timer

    def unmute(self) -> None:
        timer = self.timer()
        self.under_test.listener.loop.timers.remove(timer)
        timer.callback()

    def throttle_times(self, api_key: int) -> list[int]:
        written = bytes(self.under_test.transport.written)
        found, position = [], 0
        while position < len(written):
            size = int.from_bytes(written[position : position + 4], "big")
            body = written[position + 4 : position + 4 + size]
            found.append(frame.decode_response(api_key, 9, body)[1].throttle_time_ms)
            position += 4 + size
        return found


@pytest.fixture
def waiting() -> Waiting:
    found = Waiting()
    for number in range(100, 200):
        found.immediate[number] = metadata_response()
    for number in range(200, 300):
        found.immediate[number] = produce_response()
    for number in range(300, 400):
        found.immediate[number] = NO_REPLY
    return found


def test_over_the_quota_the_reply_comes_at_once_and_tells_how_long(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    request = produce_request(200)
    one.receive(request)
    expected = round((len(request) - 4 - 10) * 1000)
    assert one.throttle_times(ApiKey.PRODUCE) == [expected]
    assert not one.is_reading
    assert one.timer().when == expected / 1000
    (name, sensor), *others = one.quotas.sensors()
    assert (name, sensor.throttled_count, sensor.throttled_ms) == (
        "producer_byte_rate",
        1,
        expected,
    )
    assert not others


def test_nothing_that_was_received_is_run_before_the_time_is_over(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(200) + metadata_request(101) + metadata_request(102))
    one.receive(metadata_request(103))
    assert one.under_test.started == [200]
    one.unmute()
    assert one.under_test.started == [200, 101, 102, 103]
    assert one.under_test.answered() == [200, 101, 102, 103]
    assert one.is_reading
    one.receive(metadata_request(104))
    assert one.under_test.answered()[-1] == 104, "it stays open"


def test_each_request_is_charged_where_several_have_come(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(200) + produce_request(201))
    one.unmute()
    assert one.under_test.started == [200, 201]
    assert not one.is_reading
    first, second = one.throttle_times(ApiKey.PRODUCE)
    assert second > first


def test_a_request_that_waited_is_charged_when_its_reply_is_there(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(1) + produce_request(2) + metadata_request(101))
    assert one.under_test.started == [1, 2, 101], "the first wait for others, nobody for them"
    assert one.is_reading
    waiting.complete(1, produce_response())
    assert not one.is_reading
    one.receive(metadata_request(102))
    waiting.complete(2, produce_response())
    assert one.under_test.answered() == [1, 2, 101]
    one.unmute()
    assert one.under_test.answered() == [1, 2, 101, 102]


def test_a_request_that_blocks_the_others_leaves_them_muted(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    waiting.effects_done[1] = False
    one.receive(produce_request(1) + metadata_request(101))
    assert one.under_test.started == [1]
    waiting.complete(1, produce_response())
    assert one.under_test.started == [1]
    one.unmute()
    assert one.under_test.started == [1, 101]


def test_without_a_reply_a_produce_is_charged_too(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0, request_percentage=LITTLE)
    one.spent_ns = 10**9
    one.receive(produce_request(300, acks=0) + metadata_request(101))
    assert not one.is_reading
    assert one.under_test.started == [300]
    sensors = dict(one.quotas.sensors())
    assert sensors["producer_byte_rate"].throttled_count == 1
    assert sensors["request_percentage"].measure(0) == 0, "its time is exempt"


def test_a_connection_that_is_closed_for_an_error_charges_nothing_twice(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=MUCH)
    waiting.immediate[5] = DISCONNECT
    one.receive(produce_request(5, acks=0))
    assert one.under_test.transport.closed
    assert not one.under_test.connection._watched.open


def test_the_time_of_the_loop_is_charged_and_the_wait_is_a_window_at_most(waiting: Waiting) -> None:
    one = Quotas(waiting, request_percentage=5.0)
    one.spent_ns = 400_000_000
    one.receive(metadata_request(100))
    assert one.throttle_times(ApiKey.METADATA) == [0], "40 of 50 percent seconds in ten windows"
    one.spent_ns = 110_000_000
    one.receive(metadata_request(101))
    assert one.throttle_times(ApiKey.METADATA)[1] == 200
    one.unmute()
    one.spent_ns = 10**10
    one.receive(metadata_request(102))
    assert one.throttle_times(ApiKey.METADATA)[2] == 1000


def test_the_longer_of_two_waits_counts(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0, request_percentage=LITTLE)
    one.spent_ns = 10**9
    request = produce_request(200)
    one.receive(request)
    assert one.throttle_times(ApiKey.PRODUCE) == [(len(request) - 14) * 1000]
    other = Quotas(waiting, producer_byte_rate=MUCH, request_percentage=LITTLE)
    other.spent_ns = 10**9
    other.receive(request)
    assert other.throttle_times(ApiKey.PRODUCE) == [1000]


def test_what_nodes_ask_of_each_other_is_exempt() -> None:
    names = {ApiKey(key).name for key in EXEMPT}
    assert {"WRITE_TXN_MARKERS", "BROKER_HEARTBEAT", "VOTE", "ENVELOPE", "FETCH"} <= names
    assert not names & {"PRODUCE", "METADATA", "API_VERSIONS", "DESCRIBE_QUORUM", "ALTER_CONFIGS"}


def test_quotas_of_others_are_not_ours(waiting: Waiting) -> None:
    one = Quotas(waiting)
    one.quotas.changed((("client-id", "other"),), {"producer_byte_rate": LITTLE})
    one.receive(produce_request(200) + metadata_request(101))
    assert one.under_test.answered() == [200, 101]
    assert one.is_reading


def test_a_change_acts_on_the_next_request(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=MUCH)
    one.receive(produce_request(200))
    assert one.is_reading
    one.quotas.changed(CLIENT, {"producer_byte_rate": 1.0})
    one.receive(produce_request(201))
    assert not one.is_reading
    one.quotas.changed(CLIENT, {})
    one.unmute()
    one.receive(produce_request(202))
    assert one.is_reading


def test_several_connections_of_a_client_share_its_rate(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=len(produce_request(200)) * 0.15)
    other = ConnectionUnderTest(waiting, one.steps)
    one.receive(produce_request(200))
    assert one.is_reading
    other.receive(produce_request(201))
    assert not other.transport.reading
    assert one.is_reading, "who did not exceed it is not muted"


def test_who_authenticates_is_somebody_else_for_quotas(waiting: Waiting) -> None:
    one = Quotas(waiting)
    one.quotas.changed((("user", "alice"),), {"producer_byte_rate": 1.0})
    one.receive(produce_request(200))
    assert one.is_reading
    one.under_test.connection.set_principal("User:alice", True)
    one.receive(produce_request(201))
    assert not one.is_reading


def test_nobody_is_charged_before_it_is_known_who_it_is(waiting: Waiting) -> None:
    one = Quotas(waiting, request_percentage=LITTLE)
    one.under_test.connection.set_principal("User:ANONYMOUS", False)
    one.spent_ns = 10**9
    versions = b"".join(frame.encode_request(18, 3, 1, "test", m.ApiVersionsRequest()))
    waiting.immediate[1] = m.ApiVersionsResponse()
    one.receive(versions)
    assert one.is_reading
    assert not dict(one.quotas.sensors())
    assert {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE} <= EXEMPT, "nor when it logs in anew"


def test_what_the_controller_makes_a_client_wait_for_mutes_it(waiting: Waiting) -> None:
    """Its throttle time stands in the response that a broker hands on."""
    one = Quotas(waiting, request_percentage=MUCH)
    waiting.immediate[5] = m.MetadataResponse(brokers=[], topics=[], throttle_time_ms=70)
    one.receive(metadata_request(5))
    assert one.throttle_times(ApiKey.METADATA) == [70]
    assert one.timer().when == 0.07


def test_produces_of_a_muted_connection_that_goes_are_run_at_once_and_count(
    waiting: Waiting,
) -> None:
    """Who comes and goes all the time would leave a megabyte each time for as long as it waits."""
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(200))
    one.receive(produce_request(201) + metadata_request(102) + produce_request(203))
    (_, sensor), *_ = one.quotas.sensors()
    before = sensor.measure(0)
    one.under_test.connection.connection_lost(None)
    assert one.under_test.started == [200, 201, 203]
    assert sensor.measure(0) == pytest.approx(3 * before)
    assert all(timer.cancelled for timer in one.under_test.listener.loop.timers)
    assert not one.under_test.connection._queue


def test_a_muted_connection_that_goes_keeps_nothing(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(200))
    one.under_test.connection.connection_lost(None)
    assert all(timer.cancelled for timer in one.under_test.listener.loop.timers)


def test_a_frame_that_is_refused_ends_the_connection_when_its_time_is_over(
    waiting: Waiting,
) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(200) + metadata_request(101) + b"\x7f\xff\xff\xff")
    assert not one.under_test.transport.closed
    one.unmute()
    assert one.under_test.answered() == [200, 101]
    assert one.under_test.transport.closed


def test_whoever_watches_is_told_of_the_wait(waiting: Waiting) -> None:
    one, told = Quotas(waiting, producer_byte_rate=1.0), []
    one.steps.set_observers(lambda arrival, answered: told.append(answered.throttle_ms))
    one.receive(produce_request(200))
    assert told == one.throttle_times(ApiKey.PRODUCE)
    assert told[0] > 0


def test_a_read_that_is_charged_for_its_time_too_counts_as_one_that_waits(waiting: Waiting) -> None:
    one = Quotas(waiting, consumer_byte_rate=1.0, request_percentage=MUCH)
    waits: list[int] = []

    def read(context: RequestContext, request: Any) -> Any:
        assert context.connection is not None
        assert context.connection.rates is not None
        context.connection.is_read(context)
        waits.append(context.connection.charge_read(context, 110))
        return metadata_response()

    one.under_test.listener.dispatcher.answer = read
    one.receive(metadata_request(1))
    assert one.throttle_times(ApiKey.METADATA) == waits == [100_000]
    assert not one.is_reading
    counts = one.under_test.listener.dispatcher.counts[ApiKey.METADATA]
    assert counts.throttled_ms == (1, 100_000)


def test_what_is_executed_after_the_end_is_not_kept(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=1.0)
    one.receive(produce_request(200) + produce_request(1))
    one.under_test.connection.connection_lost(None)
    assert one.under_test.started == [200, 1]
    assert not one.under_test.connection._watched.open


def test_a_sample_alone_makes_nobody_wait(waiting: Waiting) -> None:
    """Where requests take long, one stands for the fewer: what is not measured is little."""
    one = Quotas(waiting, request_percentage=10.0)  # a second in all windows but one
    one.spent_ns = 100_000_000
    one.receive(metadata_request(100))  # of a rate that is new nothing is known: by itself
    (_, sensor), *_ = one.quotas.sensors()
    assert sensor.measure(0) == pytest.approx(1.0)
    one.spent_ns = 10_000_000
    one.receive(metadata_request(101))
    assert sensor.measure(0) == pytest.approx(1.5), "for 5: an eighth of what is left to 50"
    for number in range(102, 106):
        one.receive(metadata_request(number))
    assert sensor.measure(0) == pytest.approx(1.5)
    one.receive(metadata_request(106))
    assert sensor.measure(0) == pytest.approx(1.9), "for 4"
    assert one.is_reading
    assert one.throttle_times(ApiKey.METADATA) == [0] * 7


def test_of_requests_that_came_together_only_one_stands_for_others(waiting: Waiting) -> None:
    """Each of them was measured and counted for all of a sample."""
    one = Quotas(waiting, request_percentage=1000.0)  # 100 seconds in all windows but one
    one.receive(metadata_request(100))
    one.spent_ns = 10_000_000
    one.receive(b"".join(metadata_request(number) for number in range(101, 111)))
    (_, sensor), *_ = one.quotas.sensors()
    assert sensor.measure(0) == pytest.approx(SAMPLE_MAX * 1.0 / 10)
    for _ in range(SAMPLE_MAX - 10):
        one.receive(metadata_request(111))
    assert sensor.measure(0) == pytest.approx(SAMPLE_MAX * 1.0 / 10), (
        "those that one has counted for"
    )
    one.receive(metadata_request(112))
    assert sensor.measure(0) == pytest.approx(2 * SAMPLE_MAX * 1.0 / 10)


def test_connections_of_a_client_are_measured_together(waiting: Waiting) -> None:
    one = Quotas(waiting, request_percentage=1000.0)
    other = ConnectionUnderTest(one._answer, one.steps)
    one.receive(metadata_request(100))
    one.spent_ns = 10_000_000
    one.receive(metadata_request(101))
    (_, sensor), *_ = one.quotas.sensors()
    for _ in range(SAMPLE_MAX - 1):
        other.receive(metadata_request(102))
    assert sensor.measure(0) == pytest.approx(SAMPLE_MAX * 1.0 / 10)
    other.receive(metadata_request(103))
    assert sensor.measure(0) == pytest.approx(2 * SAMPLE_MAX * 1.0 / 10)


def test_each_client_id_of_a_connection_has_its_own_rates(waiting: Waiting) -> None:
    one = Quotas(waiting, producer_byte_rate=MUCH)
    one.quotas.changed((("client-id", "other"),), {"producer_byte_rate": 1.0})
    request = produce_request(200)
    one.receive(request)
    one.receive(request.replace(b"\0\4test", b"\0\4free"))
    assert one.is_reading
    size_bytes = len(request) - 4
    shares = {sensor.tags[1]: sensor.measure(0) for _, sensor in one.quotas.sensors()}
    assert shares == {"test": size_bytes / 10}
    one.quotas.changed((("client-id", "free"),), {"producer_byte_rate": 1.0})
    one.receive(request.replace(b"\0\4test", b"\0\4free"))
    assert not one.is_reading, "what was known of a client ends with a change"
