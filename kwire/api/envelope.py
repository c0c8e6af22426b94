"""Envelope, version 0: a broker forwards a client's request in the client's name (KIP-590).

Only on controller listeners, and only for brokers (CLUSTER_ACTION). The inner request is executed
as if its client had sent it; the answer holds the inner response with its header. An unreadable
principal is PRINCIPAL_DESERIALIZATION_FAILURE, a wrong address INVALID_REQUEST, an inner request
that cannot be read, or is of a version that this node lacks, UNSUPPORTED_VERSION, an API that is
not forwardable INVALID_REQUEST, in this order; a node that is not the active controller answers
NOT_CONTROLLER whatever was asked, so that the broker tries the next one. Source: KIP-590; codes
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import socket

from kwire.pending import Answer, Pending, after
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.structs import Message, Request
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.hosts import address_text
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, checked=Checked.BEFORE),)
PRINCIPAL_VERSION = 0


def handle(context: RequestContext, request: m.EnvelopeRequest) -> Answer[m.EnvelopeResponse]:
    """See the module."""
    parts = context.parts
    principal = _principal(request.request_principal)
    host = _host(request.client_host_address)
    header, inner = _inner(memoryview(bytes(request.request_data)))
    inner_context = ForwardedContext(context, header, principal, host)
    if not parts.quorum.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    def wrap(done: Pending[Message]) -> m.EnvelopeResponse:
        parts = frame.encode_response(
            header.api_key, header.api_version, header.correlation_id, done.result()
        )
        return m.EnvelopeResponse(response_data=b"".join(bytes(part) for part in parts)[4:])

    return after(parts.ask_controller(inner, inner_context, header.api_version), wrap)


def error_response(context: RequestContext, error: KafkaError) -> m.EnvelopeResponse:
    """An error of the envelope itself."""
    return m.EnvelopeResponse(response_data=None, error_code=int(error.code))


class ForwardedContext(RequestContext):
    """The context of a request inside of an Envelope: its client's, not the broker's."""

    __slots__ = (
        "forwarded_by_token",
        "forwarded_host",
        "forwarded_principal",
        "outer_listener_name",
    )

    def __init__(
        self,
        outer: RequestContext,
        header: frame.RequestHeader,
        principal: m.DefaultPrincipalData,
        host: str,
    ) -> None:
        super().__init__(
            outer.parts,
            None,
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
        )
        self.forwarded_principal = f"{principal.type}:{principal.name}"
        self.forwarded_by_token = bool(principal.token_authenticated)
        self.forwarded_host = host
        self.outer_listener_name = outer.listener_name

    @property
    def client_host(self) -> str:
        return self.forwarded_host

    @property
    def listener_name(self) -> str:
        return self.outer_listener_name

    @property
    def principal(self) -> str:
        return self.forwarded_principal

    @property
    def token_authenticated(self) -> bool:
        return self.forwarded_by_token


def _inner(data: memoryview) -> tuple[frame.RequestHeader, Request[Message]]:
    """The forwarded request with its header."""
    try:
        header = frame.parse_request_header(data)
        info = API_KEYS.get(header.api_key)
        if info is None or not info.min <= header.api_version <= info.max:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if not info.forwardable:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        body = data[header.body_offset :]
        request: Request[Message] = m.request_class(header.api_key).decode(body, header.api_version)
        return header, request
    except MalformedError:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION) from None


def _principal(data: bytes | None) -> m.DefaultPrincipalData:
    """The DefaultPrincipalData behind its version."""
    try:
        if data is None or len(data) < 2:
            raise MalformedError("no principal")
        version = int.from_bytes(data[:2], "big", signed=True)
        if version != PRINCIPAL_VERSION:
            raise MalformedError(f"principal version {version}")
        return m.DefaultPrincipalData.decode(memoryview(bytes(data))[2:], version)
    except MalformedError:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from None


def _host(address: bytes) -> str:
    """The client's address as Kafka writes it."""
    data = bytes(address)
    if len(data) not in (4, 16):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
    return f"/{address_text(socket.inet_ntop(family, data))}"
