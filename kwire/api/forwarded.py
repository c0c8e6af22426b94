"""The forwardable APIs that have no file of their own: handed to the active controller.

DescribeQuorum, AddRaftVoter, RemoveRaftVoter and the like, at every version. Source: KIP-590.
"""

from __future__ import annotations

from typing import TypeVar

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol.structs import Message, Request
from kwire.server.context import RequestContext

ResponseT = TypeVar("ResponseT", bound=Message)


def handle(context: RequestContext, request: Request[ResponseT]) -> Answer[ResponseT]:
    """Let the controller execute it."""
    return forward(context, request)
