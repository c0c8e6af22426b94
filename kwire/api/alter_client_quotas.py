"""AlterClientQuotas, versions 0-1: quotas of users, client ids and addresses.

Source: KIP-546, KIP-612; kwire/kraft/controller/requests/quotas.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION = (
    Requires(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, checked=Checked.CONTROLLER),
)


def handle(
    context: RequestContext, request: m.AlterClientQuotasRequest
) -> Answer[m.AlterClientQuotasResponse]:
    """See the module."""
    return forward(context, request)
