"""AlterClientQuotas, versions 0-1: quotas of users, client ids and addresses.

Source: KIP-546, KIP-612; kwire/kraft/controller/quotas.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 1)


def handle(
    context: RequestContext, request: m.AlterClientQuotasRequest
) -> Answer[m.AlterClientQuotasResponse]:
    """See the module."""
    return forward(context, request)
