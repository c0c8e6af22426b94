"""What each metadata.version switches on, as data.

A controller never assumes what the finalized metadata.version of a cluster allows: every gate and
every record version is looked up here. The table and its meaning were measured on Apache Kafka
4.4 (enum MetadataVersion); levels start at 3.3-IV3, the first one of KRaft that still is readable.
"""

from __future__ import annotations

from typing import NamedTuple


class MetadataVersion(NamedTuple):
    """One level of the feature `metadata.version`.

    `changes_records` says whether this level changed the shape of metadata records, so that a
    downgrade across it may lose something. The last five are the highest record or request version
    that a cluster at this level may use; `register_controller_record` is None where controllers
    do not register.
    """

    level: int
    name: str
    changes_records: bool
    scram: bool
    metadata_transaction: bool
    delegation_token: bool
    controller_registration: bool
    directory_assignment: bool
    elr: bool
    cordoned_log_dirs: bool
    cidr_acl: bool
    controller_unregistration: bool
    leader_epoch_bump_on_isr_shrink: bool
    migration: bool
    fetch_request: int
    list_offsets_request: int
    partition_record: int
    partition_change_record: int
    register_broker_record: int
    register_controller_record: int | None


_Y, _N = True, False
# fmt: off
_ROWS = (
    # level, name, changes records; scram, transactions, tokens, controller registration,
    # directories, ELR, cordoned directories, CIDR ACLs, controller unregistration, epoch bump on
    # ISR shrink, migration; Fetch, ListOffsets, Partition, PartitionChange, RegisterBroker,
    # RegisterController
    (7, "3.3-IV3", _Y, _N, _N, _N, _N, _N, _N, _N, _N, _N, _Y, _N,
     13, 7, 0, 0, 1, None),
    (8, "3.4-IV0", _Y, _N, _N, _N, _N, _N, _N, _N, _N, _N, _Y, _Y,
     13, 7, 0, 0, 2, None),
    (9, "3.5-IV0", _N, _N, _N, _N, _N, _N, _N, _N, _N, _N, _Y, _Y,
     14, 8, 0, 0, 2, None),
    (10, "3.5-IV1", _N, _N, _N, _N, _N, _N, _N, _N, _N, _N, _Y, _Y,
     15, 8, 0, 0, 2, None),
    (11, "3.5-IV2", _Y, _Y, _N, _N, _N, _N, _N, _N, _N, _N, _Y, _Y,
     15, 8, 0, 0, 2, None),
    (12, "3.6-IV0", _N, _Y, _N, _N, _N, _N, _N, _N, _N, _N, _N, _Y,
     15, 8, 0, 0, 2, None),
    (13, "3.6-IV1", _Y, _Y, _Y, _N, _N, _N, _N, _N, _N, _N, _N, _Y,
     15, 8, 0, 0, 2, None),
    (14, "3.6-IV2", _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _N, _N, _Y,
     15, 8, 0, 0, 2, None),
    (15, "3.7-IV0", _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _N, _Y,
     15, 8, 0, 0, 2, 0),
    (16, "3.7-IV1", _N, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _N, _Y,
     15, 8, 0, 0, 2, 0),
    (17, "3.7-IV2", _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _Y,
     15, 8, 1, 1, 3, 0),
    (18, "3.7-IV3", _N, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _Y,
     15, 8, 1, 1, 3, 0),
    (19, "3.7-IV4", _N, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _Y,
     16, 8, 1, 1, 3, 0),
    (20, "3.8-IV0", _N, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _Y,
     16, 8, 1, 1, 3, 0),
    (21, "3.9-IV0", _N, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _Y,
     17, 9, 1, 1, 3, 0),
    (22, "4.0-IV0", _N, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _N, _Y,
     17, 9, 1, 1, 3, 0),
    (23, "4.0-IV1", _Y, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     17, 9, 2, 2, 3, 0),
    (24, "4.0-IV2", _N, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     17, 9, 2, 2, 3, 0),
    (25, "4.0-IV3", _N, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     17, 10, 2, 2, 3, 0),
    (26, "4.1-IV0", _N, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     17, 10, 2, 2, 3, 0),
    (27, "4.1-IV1", _N, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     18, 10, 2, 2, 3, 0),
    (28, "4.2-IV0", _N, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     18, 10, 2, 2, 3, 0),
    (29, "4.2-IV1", _N, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _N, _Y,
     18, 11, 2, 2, 3, 0),
    (30, "4.3-IV0", _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _Y,
     18, 11, 2, 2, 4, 0),
    (31, "4.4-IV0", _N, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _N, _Y,
     18, 11, 2, 2, 4, 0),
    (32, "4.4-IV1", _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _N, _N, _Y,
     18, 11, 2, 2, 4, 0),
    (33, "4.4-IV2", _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _N, _Y,
     18, 11, 2, 2, 4, 0),
    (34, "4.5-IV0", _N, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _Y, _N, _Y,
     18, 11, 2, 2, 4, 0),
)
# fmt: on

METADATA_VERSIONS: dict[int, MetadataVersion] = {row[0]: MetadataVersion(*row) for row in _ROWS}
MINIMUM_LEVEL = min(METADATA_VERSIONS)
LATEST_PRODUCTION_LEVEL = 33
"""4.4-IV2: what a new cluster of Kafka 4.4 is formatted with."""


def metadata_version(level: int) -> MetadataVersion:
    """The gates of a level. Raises KeyError for one that Kafka 4.4 does not know."""
    return METADATA_VERSIONS[level]


def from_name(name: str) -> MetadataVersion | None:
    """The level with a name such as `4.4-IV2`, or for `4.4` its last production level."""
    found = None
    for version in METADATA_VERSIONS.values():
        if version.name == name:
            return version
        is_production = version.level <= LATEST_PRODUCTION_LEVEL
        if is_production and version.name.startswith(name + "-IV"):
            found = version
    return found


def records_changed_between(low: int, high: int) -> bool:
    """Whether a downgrade from `high` to `low` crosses a level that changed record shapes."""
    return any(METADATA_VERSIONS[level].changes_records for level in range(low + 1, high + 1))
