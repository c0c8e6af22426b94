"""Kafka's errors with the codes of Confluent's API v3.

    40002  wrong for Kafka: a topic that is there already, a config that does not exist
    40101  the credentials       40301  no right
    40403  no such topic, partition or group
    50003  may succeed later     50002  anything else

Source: KafkaExceptionMapper of confluentinc/rest-utils. Errors that may be gone in a moment have
the status 503 here, where that has 500: the broker is the one at fault, and a client may ask again.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from kwire.client.errors import ClientError, LoginFailed, RequestFailed
from kwire.http.purposes.rest.problems import Problem, problem_of
from kwire.http.purposes.rest.route import Call, Reply
from kwire.protocol.errors import ErrorCode

P = TypeVar("P", bound=Struct)
B = TypeVar("B", bound=Struct)

BAD_REQUEST, UNAUTHENTICATED, FORBIDDEN = 40002, 40101, 40301
NOT_FOUND, FAILED, RETRIABLE = 40403, 50002, 50003
_MISSING = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
_BAD = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.SECURITY_DISABLED,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_PARTITIONS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_CONFIG,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.UNSUPPORTED_VERSION,
)
_CODES = {400: BAD_REQUEST, 401: UNAUTHENTICATED, 403: FORBIDDEN, 404: NOT_FOUND}


def failure_of(error: ClientError) -> Problem:
    """What is answered to whoever asked for what failed with this."""
    problem = problem_of(error)
    status = problem.status
    if isinstance(error, LoginFailed):
        status = 401
    elif isinstance(error, RequestFailed) and error.code in _BAD:
        status = 400
    elif isinstance(error, RequestFailed) and error.code in _MISSING:
        status = 404
    code = _CODES.get(status)
    if code is None:
        code = RETRIABLE if error.is_retriable or status == 503 else status
        code = FAILED if status == 502 else code
    return Problem(status, problem.told.error, str(error), error_code=code, headers=problem.headers)


def missing(what: str) -> Problem:
    """There is no such thing."""
    return Problem(404, "not_found", what, error_code=NOT_FOUND)


def as_v3(
    handler: Callable[[Call[P, B]], Awaitable[Reply]],
) -> Callable[[Call[P, B]], Awaitable[Reply]]:
    """The handler, with the codes of the module."""

    @functools.wraps(handler)
    async def told(call: Call[P, B]) -> Reply:
        try:
            return await handler(call)
        except ClientError as error:
            raise failure_of(error) from None

    return told
