"""UnregisterController, version 0: forget a controller that will not return.

Source: metadata.version 4.4-IV2; kwire/kraft/controller/brokers.py.
"""

from __future__ import annotations

from typing import Any

from kwire.api.shared.forwarding import forward
from kwire.server.context import RequestContext

VERSIONS = (0, 0)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
