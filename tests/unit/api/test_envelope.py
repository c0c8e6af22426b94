"""Forwarding by Envelope: what the active controller makes of it, and what a broker puts in."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.api import envelope as api
from kwire.kraft.controller.routes import HANDLED_REQUESTS
from kwire.kraft.raft.machine import REQUESTS
from kwire.membership.controller_channel import address_bytes, envelope
from kwire.pending import Pending
from kwire.protocol import api_versions, frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext
from kwire.server.controller_dispatch import ControllerDispatcher
from kwire.server.dispatch import Route
from tests.support.parts import made_parts


class FakeNode:
    """An active controller that remembers what it was asked, in whose name."""

    is_active = True

    def __init__(self) -> None:
        self.parts = made_parts(
            listener_name="CONTROLLER", quorum=self, ask_controller=self.to_controller
        )
        self.asked: list[tuple[Any, Any, int]] = []
        self.answer: Pending[Any] = Pending.completed(m.CreateTopicsResponse())

    def to_controller(self, request: Any, context: Any, version: int) -> Pending[Any]:
        self.asked.append((request, context, version))
        return self.answer


class FakeQuorum:
    """A part of the quorum that is not asked."""

    def raft_request(self, request: Any, context: Any) -> Pending[Any]:
        raise NotImplementedError

    def heard(self, context: Any, request: Any) -> None:
        raise NotImplementedError


class Client(RequestContext):
    __slots__ = ()
    client_host = "/192.0.2.7"
    principal = "User:alice"


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


def broker_context(node: FakeNode) -> RequestContext:
    return RequestContext(node.parts, None, ApiKey.ENVELOPE, 0, 1, "broker")


def wrapped(api_key: int = ApiKey.CREATE_TOPICS, version: int = 7, **changes: Any) -> Any:
    client = Client(made_parts(), None, api_key, version, 99, "app")
    made = envelope(m.request_class(api_key)(), client, api_key, version)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_the_inner_request_is_executed_in_its_clients_name(node: FakeNode) -> None:
    done = api.handle(broker_context(node), wrapped())
    request, context, version = node.asked[0]
    assert (type(request).NAME, version) == ("CreateTopicsRequest", 7)
    assert (context.principal, context.client_host) == ("User:alice", "/192.0.2.7")
    assert (context.client_id, context.correlation_id) == ("app", 99)
    assert context.listener_name == "CONTROLLER"
    response = done.result()
    assert response.error_code == 0
    correlation_id, inner = frame.decode_response(ApiKey.CREATE_TOPICS, 7, response.response_data)
    assert (correlation_id, inner) == (99, m.CreateTopicsResponse())


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (bytes([192, 0, 2, 7]), "/192.0.2.7"),
        (bytes(15) + b"\1", "/0:0:0:0:0:0:0:1"),
        (bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 7]), "/192.0.2.7"),
    ],
)
def test_a_forwarded_address_is_written_as_java_does(
    node: FakeNode, address: bytes, host: str
) -> None:
    api.handle(broker_context(node), wrapped(client_host_address=address))
    assert node.asked[0][1].client_host == host


def refused(node: FakeNode, request: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        api.handle(broker_context(node), request)
    assert node.asked == []
    assert api.error_response(broker_context(node), error.value).response_data is None
    return error.value.code


def test_what_is_wrong_with_an_envelope(node: FakeNode) -> None:
    assert refused(node, wrapped(request_data=b"\0")) == ErrorCode.UNSUPPORTED_VERSION
    assert refused(node, wrapped(client_host_address=b"abc")) == ErrorCode.INVALID_REQUEST
    principal = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    assert refused(node, wrapped(request_principal=None)) == principal
    assert refused(node, wrapped(request_principal=b"\0\1\2")) == principal
    assert refused(node, wrapped(request_principal=b"\0\0\2")) == principal
    assert refused(node, wrapped(ApiKey.METADATA, 12)) == ErrorCode.INVALID_REQUEST
    data = bytearray(wrapped().request_data)
    data[3] = 99
    assert refused(node, wrapped(request_data=bytes(data))) == ErrorCode.UNSUPPORTED_VERSION


def test_only_brokers_may(node: FakeNode) -> None:
    class Denies:
        def authorize(self, *_: Any) -> bool:
            return False

    node.parts.authorizer = Denies()
    route = Route.of_module(ApiKey.ENVELOPE, api)
    answer = route.execute(broker_context(node), wrapped())
    assert node.asked == []
    assert answer == m.EnvelopeResponse(
        response_data=None, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )


def test_who_does_not_lead_says_so(node: FakeNode) -> None:
    node.is_active = False
    assert refused(node, wrapped()) == ErrorCode.NOT_CONTROLLER


def test_a_leadership_lost_on_the_way_fails_the_envelope(node: FakeNode) -> None:
    node.answer = Pending.failed(KafkaError(ErrorCode.NOT_CONTROLLER))
    done = api.handle(broker_context(node), wrapped())
    error = done.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("/192.0.2.7", bytes([192, 0, 2, 7])),
        ("/::1", bytes(15) + b"\1"),
        ("/fe80::1%eth0", b"\xfe\x80" + bytes(13) + b"\1"),
        ("", bytes(4)),
    ],
)
def test_addresses(host: str, expected: bytes) -> None:
    assert address_bytes(host) == expected


def test_a_controllers_listener_serves_what_it_lists() -> None:
    dispatcher = ControllerDispatcher(FakeQuorum(), FakeNode().to_controller)
    for key, low, high in api_versions.advertised("controller"):
        route = dispatcher.route(key, high)
        assert (route.version_min, route.version_max) == (low, high), API_KEYS[key].name
    assert {ApiKey.FETCH, ApiKey.VOTE, ApiKey.DESCRIBE_QUORUM} <= set(REQUESTS)
    assert "BrokerRegistrationRequest" in HANDLED_REQUESTS
