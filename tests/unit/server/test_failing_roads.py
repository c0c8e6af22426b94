"""A plain road that fails ends its connection and nothing else."""

from __future__ import annotations

import logging

import pytest

from kwire.protocol import messages as m
from kwire.protocol.frame import encode_request
from kwire.server.context import RequestContext
from kwire.server.dispatch import Route
from kwire.server.plain_requests import PlainRequests
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
