"""Which function answers a request, and what must hold before it is asked.

Every function has the shape `(state, request, context, now_ms) -> (records, response)`. The modules
are imported area by area, when the first request of an area comes: a node starts without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.results import Result, SlicedWork
from kwire.kraft.controller.state import ControllerState
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.structs import Request, Response
from kwire.security.acl import Operation

RequestT = TypeVar("RequestT", bound=Request[Any])


InSlices: TypeAlias = (
    "Callable[[ControllerState, Any, ControllerContext, int], SlicedWork[Any] | None]"
)


class Route(NamedTuple):
    """How a request is answered.

    `operation` is what one must be allowed to do to the cluster; None where the function asks
    itself. `timeout_ms` reads the time that the request gives itself: one without any is over
    before it is looked at. `is_bounded` is true for users' requests, which may write so many
    records and no more. `in_slices` is the work of a request that is too large for one turn of the
    loop, None for all others.
    """

    handle: Callable[[ControllerState, Any, ControllerContext, int], Result[Any]]
    operation: Operation | None
    timeout_ms: Callable[[Any], int] | None
    is_bounded: bool
    in_slices: InSlices | None = None


_routes: dict[int, Route] = {}


def _on(
    request: type[RequestT],
    handle: Callable[[ControllerState, RequestT, ControllerContext, int], Result[Response]],
    operation: Operation | None = None,
    *,
    timeout_ms: Callable[[RequestT], int] | None = None,
    is_bounded: bool = False,
    in_slices: Callable[
        [ControllerState, RequestT, ControllerContext, int], SlicedWork[Response] | None
    ]
    | None = None,
) -> None:
    _routes[request.API_KEY] = Route(handle, operation, timeout_ms, is_bounded, in_slices)


def route_of(api_key: int) -> Route:
    """KeyError for a request that no controller answers."""
    route = _routes.get(api_key)
    if route is None:
        AREAS[api_key]()
        route = _routes[api_key]
    return route


def _topics() -> None:
    from kwire.kraft.controller.requests import topics

    _on(
        m.CreateTopicsRequest,
        topics.create_topics,
        timeout_ms=lambda request: request.timeout_ms,
        is_bounded=True,
        in_slices=topics.create_in_slices,
    )
    _on(
        m.DeleteTopicsRequest,
        topics.delete_topics,
        timeout_ms=lambda request: request.timeout_ms,
        is_bounded=True,
        in_slices=topics.delete_in_slices,
    )


def _partitions() -> None:
    from kwire.kraft.controller.requests import partitions

    _on(
        m.CreatePartitionsRequest,
        partitions.create_partitions,
        timeout_ms=lambda request: request.timeout_ms,
        is_bounded=True,
    )


def _configs() -> None:
    from kwire.kraft.controller.requests import configs

    _on(
        m.IncrementalAlterConfigsRequest,
        configs.incremental_alter_configs,
        is_bounded=True,
    )
    _on(m.AlterConfigsRequest, configs.alter_configs, is_bounded=True)


def _acls() -> None:
    from kwire.kraft.controller.requests import acls

    _on(m.CreateAclsRequest, acls.create_acls, Operation.ALTER, is_bounded=True)
    _on(m.DeleteAclsRequest, acls.delete_acls, Operation.ALTER)


def _quotas() -> None:
    from kwire.kraft.controller.requests import quotas

    _on(
        m.AlterClientQuotasRequest,
        quotas.alter_client_quotas,
        Operation.ALTER_CONFIGS,
        is_bounded=True,
    )


def _credentials() -> None:
    from kwire.kraft.controller.requests import scram

    _on(
        m.AlterUserScramCredentialsRequest,
        scram.alter_credentials,
        Operation.ALTER,
        is_bounded=True,
    )


def _features() -> None:
    from kwire.kraft.controller.requests import features

    _on(m.UpdateFeaturesRequest, features.update_features, Operation.ALTER)


def _elections() -> None:
    from kwire.kraft.controller.requests import elect_leaders

    _on(
        m.ElectLeadersRequest,
        elect_leaders.elect_leaders,
        Operation.ALTER,
        timeout_ms=lambda request: request.timeout_ms,
        is_bounded=True,
    )


def _reassignments() -> None:
    from kwire.kraft.controller.requests import reassignment

    _on(
        m.AlterPartitionReassignmentsRequest,
        reassignment.alter_partition_reassignments,
        Operation.ALTER,
        timeout_ms=lambda request: request.timeout_ms,
        is_bounded=True,
    )
    _on(
        m.ListPartitionReassignmentsRequest,
        reassignment.list_partition_reassignments,
        Operation.DESCRIBE,
    )


def _brokers() -> None:
    from kwire.kraft.controller.requests import brokers

    _on(
        m.BrokerRegistrationRequest,
        brokers.register_broker,
        Operation.CLUSTER_ACTION,
        in_slices=brokers.register_in_slices,
    )
    _on(
        m.BrokerHeartbeatRequest,
        brokers.heartbeat,
        Operation.CLUSTER_ACTION,
        in_slices=brokers.heartbeat_in_slices,
    )
    _on(
        m.UnregisterBrokerRequest,
        brokers.unregister_broker,
        Operation.ALTER,
        in_slices=brokers.unregister_in_slices,
    )
    _on(m.ControllerRegistrationRequest, brokers.register_controller, Operation.CLUSTER_ACTION)
    _on(m.UnregisterControllerRequest, brokers.unregister_controller, Operation.ALTER)


def _alter_partition() -> None:
    from kwire.kraft.controller.requests import alter_partition

    _on(m.AlterPartitionRequest, alter_partition.alter_partition, Operation.CLUSTER_ACTION)


def _directories() -> None:
    from kwire.kraft.controller.requests import assign_dirs

    _on(
        m.AssignReplicasToDirsRequest,
        assign_dirs.assign_replicas_to_dirs,
        Operation.CLUSTER_ACTION,
    )


def _producer_ids() -> None:
    from kwire.kraft.controller.requests import producer_ids

    _on(m.AllocateProducerIdsRequest, producer_ids.allocate, Operation.CLUSTER_ACTION)


def _tokens() -> None:
    from kwire.kraft.controller.requests import tokens

    _on(m.CreateDelegationTokenRequest, tokens.create)
    _on(m.RenewDelegationTokenRequest, tokens.renew)
    _on(m.ExpireDelegationTokenRequest, tokens.expire)


AREAS: dict[int, Callable[[], None]] = {
    ApiKey.CREATE_TOPICS: _topics,
    ApiKey.DELETE_TOPICS: _topics,
    ApiKey.CREATE_PARTITIONS: _partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs,
    ApiKey.ALTER_CONFIGS: _configs,
    ApiKey.CREATE_ACLS: _acls,
    ApiKey.DELETE_ACLS: _acls,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _credentials,
    ApiKey.UPDATE_FEATURES: _features,
    ApiKey.ELECT_LEADERS: _elections,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _reassignments,
    ApiKey.BROKER_REGISTRATION: _brokers,
    ApiKey.BROKER_HEARTBEAT: _brokers,
    ApiKey.UNREGISTER_BROKER: _brokers,
    ApiKey.CONTROLLER_REGISTRATION: _brokers,
    ApiKey.UNREGISTER_CONTROLLER: _brokers,
    ApiKey.ALTER_PARTITION: _alter_partition,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _directories,
    ApiKey.ALLOCATE_PRODUCER_IDS: _producer_ids,
    ApiKey.CREATE_DELEGATION_TOKEN: _tokens,
    ApiKey.RENEW_DELEGATION_TOKEN: _tokens,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _tokens,
}
"""What imports the area of a request and adds its routes."""

HANDLED_REQUESTS = frozenset(f"{API_KEYS[api_key].name}Request" for api_key in AREAS)
"""Names of the requests that `Controller.handle` answers."""
