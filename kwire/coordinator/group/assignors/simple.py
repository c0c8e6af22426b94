"""The simple assignor of share groups: partitions are shared, members get about the same number.

Every partition goes to the same number of members, as few as give each member one: members divided
by partitions, rounded up. So that everybody keeps what it has as far as that allows, what is not
to be had any more is taken away, then what a member has beyond its share, then members beyond a
partition's; and what is open is dealt out to those who have too little, in turns. Members whose
subscriptions differ are dealt the partitions topic by topic. Members and partitions stand in the
order of Java's hash tables, so that the result is that of Apache Kafka 4.4 (measured).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from kwire.coordinator.group.assignors.hash_order import (
    HashTable,
    capacity_for,
    in_hash_order,
    java_hash_of_partition,
    java_hash_of_uuid,
)
from kwire.coordinator.group.assignors.spec import (
    STEPS_PER_SLICE,
    Assigning,
    Assignment,
    TopicPartitions,
)
from kwire.coordinator.partitioner import java_hash

#: Members whose targets one slice takes up, or writes out.
MEMBERS_PER_SLICE = 250

TopicPartition = tuple[bytes, int]
Owned = dict[bytes, HashTable[int, None]]


class ShareMemberSpec(NamedTuple):
    """A member: the existing topics it subscribes to, and the partitions that are its target."""

    topics: tuple[bytes, ...]
    target: Mapping[bytes, tuple[int, ...]]


class ShareGroupSpec(NamedTuple):
    """The members by id, whether all subscribe to the same names, and the partitions that may be
    assigned, by topic, in ascending order."""

    members: Mapping[str, ShareMemberSpec]
    is_homogeneous: bool
    assignable: Mapping[bytes, Sequence[int]]


def assign_simple(spec: ShareGroupSpec) -> Assigning:
    """See the module."""
    member_ids = in_hash_order(spec.members, lambda x: java_hash(x) & 0xFFFFFFFF)
    members = [spec.members[member_id] for member_id in member_ids]
    owned: list[Owned] = []
    for member in members:
        owned.append(_owned(member.target))
        if len(owned) % MEMBERS_PER_SLICE == 0:
            yield
    if spec.is_homogeneous and members:
        topics = members[0].topics
        if topics:
            yield from _same_subscriptions(spec, topics, owned)
        else:
            owned = [{} for _ in members]
    else:
        subscribers: dict[bytes, list[int]] = {}
        for index, member in enumerate(members):
            for topic in member.topics:
                subscribers.setdefault(topic, []).append(index)
        if not subscribers:
            owned = [{} for _ in members]
        for topic, indexes in subscribers.items():
            yield from _of_topic(spec, topic, indexes, owned)
    result: Assignment = {}
    for member_id, mine in zip(member_ids, owned):
        result[member_id] = _plain(mine)
        if len(result) % MEMBERS_PER_SLICE == 0:
            yield
    return result


def _owned(target: Mapping[bytes, tuple[int, ...]]) -> Owned:
    owned: Owned = {}
    for topic in in_hash_order(target, java_hash_of_uuid):
        owned[topic] = _numbers(target[topic])
    return owned


def _numbers(values: Sequence[int] = ()) -> HashTable[int, None]:
    table: HashTable[int, None] = HashTable(_same)
    for value in values:
        table.put(value, None)
    return table


def _same(value: int) -> int:
    return value


def _plain(owned: Owned) -> TopicPartitions:
    return {topic: tuple(sorted(partitions.entries)) for topic, partitions in sorted(owned.items())}


class _Dealing:
    """Dealing partitions (of several topics or of one) to some of the members."""

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        members: Sequence[int],
        member_count: int,
        by_partition: HashTable[TopicPartition, HashTable[int, None]],
        new_partition_capacity: int,
        hash_of: Callable[[TopicPartition], int],
    ) -> None:
        self.partitions = partitions
        count = len(partitions)
        self.sharing = 0 if not count else (len(members) + count - 1) // count
        average = self.sharing * count / len(members)
        self.wanted = [0] * member_count
        for place, index in enumerate(members):
            self.wanted[index] = math.ceil(average * (place + 1)) - math.ceil(average * place)
        self.by_partition = by_partition
        self.by_member: dict[int, HashTable[TopicPartition, None]] = {}
        self._new_partition_capacity = new_partition_capacity
        self._hash_of = hash_of

    def has(self, index: int, partition: TopicPartition) -> None:
        """A member has a partition, from before or from now on."""
        if partition not in self.by_partition.entries:
            self.by_partition.put(partition, _numbers())
        self.by_partition.entries[partition].put(index, None)
        self._of(index).put(partition, None)

    def count(self, index: int) -> int:
        mine = self.by_member.get(index)
        return 0 if mine is None else len(mine.entries)

    def _of(self, index: int) -> HashTable[TopicPartition, None]:
        mine = self.by_member.get(index)
        if mine is None:
            mine = self.by_member[index] = HashTable(self._hash_of)
        return mine

    def take(self, index: int, partition: TopicPartition, owned: list[Owned]) -> None:
        """A member no longer has a partition."""
        del self.by_partition.entries[partition].entries[index]
        self.by_member[index].entries.pop(partition, None)
        owned[index][partition[0]].entries.pop(partition[1], None)

    def take_from_the_overfilled(self, indexes: Sequence[int], owned: list[Owned]) -> None:
        for index in indexes:
            mine = self.by_member.get(index)
            if mine is None:
                continue
            for partition in mine.keys()[: max(len(mine.entries) - self.wanted[index], 0)]:
                self.take(index, partition, owned)

    def take_from_the_overshared(self, owned: list[Owned]) -> list[int]:
        """Who has lost a partition by it."""
        lost: dict[int, None] = {}
        for partition in self.by_partition:
            sharers = self.by_partition.entries[partition]
            for index in sharers.keys()[: max(len(sharers.entries) - self.sharing, 0)]:
                self.take(index, partition, owned)
                lost[index] = None
        return list(lost)

    def deal(self, unfilled: Sequence[int], owned: list[Owned]) -> Generator[None, None, None]:
        """Deal out what is open to the `unfilled`, which are in the order of a table large enough
        for all members: ascending."""
        for partition in self.partitions:
            if partition not in self.by_partition.entries:
                table: HashTable[int, None] = HashTable(_same, self._new_partition_capacity)
                self.by_partition.put(partition, table)
        waiting = sorted(unfilled)
        if not waiting:
            return
        place, dealt, steps = 0, False, 0
        for partition in self.by_partition:
            sharers = self.by_partition.entries[partition]
            missing = self.sharing - len(sharers.entries)
            while missing > 0:
                if place >= len(waiting):
                    if not dealt:
                        break
                    place, dealt = 0, False
                    if not waiting:
                        break
                index = waiting[place]
                place += 1
                steps += 1
                if steps % STEPS_PER_SLICE == 0:
                    yield
                if index in sharers.entries:
                    continue
                self.has(index, partition)
                topic, number = partition
                owned[index].setdefault(topic, _numbers()).put(number, None)
                missing -= 1
                dealt = True
                if self.count(index) >= self.wanted[index]:
                    place -= 1
                    del waiting[place]
            if not waiting:
                break


def _same_subscriptions(
    spec: ShareGroupSpec, topics: Sequence[bytes], owned: list[Owned]
) -> Generator[None, None, None]:
    subscribed = dict.fromkeys(topics)
    partitions = [(topic, index) for topic in topics for index in spec.assignable.get(topic, ())]
    members = range(len(owned))
    dealing = _Dealing(
        partitions,
        members,
        len(owned),
        HashTable(java_hash_of_partition, capacity_for(len(partitions)), computed=True),
        16,
        java_hash_of_partition,
    )
    unfilled: list[int] = []
    overfilled: list[int] = []
    steps = 0
    for index in members:
        for topic in list(owned[index]):
            if topic not in subscribed:
                del owned[index][topic]
                continue
            for number in owned[index][topic]:
                dealing.has(index, (topic, number))
                steps += 1
                if steps % STEPS_PER_SLICE == 0:
                    yield
        if dealing.count(index) < dealing.wanted[index]:
            unfilled.append(index)
        elif dealing.count(index) > dealing.wanted[index]:
            overfilled.append(index)
    dealing.take_from_the_overfilled(overfilled, owned)
    unfilled += dealing.take_from_the_overshared(owned)
    yield from dealing.deal(list(dict.fromkeys(unfilled)), owned)


def _of_topic(
    spec: ShareGroupSpec, topic: bytes, subscribers: Sequence[int], owned: list[Owned]
) -> Generator[None, None, None]:
    partitions = [(topic, index) for index in spec.assignable.get(topic, ())]
    dealing = _Dealing(
        partitions,
        subscribers,
        len(owned),
        HashTable(_number_of, capacity_for(len(partitions)), computed=True),
        capacity_for(len(subscribers)),
        _number_of,
    )
    steps = 0
    for index, mine in enumerate(owned):
        for number in mine.get(topic, ()):
            dealing.has(index, (topic, number))
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
    dealing.take_from_the_overfilled(range(len(owned)), owned)
    dealing.take_from_the_overshared(owned)
    unfilled = [x for x in subscribers if dealing.count(x) < dealing.wanted[x]]
    yield from dealing.deal(unfilled, owned)


def _number_of(partition: TopicPartition) -> int:
    return partition[1]
