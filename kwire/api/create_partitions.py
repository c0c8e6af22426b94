"""CreatePartitions, versions 0-3: more partitions for existing topics.

Source: KIP-195; kwire/kraft/controller/requests/partitions.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 3)
AUTHORIZATION = (
    Requires(
        Operation.ALTER,
        ResourceType.TOPIC,
        "topics[].name",
        denied=Denied.ENTRY,
        checked=Checked.CONTROLLER,
    ),
)


def handle(
    context: RequestContext, request: m.CreatePartitionsRequest
) -> Answer[m.CreatePartitionsResponse]:
    """See the module."""
    return forward(context, request)
