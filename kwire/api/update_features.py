"""UpdateFeatures, versions 0-2: feature levels of the cluster, all or none.

Source: KIP-584, KIP-778; kwire/kraft/controller/features.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 2)


def handle(
    context: RequestContext, request: m.UpdateFeaturesRequest
) -> Answer[m.UpdateFeaturesResponse]:
    """See the module."""
    return forward(context, request)
