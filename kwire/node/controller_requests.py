"""Requests that this node's own controller, or its part of the quorum, executes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from kwire.kraft.controller.context import ControllerContext
from kwire.membership.requester import Requester
from kwire.pending import Pending
from kwire.protocol.structs import Message, Request

Response = TypeVar("Response", bound=Message)


class LocalQuorum(Protocol):
    """This node's replica of the metadata quorum."""

    def handle(
        self, request: Request[Response], context: ControllerContext
    ) -> Pending[Response]: ...


class ControllerRequests:
    """Tells the controller in whose name it is asked."""

    def __init__(
        self, quorum: LocalQuorum, controller_listener_names: Callable[[], Collection[str]]
    ) -> None:
        self._quorum = quorum
        self._controller_listener_names = controller_listener_names

    def execute(
        self, request: Request[Response], requester: Requester | None, version: int | None
    ) -> Pending[Response]:
        """At the version at which it came, unless another is given; without a requester the
        request is this node's own."""
        if version is None:
            version = request.MAX_VERSION if requester is None else requester.api_version
        context = ControllerContext(api_version=version)
        if requester is None:
            context.same_process = True
        else:
            context.principal = requester.principal
            context.client_id = requester.client_id
            context.authorize = requester.authorize
            context.listener_name = requester.listener_name
            context.token_authenticated = requester.token_authenticated
            context.security_protocol = requester.security_protocol
            # Of a client that came to a broker, the broker has seen to it who may ask for tokens.
            context.forwarded = (
                not requester.is_connected
                or requester.listener_name not in self._controller_listener_names()
            )
        return self._quorum.handle(request, context)
