"""CreateAcls, versions 1-3: access control entries in the metadata log.

Without an authorizer every entry is SECURITY_DISABLED. Source: KIP-140, KIP-290, KIP-801;
kwire/kraft/controller/acls.py.
A request that names anything UNKNOWN (0) loses its connection (measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import DISCONNECT, RequestContext
from kwire.broker.forwarding import forward

VERSIONS = (1, 3)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    for x in request.creations:
        if 0 in (x.resource_type, x.resource_pattern_type, x.operation, x.permission_type):
            return DISCONNECT
    return forward(context, request)
