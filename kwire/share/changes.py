"""What a share partition takes in and gives out: plain values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kwire.protocol.records.header import CONTROL_BIT, TRANSACTIONAL_BIT
from kwire.share.in_flight import RecordStatus
from kwire.share.states import RecordState


class AcquireMode(IntEnum):
    """KIP-1206: whole batches, or no more records than were asked for."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class FetchedBatch(NamedTuple):
    """The header of a record batch that was read (`records.outlines`)."""

    base_offset: int
    last_offset: int
    size_bytes: int
    attributes: int = 0
    producer_id: int = -1

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0


class Acquired(NamedTuple):
    """Records that a member has now: `delivery_count` is how often they were delivered."""

    first_offset: int
    last_offset: int
    delivery_count: int


class AcknowledgedBatch(NamedTuple):
    """What a member says of its records: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class DeadLetterCause(IntEnum):
    """Why records are archived."""

    REJECTED = 0
    EXHAUSTED = 1


class Transition(NamedTuple):
    """Records that got another state. `cause` is that of ones that are ARCHIVING."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    status: RecordStatus
    cause: DeadLetterCause | None = None


class StateChange(NamedTuple):
    """What has to be written. One that `can_fail` is taken back when it is not written."""

    transitions: tuple[Transition, ...]
    can_fail: bool
