"""ElectLeaders, versions 0-2: preferred or unclean leader elections.

Source: KIP-183, KIP-460; kwire/kraft/controller/elect_leaders.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 2)


def handle(
    context: RequestContext, request: m.ElectLeadersRequest
) -> Answer[m.ElectLeadersResponse]:
    """See the module."""
    return forward(context, request)
