"""The APIs that a broker hands to the active controller as they are, at all of their versions.

AddRaftVoter                    a controller joins the voters of the quorum (KIP-853)
AlterClientQuotas               quotas of users, client ids and addresses (KIP-546, KIP-612)
AlterPartitionReassignments     moves partitions, or stops moving them (KIP-455, KIP-860)
AlterUserScramCredentials       SCRAM passwords, salted by the client (KIP-554)
CreatePartitions                more partitions for existing topics (KIP-195)
CreateTopics                    topics, placed by the controller or by the request; errors are per
                                topic; `validate_only` changes nothing; from version 5 the answer
                                carries the resulting counts and configs; a new topic may be unknown
                                to a broker for a moment after it (KIP-4, KIP-464, KIP-525)
DeleteTopics                    topics by name, from version 6 also by id (KIP-4, KIP-516)
DescribeQuorum                  voters and observers of the quorum, and how far they are (KIP-595)
ElectLeaders                    preferred or unclean leader elections (KIP-183, KIP-460)
ListPartitionReassignments      the moves that are under way (KIP-455)
RemoveRaftVoter                 a controller leaves the voters of the quorum (KIP-853)
UnregisterBroker                forget a broker that will not return (KIP-500, KIP-631)
UnregisterController            forget a controller that will not return (metadata.version 4.4-IV2)
UpdateFeatures                  feature levels of the cluster, all or none (KIP-584, KIP-778)

What the controller does with them is in `kwire/kraft/controller`. An API that a broker has to check
before it forwards it has a file of its own. Source: KIP-590.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer, Pending, then
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.structs import Message, Request
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Authorization, Checked, Denied, Requires
from kwire.server.context import RequestContext
from kwire.server.sliced_response import SlicedResponse


def _of_cluster(operation: Operation) -> Authorization:
    return (Requires(operation, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def _of_topics(operation: Operation, *instead: Requires) -> Requires:
    return Requires(
        operation,
        ResourceType.TOPIC,
        "topics[].name",
        denied=Denied.ENTRY,
        checked=Checked.CONTROLLER,
        instead=instead,
    )


_CREATE_ANY = Requires(Operation.CREATE, ResourceType.CLUSTER)
_DELETE_ANY = Requires(Operation.DELETE, ResourceType.CLUSTER)
_SEE_CONFIGS = Requires(
    Operation.DESCRIBE_CONFIGS,
    ResourceType.TOPIC,
    "topics[].name",
    denied=Denied.LEFT_OUT,
    checked=Checked.CONTROLLER,
    note="the configs in the answer",
)

AUTHORIZATIONS: dict[int, Authorization] = {
    ApiKey.ADD_RAFT_VOTER: _of_cluster(Operation.ALTER),
    ApiKey.ALTER_CLIENT_QUOTAS: _of_cluster(Operation.ALTER_CONFIGS),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _of_cluster(Operation.ALTER),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _of_cluster(Operation.ALTER),
    ApiKey.CREATE_PARTITIONS: (_of_topics(Operation.ALTER),),
    ApiKey.CREATE_TOPICS: (_of_topics(Operation.CREATE, _CREATE_ANY), _SEE_CONFIGS),
    ApiKey.DELETE_TOPICS: (
        _of_topics(Operation.DESCRIBE, _DELETE_ANY),
        _of_topics(Operation.DELETE, _DELETE_ANY),
    ),
    ApiKey.DESCRIBE_QUORUM: _of_cluster(Operation.DESCRIBE),
    ApiKey.ELECT_LEADERS: _of_cluster(Operation.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _of_cluster(Operation.DESCRIBE),
    ApiKey.REMOVE_RAFT_VOTER: _of_cluster(Operation.ALTER),
    ApiKey.UNREGISTER_BROKER: _of_cluster(Operation.ALTER),
    ApiKey.UNREGISTER_CONTROLLER: _of_cluster(Operation.ALTER),
    ApiKey.UPDATE_FEATURES: _of_cluster(Operation.ALTER),
}
"""API key -> what it requires; these are the APIs that this module handles."""

ResponseT = TypeVar("ResponseT", bound=Message)


ENCODED_TOPICS = 30
"""A slice is about 2 ms: a new topic has some 40 configs in the answer. Fewer are encoded at once.
"""


def handle(
    context: RequestContext, request: Request[ResponseT]
) -> Answer[ResponseT | SlicedResponse]:
    """Let the controller execute it."""
    answer: Pending[ResponseT] = forward(context, request)
    return then(answer, lambda done: _encoded(context, done.result()))


def _encoded(
    context: RequestContext, response: ResponseT
) -> ResponseT | Pending[ResponseT | SlicedResponse]:
    """An answer that tells much of many topics is encoded in slices."""
    if not isinstance(response, m.CreateTopicsResponse) or len(response.topics) <= ENCODED_TOPICS:
        return response
    topics, response.topics = response.topics, []
    sliced = SlicedResponse(response, "topics", context.api_version)

    def work() -> Iterator[None]:
        for begin in range(0, len(topics), ENCODED_TOPICS):
            if begin:
                yield
            sliced.add(topics[begin : begin + ENCODED_TOPICS])

    made: Pending[ResponseT | SlicedResponse] = context.slices.run(work(), lambda: sliced)
    return made
