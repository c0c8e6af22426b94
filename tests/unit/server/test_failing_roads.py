"""A plain road that fails ends its connection and nothing else; what ends behind it is freed."""

from __future__ import annotations

import logging

import pytest

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.frame import encode_request
from kwire.server.context import RequestContext, Response
from kwire.server.dispatch import Route
from kwire.server.plain_requests import LaterAnswer, PlainRequests
from kwire.server.request_counts import RequestCounts
from tests.support.connections import ConnectionUnderTest

HEARTBEAT = 12


def test_a_road_that_fails_closes_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    """How far it came is not known: no answer would be true, nor one by the general way."""
    general: list[int] = []

    def handle(context: RequestContext, request: object) -> m.HeartbeatResponse:
        general.append(context.correlation_id)
        return m.HeartbeatResponse()

    def road(connection: object, body: memoryview) -> bytes:
        if body[7] == 1:
            return b"\0\0\0\4" + body[4:8].tobytes()
        raise ValueError("the second request")

    route = Route.of_api(HEARTBEAT, handle, ())
    route.plain_road = lambda parts, counts, version: road  # type: ignore[assignment,return-value]
    under_test = ConnectionUnderTest(None)
    connection = under_test.connection
    connection._plain = PlainRequests(connection._parts, lambda key: route)
    connection.recompute_plain()
    request = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    with caplog.at_level(logging.INFO):
        under_test.receive(
            b"".join(
                part
                for number in (1, 2, 3)
                for part in encode_request(HEARTBEAT, 3, number, "x", request)
            )
        )
    assert under_test.transport.closed
    assert bytes(under_test.transport.written) == b"\0\0\0\4\0\0\0\1"
    assert general == []
    failed = [each for each in caplog.records if "a plain road failed" in each.getMessage()]
    assert len(failed) == 1, "the third request is not executed"
    assert "API key 12 version 3" in failed[0].getMessage()


def test_what_becomes_unusual_behind_a_connection_s_end_is_waited_for_by_nobody() -> None:
    """The end of a connection cancels what it waits for; this came later, and waited on."""
    under_test = ConnectionUnderTest(None)
    connection = under_test.connection
    place = LaterAnswer(connection, RequestCounts(HEARTBEAT), 3, b"")
    connection.take_place(place)
    connection.connection_lost(None)
    freed: list[str] = []
    answer: Pending[Response] = Pending(lambda: freed.append("what waits for the commit"))
    place.send_generally(RequestContext(connection._parts, connection, 12, 3, 1, None), answer)
    assert freed == ["what waits for the commit"]
    assert bytes(under_test.transport.written) == b""


def test_the_times_of_a_request_go_with_its_general_answer() -> None:
    under_test = ConnectionUnderTest(None)
    connection, counts = under_test.connection, RequestCounts(HEARTBEAT)
    place = LaterAnswer(connection, counts, 3, b"")
    place.timed = counts.begun_at(0.0, 1, 70)
    connection.take_place(place)
    answer: Pending[Response] = Pending()
    place.send_generally(RequestContext(connection._parts, connection, 12, 3, 1, None), answer)
    answer.complete(m.HeartbeatResponse())
    assert counts.total == 1
    assert [size_bytes for _, _, size_bytes in counts.recent] == [70]
