"""What a new active controller writes first.

In an empty log: the records that the cluster was formatted with, as the metadata transaction
`Bootstrap records` (KIP-868), in Kafka 4.4's order. In any other log: the abort of a transaction
that the previous controller left open, if there is one.
"""

from __future__ import annotations

from kwire.kraft import features as facts
from kwire.kraft.controller.results import Records
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.errors import ImageError
from kwire.kraft.metadata_version import METADATA_VERSIONS
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import VersionedRecord

TRANSACTION_NAME = "Bootstrap records"


def default_bootstrap_records(features: dict[str, int] | None = None) -> Records:
    """FeatureLevelRecords of a new cluster: what formatting writes into the `0-0` checkpoint."""
    wanted = facts.default_features() if features is None else features
    return [
        (m.FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in wanted.items()
        if level > 0 and name != facts.KRAFT_VERSION
    ]


def activation_records(
    state: ControllerState, bootstrap: Records | None, is_empty: bool
) -> Records:
    """The first records of an active controller's epoch; maybe none."""
    if not is_empty:
        if not state.image.in_transaction:
            return []
        return [(m.AbortTransactionRecord(reason="Controller failover"), 0)]
    wanted = default_bootstrap_records() if bootstrap is None else bootstrap
    level = _metadata_level(wanted)
    records: Records = []
    if state.image.in_transaction:
        records.append((m.AbortTransactionRecord(reason="Controller failover"), 0))
    records.extend(wanted)
    elr = any(
        isinstance(record, m.FeatureLevelRecord)
        and record.name == facts.ELR_VERSION
        and record.feature_level > 0
        for record, _ in wanted
    )
    if elr:
        from kwire.kraft.controller.requests.features import elr_safety_records

        records.extend(elr_safety_records(state))
    if METADATA_VERSIONS[level].metadata_transaction:
        position = 1 if state.image.in_transaction else 0
        records.insert(position, (m.BeginTransactionRecord(name=TRANSACTION_NAME), 0))
        records.append((m.EndTransactionRecord(), 0))
    return records


def _metadata_level(records: Records) -> int:
    for record, _ in records:
        if isinstance(record, m.FeatureLevelRecord) and record.name == facts.METADATA_VERSION:
            level = record.feature_level
            if level not in METADATA_VERSIONS:
                raise ImageError(f"metadata.version {level} is not supported")
            return level
    raise ImageError("the bootstrap records hold no metadata.version")


def no_op_record() -> VersionedRecord:
    """What an idle active controller appends to show that it is alive."""
    return m.NoOpRecord(), 0
