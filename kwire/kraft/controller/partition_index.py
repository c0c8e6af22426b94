"""Indexes over the controller's image: which partitions an event of a broker concerns.

Derived state, changed only while records are replayed (it is the delta that `MetadataImage.replay`
reports to), and never written anywhere. Keys are (topic id, partition index); every answer is
sorted, so that what is decided does not depend on the history of a dict.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeVar

from kwire.kraft.images.cluster import BrokerImage, ControllerImage
from kwire.kraft.images.security import DelegationTokenImage, ScramCredential
from kwire.kraft.images.settings import QuotaEntity
from kwire.kraft.images.topics import (
    NO_LEADER,
    PartitionImage,
    TopicImage,
    is_reserved_directory,
)
from kwire.security.acls.binding import AclBinding

PartitionKey = tuple[bytes, int]
K = TypeVar("K", int, bytes)


class PartitionIndex:
    """A listener to all changes (`images/delta.py`): where each broker is in sync, eligible or
    leading, and which partitions need care."""

    __slots__ = (
        "_collisions",
        "_directories",
        "_elr",
        "_isr",
        "_leaders",
        "_without_leader",
        "directory_owner",
        "imbalanced",
        "reassigning",
        "registration_offsets",
    )

    def __init__(self) -> None:
        self._isr: dict[int, dict[PartitionKey, None]] = {}
        self._elr: dict[int, dict[PartitionKey, None]] = {}
        self._leaders: dict[int, dict[PartitionKey, None]] = {}
        self._directories: dict[bytes, dict[PartitionKey, None]] = {}
        self._collisions: dict[str, dict[str, None]] = {}
        self._without_leader: dict[PartitionKey, None] = {}
        self.imbalanced: dict[PartitionKey, None] = {}
        self.reassigning: dict[PartitionKey, None] = {}
        self.directory_owner: dict[bytes, int] = {}
        self.registration_offsets: dict[int, int] = {}

    # --- questions -------------------------------------------------------------------------

    def in_isr(self, broker_id: int) -> list[PartitionKey]:
        return sorted(self._isr.get(broker_id, ()))

    def in_elr(self, broker_id: int) -> list[PartitionKey]:
        return sorted(self._elr.get(broker_id, ()))

    def in_directory(self, directory: bytes) -> list[PartitionKey]:
        return sorted(self._directories.get(directory, ()))

    def without_leader(self) -> list[PartitionKey]:
        return sorted(self._without_leader)

    def isr_count(self, broker_id: int) -> int:
        """In how many ISRs a broker is."""
        return len(self._isr.get(broker_id, ()))

    def elr_count(self, broker_id: int) -> int:
        """Of how many partitions it is an eligible leader."""
        return len(self._elr.get(broker_id, ()))

    def is_in_isr(self, broker_id: int, key: PartitionKey) -> bool:
        return key in self._isr.get(broker_id, ())

    def is_in_elr(self, broker_id: int, key: PartitionKey) -> bool:
        return key in self._elr.get(broker_id, ())

    def leaderless_count(self) -> int:
        return len(self._without_leader)

    def lacks_leader(self, key: PartitionKey) -> bool:
        return key in self._without_leader

    def leads_any(self, broker_id: int) -> bool:
        return bool(self._leaders.get(broker_id))

    def colliding_topic(self, name: str, besides: Container[str] = ()) -> str | None:
        """A topic that is none of `besides` and has the same name once `.` is written as `_`."""
        names = self._collisions.get(name.replace(".", "_"), ())
        return min((each for each in names if each not in besides), default=None)

    def state(self) -> tuple[object, ...]:
        """Everything, comparable: for tests that reload a controller."""
        return tuple(getattr(self, name) for name in sorted(PartitionIndex.__slots__))

    # --- what replay reports ---------------------------------------------------------------

    def topic_created(self, topic: TopicImage) -> None:
        if "." in topic.name or "_" in topic.name:
            unified = topic.name.replace(".", "_")
            self._collisions.setdefault(unified, {})[topic.name] = None

    def topic_deleted(self, topic: TopicImage) -> None:
        unified = topic.name.replace(".", "_")
        names = self._collisions.get(unified)
        if names is not None:
            names.pop(topic.name, None)
            if not names:
                del self._collisions[unified]
        for index, partition in topic.partitions.items():
            self.partition_changed(topic, index, partition, None)

    def partition_changed(
        self, topic: TopicImage, index: int, old: PartitionImage | None, new: PartitionImage | None
    ) -> None:
        key = (topic.topic_id, index)
        if old is not None and new is not None and new.replicas == old.replicas:
            self._changed_in_place(key, old, new)
            return
        _move(self._isr, key, old.isr if old else (), new.isr if new else ())
        _move(self._elr, key, old.elr if old else (), new.elr if new else ())
        _move(self._leaders, key, (old.leader,) if old else (), (new.leader,) if new else ())
        _move(self._directories, key, _real(old), _real(new))
        _mark(self._without_leader, key, new is not None and new.leader == NO_LEADER)
        _mark(self.imbalanced, key, new is not None and not new.has_preferred_leader)
        _mark(self.reassigning, key, new is not None and new.is_reassigning)

    def _changed_in_place(
        self, key: PartitionKey, old: PartitionImage, new: PartitionImage
    ) -> None:
        """The replicas are the same ones: only what is not as it was moves."""
        if new.isr != old.isr:
            _move(self._isr, key, old.isr, new.isr)
        if new.elr != old.elr:
            _move(self._elr, key, old.elr, new.elr)
        if new.directories != old.directories:
            _move(self._directories, key, _real(old), _real(new))
        if new.leader != old.leader:
            _move(self._leaders, key, (old.leader,), (new.leader,))
            _mark(self._without_leader, key, new.leader == NO_LEADER)
            _mark(self.imbalanced, key, not new.has_preferred_leader)
        if new.is_reassigning != old.is_reassigning:
            _mark(self.reassigning, key, new.is_reassigning)

    def broker_changed(
        self, broker_id: int, old: BrokerImage | None, new: BrokerImage | None
    ) -> None:
        for directory in old.directories if old else ():
            self.directory_owner.pop(directory, None)
        for directory in new.directories if new else ():
            self.directory_owner[directory] = broker_id
        if new is None:
            self.registration_offsets.pop(broker_id, None)

    def controller_changed(
        self, controller_id: int, old: ControllerImage | None, new: ControllerImage | None
    ) -> None:
        """Nothing is derived from controllers."""

    def config_changed(self, resource: tuple[int, str], name: str) -> None:
        """Nothing is derived from configs."""

    def feature_changed(self, name: str, old: int | None, new: int | None) -> None:
        """Nothing is derived from features."""

    def acl_changed(self, acl_id: bytes, old: AclBinding | None, new: AclBinding | None) -> None:
        """Nothing is derived from ACLs."""

    def scram_changed(
        self, key: tuple[int, str], old: ScramCredential | None, new: ScramCredential | None
    ) -> None:
        """Nothing is derived from credentials."""

    def client_quota_changed(self, entity: QuotaEntity, key: str) -> None:
        """Nothing is derived from quotas."""

    def producer_ids_changed(self) -> None:
        """Nothing is derived from producer ids."""

    def token_changed(
        self, token_id: str, old: DelegationTokenImage | None, new: DelegationTokenImage | None
    ) -> None:
        """Nothing is derived from tokens."""


def _real(partition: PartitionImage | None) -> list[bytes]:
    if partition is None:
        return []
    return [d for d in partition.directories if not is_reserved_directory(d)]


def _move(
    index: dict[K, dict[PartitionKey, None]],
    key: PartitionKey,
    old: Sequence[K],
    new: Sequence[K],
) -> None:
    for value in old:
        if value not in new:
            keys = index.get(value)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del index[value]
    for value in new:
        index.setdefault(value, {})[key] = None


def _mark(index: dict[PartitionKey, None], key: PartitionKey, present: bool) -> None:
    if present:
        index[key] = None
    else:
        index.pop(key, None)
