"""What a run of metadata records changed, for those who publish or follow the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kwire.kraft.images.cluster import BrokerImage, ClusterChanges, ControllerImage
from kwire.kraft.images.security import (
    DelegationTokenImage,
    ScramCredential,
    SecurityChanges,
)
from kwire.kraft.images.settings import QuotaEntity, SettingsChanges
from kwire.kraft.images.topics import PartitionImage, TopicChanges, TopicImage
from kwire.security.acls.binding import AclBinding


class Changes(ClusterChanges, TopicChanges, SettingsChanges, SecurityChanges, Protocol):
    """Who is told of everything that changes."""


@dataclass(slots=True)
class PartitionDelta:
    """One partition before and after; `old` None is new, `new` None is gone with its topic."""

    topic_name: str
    topic_id: bytes
    index: int
    old: PartitionImage | None
    new: PartitionImage | None


class MetadataDelta:
    """Everything that changed, each thing once: its first old and its last new value.

    Hand one to `MetadataImage.replay`; the image calls the methods below while it changes. The
    keys of `configs` and `client_quotas` say what to read again from the image.
    """

    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "partitions",
        "producer_ids",
        "scram",
        "topics_created",
        "topics_deleted",
    )

    def __init__(self) -> None:
        self.partitions: dict[tuple[bytes, int], PartitionDelta] = {}
        self.topics_created: dict[bytes, TopicImage] = {}
        self.topics_deleted: dict[bytes, TopicImage] = {}
        self.brokers: dict[int, tuple[BrokerImage | None, BrokerImage | None]] = {}
        self.controllers: dict[int, tuple[ControllerImage | None, ControllerImage | None]] = {}
        self.configs: dict[tuple[int, str], dict[str, None]] = {}
        self.features: dict[str, tuple[int | None, int | None]] = {}
        self.acls: dict[bytes, tuple[AclBinding | None, AclBinding | None]] = {}
        self.scram: dict[
            tuple[int, str], tuple[ScramCredential | None, ScramCredential | None]
        ] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, None]] = {}
        self.delegation_tokens: dict[
            str, tuple[DelegationTokenImage | None, DelegationTokenImage | None]
        ] = {}
        self.producer_ids = False

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, name) for name in self.__slots__)

    def topic_created(self, topic: TopicImage) -> None:
        self.topics_created[topic.topic_id] = topic

    def topic_deleted(self, topic: TopicImage) -> None:
        """A topic went, with its partitions; one born in the same delta leaves no trace."""
        if self.topics_created.pop(topic.topic_id, None) is None:
            self.topics_deleted[topic.topic_id] = topic
        for index, old in topic.partitions.items():
            self.partition_changed(topic, index, old, None)

    def partition_changed(
        self, topic: TopicImage, index: int, old: PartitionImage | None, new: PartitionImage | None
    ) -> None:
        key = (topic.topic_id, index)
        before = self.partitions.get(key)
        first = old if before is None else before.old
        if first is None and new is None:
            del self.partitions[key]
        else:
            self.partitions[key] = PartitionDelta(topic.name, topic.topic_id, index, first, new)

    def broker_changed(
        self, broker_id: int, old: BrokerImage | None, new: BrokerImage | None
    ) -> None:
        first = self.brokers[broker_id][0] if broker_id in self.brokers else old
        self.brokers[broker_id] = (first, new)

    def controller_changed(
        self, controller_id: int, old: ControllerImage | None, new: ControllerImage | None
    ) -> None:
        known = controller_id in self.controllers
        first = self.controllers[controller_id][0] if known else old
        self.controllers[controller_id] = (first, new)

    def config_changed(self, resource: tuple[int, str], name: str) -> None:
        self.configs.setdefault(resource, {})[name] = None

    def feature_changed(self, name: str, old: int | None, new: int | None) -> None:
        first = self.features[name][0] if name in self.features else old
        self.features[name] = (first, new)

    def acl_changed(self, acl_id: bytes, old: AclBinding | None, new: AclBinding | None) -> None:
        first = self.acls[acl_id][0] if acl_id in self.acls else old
        self.acls[acl_id] = (first, new)

    def scram_changed(
        self, key: tuple[int, str], old: ScramCredential | None, new: ScramCredential | None
    ) -> None:
        first = self.scram[key][0] if key in self.scram else old
        self.scram[key] = (first, new)

    def producer_ids_changed(self) -> None:
        self.producer_ids = True

    def client_quota_changed(self, entity: QuotaEntity, key: str) -> None:
        self.client_quotas.setdefault(entity, {})[key] = None

    def token_changed(
        self, token_id: str, old: DelegationTokenImage | None, new: DelegationTokenImage | None
    ) -> None:
        known = token_id in self.delegation_tokens
        first = self.delegation_tokens[token_id][0] if known else old
        self.delegation_tokens[token_id] = (first, new)
