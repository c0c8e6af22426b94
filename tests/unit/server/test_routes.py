"""From API key and version to what executes a request."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.server.context import DISCONNECT, RequestContext
from kwire.server.dispatch import Dispatcher, Route
from tests.support.parts import made_parts

NAMES = {18: "ApiVersions", 12: "Heartbeat", 55: "DescribeQuorum"}


def context_of(api_key: int, version: int) -> RequestContext:
    return RequestContext(made_parts(), None, api_key, version, 1, None)


def test_api_versions_is_answered_at_any_version() -> None:
    dispatcher = Dispatcher(NAMES)
    route = dispatcher.route(ApiKey.API_VERSIONS, 99)
    assert route is dispatcher.route(ApiKey.API_VERSIONS, 98), "both are one route"
    assert route.counts is dispatcher.route(ApiKey.API_VERSIONS, 3).counts
    body = memoryview(b"what nobody can read")
    assert 99 not in route.decoders
    request, end = route.decode(body, 4, 99)
    assert end == len(body)
    context = context_of(ApiKey.API_VERSIONS, 99)
    answer: Any = route.execute(context, request)
    assert context.api_version == 0, "which every client can read"
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(x.api_key, x.min_version, x.max_version) for x in answer.api_keys] == [(18, 0, 5)]


@pytest.mark.parametrize(("key", "version"), [(999, 0), (12, 99), (12, -1), (3, 1)])
def test_what_a_listener_does_not_offer_is_refused(key: int, version: int) -> None:
    with pytest.raises(MalformedError):
        Dispatcher(NAMES).route(key, version)


def test_an_api_without_a_module_of_its_own_is_forwarded() -> None:
    from kwire.api import forwarded

    route = Dispatcher(NAMES).route(ApiKey.DESCRIBE_QUORUM, 1)
    assert route.handle is forwarded.handle


def route_that_raises(error: Exception, api_key: int, **options: Any) -> Route:
    def handle(context: RequestContext, request: Any) -> Any:
        raise error

    return Route.of_api(api_key, handle, (), **options)


def test_an_error_becomes_the_apis_response() -> None:
    error = KafkaError(ErrorCode.NOT_COORDINATOR)
    route = route_that_raises(error, ApiKey.HEARTBEAT)
    assert route.execute(context_of(12, 4), None) == m.HeartbeatResponse(error_code=16)
    shaped = m.HeartbeatResponse(error_code=1, throttle_time_ms=2)
    route = route_that_raises(error, ApiKey.HEARTBEAT, error_response=lambda *_: shaped)
    assert route.execute(context_of(12, 4), None) is shaped


def test_an_error_that_no_response_can_carry_ends_the_connection() -> None:
    error = KafkaError(ErrorCode.NOT_COORDINATOR)
    route = route_that_raises(error, ApiKey.PRODUCE)
    assert route.execute(context_of(0, 9), None) is DISCONNECT


def test_an_unexpected_error_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    route = route_that_raises(ValueError("a secret"), ApiKey.UPDATE_FEATURES)
    answer: Any = route.execute(context_of(57, 1), None)
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "UpdateFeatures failed" in caplog.text
