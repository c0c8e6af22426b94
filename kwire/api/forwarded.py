"""The forwardable APIs that have no file of their own: handed to the active controller.

DescribeQuorum, AddRaftVoter, RemoveRaftVoter and the like, at every version. Source: KIP-590.
"""

from __future__ import annotations

from typing import Any

from kwire.api.shared.forwarding import forward
from kwire.server.context import RequestContext


def handle(context: RequestContext, request: Any) -> Any:
    """Let the controller execute it."""
    return forward(context, request)
