"""DescribeCluster, versions 0-2: the brokers that this listener reaches, or the controllers.

On a broker listener the controller named is any live broker: each forwards to the active one.
Version 2 may ask for fenced brokers too. On a controller listener the nodes are the registered
controllers, and the one named is the active one; that needs ALTER on the cluster. An endpoint type
other than the listener's is MISMATCHED_ENDPOINT_TYPE, an unknown one UNSUPPORTED_ENDPOINT_TYPE.
Source: KIP-700, KIP-919, KIP-1073; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import authorized_operations
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
ALTER_CLUSTER = Requires(
    Operation.ALTER, ResourceType.CLUSTER, note="where controllers are asked for"
)
DESCRIBE_CLUSTER = Requires(
    Operation.DESCRIBE,
    ResourceType.CLUSTER,
    denied=Denied.LEFT_OUT,
    note="the authorized operations",
)
AUTHORIZATION = (ALTER_CLUSTER, DESCRIBE_CLUSTER)
BROKER, CONTROLLER = 1, 2
_TYPE_NAMES = {BROKER: "BROKER", CONTROLLER: "CONTROLLER"}


def handle(
    context: RequestContext, request: m.DescribeClusterRequest
) -> Answer[m.DescribeClusterResponse]:
    """See the module."""
    if context.listener_name in context.parts.config.controller_listener_names():
        return _controllers(context, request)
    check_endpoint_type(context, request, BROKER)
    parts = context.parts
    answer = m.DescribeClusterResponse
    brokers = []
    alive = []
    for broker_id in sorted(parts.metadata.image.brokers):
        broker = parts.metadata.image.brokers[broker_id]
        endpoint = broker.endpoint(context.listener_name)
        if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        if not broker.fenced:
            alive.append(broker_id)
        brokers.append(
            answer.DescribeClusterBroker(
                broker_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
        )
    response = answer(
        error_message=None,
        endpoint_type=BROKER,
        cluster_id=parts.metadata.cluster_id,
        controller_id=alive[parts.random.below(len(alive))] if alive else -1,
        brokers=brokers,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def _controllers(
    context: RequestContext, request: m.DescribeClusterRequest
) -> m.DescribeClusterResponse:
    parts = context.parts
    if not parts.metadata.image.features.metadata_version.controller_registration:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Direct-to-controller communication is not supported with the current MetadataVersion.",
        )
    if not context.allows(ALTER_CLUSTER):
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            DEFAULT_TEXTS[ErrorCode.CLUSTER_AUTHORIZATION_FAILED],
        )
    check_endpoint_type(context, request, CONTROLLER)
    answer = m.DescribeClusterResponse
    nodes = []
    for controller_id in sorted(parts.metadata.image.controllers):
        endpoint = parts.metadata.image.controllers[controller_id].endpoint(context.listener_name)
        if endpoint is not None:
            nodes.append(
                answer.DescribeClusterBroker(
                    broker_id=controller_id, host=endpoint.host, port=endpoint.port, rack=None
                )
            )
    leader_id = parts.quorum.leader_id
    is_known = any(found.broker_id == leader_id for found in nodes)
    response = answer(
        error_message=None,
        cluster_id=parts.metadata.cluster_id,
        controller_id=leader_id if leader_id is not None and is_known else -1,
        brokers=nodes,
    )
    if context.api_version >= 1:
        response.endpoint_type = CONTROLLER
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def cluster_operations(context: RequestContext) -> int:
    """The operations on the cluster that the principal may do; 0 without DESCRIBE."""
    if not context.allows(DESCRIBE_CLUSTER):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def check_endpoint_type(
    context: RequestContext, request: m.DescribeClusterRequest, own: int
) -> None:
    """Raise what Kafka answers to a request for the other kind of endpoint."""
    wanted = request.endpoint_type
    if wanted == own:
        return
    if wanted not in _TYPE_NAMES:
        code, text = (
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {wanted}",
        )
    else:
        code, text = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {_TYPE_NAMES[own]}, but we wanted an "
            f"endpoint of type {_TYPE_NAMES[wanted]}",
        )
    raise KafkaError(ErrorCode.INVALID_REQUEST if context.api_version == 0 else code, text)
