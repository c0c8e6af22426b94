"""Requests of this node's parts to this node: handled in the process, without a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kwire.kraft.controller.routes import HANDLED_REQUESTS
from kwire.pending import Pending
from kwire.protocol.structs import Message, Request
from kwire.server import in_process
from kwire.server.context import RequestContext
from kwire.server.dispatch import Dispatcher
from kwire.server.parts import AskController, Parts
from kwire.server.request_steps import RequestSteps


class LocalRequests:
    """`dispatcher()` is that of the brokers' listener."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        parts: Parts,
        steps: RequestSteps,
        *,
        dispatcher: Callable[[], Dispatcher],
        ask_controller: AskController,
    ) -> None:
        self._loop = loop
        self._parts = parts
        self._steps = steps
        self._dispatcher = dispatcher
        self._ask_controller = ask_controller

    def execute(self, api_key: int, version: int, request: Request[Message]) -> Pending[Any]:
        """`kwire.network.peer.LocalHandler`: what answers a request is in its type."""
        if request.NAME in HANDLED_REQUESTS:
            return self._ask_controller(request, None, version)
        context = RequestContext(self._parts, None, api_key, version, 0, None)
        return in_process.execute(self._dispatcher(), self._steps, self._loop, context, request)
