"""Which topic names Kafka accepts."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode, KafkaError

MAX_LENGTH = 249
METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def invalid_reason(name: str) -> str | None:
    """Why a topic may not have this name, in Kafka's words, or None."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    if not all(char in _LEGAL for char in name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', "
            "'_' and '-'"
        )
    return None


def check_name(name: str) -> None:
    """Raises KafkaError(INVALID_TOPIC_EXCEPTION) as Kafka does."""
    reason = invalid_reason(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_internal(name: str) -> bool:
    """Whether Kafka keeps its own state in this topic."""
    return name in INTERNAL_TOPICS
