"""CreateAcls, versions 1-3: access control entries in the metadata log.

Without an authorizer every entry is SECURITY_DISABLED. Source: KIP-140, KIP-290, KIP-801;
kwire/kraft/controller/acls.py.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import RequestContext
from kwire.broker.forwarding import forward

VERSIONS = (1, 3)


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    return forward(context, request)
