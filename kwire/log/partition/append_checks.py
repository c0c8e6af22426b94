"""What comes before an append: batches are checked, and get their offsets, before anything changes.

The usual batch takes a shorter way (`batch_rules.stamp_plain`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.log.files import Buffer
from kwire.log.partition.batch_rules import (
    Marker,
    check_follower_batches,
    check_leader_batches,
    check_made_size,
    read_marker,
    rules_of,
    split,
)
from kwire.log.partition.config import LONG_MAX, LogConfig
from kwire.log.partition.deferred_checks import check_or_defer
from kwire.log.partition.producers import BatchMetadata, Producers, VerificationGuard
from kwire.log.types import Origin
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import CREATE_TIME, BatchHeader, build_batch
from kwire.protocol.records.build import MadeBatch
from kwire.protocol.records.control import TransactionMarker
from kwire.protocol.records.validation import (
    CheckedBatch,
    ValidatedBatch,
    checking_steps,
    takes_long,
    validate_for_append,
)

GAP_MAX = 1 << 30  # offsets that a batch without records stands for


class PlacedBatch(NamedTuple):
    """A checked batch, alone in `data`, with the offsets that it gets."""

    header: BatchHeader
    data: Buffer
    max_timestamp: int
    marker: Marker | None
    is_owned: bool


class LeaderChecks:
    """The checks of a leader, by a topic's configs. `plain_bytes_max` is what `stamp_plain` takes
    without a closer look at the size."""

    __slots__ = ("_config", "_name", "_producers", "plain_bytes_max", "rules")

    def __init__(self, config: LogConfig, name: str, producers: Producers) -> None:
        self._config = config
        self._name = name
        self._producers = producers
        self.rules = rules_of(config, name)
        self.plain_bytes_max = min(config.max_message_bytes, config.segment_bytes)

    def takes_made(self, header: BatchHeader, wall_ms: int) -> bool:
        """Whether a batch of records with keys, made here, fulfils the topic's rules as it is: no
        other codec or timestamps are asked for, and none of its timestamps can be refused."""
        rules = self.rules
        return (
            header.size_bytes <= self.plain_bytes_max
            and not rules.codec
            and rules.timestamp_type == CREATE_TIME
            and rules.timestamp_before_max_ms == LONG_MAX
            and header.max_timestamp - wall_ms <= rules.timestamp_after_max_ms
        )

    def place(
        self,
        batches: Buffer | Sequence[Buffer] | TransactionMarker,
        base_offset: int,
        leader_epoch: int,
        origin: Origin,
        guard: VerificationGuard | None,
        transaction_version: int,
        now_ms: int,
        may_wait: bool,
        checked: CheckedBatch | None,
    ) -> list[PlacedBatch] | BatchMetadata:
        """The batches, stamped from `base_offset` on; for one that is there already what is known.

        `checked` is the outcome of checks that were put off; the others are as `append_as_leader`
        takes them. Raises KafkaError, CheckLaterError.
        """
        if isinstance(batches, TransactionMarker):
            made = batches.made(base_offset, leader_epoch)
            if self.takes_made(made.header, now_ms):
                return [self._placed_marker(batches, made, origin, transaction_version)]
            batches = batches.batch()
        placed: list[PlacedBatch] = []
        found: list[tuple[BatchHeader, Buffer]]
        if checked is not None and checked.rules is self.rules:
            found = [(checked.header, checked.buffer)]
        else:
            checked = None
            found = split(batches)
            check_leader_batches(found, self._config, origin, self._name)
        for header, view in found:
            valid = self._validated(
                header, view, origin, now_ms, base_offset, leader_epoch, checked, may_wait
            )
            header = valid.header
            marker: Marker | None = None
            if header.producer_id >= 0:
                if len(found) > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_RECORD, "A batch with a producer id comes alone"
                    )
                if header.is_control:
                    marker = self._checked_marker(header, valid.buffer, origin, transaction_version)
                else:
                    known = self._producers.check_data(header, base_offset, origin, guard)
                    if known is not None:
                        return known
            is_owned = valid.buffer is not view
            placed.append(
                PlacedBatch(header, valid.buffer, valid.info.max_timestamp, marker, is_owned)
            )
            base_offset = header.next_offset
        return placed

    def _validated(
        self,
        header: BatchHeader,
        view: Buffer,
        origin: Origin,
        now_ms: int,
        base_offset: int,
        leader_epoch: int,
        checked: CheckedBatch | None,
        may_wait: bool,
    ) -> ValidatedBatch:
        """The batch in its place, if it fulfils the topic's rules."""
        client, rules = origin == Origin.CLIENT, self.rules
        if checked is None and may_wait and takes_long(header, rules):
            steps = checking_steps(view, 0, header, rules, client=client, wall_ms=now_ms)
            checked = check_or_defer(steps, header.size_bytes)
        if checked is not None:
            valid = checked.stamped(base_offset, leader_epoch)
        else:
            valid = validate_for_append(
                view,
                0,
                header,
                rules,
                client=client,
                wall_ms=now_ms,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
            )
        if rules.codec is not None:
            check_made_size(valid.header, self._config, origin, self._name)
        return valid

    def _placed_marker(
        self, told: TransactionMarker, made: MadeBatch, origin: Origin, transaction_version: int
    ) -> PlacedBatch:
        """A marker that was made here, in its place, if the transaction may end so."""
        header = made.header
        if header.producer_id < 0:  # no producer's: nothing is known of it
            return PlacedBatch(header, made.data, told.timestamp_ms, None, True)
        self._producers.check_marker(
            header, told.coordinator_epoch, header.base_offset, origin, transaction_version
        )
        marker = Marker(told.coordinator_epoch, told.timestamp_ms, not told.commit)
        return PlacedBatch(header, made.data, told.timestamp_ms, marker, True)

    def _checked_marker(
        self, header: BatchHeader, data: Buffer, origin: Origin, transaction_version: int
    ) -> Marker | None:
        marker = read_marker(data)
        if marker is not None:
            self._producers.check_marker(
                header,
                marker.coordinator_epoch,
                header.base_offset,
                origin,
                transaction_version,
            )
        return marker


def place_as_sent(
    batches: Buffer | Sequence[Buffer], next_offset: int, latest_epoch: int, name: str
) -> list[PlacedBatch]:
    """A follower's batches, which keep what the leader gave them.

    Raises KafkaError(CORRUPT_MESSAGE) where they do not follow on the log.
    """
    found = split(batches)
    check_follower_batches(found, next_offset, latest_epoch, name)
    placed: list[PlacedBatch] = []
    for header, view in found:
        marker = None
        if header.producer_id >= 0 and header.is_control:
            marker = read_marker(view)
        placed.append(PlacedBatch(header, view, header.max_timestamp, marker, False))
    return placed


def batches_without_records(first: int, end: int, leader_epoch: int) -> Iterator[Buffer]:
    """What stands for the offsets from `first` up to `end` where their records are lost, as what
    compaction leaves of a batch does."""
    while first < end:
        last_offset = min(end - 1, first + GAP_MAX)
        yield build_batch([], base_offset=first, last_offset=last_offset, leader_epoch=leader_epoch)
        first = last_offset + 1
