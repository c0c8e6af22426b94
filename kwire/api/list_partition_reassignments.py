"""ListPartitionReassignments, version 0: the moves that are under way.

Source: KIP-455; kwire/kraft/controller/reassignment.py.
"""

from __future__ import annotations

from typing import Any

from kwire.api.shared.forwarding import forward
from kwire.server.context import RequestContext

VERSIONS = (0, 0)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
