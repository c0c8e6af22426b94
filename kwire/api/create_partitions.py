"""CreatePartitions, versions 0-3: more partitions for existing topics.

Source: KIP-195; kwire/kraft/controller/partitions.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 3)


def handle(
    context: RequestContext, request: m.CreatePartitionsRequest
) -> Answer[m.CreatePartitionsResponse]:
    """See the module."""
    return forward(context, request)
