"""What a REST call is refused with: one shape, and the one table from Kafka's errors to statuses.

    {"error": "invalid_body", "error_code": 400, "message": "...", "field": "messages[3].value"}

`error` is a word for programs, `message` a line for people. `field`, `parameter` or `header` name
what is wrong, `index` the message of a list.
"""

from __future__ import annotations

import math

import msgspec
from msgspec import UNSET, Struct, UnsetType

from kwire.client.errors import ClientError, LoginFailed, RequestFailed, Unsupported
from kwire.client.transactional_producer import Fenced
from kwire.protocol.errors import ErrorCode


class Offset(Struct, frozen=True):
    """Where a message is; `offset` is -1 where the broker does not tell (acks "0")."""

    partition: int
    offset: int


class Told(Struct, omit_defaults=True):
    """The body of an answer that refuses."""

    error: str
    error_code: int
    message: str
    field: str | UnsetType = UNSET
    parameter: str | UnsetType = UNSET
    header: str | UnsetType = UNSET
    index: int | UnsetType = UNSET
    offsets: list[Offset | None] | UnsetType = UNSET
    """Of a publish of which a part was kept: null for messages that were not."""


class Problem(Exception):
    """A call is refused. `told` is the body of the answer, `status` and `headers` are its own."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        *,
        error_code: int | None = None,
        field: str | None = None,
        parameter: str | None = None,
        header: str | None = None,
        index: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.told = Told(
            error,
            status if error_code is None else error_code,
            message,
            field=UNSET if field is None else field,
            parameter=UNSET if parameter is None else parameter,
            header=UNSET if header is None else header,
            index=UNSET if index is None else index,
        )

    def body(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self.told)


RETRY_AFTER_S = 1
"""Of what may be better in a moment."""

STATUSES: dict[ErrorCode, tuple[int, str]] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: (416, "offset_out_of_range"),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, "not_found"),
    ErrorCode.UNKNOWN_TOPIC_ID: (404, "not_found"),
    ErrorCode.GROUP_ID_NOT_FOUND: (404, "not_found"),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (404, "not_found"),
    ErrorCode.RESOURCE_NOT_FOUND: (404, "not_found"),
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: (404, "not_found"),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (403, "forbidden"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (403, "forbidden"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (403, "forbidden"),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (403, "forbidden"),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: (403, "forbidden"),
    ErrorCode.SECURITY_DISABLED: (403, "forbidden"),
    ErrorCode.SASL_AUTHENTICATION_FAILED: (401, "unauthorized"),
    ErrorCode.MESSAGE_TOO_LARGE: (400, "message_too_large"),
    ErrorCode.RECORD_LIST_TOO_LARGE: (400, "message_too_large"),
    ErrorCode.CORRUPT_MESSAGE: (400, "invalid_record"),
    ErrorCode.INVALID_RECORD: (400, "invalid_record"),
    ErrorCode.INVALID_TIMESTAMP: (400, "invalid_timestamp"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (400, "invalid_topic"),
    ErrorCode.INVALID_GROUP_ID: (400, "invalid_group"),
    ErrorCode.OFFSET_METADATA_TOO_LARGE: (400, "metadata_too_large"),
    ErrorCode.INVALID_REQUIRED_ACKS: (400, "invalid_request"),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (400, "invalid_transaction_timeout"),
    ErrorCode.INVALID_SESSION_TIMEOUT: (400, "invalid_request"),
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: (400, "metadata_too_large"),
    ErrorCode.INVALID_PARTITIONS: (400, "invalid_request"),
    ErrorCode.INVALID_REPLICATION_FACTOR: (400, "invalid_request"),
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: (400, "invalid_request"),
    ErrorCode.INVALID_CONFIG: (400, "invalid_config"),
    ErrorCode.INVALID_REQUEST: (400, "invalid_request"),
    ErrorCode.INVALID_PRINCIPAL_TYPE: (400, "invalid_request"),
    ErrorCode.INVALID_REGULAR_EXPRESSION: (400, "invalid_request"),
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: (400, "invalid_request"),
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: (400, "invalid_request"),
    ErrorCode.UNSUPPORTED_ASSIGNOR: (400, "invalid_request"),
    ErrorCode.POLICY_VIOLATION: (400, "policy_violation"),
    ErrorCode.TOPIC_DELETION_DISABLED: (400, "topic_deletion_disabled"),
    ErrorCode.TOPIC_ALREADY_EXISTS: (409, "already_exists"),
    ErrorCode.DUPLICATE_RESOURCE: (409, "already_exists"),
    ErrorCode.NON_EMPTY_GROUP: (409, "group_has_members"),
    ErrorCode.UNKNOWN_MEMBER_ID: (409, "group_has_members"),
    ErrorCode.ILLEGAL_GENERATION: (409, "rebalanced"),
    ErrorCode.REBALANCE_IN_PROGRESS: (409, "rebalanced"),
    ErrorCode.STALE_MEMBER_EPOCH: (409, "rebalanced"),
    ErrorCode.FENCED_MEMBER_EPOCH: (409, "rebalanced"),
    ErrorCode.FENCED_INSTANCE_ID: (409, "fenced"),
    ErrorCode.UNRELEASED_INSTANCE_ID: (409, "fenced"),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (409, "another_kind_of_group"),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (409, "group_has_members"),
    ErrorCode.PRODUCER_FENCED: (409, "fenced"),
    ErrorCode.INVALID_PRODUCER_EPOCH: (409, "fenced"),
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: (409, "fenced"),
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (409, "fenced"),
    ErrorCode.INVALID_TXN_STATE: (409, "invalid_transaction_state"),
    ErrorCode.TRANSACTION_ABORTABLE: (409, "transaction_to_abort"),
    ErrorCode.INVALID_RECORD_STATE: (409, "not_acquired"),
    ErrorCode.REASSIGNMENT_IN_PROGRESS: (409, "reassignment_in_progress"),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: (429, "quota_exceeded"),
    ErrorCode.NOT_ENOUGH_REPLICAS: (503, "not_enough_replicas"),
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (503, "not_enough_replicas"),
}
"""A code that is not here is 503 `unavailable` where a client may ask again, else 502 `failed`."""


def problem_of(error: ClientError) -> Problem:
    """What is answered to whoever asked for what failed with this."""
    message = str(error)
    if isinstance(error, Fenced):
        return Problem(409, "fenced", message)
    if isinstance(error, LoginFailed):
        return Problem(401, "unauthorized", message)
    if isinstance(error, Unsupported):
        return Problem(501, "unsupported", message)
    if isinstance(error, RequestFailed):
        status, word = STATUSES.get(
            error.code, (503, "unavailable") if error.is_retriable else (502, "failed")
        )
        return Problem(status, word, message, headers=_retry_after(status))
    return Problem(503, "unavailable", message, headers=_retry_after(503))


def throttled(wait_s: float) -> Problem:
    """The producer's quota is used up for so long."""
    wait = max(1, math.ceil(wait_s))
    return Problem(
        429,
        "quota_exceeded",
        f"the producer's quota is exceeded; again in {wait} s",
        headers={"retry-after": str(wait)},
    )


def _retry_after(status: int) -> dict[str, str]:
    return {"retry-after": str(RETRY_AFTER_S)} if status in (429, 503) else {}
