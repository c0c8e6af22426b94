"""The APIs of a controller's listener: raft, the controller itself, and what both listeners share.

raft            Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, DescribeQuorum,
                AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter
controller      everything in `HANDLED_REQUESTS`, asked directly (KIP-919)
modules of      ApiVersions, Envelope, DescribeCluster, DescribeConfigs, DescribeAcls, ...
kwire/api
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from kwire.kraft.controller.controller import HANDLED_REQUESTS
from kwire.kraft.controller.errors import error_response
from kwire.kraft.raft.machine import REQUESTS
from kwire.pending import Pending, after
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.server.context import RequestContext
from kwire.server.dispatch import Dispatcher, Route

Response = TypeVar("Response", bound=Message)

LISTENER = "controller"
_RAFT_RIGHTS: dict[int, Operation] = {
    ApiKey.DESCRIBE_QUORUM: Operation.DESCRIBE,
    ApiKey.ADD_RAFT_VOTER: Operation.ALTER,
    ApiKey.REMOVE_RAFT_VOTER: Operation.ALTER,
}


class Quorum(Protocol):
    """This node's part of the metadata quorum."""

    def raft_request(self, request: Message, context: RequestContext) -> Pending[Any]:
        """A request of another replica, or about the quorum."""
        ...

    def heard(self, context: RequestContext, request: m.BrokerHeartbeatRequest) -> None:
        """The active controller has accepted a broker's heartbeat."""
        ...


class AskController(Protocol):
    """Hands a request to this node's controller; at a version, in the name of a client."""

    def __call__(
        self, request: Request[Response], context: RequestContext, version: int, /
    ) -> Pending[Response]: ...


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
            return Route.of_api(api_key, self._ask_quorum)
        if m.request_class(api_key).NAME in HANDLED_REQUESTS:
            return Route.of_api(api_key, self._ask)
        return super()._load(api_key, name)

    def _ask_quorum(self, context: RequestContext, request: Message) -> Pending[Any]:
        """Requests of other replicas of the metadata quorum."""
        right = _RAFT_RIGHTS.get(context.api_key, Operation.CLUSTER_ACTION)
        if not context.authorize(right, ResourceType.CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return self._quorum.raft_request(request, context)

    def _ask(self, context: RequestContext, request: Request[Any]) -> Pending[Any]:
        """Requests that the active controller answers."""

        def settle(done: Pending[Any]) -> Any:
            error = done.error()
            if isinstance(error, KafkaError):
                return error_response(request, error, context.api_version)
            response = done.result()
            if isinstance(request, m.BrokerHeartbeatRequest) and not response.error_code:
                self._quorum.heard(context, request)
            return response

        return after(self._ask_controller(request, context, context.api_version), settle)
