"""Features, configs, client quotas and producer ids of the metadata image.

Replays FeatureLevelRecord, ZkMigrationStateRecord, ConfigRecord, ClientQuotaRecord and
ProducerIdsRecord.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from kwire.kraft import features as feature_facts
from kwire.kraft.images.errors import ImageError
from kwire.kraft.metadata_version import METADATA_VERSIONS, MINIMUM_LEVEL, MetadataVersion
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import VersionedRecord

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted pairs of entity type (`user`, `client-id`, `ip`) and name; None is the default entity."""

_NO_CONFIGS: Mapping[str, str] = {}


class SettingsChanges(Protocol):
    """Who is told what a replayed record changed; the new values are read from the image."""

    def feature_changed(self, name: str, old: int | None, new: int | None) -> None: ...

    def config_changed(self, resource: tuple[int, str], name: str) -> None: ...

    def client_quota_changed(self, entity: QuotaEntity, key: str) -> None: ...

    def producer_ids_changed(self) -> None: ...


class FeaturesImage:
    """Finalized feature levels above 0, metadata.version among them once it was recorded."""

    __slots__ = ("finalized", "zk_migration_state")

    def __init__(self) -> None:
        self.finalized: dict[str, int] = {}
        self.zk_migration_state = 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeaturesImage)
            and self.finalized == other.finalized
            and self.zk_migration_state == other.zk_migration_state
        )

    @property
    def metadata_version(self) -> MetadataVersion:
        """The gates of the finalized level; the lowest known one when none was recorded."""
        level = self.finalized.get(feature_facts.METADATA_VERSION, MINIMUM_LEVEL)
        return METADATA_VERSIONS[level]

    @property
    def elr_enabled(self) -> bool:
        return self.finalized.get(feature_facts.ELR_VERSION, 0) >= 1

    def replay_level(self, record: m.FeatureLevelRecord, delta: SettingsChanges | None) -> None:
        supported = feature_facts.SUPPORTED_FEATURES.get(record.name, (0, 0))
        if not supported[0] <= record.feature_level <= supported[1]:
            raise ImageError(
                f"feature {record.name} at level {record.feature_level} is not supported "
                f"(supported: {supported[0]} to {supported[1]})"
            )
        old = self.finalized.get(record.name)
        if record.feature_level == 0:
            self.finalized.pop(record.name, None)
        else:
            self.finalized[record.name] = record.feature_level
        if delta is not None:
            delta.feature_changed(record.name, old, self.finalized.get(record.name))

    def replay_zk_migration(self, record: m.ZkMigrationStateRecord) -> None:
        self.zk_migration_state = record.zk_migration_state

    def to_records(self, gates: MetadataVersion) -> Iterator[VersionedRecord]:
        named = feature_facts.METADATA_VERSION
        if named in self.finalized:
            yield m.FeatureLevelRecord(name=named, feature_level=gates.level), 0
        for name in sorted(self.finalized):
            if name != named:
                yield m.FeatureLevelRecord(name=name, feature_level=self.finalized[name]), 0
        if self.zk_migration_state and gates.migration:
            yield m.ZkMigrationStateRecord(zk_migration_state=self.zk_migration_state), 0


class SettingsImage:
    """Configs by (resource type, name), client quotas by entity, the next producer id."""

    __slots__ = ("client_quotas", "configs", "next_producer_id")

    def __init__(self) -> None:
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.next_producer_id = -1

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SettingsImage)
            and self.configs == other.configs
            and self.client_quotas == other.client_quotas
            and self.next_producer_id == other.next_producer_id
        )

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The values set on a resource; empty when there are none."""
        return self.configs.get((resource_type, name), _NO_CONFIGS)

    def replay_config(self, record: m.ConfigRecord, delta: SettingsChanges | None) -> None:
        key = (record.resource_type, record.resource_name)
        values = self.configs.get(key)
        if record.value is None:
            if values is not None:
                values.pop(record.name, None)
                if not values:
                    del self.configs[key]
        elif values is None:
            self.configs[key] = {record.name: record.value}
        else:
            values[record.name] = record.value
        if delta is not None:
            delta.config_changed(key, record.name)

    def remove_configs(self, resource_type: int, name: str, delta: SettingsChanges | None) -> None:
        """Drop all configs of a resource that is gone (a deleted topic)."""
        values = self.configs.pop((resource_type, name), None)
        if values and delta is not None:
            for config in values:
                delta.config_changed((resource_type, name), config)

    def replay_quota(self, record: m.ClientQuotaRecord, delta: SettingsChanges | None) -> None:
        pairs = [(item.entity_type, item.entity_name) for item in record.entity]
        entity = quota_entity(pairs)
        if len(entity) != len(pairs):
            raise ImageError(f"client quota entity {pairs} names a type twice")
        values = self.client_quotas.get(entity)
        if record.remove:
            if values is not None:
                values.pop(record.key, None)
                if not values:
                    del self.client_quotas[entity]
        elif values is None:
            self.client_quotas[entity] = {record.key: record.value}
        else:
            values[record.key] = record.value
        if delta is not None:
            delta.client_quota_changed(entity, record.key)

    def replay_producer_ids(
        self, record: m.ProducerIdsRecord, delta: SettingsChanges | None
    ) -> None:
        if record.next_producer_id < self.next_producer_id:
            raise ImageError(
                f"next producer id {record.next_producer_id} is below {self.next_producer_id}"
            )
        self.next_producer_id = record.next_producer_id
        if delta is not None:
            delta.producer_ids_changed()

    def configs_to_records(self) -> Iterator[VersionedRecord]:
        for resource_type, resource_name in sorted(self.configs):
            values = self.configs[resource_type, resource_name]
            for name in sorted(values):
                yield config_record(resource_type, resource_name, name, values[name]), 0

    def quotas_to_records(self) -> Iterator[VersionedRecord]:
        for entity in sorted(self.client_quotas, key=repr):
            values = self.client_quotas[entity]
            for key in sorted(values):
                yield quota_record(entity, key, values[key]), 0

    def producer_ids_to_records(self) -> Iterator[VersionedRecord]:
        if self.next_producer_id >= 0:
            yield m.ProducerIdsRecord(broker_id=-1, next_producer_id=self.next_producer_id), 0


def quota_entity(pairs: list[tuple[str, str | None]]) -> QuotaEntity:
    """The key of an entity given as pairs of type and name, in any order."""
    return tuple(sorted(dict(pairs).items(), key=lambda pair: pair[0]))


def config_record(
    resource_type: int, resource_name: str, name: str, value: str | None
) -> m.ConfigRecord:
    """A ConfigRecord; value None deletes."""
    return m.ConfigRecord(
        resource_type=resource_type, resource_name=resource_name, name=name, value=value
    )


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> m.ClientQuotaRecord:
    """A ClientQuotaRecord; value None removes the key."""
    return m.ClientQuotaRecord(
        entity=[
            m.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        key=key,
        value=0.0 if value is None else value,
        remove=value is None,
    )
