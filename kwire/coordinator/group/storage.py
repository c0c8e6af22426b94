"""What `__consumer_offsets` says: the hard state of a group shard. Only `replay` changes it.

record type, key -> value (KIP-211, KIP-447, KIP-848, KIP-932, KIP-1071; versions as measured on
Apache Kafka 4.4):

    0, 1   OffsetCommit           group, topic, partition -> offset (0 is the legacy form of 1)
    2      GroupMetadata          classic group -> generation, protocol, members
    3-8, 16    consumer groups    see consumer/state.py
    10-15      share groups       carried
    17, 19-23  streams groups     carried

A commit of a transaction stays pending with its producer until the marker of the transaction
comes. Of a plain commit and one that a marker materialises the later record counts, so offsets
remember the offset of their record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kwire.coordinator.group.consumer.state import RECORD_TYPES as CONSUMER_TYPES
from kwire.coordinator.group.consumer.state import ConsumerGroup

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"

# Record type -> kind of group.
CARRIED_KINDS: dict[int, str] = {
    **dict.fromkeys((10, 11, 12, 13, 14, 15), SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), STREAMS),
}


class StoredMember(NamedTuple):
    """A member as a GroupMetadata record has it; times in milliseconds."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(NamedTuple):
    """A classic group as its last GroupMetadata record has it. A group that exists only because
    offsets were committed under its name (a simple group) has generation 0 and no protocol
    type."""

    protocol_type: str | None = None
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int | None = None
    members: tuple[StoredMember, ...] = ()


SIMPLE_GROUP = StoredGroup()


