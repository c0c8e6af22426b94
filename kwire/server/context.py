"""What an API handler knows about the request it executes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kwire.pending import Pending
from kwire.protocol.structs import Message
from kwire.security.acl import CLUSTER_NAME, ResourceType
from kwire.security.authorizer import ANONYMOUS, Authorizer, unaudited
from kwire.security.requirements import Denied, Requires

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kwire.quota.client_quotas import ClientRates
    from kwire.quota.sensor import Sensor
    from kwire.server.parts import Parts
    from kwire.server.sliced_response import SlicedResponse
    from kwire.slices import Slices


class NoReply:
    """The type of `NO_REPLY`."""

    def __repr__(self) -> str:
        return "NO_REPLY"


class Disconnect:
    """The type of `DISCONNECT`."""

    def __repr__(self) -> str:
        return "DISCONNECT"


NO_REPLY: Final = NoReply()
"""Returned by a handler whose request is never answered (Produce with acks=0)."""

DISCONNECT: Final = Disconnect()
"""Returned by a handler that closes the connection, after the replies before it."""

Response: TypeAlias = "Message | SlicedResponse | NoReply | Disconnect"
"""What a request ends with: a response, or what stands for one."""

Outcome: TypeAlias = "Message | NoReply | Disconnect | Pending[Response]"
"""What a handler gives: a response or what stands for one, or a Pending of that. One that is made
in slices is always a Pending."""


class Connection(Protocol):
    """What a handler sees of the connection that a request came by.

    `bytes_stored` counts what was written by it, `is_follower` says that its last Fetch was one of
    a follower, `unreplied_writes` are those of
    requests that are never answered, `sends_files` says whether parts of files may be sent as they
    are. `rates` are what the client of its newest request is bound by, `consumer` is the one of its
    reads; `is_measured` says that the time of its requests may be measured now, `holds_reads` that
    a read has to look at one of both. `turn_s` is the loop's time when it began to execute
    requests, in the turn that executes them.
    """

    client_software_name: str
    client_software_version: str
    bytes_stored: int
    is_follower: bool
    is_measured: bool
    holds_reads: bool
    turn_s: float
    rates: ClientRates | None
    consumer: Sensor | None
    unreplied_writes: list[Pending[None]]

    @property
    def client_host(self) -> str: ...

    @property
    def client_port(self) -> int: ...

    @property
    def listener_name(self) -> str: ...

    @property
    def principal(self) -> str: ...

    @property
    def token_authenticated(self) -> bool: ...

    @property
    def security_protocol(self) -> str: ...

    @property
    def sends_files(self) -> bool: ...

    @property
    def transport(self) -> asyncio.Transport: ...

    def is_read(self, context: RequestContext, /) -> bool:
        """The request is a consumer's Fetch, so that its time counts: whether its client is to be
        asked to wait for that."""
        ...

    def charge_read(self, context: RequestContext, response_bytes: int, /) -> int:
        """A consumer's Fetch is about to be answered: for how many ms its client has to wait, and
        gets nothing of what was read."""
        ...

    def slices_of(self, context: RequestContext, /) -> Slices:
        """See `RequestContext.slices`."""
        ...

    def add_close_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback()` once when the connection closes."""
        ...

    def effects_done(self, context: RequestContext, /) -> None:
        """The next request may start; see `RequestContext.let_next_start`."""
        ...


class RequestContext:
    """One request: where it came from and at which version.

    `parts` is what a handler may use of the node; `connection` is None for requests from within
    this process; `is_internal` says that the node itself asks. `is_promised` says that it will be
    executed although its connection may have gone. `let_next_start()` tells the connection that
    the effects of this request are in place and only its reply is still to come.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "effects_done",
        "is_internal",
        "is_promised",
        "parts",
    )

    def __init__(
        self,
        parts: Parts,
        connection: Connection | None,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.parts = parts
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.effects_done = False
        self.is_internal = False
        self.is_promised = False

    @property
    def client_host(self) -> str:
        """The client's address as Kafka writes it: `/127.0.0.1`."""
        return "/127.0.0.1" if self.connection is None else self.connection.client_host

    @property
    def listener_name(self) -> str:
        if self.connection is None:
            return self.parts.listener_name
        return self.connection.listener_name

    @property
    def principal(self) -> str:
        return ANONYMOUS if self.connection is None else self.connection.principal

    @property
    def token_authenticated(self) -> bool:
        """Whether a delegation token proved who it is."""
        return self.connection is not None and self.connection.token_authenticated

    @property
    def security_protocol(self) -> str:
        """Of its connection: `SASL_PLAINTEXT`."""
        return "PLAINTEXT" if self.connection is None else self.connection.security_protocol

    @property
    def is_connected(self) -> bool:
        """Whether its client is connected to this node, not to a broker that forwards for it."""
        return self.connection is not None

    @property
    def now_ms(self) -> int:
        """The loop's clock in milliseconds, for deadlines."""
        return int(self.parts.loop.time() * 1000)

    @property
    def slices(self) -> Slices:
        """Where its long work is done, some of it a turn of the loop; measured where its client has
        a quota of time. The Fetch of a follower and a Produce without acks use those of `parts`."""
        if self.connection is None:
            return self.parts.slices
        return self.connection.slices_of(self)

    def authorize(self, operation: int, resource_type: int, resource_name: str) -> bool:
        """Whether the principal may do `operation` (Kafka's ACL codes) on the resource.

        What comes from within this process is the node's own and may do everything.
        """
        authorizer = self.parts.authorizer
        if authorizer is None or self.is_internal:
            return True
        return authorizer.authorize(self, operation, resource_type, resource_name)

    def may(self, operation: int, resource_type: int, resource_name: str) -> bool:
        """As `authorize`, where a denial refuses nothing: the audit log is not told of it."""
        authorizer = self.parts.authorizer
        if authorizer is None or self.is_internal:
            return True
        return unaudited(authorizer).authorize(self, operation, resource_type, resource_name)

    def allows(self, requirement: Requires, resource_name: str = CLUSTER_NAME) -> bool:
        """Whether the principal meets a requirement of its API for one resource."""
        authorizer = self.parts.authorizer
        if authorizer is None or self.is_internal:
            return True
        if requirement.instead and any(
            _has(unaudited(authorizer), self, other) for other in requirement.instead
        ):
            return True
        if requirement.denied is Denied.LEFT_OUT:
            authorizer = unaudited(authorizer)
        return authorizer.authorize(
            self, requirement.operation, requirement.resource_type, resource_name
        )

    def sees(self, requirement: Requires, resource_name: str = CLUSTER_NAME) -> bool:
        """As `allows`, where what is not allowed is left out or another right does as well."""
        authorizer = self.parts.authorizer
        if authorizer is None or self.is_internal:
            return True
        return unaudited(authorizer).authorize(
            self, requirement.operation, requirement.resource_type, resource_name
        )

    def let_next_start(self) -> None:
        """Let the connection's next request start although the reply of this one is pending."""
        if not self.effects_done:
            self.effects_done = True
            if self.connection is not None:
                self.connection.effects_done(self)


def _has(authorizer: Authorizer, context: RequestContext, other: Requires) -> bool:
    """Whether the principal has a right that does instead: to the cluster, or to any resource."""
    if other.resource_type == ResourceType.CLUSTER:
        return authorizer.authorize(context, other.operation, other.resource_type, CLUSTER_NAME)
    return authorizer.authorize_by_resource_type(context, other.operation, other.resource_type)
