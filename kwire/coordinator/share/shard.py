"""One partition of `__share_group_state`: the share partitions whose key falls on it.

Hard state, changed by `replay` alone: the state of each share partition; the epochs that fence,
which only rise until the share partition is deleted (a state has the leader epoch of its last
record, which may be lower); how many updates there are since its last snapshot; and where that
snapshot stands in the log, by which `last_redundant_offset` knows what may be deleted. Soft state
is which topics the metadata did not have when it was asked last (`missing`, at `missing_ms`): what
becomes due over time is asked for by the service. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kwire.coordinator.deleted_topics import DeletedTopics
from kwire.coordinator.shard_interface import AnyReply, AnyResponse, Moment, Result
from kwire.coordinator.share.states import (
    SharePartitionState,
    after_update,
    from_snapshot,
    tombstone,
)
from kwire.protocol import messages as m
from kwire.protocol.structs import Message
from kwire.share.keys import SharePartitionKey


@dataclass(frozen=True, slots=True)
class ShareCoordinatorSettings:
    """The configs that a share coordinator obeys, by Kafka's names without `share.coordinator`."""

    snapshot_update_records_per_snapshot: int = 500
    cold_partition_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000
    write_timeout_ms: int = 5_000
    load_buffer_bytes: int = 5_242_880
    append_linger_ms: int = -1


class ShareShard:
    """The state of one partition. `partitions_of` gives the number of partitions of a topic by its
    id, None for one that does not exist; `has_all_of(now_ms)` says whether it knows all topics that
    were there at this time of the loop."""

    def __init__(
        self,
        settings: ShareCoordinatorSettings,
        partitions_of: Callable[[bytes], int | None],
        deleted: DeletedTopics | None = None,
        has_all_of: Callable[[int], bool] = lambda now_ms: False,
    ) -> None:
        self.settings = settings
        self.partitions_of = partitions_of
        self._deleted = DeletedTopics() if deleted is None else deleted
        self.has_all_of = has_all_of
        self.missing: frozenset[bytes] = frozenset()
        self.missing_ms = 0
        self.states: dict[SharePartitionKey, SharePartitionState] = {}
        self.leader_epochs: dict[SharePartitionKey, int] = {}
        self.state_epochs: dict[SharePartitionKey, int] = {}
        self.update_counts: dict[SharePartitionKey, int] = {}
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}
        self._last_snapshot_offset = 0

    # --- what the runtime asks ---

    def replay(
        self,
        key: Message,
        value: Message | None,
        offset: int,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """Apply one record of the log."""
        if isinstance(key, m.ShareUpdateKey):
            # Kafka writes no tombstones of updates; one would say nothing.
            if isinstance(value, m.ShareUpdateValue):
                self._replay_update(key, value)
            return
        assert isinstance(key, m.ShareSnapshotKey)
        share_key = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        self._last_snapshot_offset = offset
        if value is None:
            self._forget(share_key)
            return
        assert isinstance(value, m.ShareSnapshotValue)
        self.states[share_key] = from_snapshot(value)
        self._raise_epoch(self.leader_epochs, share_key, value.leader_epoch)
        self._raise_epoch(self.state_epochs, share_key, value.state_epoch)
        if self.is_snapshot_due(share_key):
            self.update_counts[share_key] = 0
        self._snapshot_offsets[share_key] = offset

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """`__share_group_state` is not written in transactions."""

    def loaded(self, moment: Moment) -> Result[None]:
        """What was to be done for topics that went may not have been."""
        if not self._deleted:
            return Result()
        gone = [tombstone(key) for key in self.states if key.topic_id in self._deleted]
        return Result(gone, atomic=False)

    def timers(self) -> int | None:
        return None

    def expire(self, moment: Moment) -> Result[None] | None:
        return None

    def take_replies(self) -> list[tuple[AnyReply, AnyResponse]]:
        return []

    def discard(self) -> list[AnyReply]:
        return []

    # --- what operations use ---

    def is_snapshot_due(self, key: SharePartitionKey) -> bool:
        """Whether there are so many updates that the next record is to be a snapshot."""
        limit = self.settings.snapshot_update_records_per_snapshot
        return self.update_counts.get(key, 0) >= limit

    def last_redundant_offset(self) -> int | None:
        """Nobody needs the records in front of this offset: each share partition has a snapshot
        there or behind it. None where there is nothing to delete."""
        offset = min(self._snapshot_offsets.values(), default=self._last_snapshot_offset)
        return offset if offset > 0 else None

    # --- replay ---

    def _replay_update(self, key: m.ShareUpdateKey, value: m.ShareUpdateValue) -> None:
        share_key = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        self.states[share_key] = after_update(self.states.get(share_key), value)
        self._raise_epoch(self.leader_epochs, share_key, value.leader_epoch)
        self.update_counts[share_key] = self.update_counts.get(share_key, 0) + 1

    def _forget(self, key: SharePartitionKey) -> None:
        self.states.pop(key, None)
        self.leader_epochs.pop(key, None)
        self.state_epochs.pop(key, None)
        self.update_counts.pop(key, None)
        self._snapshot_offsets.pop(key, None)

    @staticmethod
    def _raise_epoch(
        epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int
    ) -> None:
        if epoch > epochs.get(key, epoch - 1):
            epochs[key] = epoch
