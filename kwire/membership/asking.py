"""How a part of the broker asks the active controller, wherever that is."""

from __future__ import annotations

from typing import Protocol, TypeVar

from kwire.pending import Pending
from kwire.protocol.structs import Message, Request

Response = TypeVar("Response", bound=Message)


class AskController(Protocol):
    """Send a request of this broker's own; fails with a KafkaError, NOT_CONTROLLER while no
    controller is known. Whoever asks repeats it (`ControllerChannel.ask`)."""

    def __call__(self, api_key: int, request: Request[Response]) -> Pending[Response]: ...