class StoredOffset(NamedTuple):
    """A committed offset. `record_offset` is where its record stands, -1 for none; `expire_ms`
    is an explicit expiry (OffsetCommit v2-4), None for the broker's retention."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None
    topic_id: bytes
    record_offset: int


Partitions = dict[int, StoredOffset]
Topics = dict[str, Partitions]


class Offsets:
    """Offsets by group, topic and partition; empty levels are removed."""

    __slots__ = ("by_group",)

    def __init__(self) -> None:
        self.by_group: dict[str, Topics] = {}

    def get(self, group_id: str, topic: str, partition: int) -> StoredOffset | None:
        topics = self.by_group.get(group_id)
        if topics is None:
            return None
        partitions = topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def _put(self, group_id: str, topic: str, partition: int, value: StoredOffset) -> None:
        topics = self.by_group.setdefault(group_id, {})
        topics.setdefault(topic, {})[partition] = value

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
        if not topics:
            del self.by_group[group_id]


CarriedKey = tuple[int, bytes]


class GroupStorage:
    """The hard state of one shard. Dictionaries are ordered by their records, so everything that
    goes over them is deterministic."""

    def __init__(self) -> None:
        self.classic: dict[str, StoredGroup] = {}
        self.consumer: dict[str, ConsumerGroup] = {}
        self.offsets = Offsets()
        # producer id -> commits that wait for its marker
        self.pending: dict[int, Offsets] = {}
        # group -> producer ids with pending commits (a dict for its order)
        self.open_transactions: dict[str, dict[int, None]] = {}
        # kind -> group -> (record type, key) -> (key message, value message)
        self.carried: dict[str, dict[str, dict[CarriedKey, tuple[Any, Any]]]] = {
            SHARE: {},
            STREAMS: {},
        }

    # ------------------------------------------------------------------ looking

    def kind(self, group_id: str) -> str | None:
        """The kind of an existing group, None when there is none of that name."""
        if group_id in self.classic:
            return CLASSIC
        if group_id in self.consumer:
            return CONSUMER
        for kind, groups in self.carried.items():
            if group_id in groups:
                return kind
        return None

    def group_ids(self) -> list[str]:
        """Every group, classic ones first."""
        ids = [*self.classic, *self.consumer]
        for groups in self.carried.values():
            ids += groups
        return ids

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
            "classic": dict(self.classic),
            "consumer": {g: x.snapshot() for g, x in self.consumer.items()},
            "offsets": self.offsets.by_group,
            "pending": {p: o.by_group for p, o in self.pending.items()},
            "open": {g: sorted(p) for g, p in self.open_transactions.items()},
            "carried": self.carried,
        }

    # ------------------------------------------------------------------ replay

    def replay(
        self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        """Apply one record (see Shard.replay)."""
        record_type = key.API_KEY
        if record_type <= 1:
            self._replay_offset(key, value, offset, producer_id)
        elif record_type == 2:
            self._replay_group(key.group, value)
        elif record_type in CONSUMER_TYPES:
            self._replay_consumer(record_type, key, value)
        else:
            self._replay_carried(record_type, key, value)

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
                        self.offsets._put(group_id, topic, partition, value)

    def _close_transaction(self, group_id: str, producer_id: int) -> None:
        producers = self.open_transactions.get(group_id)
        if producers is not None:
            producers.pop(producer_id, None)
            if not producers:
                del self.open_transactions[group_id]

    def _replay_offset(self, key: Any, value: Any, offset: int, producer_id: int) -> None:
        group_id, topic, partition = key.group, key.topic, key.partition
        if value is None:
            self.offsets._remove(group_id, topic, partition)
            self._remove_pending(group_id, topic, partition)
            return
        if self.kind(group_id) is None:
            self.classic[group_id] = SIMPLE_GROUP
        stored = _stored_offset(value, offset)
        if producer_id < 0:
            self.offsets._put(group_id, topic, partition, stored)
        else:
            self.pending.setdefault(producer_id, Offsets())._put(group_id, topic, partition, stored)
            self.open_transactions.setdefault(group_id, {})[producer_id] = None

    def _remove_pending(self, group_id: str, topic: str, partition: int) -> None:
        """A deletion reaches the commits of open transactions, too; a transaction that has no
        others of the group no longer concerns it."""
        for producer_id in list(self.open_transactions.get(group_id, ())):
            pending = self.pending[producer_id]
            pending._remove(group_id, topic, partition)
            if group_id not in pending.by_group:
                self._close_transaction(group_id, producer_id)
            if not pending.by_group:
                del self.pending[producer_id]

    def _replay_group(self, group_id: str, value: Any) -> None:
        if value is None:
            self.classic.pop(group_id, None)
        else:
            self.classic[group_id] = _stored_group(value)

    def _replay_consumer(self, record_type: int, key: Any, value: Any) -> None:
        group = self.consumer.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self.consumer[key.group_id] = ConsumerGroup()
            self._give_way(key.group_id)
        group.replay(record_type, key, value)
        if value is None and group.is_gone():
            del self.consumer[key.group_id]

    def _give_way(self, group_id: str) -> None:
        """Compaction leaves a group's offsets in front of the records that make it one of another
        kind. A simple group has no records of its own: it gives way."""
        if self.classic.get(group_id) == SIMPLE_GROUP:
            del self.classic[group_id]

    def _replay_carried(self, record_type: int, key: Any, value: Any) -> None:
        groups = self.carried[CARRIED_KINDS[record_type]]
        group_id = key.group_id
        carried_key = (record_type, key.encode(0))
        if value is not None:
            groups.setdefault(group_id, {})[carried_key] = (key, value)
            self._give_way(group_id)
            return
        records = groups.get(group_id)
        if records is None:
            return
        records.pop(carried_key, None)
        if not records:
            del groups[group_id]


def _stored_offset(value: Any, record_offset: int) -> StoredOffset:
    """From an OffsetCommitValue, or the legacy one, which lacks half of the fields."""
    expire_ms = getattr(value, "expire_timestamp", -1)
    return StoredOffset(
        offset=value.offset,
        leader_epoch=getattr(value, "leader_epoch", -1),
        metadata=value.metadata,
        commit_ms=value.commit_timestamp,
        expire_ms=None if expire_ms == -1 else expire_ms,
        topic_id=getattr(value, "topic_id", bytes(16)),
        record_offset=record_offset,
    )


def _stored_group(value: Any) -> StoredGroup:
    """From a GroupMetadataValue of any version; before version 1 members have no rebalance
    timeout, their session timeout counts for it."""
    members = tuple(
        StoredMember(
            member_id=x.member_id,
            group_instance_id=x.group_instance_id,
            client_id=x.client_id,
            client_host=x.client_host,
            rebalance_timeout_ms=(
                x.session_timeout if x.rebalance_timeout == -1 else x.rebalance_timeout
            ),
            session_timeout_ms=x.session_timeout,
            subscription=bytes(x.subscription),
            assignment=bytes(x.assignment),
        )
        for x in value.members
    )
    timestamp_ms = value.current_state_timestamp
    return StoredGroup(
        protocol_type=value.protocol_type or None,
        generation=value.generation,
        protocol=value.protocol,
        leader=value.leader,
        state_timestamp_ms=None if timestamp_ms == -1 else timestamp_ms,
        members=members,
    )
