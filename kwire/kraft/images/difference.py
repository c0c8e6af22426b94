"""The delta between two images, for when a snapshot replaces what was there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from kwire.kraft.images.cluster import ClusterImage
from kwire.kraft.images.delta import Changes
from kwire.kraft.images.security import SecurityImage
from kwire.kraft.images.settings import FeaturesImage, SettingsImage
from kwire.kraft.images.topics import TopicsImage

K = TypeVar("K")
V = TypeVar("V")


class Parts(Protocol):
    """All of an image (`metadata_image.py`)."""

    topics: TopicsImage
    cluster: ClusterImage
    features: FeaturesImage
    settings: SettingsImage
    security: SecurityImage


def difference(old: Parts, new: Parts, delta: Changes) -> None:
    """Report to `delta` every change that leads from `old` to `new`."""
    _topics(old, new, delta)
    _values(old.cluster.brokers, new.cluster.brokers, delta.broker_changed)
    _values(old.cluster.controllers, new.cluster.controllers, delta.controller_changed)
    _values(old.features.finalized, new.features.finalized, delta.feature_changed)
    _values(old.security.acls, new.security.acls, delta.acl_changed)
    _values(old.security.scram, new.security.scram, delta.scram_changed)
    _values(old.security.delegation_tokens, new.security.delegation_tokens, delta.token_changed)
    _keys(old.settings.configs, new.settings.configs, delta.config_changed)
    _keys(old.settings.client_quotas, new.settings.client_quotas, delta.client_quota_changed)
    if old.settings.next_producer_id != new.settings.next_producer_id:
        delta.producer_ids_changed()


def _topics(old: Parts, new: Parts, delta: Changes) -> None:
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
    old: Mapping[K, V], new: Mapping[K, V], report: Callable[[K, V | None, V | None], None]
) -> None:
    for key, value in old.items():
        if key not in new:
            report(key, value, None)
    for key, value in new.items():
        before = old.get(key)
        if before != value:
            report(key, before, value)


def _keys(
    old: Mapping[K, Mapping[str, V]],
    new: Mapping[K, Mapping[str, V]],
    report: Callable[[K, str], None],
) -> None:
    for key in {**old, **new}:
        before, after = old.get(key, {}), new.get(key, {})
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                report(key, name)
