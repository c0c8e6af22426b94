"""The APIs of a controller's listener: raft, the controller itself, and what both listeners share.

raft            Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, DescribeQuorum,
                AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter
controller      everything in `HANDLED_REQUESTS`, asked directly (KIP-919)
modules of      ApiVersions, Envelope, DescribeCluster, DescribeConfigs, DescribeAcls, ...
kwire/api
"""

from __future__ import annotations

from typing import Any

from kwire.kraft.controller.controller import HANDLED_REQUESTS
from kwire.kraft.controller.errors import error_response
from kwire.kraft.raft.handlers.dispatch import REQUESTS
from kwire.pending import Pending, after
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.authorization import ALTER, CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, DESCRIBE
from kwire.server.context import RequestContext
from kwire.server.dispatch import Dispatcher, Route

LISTENER = "controller"
_RAFT_RIGHTS: dict[int, int] = {
    ApiKey.DESCRIBE_QUORUM: DESCRIBE,
    ApiKey.ADD_RAFT_VOTER: ALTER,
    ApiKey.REMOVE_RAFT_VOTER: ALTER,
}


class _RaftApi:
    """Requests of other replicas of the metadata quorum."""

    @staticmethod
    def handle(context: RequestContext, request: Any) -> Any:
        right = _RAFT_RIGHTS.get(context.api_key, CLUSTER_ACTION)
        if not context.authorize(right, CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return context.parts.quorum.raft_request(request, context)


class _ControllerApi:
    """Requests that the active controller answers."""

    @staticmethod
    def handle(context: RequestContext, request: Any) -> Any:
        def settle(done: Pending[Any]) -> Any:
            error = done.error()
            if isinstance(error, KafkaError):
                return error_response(request, error, context.api_version)
            response = done.result()
            if context.api_key == ApiKey.BROKER_HEARTBEAT and not response.error_code:
                context.parts.quorum.heard(context, request)
            return response

        sent = context.parts.ask_controller(request, context, context.api_version)
        return after(sent, settle)


class ControllerDispatcher(Dispatcher):
    """Routes of a controller listener."""

    def __init__(self) -> None:
        super().__init__(
            {
                int(key): info.name
                for key, info in API_KEYS.items()
                if LISTENER in info.listeners and key not in UNBUILT
            }
        )

    def _load(self, api_key: int) -> Route:
        module: Any = None
        if api_key in REQUESTS:
            module = _RaftApi
        elif api_key in self._names and m.request_class(api_key).NAME in HANDLED_REQUESTS:
            module = _ControllerApi
        if module is None:
            return super()._load(api_key)
        route = Route(api_key, self._names[api_key], module, m.request_class(api_key))
        self._routes[api_key] = route
        return route
