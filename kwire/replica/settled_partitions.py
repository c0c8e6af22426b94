"""Partitions of which a follower has asked its leader for nothing new, and has got nothing new.

Until something of them moves here, or the leader says something, the next fetch asks for nothing
new again: nobody has to look at each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.replica.partition import Partition


class SettledPartitions:
    """A `LogWatcher` of all of them."""

    __slots__ = ("_partitions", "is_over")

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = partitions
        self.is_over = False
        for partition in partitions:
            partition.watch(self)

    def disturbed(self) -> None:
        """See LogWatcher; for whoever does not rely on it any more as well."""
        if not self.is_over:
            self.is_over = True
            for partition in self._partitions:
                partition.unwatch(self)

    def follower_fetched(self, replica_id: int) -> None:
        """See LogWatcher. That is another matter."""
