"""ElectLeaders, versions 0-2: preferred or unclean leader elections.

Source: KIP-183, KIP-460; kwire/kraft/controller/elect_leaders.py.
"""

from __future__ import annotations

from typing import Any

from kwire.api.shared.forwarding import forward
from kwire.server.context import RequestContext

VERSIONS = (0, 2)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
