"""What `__consumer_offsets` says: the hard state of a group shard. Only `replay` changes it.

record type, key -> value (KIP-211, KIP-447, KIP-848, KIP-932, KIP-1071; versions as measured on
Apache Kafka 4.4):

    0, 1   OffsetCommit           group, topic, partition -> offset (0 is the legacy form of 1)
    2      GroupMetadata          see classic/stored.py
    3-8, 16    consumer groups    see consumer/state.py
    10-15      share groups       see share/state.py
    17, 19-23  streams groups     see carried/stored.py

A commit of a transaction stays pending with its producer until the marker of the transaction
comes. Of a plain commit and one that a marker materialises the later record counts, so offsets
remember the offset of their record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from kwire.coordinator.group.carried.stored import STREAMS, StoredCarriedGroups
from kwire.coordinator.group.classic.stored import StoredClassicGroups
from kwire.coordinator.group.consumer.state import StoredConsumerGroups
from kwire.coordinator.group.counts import GroupCounts
from kwire.coordinator.group.share.state import StoredShareGroups
from kwire.coordinator.group.stored_offsets import Offsets, StoredOffset
from kwire.protocol import messages as m
from kwire.protocol.structs import Message

# Applies a record: its key and value, which are the messages of the type that the replayer is
# registered for, its offset, and the producer id of a transaction or -1.
Replayer: TypeAlias = Callable[[Any, Any, int, int], None]


class StoredGroups(Protocol):
    """The groups of one kind on record."""

    @property
    def name(self) -> str:
        """The kind's name, which is the type of its groups in ListGroups."""
        ...

    @property
    def groups(self) -> Collection[str]:
        """Their ids."""
        ...

    @property
    def replayers(self) -> Mapping[int, Replayer]:
        """By the types of the kind's records."""
        ...

    def snapshot(self) -> Mapping[str, Any]:
        """Everything as plain values by group id, to compare two shards."""
        ...


class OffsetRecord(NamedTuple):
    """A committed offset that is stored."""

    key: m.OffsetCommitKey
    value: m.OffsetCommitValue


