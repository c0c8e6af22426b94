"""The metadata image: what the records of `__cluster_metadata` add up to.

`replay` is its only mutator. Brokers hold an image of the committed records; the controller holds
another of what it has appended (DESIGN.md, decision 9). Every record type of Kafka 4.4 has its
place here, also of features that are not built (decision 11); anything else is refused.

Metadata transactions (KIP-868): between BeginTransactionRecord and EndTransactionRecord records
are held back and then applied as one; AbortTransactionRecord drops them. `offset` and `epoch` name
the last record that the image contains, so a snapshot never starts inside a transaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kwire.kraft.images.cluster import BrokerImage, ClusterImage, ControllerImage
from kwire.kraft.images.delta import MetadataDelta, PartitionDelta
from kwire.kraft.images.errors import ImageError
from kwire.kraft.images.security import (
    AclImage,
    DelegationTokenImage,
    ScramCredential,
    SecurityImage,
)
from kwire.kraft.images.settings import FeaturesImage, QuotaEntity, SettingsImage
from kwire.kraft.images.topics import PartitionImage, TopicImage, TopicsImage
from kwire.kraft.metadata_version import METADATA_VERSIONS

__all__ = [
    "BrokerImage",
    "ControllerImage",
    "ImageError",
    "MetadataDelta",
    "MetadataImage",
    "PartitionDelta",
    "PartitionImage",
    "TopicImage",
    "TopicsImage",
]

TOPIC_RESOURCE = 2
"""ConfigResource.Type.TOPIC: the configs that go with a deleted topic."""

_Replay = Callable[["MetadataImage", Any, MetadataDelta | None], None]


class MetadataImage:
    """The whole metadata of a cluster at one offset."""

    __slots__ = (
        "_transaction",
        "cluster",
        "epoch",
        "features",
        "offset",
        "security",
        "settings",
        "topics",
        "transaction_offset",
    )

    def __init__(self) -> None:
        self.offset = -1
        self.epoch = 0
        self.transaction_offset = -1
        self._transaction: list[Any] | None = None
        self._clear()

    def _clear(self) -> None:
        self.topics = TopicsImage()
        self.cluster = ClusterImage()
        self.features = FeaturesImage()
        self.settings = SettingsImage()
        self.security = SecurityImage()

    def __eq__(self, other: object) -> bool:
        """Same content; where in the log it stands does not count."""
        return (
            isinstance(other, MetadataImage)
            and self.topics == other.topics
            and self.cluster == other.cluster
            and self.features == other.features
            and self.settings == other.settings
            and self.security == other.security
        )

    __hash__ = None  # type: ignore[assignment]

    # --- reading ---------------------------------------------------------------------------

    @property
    def brokers(self) -> dict[int, BrokerImage]:
        return self.cluster.brokers

    @property
    def controllers(self) -> dict[int, ControllerImage]:
        return self.cluster.controllers

    @property
    def configs(self) -> dict[tuple[int, str], dict[str, str]]:
        return self.settings.configs

    @property
    def client_quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        return self.settings.client_quotas

    @property
    def next_producer_id(self) -> int:
        """First producer id that was handed to no broker yet; -1 while none was handed out."""
        return self.settings.next_producer_id

    @property
    def acls(self) -> dict[bytes, AclImage]:
        return self.security.acls

    @property
    def scram(self) -> dict[tuple[int, str], ScramCredential]:
        return self.security.scram

    @property
    def delegation_tokens(self) -> dict[str, DelegationTokenImage]:
        return self.security.delegation_tokens

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open; its records are not in the image yet."""
        return self._transaction is not None

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The values set on a config resource; empty when there are none."""
        return self.settings.config(resource_type, name)

    # --- changing --------------------------------------------------------------------------

    def replay(
        self,
        record: Any,
        offset: int | None = None,
        epoch: int | None = None,
        delta: MetadataDelta | None = None,
    ) -> None:
        """Apply one record; what it changes is told to `delta`.

        Raises ImageError, one line, for a record that cannot follow what was applied or that
        this version does not know.
        """
        name = type(record).NAME
        if name in _TRANSACTION_RECORDS:
            self._replay_transaction(name, offset, delta)
        elif self._transaction is not None:
            _handler(name)
            self._transaction.append(record)
            return
        else:
            _handler(name)(self, record, delta)
        if self._transaction is None:
            if offset is not None:
                self.offset = offset
            if epoch is not None:
                self.epoch = epoch

    def _replay_transaction(
        self, name: str, offset: int | None, delta: MetadataDelta | None
    ) -> None:
        held = self._transaction
        if name == "BeginTransactionRecord":
            if held is not None:
                raise ImageError("BeginTransactionRecord inside a metadata transaction")
            self._transaction = []
            self.transaction_offset = -1 if offset is None else offset
            return
        if held is None:
            raise ImageError(f"{name} outside of a metadata transaction")
        self._transaction = None
        self.transaction_offset = -1
        if name == "EndTransactionRecord":
            for record in held:
                _handler(type(record).NAME)(self, record, delta)

    def load(
        self,
        records: Iterable[Any],
        offset: int,
        epoch: int,
        delta: MetadataDelta | None = None,
    ) -> None:
        """Become the content of a snapshot that ends with `offset` (inclusive).

        `delta` gets the difference to what was here. Records as messages, without the snapshot's
        control records. Raises ImageError like `replay`; the image then is unusable.
        """
        old = MetadataImage()
        for part in ("topics", "cluster", "features", "settings", "security"):
            setattr(old, part, getattr(self, part))
        self._clear()
        self._transaction = None
        self.transaction_offset = -1
        for record in records:
            self.replay(record)
        if self._transaction is not None:
            raise ImageError("snapshot ends inside a metadata transaction")
        self.offset, self.epoch = offset, epoch
        if delta is not None:
            from kwire.kraft.images.difference import difference

            difference(old, self, delta)

    # --- snapshots -------------------------------------------------------------------------

    def to_records(self, level: int | None = None) -> list[tuple[Any, int]]:
        """The records of a snapshot as (message, version), for metadata.version `level`.

        `level` None is the finalized one. Replayed into an empty image they give this image again,
        but for what an older level cannot say. The order is Kafka's by area, sorted within.
        """
        return list(self.record_source(level))

    def record_source(self, level: int | None = None) -> Iterator[tuple[Any, int]]:
        """`to_records` of the image as it is now, made one by one as they are asked for, also
        while the image goes on changing: those of the partitions are too many for one turn."""
        gates = self.features.metadata_version if level is None else METADATA_VERSIONS[level]
        head = [*self.features.to_records(gates), *self.cluster.to_records(gates)]
        tail = [
            *self.settings.configs_to_records(),
            *self.settings.quotas_to_records(),
            *self.settings.producer_ids_to_records(),
            *self.security.acls_to_records(),
            *self.security.scram_to_records(gates),
            *self.security.tokens_to_records(gates),
        ]
        return itertools.chain(head, self.topics.to_records(gates), tail)


def _remove_topic(image: MetadataImage, record: Any, delta: MetadataDelta | None) -> None:
    topic = image.topics.replay_remove(record, delta)
    image.settings.remove_configs(TOPIC_RESOURCE, topic.name, delta)


def _nothing(image: MetadataImage, record: Any, delta: MetadataDelta | None) -> None:
    """NoOpRecord: only its offset counts."""


_TRANSACTION_RECORDS = (
    "BeginTransactionRecord",
    "EndTransactionRecord",
    "AbortTransactionRecord",
)

# fmt: off
_HANDLERS: dict[str, _Replay] = {
    "RegisterBrokerRecord": lambda i, r, d: i.cluster.replay_register_broker(r, d),
    "UnregisterBrokerRecord": lambda i, r, d: i.cluster.replay_unregister_broker(r, d),
    "FenceBrokerRecord": lambda i, r, d: i.cluster.replay_fence(r, True, d),
    "UnfenceBrokerRecord": lambda i, r, d: i.cluster.replay_fence(r, False, d),
    "BrokerRegistrationChangeRecord":
        lambda i, r, d: i.cluster.replay_registration_change(r, d),
    "RegisterControllerRecord": lambda i, r, d: i.cluster.replay_register_controller(r, d),
    "UnregisterControllerRecord": lambda i, r, d: i.cluster.replay_unregister_controller(r, d),
    "TopicRecord": lambda i, r, d: i.topics.replay_topic(r, d),
    "PartitionRecord": lambda i, r, d: i.topics.replay_partition(r, d),
    "PartitionChangeRecord": lambda i, r, d: i.topics.replay_partition_change(r, d),
    "ClearElrRecord": lambda i, r, d: i.topics.replay_clear_elr(r, d),
    "RemoveTopicRecord": _remove_topic,
    "ConfigRecord": lambda i, r, d: i.settings.replay_config(r, d),
    "ClientQuotaRecord": lambda i, r, d: i.settings.replay_quota(r, d),
    "ProducerIdsRecord": lambda i, r, d: i.settings.replay_producer_ids(r, d),
    "FeatureLevelRecord": lambda i, r, d: i.features.replay_level(r, d),
    "ZkMigrationStateRecord": lambda i, r, d: i.features.replay_zk_migration(r),
    "AccessControlEntryRecord": lambda i, r, d: i.security.replay_acl(r, d),
    "RemoveAccessControlEntryRecord": lambda i, r, d: i.security.replay_remove_acl(r, d),
    "UserScramCredentialRecord": lambda i, r, d: i.security.replay_scram(r, d),
    "RemoveUserScramCredentialRecord": lambda i, r, d: i.security.replay_remove_scram(r, d),
    "DelegationTokenRecord": lambda i, r, d: i.security.replay_token(r, d),
    "RemoveDelegationTokenRecord": lambda i, r, d: i.security.replay_remove_token(r, d),
    "NoOpRecord": _nothing,
}
# fmt: on


def _handler(name: str) -> _Replay:
    handler = _HANDLERS.get(name)
    if handler is None:
        raise ImageError(f"metadata record type {name} is unknown to this version")
    return handler
