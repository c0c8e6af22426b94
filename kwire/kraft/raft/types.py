"""The nouns of the quorum: replicas, endpoints, offsets with their epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar, dataclass_transform

from kwire.pending import Pending

T = TypeVar("T")

ZERO_UUID = bytes(16)
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
METADATA_PARTITION = 0
UNKNOWN_ID = -1

ReplyTo: TypeAlias = Pending[Any]
"""Who waits for the response to a request. Raft only hands it back, in the effect that answers."""


class RaftInvariantError(AssertionError):
    """Something that consensus excludes has happened; the node must stop."""


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """A dataclass that nobody changes. The type checker sees to that: a frozen one costs four times
    as much to make, and every step of raft makes several."""
    return dataclass(slots=True)(cls)


def check(holds: bool, message: str) -> None:
    """Stop at a broken invariant, in production too."""
    if not holds:
        raise RaftInvariantError(message)


class OffsetAndEpoch(NamedTuple):
    """An offset and the epoch of the record before it; snapshots are named by it."""

    offset: int
    epoch: int

    def is_up_to_date(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends here is at least as complete as one that ends at `other`."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)
"""The checkpoint that formatting writes; it is never sent to another node."""


class ReplicaKey(NamedTuple):
    """A replica: node id and the id of its metadata log directory, None where it is unknown."""

    id: int
    directory_id: bytes | None = None

    @classmethod
    def of(cls, replica_id: int, directory_id: bytes | None) -> ReplicaKey:
        """From the wire, where the zero uuid stands for an unknown directory."""
        return cls(replica_id, None if directory_id in (None, ZERO_UUID) else bytes(directory_id))

    @property
    def directory_or_zero(self) -> bytes:
        return self.directory_id or ZERO_UUID


class Endpoint(NamedTuple):
    """Where a listener of a node is reached."""

    name: str
    host: str
    port: int


class Node(NamedTuple):
    """The addressee of a request. Ids below -1 stand for bootstrap servers, whose id is unknown."""

    id: int
    host: str
    port: int


Endpoints = tuple[Endpoint, ...]


def find_endpoint(endpoints: Endpoints, name: str) -> Endpoint | None:
    """The endpoint of a listener name (compared without case, as Kafka normalises them)."""
    for endpoint in endpoints:
        if endpoint.name == name or endpoint.name.upper() == name.upper():
            return endpoint
    return None
