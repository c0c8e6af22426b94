"""DeleteTopics, versions 1-6: topics by name, from version 6 also by id.

Source: KIP-4, KIP-516; kwire/kraft/controller/topics.py.
"""

from __future__ import annotations

from typing import Any

from kwire.api.shared.forwarding import forward
from kwire.server.context import RequestContext

VERSIONS = (1, 6)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
