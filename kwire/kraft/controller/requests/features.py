"""UpdateFeatures (KIP-584, KIP-778): levels that every node of the cluster supports."""

from __future__ import annotations

from kwire.kraft import features as facts
from kwire.kraft.controller.context import ControllerContext, KraftUpgrade
from kwire.kraft.controller.results import Records, Result
from kwire.kraft.controller.state import BROKER, MIN_ISR, ControllerState
from kwire.kraft.images.settings import config_record
from kwire.kraft.metadata_version import (
    METADATA_VERSIONS,
    MINIMUM_LEVEL,
    records_changed_between,
)
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update_features(
    state: ControllerState,
    request: m.UpdateFeaturesRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.UpdateFeaturesResponse]:
    """Answer an UpdateFeaturesRequest (versions 0-2): all updates or none."""
    updates = {
        update.feature: (update.max_version_level, _upgrade_type(update))
        for update in request.feature_updates
    }
    proposed = dict(state.image.features.finalized)
    proposed.update({name: level for name, (level, _) in updates.items()})
    records: Records = []
    for name, (level, kind) in updates.items():
        try:
            records.extend(_update(state, name, level, kind, proposed))
            if name == facts.KRAFT_VERSION and level > state.kraft_version:
                context.wanted_kraft_version = KraftUpgrade(level, request.validate_only)
        except KafkaError as error:
            context.wanted_kraft_version = None
            failed = update_failed(error)
            return [], m.UpdateFeaturesResponse(
                error_code=int(failed.code), error_message=failed.message
            )
    if request.validate_only and context.api_version >= 1:
        records = []
    response = m.UpdateFeaturesResponse(error_message=None)
    if context.api_version <= 1:
        response.results = [
            m.UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_message="NONE"
            )
            for update in request.feature_updates
        ]
    return records, response


def update_failed(error: KafkaError) -> KafkaError:
    """What one update that failed says for all of them."""
    return KafkaError(
        error.code,
        "The update failed for all features since the following feature had an error: "
        f"{error.message}",
    )


def _upgrade_type(update: m.UpdateFeaturesRequest.FeatureUpdateKey) -> int:
    """The kind of change; version 0's own way to allow a downgrade has no effect in Kafka 4.4."""
    kind = update.upgrade_type
    return kind if kind in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE) else 0


def _invalid(feature: str, level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {feature}. {reason}",
    )


def _update(
    state: ControllerState, name: str, level: int, kind: int, proposed: dict[str, int]
) -> Records:
    if kind == 0:
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    current = state.image.features.finalized.get(name, 0)
    if name == facts.KRAFT_VERSION:
        return _check_kraft_version(state, level, kind)
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    reason = reason_unsupported(state, name, level)
    if reason is not None:
        raise _invalid(name, level, reason)
    if level < current and kind == UPGRADE:
        raise _invalid(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and kind != UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")
    if name == facts.METADATA_VERSION:
        _check_metadata_version(current, level, kind)
    else:
        reason = facts.reason_unmet(name, level, proposed)
        if reason is not None:
            raise _invalid(name, level, reason)
    records: Records = []
    if name == facts.ELR_VERSION and level > 0:
        records += elr_safety_records(state)
    records.append((m.FeatureLevelRecord(name=name, feature_level=level), 0))
    return records


def _check_kraft_version(state: ControllerState, level: int, kind: int) -> Records:
    """kraft.version is in the control records of the log, not among its metadata."""
    if level < 0:
        raise _invalid(facts.KRAFT_VERSION, level, "A feature version cannot be less than 0.")
    low, high = facts.SUPPORTED_FEATURES[facts.KRAFT_VERSION]
    if not low <= level <= high:
        reason = f"Local controller {state.config.node_id} only supports versions {low}-{high}"
        raise _invalid(facts.KRAFT_VERSION, level, reason)
    if level < state.kraft_version:
        reason = "Can't downgrade the version of this feature"
        if kind == UPGRADE:
            reason += " without setting the upgrade type to either safe or unsafe downgrade"
        raise _invalid(facts.KRAFT_VERSION, level, f"{reason}.")
    return []


def elr_safety_records(state: ControllerState) -> Records:
    """Configs that ELR needs: min.insync.replicas set for the cluster and for no broker."""
    records: Records = []
    if MIN_ISR not in state.image.config(BROKER, ""):
        value = str(state.config.static_min_insync_replicas)
        records.append((config_record(BROKER, "", MIN_ISR, value), 0))
    for resource_type, name in sorted(state.image.configs):
        named = resource_type == BROKER and name
        if named and MIN_ISR in state.image.config(BROKER, name):
            records.append((config_record(BROKER, name, MIN_ISR, None), 0))
    return records


def _check_metadata_version(current: int, level: int, kind: int) -> None:
    if level not in METADATA_VERSIONS:
        raise _invalid_metadata(level, "Unknown metadata.version.")
    if level < MINIMUM_LEVEL:
        raise _invalid_metadata(
            level,
            f"Unable to set a metadata.version less than {METADATA_VERSIONS[MINIMUM_LEVEL].name}",
        )
    if level < current and records_changed_between(level, current):
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
        )


def _invalid_metadata(level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid metadata.version {level}. {reason}"
    )


def reason_unsupported(state: ControllerState, name: str, level: int) -> str | None:
    """Which node does not support a level of a feature, or None. Level 0 is always supported."""
    local = state.config.supported_features or facts.SUPPORTED_FEATURES
    reason = _reason(f"Local controller {state.config.node_id}", local.get(name), level)
    if reason is not None:
        return reason
    for broker_id in sorted(state.image.brokers):
        ranges = state.image.brokers[broker_id].features
        reason = _reason(f"Broker {broker_id}", ranges.get(name), level)
        if reason is not None:
            return reason
    if not state.gates.controller_registration:
        return None
    for controller_id in sorted(state.image.controllers):
        if controller_id == state.config.node_id:
            continue
        ranges = state.image.controllers[controller_id].features
        reason = _reason(f"Controller {controller_id}", ranges.get(name), level)
        if reason is not None:
            return reason
    for voter_id in state.voter_ids:
        if voter_id != state.config.node_id and voter_id not in state.image.controllers:
            return f"controller {voter_id} has not registered, and may not support this feature"
    return None


def _reason(who: str, supported: tuple[int, int] | None, level: int) -> str | None:
    if supported is None or supported == (0, 0):
        return None if level == 0 else f"{who} does not support this feature."
    low, high = supported
    if low <= level <= high:
        return None
    shown = str(low) if low == high else f"{low}-{high}"
    return f"{who} only supports versions {shown}"
