"""DeleteTopics, versions 1-6: topics by name, from version 6 also by id.

Source: KIP-4, KIP-516; kwire/kraft/controller/requests/topics.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 6)
AUTHORIZATION = (
    Requires(
        Operation.DESCRIBE,
        ResourceType.TOPIC,
        "topics[].name",
        denied=Denied.ENTRY,
        checked=Checked.CONTROLLER,
        instead=(Requires(Operation.DELETE, ResourceType.CLUSTER),),
    ),
    Requires(
        Operation.DELETE,
        ResourceType.TOPIC,
        "topics[].name",
        denied=Denied.ENTRY,
        checked=Checked.CONTROLLER,
        instead=(Requires(Operation.DELETE, ResourceType.CLUSTER),),
    ),
)


def handle(
    context: RequestContext, request: m.DeleteTopicsRequest
) -> Answer[m.DeleteTopicsResponse]:
    """See the module."""
    return forward(context, request)
