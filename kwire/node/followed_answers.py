"""Answers of the controller that wait until this broker has done what they tell of.

Whoever has created topics uses them next. The answer comes with the change of the metadata, whose
logs are made in slices (`publishing.py`): it waits for them. What this broker does not know yet,
from a controller elsewhere, it does not wait for, as Apache Kafka does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.membership.requester import Requester
from kwire.pending import Pending
from kwire.protocol.structs import Message, Request
from kwire.server.parts import Forwarder

Response = TypeVar("Response", bound=Message)


class FollowedAnswers:
    """A Forwarder over another; `followed()` is done once nothing that is published is to do."""

    def __init__(self, forwarder: Forwarder, followed: Callable[[], Pending[None]]) -> None:
        self._forwarder = forwarder
        self._followed = followed

    def forward(
        self,
        request: Request[Response],
        requester: Requester | None,
        *,
        api_key: int | None = None,
        version: int | None = None,
    ) -> Pending[Response]:
        """See `Forwarder`."""
        sent = self._forwarder.forward(request, requester, api_key=api_key, version=version)
        outcome: Pending[Response] = Pending(sent.cancel)

        def answered(done: Pending[Response]) -> None:
            self._followed().add_done_callback(lambda _: settle(done))

        def settle(done: Pending[Response]) -> None:
            error = done.error()
            if error is not None:
                outcome.fail(error)
            else:
                outcome.complete(done.result())

        sent.add_done_callback(answered)
        return outcome
