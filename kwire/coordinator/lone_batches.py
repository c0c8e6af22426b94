"""Records of one operation in batches of their own: of a transaction, or too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from kwire.coordinator import batches
from kwire.coordinator.open_batch import Encoded
from kwire.coordinator.shard_interface import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    CoordinatorRecord,
    Result,
    Shard,
)

Replay: TypeAlias = Callable[[Shard, int], None]
"""Apply the records of a batch that was appended at this offset."""


def lone_batches(
    result: Result[Any],
    encoded: Sequence[Encoded],
    wall_ms: int,
    bytes_max: int,
    base_sequence: int,
) -> list[tuple[bytearray, Replay]]:
    """The batches of `result`, in order. Raises KafkaError(MESSAGE_TOO_LARGE)."""
    producer, built = result.producer, result.built
    producer_id, epoch, _ = producer or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, None)
    if built is not None:
        batch = batches.bounded(built.batch, bytes_max)
        return [(batch, lambda shard, offset: built.replay(shard, offset, producer_id))]
    cut = batches.split(
        result.records, encoded, wall_ms, producer, bytes_max, result.atomic, base_sequence
    )
    return [(batch, partial(_replay, records, producer_id, epoch)) for batch, records in cut]


def _replay(
    records: Sequence[CoordinatorRecord], producer_id: int, epoch: int, shard: Shard, offset: int
) -> None:
    for number, record in enumerate(records, offset):
        shard.replay(record.key, record.value, number, producer_id, epoch)
