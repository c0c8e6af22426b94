"""AlterPartitionReassignments, versions 0-1: moves partitions, or stops moving them.

Source: KIP-455, KIP-860; kwire/kraft/controller/reassignment.py.
"""

from __future__ import annotations

from typing import Any

from kwire.api.shared.forwarding import forward
from kwire.server.context import RequestContext

VERSIONS = (0, 1)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
