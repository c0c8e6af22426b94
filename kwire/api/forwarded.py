"""The forwardable APIs that have no file of their own: handed to the active controller.

DescribeQuorum, AddRaftVoter, RemoveRaftVoter and the like, at every version. Source: KIP-590.
"""

from __future__ import annotations

from typing import TypeVar

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.structs import Message, Request
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Authorization, Checked, Requires
from kwire.server.context import RequestContext


def _of_cluster(operation: Operation) -> Authorization:
    return (Requires(operation, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


AUTHORIZATIONS: dict[int, Authorization] = {
    ApiKey.DESCRIBE_QUORUM: _of_cluster(Operation.DESCRIBE),
    ApiKey.ADD_RAFT_VOTER: _of_cluster(Operation.ALTER),
    ApiKey.REMOVE_RAFT_VOTER: _of_cluster(Operation.ALTER),
}

ResponseT = TypeVar("ResponseT", bound=Message)


def handle(context: RequestContext, request: Request[ResponseT]) -> Answer[ResponseT]:
    """Let the controller execute it."""
    return forward(context, request)
