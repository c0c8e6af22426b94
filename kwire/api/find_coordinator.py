"""FindCoordinator, versions 0-6: which broker coordinates a group, transactional id or share key.

The leader of the key's partition of the internal topic, by the request's listener. While there is
no such topic it is created, and the answer is COORDINATOR_NOT_AVAILABLE, as without a leader. v4
asks for several keys at once (KIP-699), v6 knows share coordinators (KIP-932: key "group:topic
id:partition", needs CLUSTER_ACTION). Source: KIP-699, KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.api.shared.auto_create import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kwire.coordinator.partitioner import partition_for
from kwire.kraft.controller.results import DEFAULT_TEXTS, INVALID_REQUEST_TEXT
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext
from kwire.share.keys import coordinator_key, parse_coordinator_key

VERSIONS = (0, 6)
WAITS_FOR_WRITES = False
DESCRIBE_GROUP = Requires(
    Operation.DESCRIBE,
    ResourceType.GROUP,
    "coordinator_keys[]",
    denied=Denied.ENTRY,
    note="keys of groups; key to version 3",
)
DESCRIBE_TRANSACTION = Requires(
    Operation.DESCRIBE,
    ResourceType.TRANSACTIONAL_ID,
    "coordinator_keys[]",
    denied=Denied.ENTRY,
    note="keys of transactions; key to version 3",
)
SHARE_CLUSTER = Requires(
    Operation.CLUSTER_ACTION, ResourceType.CLUSTER, note="keys of share groups"
)
AUTHORIZATION = (DESCRIBE_GROUP, DESCRIBE_TRANSACTION, SHARE_CLUSTER)
BATCH_FROM = 4
SHARE_FROM = 6

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
TOPICS = {
    GROUP_KEY: CONSUMER_OFFSETS,
    TRANSACTION_KEY: TRANSACTION_STATE,
    SHARE_KEY: SHARE_GROUP_STATE,
}


# v1-3 tell a text, also of success.
_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: INVALID_REQUEST_TEXT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: DEFAULT_TEXTS[ErrorCode.GROUP_AUTHORIZATION_FAILED],
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: DEFAULT_TEXTS[
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    ],
}


def handle(
    context: RequestContext, request: m.FindCoordinatorRequest
) -> Answer[m.FindCoordinatorResponse]:
    """See the module."""
    if context.api_version < BATCH_FROM:
        return _old_response(_find(context, request.key_type, request.key))
    if request.key_type == SHARE_KEY and not context.allows(SHARE_CLUSTER):
        return _share_refused(request)
    coordinators = []
    # From v4 on Kafka tells a text of one error only: of a type of keys that it does not know.
    has_text = request.key_type not in TOPICS
    for key in request.coordinator_keys:
        found = _find(context, request.key_type, key)
        coordinators.append(
            m.FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=found.node_id,
                host=found.host,
                port=found.port,
                error_code=found.code,
                error_message=_MESSAGES[found.code] if has_text else "",
            )
        )
    return m.FindCoordinatorResponse(coordinators=coordinators)


def error_response(context: RequestContext, error: KafkaError) -> m.FindCoordinatorResponse:
    """The code where the version has a place for it."""
    if context.api_version < BATCH_FROM:
        return _old_response(_Found(ErrorCode(error.code)))
    return m.FindCoordinatorResponse(coordinators=[])


def _share_refused(request: m.FindCoordinatorRequest) -> m.FindCoordinatorResponse:
    """What everybody but a broker gets: the refusal, once for each key, with its text."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    coordinator = m.FindCoordinatorResponse.Coordinator
    return m.FindCoordinatorResponse(
        coordinators=[
            coordinator(
                key=key, node_id=-1, port=-1, error_code=code, error_message=DEFAULT_TEXTS[code]
            )
            for key in request.coordinator_keys
        ]
    )


class _Found(NamedTuple):
    """Where the coordinator is, or why nobody knows."""

    code: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


def _old_response(found: _Found) -> m.FindCoordinatorResponse:
    return m.FindCoordinatorResponse(
        error_code=found.code,
        error_message=_MESSAGES.get(found.code, found.code.name),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(context: RequestContext, key_type: int, key: str) -> _Found:
    refused = _check(context, key_type, key)
    if refused is not None:
        return _Found(refused)
    topic = TOPICS[key_type]
    image = context.parts.metadata.image
    known = image.topics.by_name.get(topic)
    if known is None or not known.partitions:
        context.parts.auto_topics.create([topic], context)
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = known.partitions.get(partition_for(_hashed(key_type, key), len(known.partitions)))
    broker = None if partition is None else image.brokers.get(partition.leader)
    if partition is None or broker is None or not broker.is_active:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = broker.endpoint(context.listener_name)
    if endpoint is None:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(ErrorCode.NONE, partition.leader, endpoint.host, endpoint.port)


def _check(context: RequestContext, key_type: int, key: str) -> ErrorCode | None:
    """Why the key is refused; None when it is not."""
    if key_type == GROUP_KEY:
        if not context.allows(DESCRIBE_GROUP, key):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return None
    if key_type == TRANSACTION_KEY:
        if not context.allows(DESCRIBE_TRANSACTION, key):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return None
    if key_type != SHARE_KEY or context.api_version < SHARE_FROM:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_REQUEST if parse_coordinator_key(key) is None else None


def _hashed(key_type: int, key: str) -> str:
    """What decides on the partition: of a share partition its key as a broker writes it."""
    parts = parse_coordinator_key(key) if key_type == SHARE_KEY else None
    return key if parts is None else coordinator_key(*parts)
