"""What goes to the dead letter queue of a share group, and what it looks like there (KIP-1191).

A record that a member rejected, or that was delivered too often, becomes a record of the group's
dead letter topic: in the partition of the same number modulo the topic's count, with headers that
tell where it came from, and with its key and value only where the group copies records
(`errors.deadletterqueue.copy.record.enable`). Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from kwire.protocol import dead_letter_headers as named
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record
from kwire.protocol.records.build import record_size

# Configs that a dead letter topic gets when it is created.
TOPIC_CONFIGS = {
    "errors.deadletterqueue.group.enable": "true",
    "message.timestamp.type": "CreateTime",
}
REJECTED = "Offset rejected by client."
DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."

INTERNAL_PREFIX = "__"
BATCH_OVERHEAD_BYTES = 61
# Records of one round: what is made of them is made in one turn of the loop.
RECORDS_MAX = 500

Original = tuple[bytes | None, bytes | None]


class DeadLetters(NamedTuple):
    """Records of one partition, from `first_offset` to `last_offset` (both included), that a share
    group gave up for one cause (REJECTED, DELIVERED_TOO_OFTEN)."""

    group_id: str
    topic: str
    topic_id: bytes
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: str


class DeadLetterTopic(NamedTuple):
    """A topic as the cluster has it: `leaders` by partition, None where there is none."""

    topic_id: bytes
    leaders: tuple[int | None, ...]
    is_enabled: bool
    max_message_bytes: int


class Settings(Protocol):
    """The configs of groups and of the cluster that dead letters obey."""

    @property
    def topic_name_prefix(self) -> str:
        """errors.deadletterqueue.topic.name.prefix"""
        ...

    @property
    def creates_topics(self) -> bool:
        """errors.deadletterqueue.auto.create.topics.enable"""
        ...

    def topic_of(self, group_id: str) -> str:
        """errors.deadletterqueue.topic.name, empty for none."""
        ...

    def copies_records(self, group_id: str) -> bool:
        """errors.deadletterqueue.copy.record.enable"""
        ...


def refusal(settings: Settings, group_id: str, topic: DeadLetterTopic | None) -> KafkaError | None:
    """Why nothing can be written to a group's dead letter topic; `topic` is None where it is
    missing."""
    name = settings.topic_of(group_id)
    prefix = settings.topic_name_prefix
    what = f"share group {group_id}: the dead letter topic {name}"
    if not name:
        message = f"share group {group_id} has no errors.deadletterqueue.topic.name"
    elif name.startswith(INTERNAL_PREFIX):
        message = f"{what} has the name of an internal topic: choose one without {INTERNAL_PREFIX}"
    elif topic is not None and not topic.is_enabled:
        message = f"{what} does not allow it: set errors.deadletterqueue.group.enable=true on it"
    elif topic is None and not settings.creates_topics:
        message = (
            f"{what} does not exist: create it, or set "
            "errors.deadletterqueue.auto.create.topics.enable=true"
        )
    elif not name.startswith(prefix):
        message = f"{what} does not begin with errors.deadletterqueue.topic.name.prefix ({prefix})"
    else:
        return None
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def headers(letters: DeadLetters, offset: int) -> list[tuple[str | bytes, bytes | None]]:
    """Where a record came from, and why it is here."""
    return [
        (named.TOPIC, letters.topic.encode()),
        (named.PARTITION, b"%d" % letters.partition),
        (named.OFFSET, b"%d" % offset),
        (named.GROUP, letters.group_id.encode()),
        (named.DELIVERY_COUNT, b"%d" % letters.delivery_count),
        (named.MESSAGE, letters.cause.encode()),
    ]


def made_records(
    letters: DeadLetters,
    first_offset: int,
    last_offset: int,
    originals: Mapping[int, Original],
    wall_ms: int,
    bytes_max: int,
) -> list[Record]:
    """The records for these offsets, as many as one batch of `bytes_max` holds and at least one."""
    records: list[Record] = []
    size = BATCH_OVERHEAD_BYTES
    for record in _made(letters, first_offset, last_offset, originals, wall_ms):
        size += size_of(record, len(records))
        if records and (size > bytes_max or len(records) >= RECORDS_MAX):
            break
        records.append(record)
    return records


def _made(
    letters: DeadLetters,
    first_offset: int,
    last_offset: int,
    originals: Mapping[int, Original],
    wall_ms: int,
) -> Iterator[Record]:
    for offset in range(first_offset, last_offset + 1):
        key, value = originals.get(offset, (None, None))
        yield Record(timestamp=wall_ms, key=key, value=value, headers=headers(letters, offset))


def size_of(record: Record, index: int) -> int:
    """The bytes of a record in a batch of records with one timestamp, `index` records behind its
    first."""
    return record_size(record, timestamp_delta=0, offset_delta=index)
