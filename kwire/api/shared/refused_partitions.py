"""Partitions of a Fetch that are not read, and where they are among those that are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.replica.bounded_read import ReadTarget
from kwire.replica.reading import ReadResult
from kwire.server.fetch_sessions import SessionPartition

if TYPE_CHECKING:
    from kwire.replica.partition import Partition


class Refused:
    """A partition that is not read, and why."""

    __slots__ = ("request", "result")
    partition: Partition
    """There is none, and nobody asks: what is refused has no bytes."""

    def __init__(self, request: SessionPartition, result: ReadResult) -> None:
        self.request = request
        self.result = result


def parts_in_order(
    targets: Sequence[ReadTarget[SessionPartition]], refused: Sequence[Refused]
) -> Sequence[ReadTarget[SessionPartition] | Refused]:
    """In the order of the answer: what was refused is behind, unknown ids in front of the rest."""
    if refused:
        return [*targets, *sorted(refused, key=_is_named)]
    return targets


def order_of(target: ReadTarget[SessionPartition]) -> int:
    """Where a session reads it, in one that looks for partitions where nothing happens."""
    return target.request.order


def _is_named(refused: Refused) -> bool:
    return refused.request.name is not None
