"""In which log directory the log of a replica is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kwire.log.directories.directory import LogDirectory
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError

UNASSIGNED = uuids.ONE
"""The metadata's directory of a replica whose broker has not said yet where it is (KIP-858)."""


def assigned(directories: Sequence[LogDirectory], directory_id: bytes) -> LogDirectory | None:
    """The directory that the metadata names for a replica whose log was not found, None for any.

    Raises KafkaError(KAFKA_STORAGE_ERROR) while a directory is offline that may have the log: an
    empty one elsewhere would hide its records and give their offsets to others (Kafka's rule,
    KIP-858).
    """
    for directory in directories:
        if directory.directory_id == directory_id and directory.error is None:
            return directory
    offline = [directory.path for directory in directories if directory.error is not None]
    if offline and directory_id != UNASSIGNED:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"it may be in {', '.join(offline)}, which is offline",
        )
    return None


def emptiest(
    directories: Iterable[LogDirectory], cordoned: Collection[LogDirectory] = ()
) -> LogDirectory:
    """The directory that works and has the fewest logs.

    Not one of `cordoned` while there is another: where the controller had placed a replica before
    it heard of the last one, that goes into the first (measured on Apache Kafka 4.4).
    Raises KafkaError(KAFKA_STORAGE_ERROR) when none does.
    """
    online = [directory for directory in directories if directory.error is None]
    if not online:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory is online")
    free = [directory for directory in online if directory not in cordoned]
    if len(online) == 1 or not free:
        return online[0]
    return min(free, key=lambda directory: directory.log_count)
