"""What a request comes to: records and an answer; errors in the places of an answer."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol, TypeAlias, TypeVar

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.metadata_records import VersionedRecord
from kwire.protocol.structs import Response

T = TypeVar("T")

Records: TypeAlias = list[VersionedRecord]
"""(message, version), in the order in which they are appended."""

Result: TypeAlias = tuple[Records, Response]
"""The records to append, and the answer once they are committed."""

SlicedWork: TypeAlias = Generator[Records, None, T]
"""Work of a request that may take several turns of the loop: yields records, which are appended and
replayed before it goes on, and returns the answer."""


def at_once(slices: SlicedWork[T]) -> tuple[Records, T]:
    """All records of such work, of which none depends on those before it, and its answer."""
    records: Records = []
    while True:
        try:
            records += next(slices)
        except StopIteration as end:
            answer: T = end.value
            return records, answer


INVALID_REQUEST_TEXT = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
"""Kafka's text of INVALID_REQUEST, which few answers tell."""

DEFAULT_TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.ELECTION_NOT_NEEDED: ("Leader election not needed for topic partition."),
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is disabled.",
}
"""Kafka's text of a code, used where an error carries no message of its own."""


def text_of(error: KafkaError) -> str | None:
    """The message that goes with an error: its own, or Kafka's text for its code."""
    if error.message is not None:
        return error.message
    return DEFAULT_TEXTS.get(ErrorCode(error.code))


class _Failing(Protocol):
    error_code: int
    error_message: str | None


Failing = TypeVar("Failing", bound=_Failing)


def put_error(target: Failing, error: KafkaError, generic_text: bool = True) -> Failing:
    """Set `error_code` and `error_message` of a response struct; returns it.

    `generic_text` False leaves an error that has no message of its own without one: Kafka gives
    some errors the text of their code and some none.
    """
    target.error_code = int(error.code)
    target.error_message = text_of(error) if generic_text else error.message
    return target