class GroupStorage:
    """The hard state of one shard: the groups of every kind, and the offsets of all of them.
    Dictionaries are ordered by their records, so everything that goes over them is
    deterministic. `counts` is no state: it is shared by the shards of a coordinator."""

    def __init__(self, counts: GroupCounts | None = None) -> None:
        self.counts = counts or GroupCounts()
        self.classic = StoredClassicGroups()
        self.consumer = StoredConsumerGroups(self.classic.drop_simple)
        self.share = StoredShareGroups(self.classic.drop_simple)
        self.streams = StoredCarriedGroups(STREAMS, self.classic.drop_simple)
        self.kinds: tuple[StoredGroups, ...] = (
            self.classic,
            self.consumer,
            self.share,
            self.streams,
        )
        self._replayers: dict[int | None, Replayer] = {
            0: self._replay_offset,
            1: self._replay_offset,
        }
        self._replayers |= {
            record_type: replayer
            for kind in self.kinds
            for record_type, replayer in kind.replayers.items()
        }
        self.offsets = Offsets()
        # producer id -> commits that wait for its marker
        self.pending: dict[int, Offsets] = {}
        # group -> producer ids with pending commits (a dict for its order)
        self.open_transactions: dict[str, dict[int, None]] = {}

    # ------------------------------------------------------------------ queries

    @property
    def is_empty(self) -> bool:
        """Whether it has neither a group nor an offset that counts."""
        return not (
            self.offsets.by_group
            or self.classic.groups
            or self.consumer.groups
            or self.share.groups
            or self.streams.groups
        )

    def kind(self, group_id: str) -> str | None:
        """The kind of an existing group, None when there is none of that name."""
        for kind in self.kinds:
            if group_id in kind.groups:
                return kind.name
        return None

    def group_ids(self) -> list[str]:
        """Every group, classic ones first."""
        return [group_id for kind in self.kinds for group_id in kind.groups]

    def has_open_transactions(self, group_id: str) -> bool:
        """Whether a transaction that is still open has committed offsets of the group."""
        return bool(self.open_transactions.get(group_id))

    def has_pending_offset(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that is still open has committed an offset for the partition."""
        for producer_id in self.open_transactions.get(group_id, ()):
            if self.pending[producer_id].get(group_id, topic, partition) is not None:
                return True
        return False

    def offset_keys(self, group_id: str) -> list[tuple[str, int]]:
        """(topic, partition) of every offset of the group, committed ones first, each once."""
        keys: dict[tuple[str, int], None] = {}
        stores = [self.offsets]
        stores += [self.pending[p] for p in self.open_transactions.get(group_id, ())]
        for store in stores:
            for topic, partitions in store.by_group.get(group_id, {}).items():
                for partition in partitions:
                    keys[topic, partition] = None
        return list(keys)

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain values, to compare two shards."""
        return {
            **{kind.name: kind.snapshot() for kind in self.kinds},
            "offsets": self.offsets.by_group,
            "pending": {p: o.by_group for p, o in self.pending.items()},
            "open": {g: sorted(p) for g, p in self.open_transactions.items()},
        }

    # ------------------------------------------------------------------ replay

    def replay(
        self,
        key: Message,
        value: Message | None,
        offset: int,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """Apply one record (see Shard.replay)."""
        self._replayers[key.API_KEY](key, value, offset, producer_id)

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Materialise or drop what the producer's transaction has committed (KIP-447)."""
        pending = self.pending.pop(producer_id, None)
        if pending is None:
            return
        for group_id, topics in pending.by_group.items():
            self._close_transaction(group_id, producer_id)
            if not commit:
                continue
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    existing = self.offsets.get(group_id, topic, partition)
                    if existing is None or value.record_offset > existing.record_offset:
                        self.offsets.put(group_id, topic, partition, value)

    def _close_transaction(self, group_id: str, producer_id: int) -> None:
        producers = self.open_transactions.get(group_id)
        if producers is not None:
            producers.pop(producer_id, None)
            if not producers:
                del self.open_transactions[group_id]

    def _replay_offset(
        self,
        key: m.OffsetCommitKey | m.LegacyOffsetCommitKey,
        value: m.OffsetCommitValue | m.LegacyOffsetCommitValue | None,
        offset: int,
        producer_id: int,
    ) -> None:
        group_id, topic, partition = key.group, key.topic, key.partition
        if value is None:
            self.offsets.remove(group_id, topic, partition)
            self._remove_pending(group_id, topic, partition)
            return
        stored = _stored_offset(value, offset)
        if producer_id < 0:
            self.replay_committed(group_id, topic, partition, stored)
        else:
            self._add_group(group_id)
            self.pending.setdefault(producer_id, Offsets()).put(group_id, topic, partition, stored)
            self.open_transactions.setdefault(group_id, {})[producer_id] = None

    def replay_offsets(
        self, records: Sequence[OffsetRecord], offset: int, producer_id: int
    ) -> None:
        """`replay` of many offsets of one group, none of them a deletion, from `offset` on."""
        group_id = records[0].key.group
        self._add_group(group_id)
        offsets = self.offsets
        if producer_id >= 0:
            offsets = self.pending.setdefault(producer_id, Offsets())
            self.open_transactions.setdefault(group_id, {})[producer_id] = None
        topics = offsets.by_group.setdefault(group_id, {})
        for record_offset, (key, value) in enumerate(records, offset):
            stored = _stored_offset(value, record_offset)
            topics.setdefault(key.topic, {})[key.partition] = stored

    def replay_committed(
        self, group_id: str, topic: str, partition: int, stored: StoredOffset
    ) -> None:
        """What the record of an offset says that is committed outside of transactions."""
        self._add_group(group_id)
        self.offsets.put(group_id, topic, partition, stored)

    def _add_group(self, group_id: str) -> None:
        """Who commits is a group: a classic one, if it is none yet."""
        if group_id not in self.classic.groups and self.kind(group_id) is None:
            self.classic.add_simple(group_id)

    def _remove_pending(self, group_id: str, topic: str, partition: int) -> None:
        """A deletion reaches the commits of open transactions, too; a transaction that has no
        others of the group no longer concerns it."""
        for producer_id in list(self.open_transactions.get(group_id, ())):
            pending = self.pending[producer_id]
            pending.remove(group_id, topic, partition)
            if group_id not in pending.by_group:
                self._close_transaction(group_id, producer_id)
            if not pending.by_group:
                del self.pending[producer_id]


def _stored_offset(
    value: m.OffsetCommitValue | m.LegacyOffsetCommitValue, record_offset: int
) -> StoredOffset:
    """The legacy value lacks half of the fields."""
    if isinstance(value, m.LegacyOffsetCommitValue):
        return StoredOffset(
            offset=value.offset,
            leader_epoch=-1,
            metadata=value.metadata,
            commit_ms=value.commit_timestamp,
            expire_ms=None,
            topic_id=bytes(16),
            record_offset=record_offset,
        )
    expire_ms = value.expire_timestamp
    return StoredOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if expire_ms == -1 else expire_ms,
        value.topic_id,
        record_offset,
    )
