"""UpdateFeatures, versions 0-2: feature levels of the cluster, all or none.

Source: KIP-584, KIP-778; kwire/kraft/controller/requests/features.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
AUTHORIZATION = (Requires(Operation.ALTER, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def handle(
    context: RequestContext, request: m.UpdateFeaturesRequest
) -> Answer[m.UpdateFeaturesResponse]:
    """See the module."""
    return forward(context, request)
