"""The delta between two images, for when a snapshot replaces what was there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from kwire.kraft.images.delta import MetadataDelta
    from kwire.kraft.images.metadata_image import MetadataImage

K = TypeVar("K")


def difference(old: MetadataImage, new: MetadataImage, delta: MetadataDelta) -> None:
    """Tell `delta` every change that leads from `old` to `new`."""
    _topics(old, new, delta)
    _values(old.brokers, new.brokers, delta.broker_changed)
    _values(old.controllers, new.controllers, delta.controller_changed)
    _values(old.features.finalized, new.features.finalized, delta.feature_changed)
    _values(old.acls, new.acls, delta.acl_changed)
    _values(old.scram, new.scram, delta.scram_changed)
    _values(old.delegation_tokens, new.delegation_tokens, delta.token_changed)
    _keys(old.configs, new.configs, delta.config_changed)
    _keys(old.client_quotas, new.client_quotas, delta.client_quota_changed)
    if old.next_producer_id != new.next_producer_id:
        delta.producer_ids = True


def _topics(old: MetadataImage, new: MetadataImage, delta: MetadataDelta) -> None:
    for topic_id, topic in old.topics.by_id.items():
        if topic_id not in new.topics.by_id:
            delta.topic_deleted(topic)
    for topic_id, topic in new.topics.by_id.items():
        before = old.topics.by_id.get(topic_id)
        if before is None:
            delta.topic_created(topic)
        known = {} if before is None else before.partitions
        for index, partition in topic.partitions.items():
            if known.get(index) != partition:
                delta.partition_changed(topic, index, known.get(index), partition)


def _values(
    old: Mapping[K, Any], new: Mapping[K, Any], tell: Callable[[K, Any, Any], None]
) -> None:
    for key, value in old.items():
        if key not in new:
            tell(key, value, None)
    for key, value in new.items():
        before = old.get(key)
        if before != value:
            tell(key, before, value)


def _keys(
    old: Mapping[K, Mapping[str, Any]],
    new: Mapping[K, Mapping[str, Any]],
    tell: Callable[[K, str], None],
) -> None:
    for key in {**old, **new}:
        before, after = old.get(key, {}), new.get(key, {})
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                tell(key, name)
