"""When shards have something to do over time: one timer a shard, at the first of its deadlines.

What is due runs in slices: a timer that finds more to do than fits into one sets itself again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kwire.clock import Clock
from kwire.coordinator.loading import SLICE_STEPS_MAX
from kwire.coordinator.partition import PartitionShard, ShardState
from kwire.coordinator.shard_interface import Loop, Moment, Shard

S = TypeVar("S", bound=Shard)

SLICE_MS = 1
"""What is begun then may take longer, and the loop has other work in the same turn."""


class ShardTimers(Generic[S]):
    """`expire_one(shard, moment)` runs what is due first, False when that was nothing, or the last
    thing of this shard; `settle(shard)` follows a slice, and has the timer set again."""

    def __init__(
        self,
        loop: Loop,
        clock: Clock,
        expire_one: Callable[[PartitionShard[S], Moment], bool],
        settle: Callable[[PartitionShard[S]], None],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._expire_one = expire_one
        self._settle = settle

    def arm(self, current: PartitionShard[S]) -> None:
        """Set the timer of an active shard, unless it fires early enough."""
        if current.state is not ShardState.ACTIVE:
            return
        deadline_ms = current.shard.timers()
        if current.shard_timer is not None:
            if deadline_ms is not None and current.shard_timer_ms <= deadline_ms:
                return  # fires early at worst, and then sets itself anew
            current.shard_timer.cancel()
            current.shard_timer = None
        if deadline_ms is not None:
            generation = current.generation
            current.shard_timer_ms = deadline_ms
            current.shard_timer = self._loop.call_at(
                deadline_ms / 1000, lambda: self._due(current, generation)
            )

    def _due(self, current: PartitionShard[S], generation: int) -> None:
        if current.generation != generation or current.state is not ShardState.ACTIVE:
            return
        current.shard_timer = None
        ends_at = self._loop.time() + SLICE_MS / 1000
        for _ in range(SLICE_STEPS_MAX):
            # Rounding up by half a millisecond: a loop may call a little before the deadline.
            current.now_ms = int(self._loop.time() * 1000 + 0.5)
            moment = Moment(current.now_ms, self._clock.wall_ms())
            if not self._expire_one(current, moment) or self._loop.time() >= ends_at:
                break
            if current.generation != generation:
                return
        self._settle(current)
