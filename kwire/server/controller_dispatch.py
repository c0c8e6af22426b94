"""The APIs of a controller's listener: raft, the controller itself, and what both listeners share.

raft            Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, DescribeQuorum,
                AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter
controller      everything in `AREAS`, asked directly (KIP-919)
modules of      ApiVersions, Envelope, DescribeCluster, DescribeConfigs, DescribeAcls, ...
kwire/api
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from kwire.kraft.controller.errors import error_response
from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.kraft.controller.routes import AREAS, route_of
from kwire.kraft.raft.machine import REQUESTS
from kwire.pending import Pending, after
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Authorization, Checked, Requires
from kwire.server.context import Outcome, RequestContext, Response
from kwire.server.dispatch import Dispatcher, Route, declared_authorization

ResponseT = TypeVar("ResponseT", bound=Message)

LISTENER = "controller"
NAMED_TOPICS_MAX = 12
"""The last version of Fetch that names topics, not their ids."""


def _of_cluster(
    operation: Operation, checked: Checked = Checked.BEFORE, message: str | None = None
) -> Authorization:
    return (Requires(operation, ResourceType.CLUSTER, checked=checked, message=message),)


_REFUSED = DEFAULT_TEXTS[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


RAFT_AUTHORIZATION: dict[int, Authorization] = {
    key: _of_cluster(Operation.CLUSTER_ACTION) for key in REQUESTS
} | {
    ApiKey.DESCRIBE_QUORUM: _of_cluster(Operation.DESCRIBE, message=_REFUSED),
    ApiKey.ADD_RAFT_VOTER: _of_cluster(Operation.ALTER, message=_REFUSED),
    ApiKey.REMOVE_RAFT_VOTER: _of_cluster(Operation.ALTER, message=_REFUSED),
}
"""What requests to a replica of the metadata quorum require."""


def authorization_of(api_key: int, name: str) -> Authorization:
    """What an API requires on a controller's listener."""
    if api_key in REQUESTS:
        return RAFT_AUTHORIZATION[api_key]
    if api_key in AREAS:
        operation = route_of(api_key).operation
        if operation is not None:
            return _of_cluster(operation, Checked.CONTROLLER)
    return declared_authorization(api_key, name)


class Quorum(Protocol):
    """This node's part of the metadata quorum."""

    def raft_request(
        self, request: Request[ResponseT], context: RequestContext
    ) -> Pending[ResponseT]:
        """A request of another replica, or about the quorum."""
        ...

    def heard(self, context: RequestContext, request: m.BrokerHeartbeatRequest) -> None:
        """The active controller has accepted a broker's heartbeat."""
        ...


class AskController(Protocol):
    """Hands a request to this node's controller; at a version, in the name of a client."""

    def __call__(
        self, request: Request[ResponseT], context: RequestContext, version: int, /
    ) -> Pending[ResponseT]: ...


def _denied_fetch(
    context: RequestContext, request: m.FetchRequest, error: KafkaError
) -> m.FetchResponse:
    """Up to version 12 each partition has the code too, as Kafka answers it."""
    response = m.FetchResponse()
    response.error_code = code = int(error.code)
    if context.api_version <= NAMED_TOPICS_MAX:
        shape = m.FetchResponse
        response.responses = [
            shape.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    shape.PartitionData(
                        partition_index=partition.partition,
                        error_code=code,
                        high_watermark=-1,
                        aborted_transactions=[],
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return response


class ControllerDispatcher(Dispatcher):
    """Routes of a controller listener."""

    def __init__(self, quorum: Quorum, ask_controller: AskController) -> None:
        super().__init__(
            {
                int(key): info.name
                for key, info in API_KEYS.items()
                if LISTENER in info.listeners and key not in UNBUILT
            }
        )
        self._quorum = quorum
        self._ask_controller = ask_controller

    def _load(self, api_key: int, name: str) -> Route:
        if api_key in REQUESTS:
            return Route.of_api(
                api_key,
                self._ask_quorum,
                RAFT_AUTHORIZATION[api_key],
                denied_response=_denied_fetch if api_key == ApiKey.FETCH else None,
            )
        if api_key in AREAS:
            return Route.of_api(api_key, self._ask, authorization_of(api_key, name))
        return super()._load(api_key, name)

    def _ask_quorum(self, context: RequestContext, request: Request[Message]) -> Outcome:
        """Requests of other replicas of the metadata quorum."""
        answer: Pending[Any] = self._quorum.raft_request(request, context)
        return answer

    def _ask(self, context: RequestContext, request: Request[Message]) -> Outcome:
        """Requests that the active controller answers."""

        def settle(done: Pending[Message]) -> Response:
            error = done.error()
            if isinstance(error, KafkaError):
                refused: Message = error_response(request, error, context.api_version)
                return refused
            response = done.result()
            if (
                isinstance(request, m.BrokerHeartbeatRequest)
                and isinstance(response, m.BrokerHeartbeatResponse)
                and not response.error_code
            ):
                self._quorum.heard(context, request)
            return response

        return after(self._ask_controller(request, context, context.api_version), settle)
