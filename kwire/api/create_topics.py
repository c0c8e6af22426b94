"""CreateTopics, versions 2-7: topics, placed by the controller or by the request.

Errors are per topic; `validate_only` changes nothing; from version 5 the answer carries the
resulting counts and configs. A new topic may be unknown to a broker for a moment after the
answer. Source: KIP-4, KIP-464, KIP-525; kwire/kraft/controller/requests/topics.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (2, 7)
AUTHORIZATION = (
    Requires(
        Operation.CREATE,
        ResourceType.TOPIC,
        "topics[].name",
        denied=Denied.ENTRY,
        checked=Checked.CONTROLLER,
        instead=(Requires(Operation.CREATE, ResourceType.CLUSTER),),
    ),
    Requires(
        Operation.DESCRIBE_CONFIGS,
        ResourceType.TOPIC,
        "topics[].name",
        denied=Denied.LEFT_OUT,
        checked=Checked.CONTROLLER,
        note="the configs in the answer",
    ),
)


def handle(
    context: RequestContext, request: m.CreateTopicsRequest
) -> Answer[m.CreateTopicsResponse]:
    """See the module."""
    return forward(context, request)
