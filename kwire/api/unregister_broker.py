"""UnregisterBroker, version 0: forget a broker that will not return.

Source: KIP-500, KIP-631; kwire/kraft/controller/brokers.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 0)


def handle(
    context: RequestContext, request: m.UnregisterBrokerRequest
) -> Answer[m.UnregisterBrokerResponse]:
    """See the module."""
    return forward(context, request)
