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
from typing import Any, TypeVar

from kwire.kraft.images.cluster import BrokerImage, ClusterImage, ControllerImage
from kwire.kraft.images.delta import Changes, MetadataDelta, PartitionDelta
from kwire.kraft.images.difference import difference
from kwire.kraft.images.errors import ImageError
from kwire.kraft.images.security import (
    DelegationTokenImage,
    ScramCredential,
    SecurityImage,
)
from kwire.kraft.images.settings import FeaturesImage, QuotaEntity, SettingsImage
from kwire.kraft.images.topics import PartitionImage, TopicImage, TopicsImage
from kwire.kraft.metadata_version import METADATA_VERSIONS
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import MetadataRecord, VersionedRecord
from kwire.protocol.structs import Struct
from kwire.security.acls.binding import AclBinding

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

R = TypeVar("R", bound=MetadataRecord)


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
        self._transaction: list[MetadataRecord] | None = None
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
    def acls(self) -> dict[bytes, AclBinding]:
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
        record: MetadataRecord,
        offset: int | None = None,
        epoch: int | None = None,
        delta: Changes | None = None,
    ) -> None:
        """Apply one record; what it changes is told to `delta`.

        Raises ImageError, one line, for a record that cannot follow what was applied or that
        this version does not know.
        """
        function = _REPLAY.get(record.PLAIN)
        if function is None:
            self._replay_transaction(record, offset, delta)
        elif self._transaction is not None:
            self._transaction.append(record)
            return
        else:
            function(self, record, delta)
        if self._transaction is None:
            if offset is not None:
                self.offset = offset
            if epoch is not None:
                self.epoch = epoch

    def _replay_transaction(
        self, record: MetadataRecord, offset: int | None, delta: Changes | None
    ) -> None:
        held = self._transaction
        if isinstance(record, m.BeginTransactionRecord):
            if held is not None:
                raise ImageError("BeginTransactionRecord inside a metadata transaction")
            self._transaction = []
            self.transaction_offset = -1 if offset is None else offset
            return
        if not isinstance(record, m.EndTransactionRecord | m.AbortTransactionRecord):
            raise ImageError(f"metadata record type {record.NAME} is unknown to this version")
        if held is None:
            raise ImageError(f"{record.NAME} outside of a metadata transaction")
        self._transaction = None
        self.transaction_offset = -1
        if isinstance(record, m.EndTransactionRecord):
            for each in held:
                _REPLAY[each.PLAIN](self, each, delta)

    def load(
        self,
        records: Iterable[MetadataRecord],
        offset: int,
        epoch: int,
        delta: Changes | None = None,
    ) -> None:
        """Become the content of a snapshot that ends with `offset` (inclusive).

        `delta` gets the difference to what was here. Records as messages, without the snapshot's
        control records. Raises ImageError like `replay`; the image then is unusable.
        """
        old = MetadataImage()
        old.topics, old.cluster, old.features = self.topics, self.cluster, self.features
        old.settings, old.security = self.settings, self.security
        self._clear()
        self._transaction = None
        self.transaction_offset = -1
        for record in records:
            self.replay(record)
        if self._transaction is not None:
            raise ImageError("snapshot ends inside a metadata transaction")
        self.offset, self.epoch = offset, epoch
        if delta is not None:
            difference(old, self, delta)

    # --- snapshots -------------------------------------------------------------------------

    def to_records(self, level: int | None = None) -> list[VersionedRecord]:
        """The records of a snapshot as (message, version), for metadata.version `level`.

        `level` None is the finalized one. Replayed into an empty image they give this image again,
        but for what an older level cannot say. The order is Kafka's by area, sorted within.
        """
        return list(self.record_source(level))

    def record_source(self, level: int | None = None) -> Iterator[VersionedRecord]:
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


def _remove_topic(image: MetadataImage, record: m.RemoveTopicRecord, delta: Changes | None) -> None:
    topic = image.topics.replay_remove(record, delta)
    image.settings.remove_configs(TOPIC_RESOURCE, topic.name, delta)


def _nothing(image: MetadataImage, record: m.NoOpRecord, delta: Changes | None) -> None:
    """Only its offset counts."""


# By the class of the record; what `_on` lets in takes a record of that class.
_REPLAY: dict[type[Struct], Callable[[MetadataImage, Any, Changes | None], None]] = {}


def _on(
    record_class: type[R], function: Callable[[MetadataImage, R, Changes | None], None]
) -> None:
    _REPLAY[record_class] = function


_on(m.RegisterBrokerRecord, lambda i, r, d: i.cluster.replay_register_broker(r, d))
_on(m.UnregisterBrokerRecord, lambda i, r, d: i.cluster.replay_unregister_broker(r, d))
_on(m.FenceBrokerRecord, lambda i, r, d: i.cluster.replay_fence(r, True, d))
_on(m.UnfenceBrokerRecord, lambda i, r, d: i.cluster.replay_fence(r, False, d))
_on(m.BrokerRegistrationChangeRecord, lambda i, r, d: i.cluster.replay_registration_change(r, d))
_on(m.RegisterControllerRecord, lambda i, r, d: i.cluster.replay_register_controller(r, d))
_on(m.UnregisterControllerRecord, lambda i, r, d: i.cluster.replay_unregister_controller(r, d))
_on(m.TopicRecord, lambda i, r, d: i.topics.replay_topic(r, d))
_on(m.PartitionRecord, lambda i, r, d: i.topics.replay_partition(r, d))
_on(m.PartitionChangeRecord, lambda i, r, d: i.topics.replay_partition_change(r, d))
_on(m.ClearElrRecord, lambda i, r, d: i.topics.replay_clear_elr(r, d))
_on(m.RemoveTopicRecord, _remove_topic)
_on(m.ConfigRecord, lambda i, r, d: i.settings.replay_config(r, d))
_on(m.ClientQuotaRecord, lambda i, r, d: i.settings.replay_quota(r, d))
_on(m.ProducerIdsRecord, lambda i, r, d: i.settings.replay_producer_ids(r, d))
_on(m.FeatureLevelRecord, lambda i, r, d: i.features.replay_level(r, d))
_on(m.ZkMigrationStateRecord, lambda i, r, d: i.features.replay_zk_migration(r))
_on(m.AccessControlEntryRecord, lambda i, r, d: i.security.replay_acl(r, d))
_on(m.RemoveAccessControlEntryRecord, lambda i, r, d: i.security.replay_remove_acl(r, d))
_on(m.UserScramCredentialRecord, lambda i, r, d: i.security.replay_scram(r, d))
_on(m.RemoveUserScramCredentialRecord, lambda i, r, d: i.security.replay_remove_scram(r, d))
_on(m.DelegationTokenRecord, lambda i, r, d: i.security.replay_token(r, d))
_on(m.RemoveDelegationTokenRecord, lambda i, r, d: i.security.replay_remove_token(r, d))
_on(m.NoOpRecord, _nothing)
