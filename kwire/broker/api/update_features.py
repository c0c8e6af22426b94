"""UpdateFeatures, versions 0-2: feature levels of the cluster, all or none.

Source: KIP-584, KIP-778; kwire/kraft/controller/features.py.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import RequestContext
from kwire.broker.forwarding import forward

VERSIONS = (0, 2)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
