"""Finalizable features of a cluster as data: levels, defaults, dependencies.

Measured on Apache Kafka 4.4 (enum Feature and its feature versions). kwire advertises what
Kafka 4.4 advertises, also of features that are not built yet: what is missing shows only in the
API keys.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.kraft.metadata_version import LATEST_PRODUCTION_LEVEL, METADATA_VERSIONS, MINIMUM_LEVEL

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"


class FeatureLevel(NamedTuple):
    """One level: its name, the metadata.version from which it is a new cluster's default, and
    what other features must have at least."""

    name: str
    bootstrap_metadata_level: int
    dependencies: dict[str, int]


FEATURE_LEVELS: dict[str, dict[int, FeatureLevel]] = {
    "kraft.version": {
        0: FeatureLevel("KRAFT_VERSION_0", 7, {}),
        1: FeatureLevel("KRAFT_VERSION_1", 21, {}),
    },
    "transaction.version": {
        0: FeatureLevel("TV_0", 7, {}),
        1: FeatureLevel("TV_1", 24, {}),
        2: FeatureLevel("TV_2", 24, {}),
    },
    "group.version": {
        0: FeatureLevel("GV_0", 7, {}),
        1: FeatureLevel("GV_1", 22, {}),
    },
    "eligible.leader.replicas.version": {
        0: FeatureLevel("ELRV_0", 7, {}),
        1: FeatureLevel("ELRV_1", 26, {METADATA_VERSION: 23}),
    },
    "share.version": {
        0: FeatureLevel("SV_0", 7, {}),
        1: FeatureLevel("SV_1", 28, {}),
        2: FeatureLevel("SV_2", 31, {}),
    },
    "streams.version": {
        0: FeatureLevel("SV_0", 7, {}),
        1: FeatureLevel("SV_1", 29, {}),
    },
}

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (MINIMUM_LEVEL, LATEST_PRODUCTION_LEVEL),
    **{name: (min(levels), max(levels)) for name, levels in FEATURE_LEVELS.items()},
}
"""Feature -> lowest and highest level this node supports, as it registers and advertises them."""


def default_level(feature: str, metadata_level: int) -> int:
    """The level a new cluster formatted at `metadata_level` gives a feature (0: switched off)."""
    if feature == METADATA_VERSION:
        return metadata_level
    best = 0
    for level, facts in FEATURE_LEVELS[feature].items():
        if facts.bootstrap_metadata_level <= metadata_level:
            best = max(best, level)
    return best


def default_features(metadata_level: int = LATEST_PRODUCTION_LEVEL) -> dict[str, int]:
    """Feature -> level above 0 for a new cluster, without kraft.version, metadata.version first
    and the others in alphabetical order: the order in which they are written."""
    features = {METADATA_VERSION: metadata_level}
    for name in sorted(FEATURE_LEVELS):
        level = default_level(name, metadata_level)
        if name != KRAFT_VERSION and level > 0:
            features[name] = level
    return features


def reason_unmet(feature: str, level: int, finalized: dict[str, int]) -> str | None:
    """Why `feature` may not have `level` beside the other finalized levels, or None."""
    if feature == METADATA_VERSION:
        return None
    facts = FEATURE_LEVELS.get(feature, {}).get(level)
    if facts is None:
        return f"Feature {feature} not found."
    for other, least in facts.dependencies.items():
        have = finalized.get(other, 0)
        if have < least:
            named = METADATA_VERSIONS[least].name if other == METADATA_VERSION else str(least)
            return (
                f"{feature} could not be set to {level} because it depends on {other} level "
                f"{least} ({named}), which is {have}"
            )
    return None
