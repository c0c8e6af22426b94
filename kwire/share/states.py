"""The states of a record in a share group, and which may follow which.

    state          is entered by                                   is left for
    AVAILABLE      nobody has it: new, released, its lock expired  ACQUIRED, ARCHIVED
    ACQUIRED       a member has it, until its lock expires         all others
    ACKNOWLEDGED   accepted                                        (final)
    ARCHIVING      rejected or exhausted: goes to dead letters     ARCHIVED
    ARCHIVED       not delivered again                             (final)

Numbers are those of `__share_group_state`. Source: KIP-932, KIP-1191.
"""

from __future__ import annotations

from enum import IntEnum

from kwire.protocol.errors import ErrorCode, KafkaError


class RecordState(IntEnum):
    """See the module."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState

TRANSITIONS: dict[RecordState, frozenset[RecordState]] = {
    AVAILABLE: frozenset((ACQUIRED, ARCHIVED)),
    ACQUIRED: frozenset((AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED)),
    ACKNOWLEDGED: frozenset(),
    ARCHIVING: frozenset((ARCHIVED,)),
    ARCHIVED: frozenset(),
}
FINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)


class AcknowledgeType(IntEnum):
    """What a member says of a record (KIP-932, RENEW: KIP-1222)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


ACKNOWLEDGED_AS: dict[int, RecordState] = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACKNOWLEDGED,
    AcknowledgeType.RELEASE: AVAILABLE,
    AcknowledgeType.REJECT: ARCHIVED,
}
"""What a record becomes; with dead letters a rejected one is ARCHIVING before."""


def invalid_record_state(message: str) -> KafkaError:
    """INVALID_RECORD_STATE: an acknowledgement does not fit the state of its records."""
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)
