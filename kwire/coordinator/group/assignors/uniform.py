"""The uniform assignor: as even as possible, and of those assignments one close to the present.

Where all members subscribe to the same topics everyone gets the same number of partitions, give
or take one; a member keeps what it has up to its quota. Where subscriptions differ, a member also
keeps what it has, free partitions go to their least loaded subscriber (topics with few subscribers
first), and then partitions move from loaded to less loaded subscribers of their topic until no
move makes the spread smaller.
"""

from __future__ import annotations

import heapq

from kwire.coordinator.group.assignors.spec import (
    STEPS_PER_SLICE,
    Assigning,
    GroupSpec,
    collected,
)

TopicPartition = tuple[bytes, int]
BALANCE_ROUNDS_MAX = 16


def assign_uniform(spec: GroupSpec) -> Assigning:
    """See the module."""
    if not spec.members:
        return {}
    if spec.is_homogeneous():
        return (yield from _same_subscriptions(spec))
    return (yield from _different_subscriptions(spec))


def _same_subscriptions(spec: GroupSpec) -> Assigning:
    topics = next(iter(spec.members.values())).topics
    total = sum(spec.partition_counts[topic] for topic in topics)
    quota, extra = divmod(total, len(spec.members))
    kept: dict[str, list[TopicPartition]] = {}
    owned: dict[TopicPartition, None] = {}
    steps = 0
    for member_id in spec.members:
        mine: list[TopicPartition] = []
        limit = quota + (1 if extra > 0 else 0)
        for partition in _valid_target(spec, member_id):
            if len(mine) < limit and partition not in owned:
                mine.append(partition)
                owned[partition] = None
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
        if len(mine) > quota:
            extra -= 1
        kept[member_id] = mine
    free = (
        (topic, index)
        for topic in topics
        for index in range(spec.partition_counts[topic])
        if (topic, index) not in owned
    )
    for mine in kept.values():
        wanted = quota - len(mine)
        if extra > 0 and wanted >= 0:
            wanted += 1
            extra -= 1
        for _ in range(wanted):
            mine.append(next(free))
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
    return collected(kept)


def _different_subscriptions(spec: GroupSpec) -> Assigning:
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in spec.members.items():
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(member_id)
    assigned: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in spec.members}
    owned: dict[TopicPartition, None] = {}
    steps = 0
    for member_id in spec.members:
        for partition in _valid_target(spec, member_id):
            if partition not in owned:
                owned[partition] = None
                assigned[member_id][partition] = None
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
    by_demand = sorted(subscribers, key=lambda topic: (len(subscribers[topic]), topic))
    for topic in by_demand:
        heap = [(len(assigned[member]), member) for member in subscribers[topic]]
        heapq.heapify(heap)
        for index in range(spec.partition_counts[topic]):
            if (topic, index) in owned:
                continue
            load, member_id = heap[0]
            assigned[member_id][topic, index] = None
            heapq.heapreplace(heap, (load + 1, member_id))
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
    for _ in range(BALANCE_ROUNDS_MAX):
        moved = False
        for topic in reversed(by_demand):
            moved |= _balance_topic(topic, subscribers[topic], assigned)
            yield
        if not moved:
            break
    return collected({member_id: list(mine) for member_id, mine in assigned.items()})


def _balance_topic(
    topic: bytes, members: list[str], assigned: dict[str, dict[TopicPartition, None]]
) -> bool:
    """Move partitions of one topic from its most to its least loaded subscribers."""
    if len(members) < 2:
        return False
    own = {
        member: [partition for partition in assigned[member] if partition[0] == topic]
        for member in members
    }
    least = [(len(assigned[member]), member) for member in members]
    most = [(-len(assigned[member]), member) for member in members if own[member]]
    heapq.heapify(least)
    heapq.heapify(most)
    moved = False
    while most:
        giver = _current(most, assigned, -1)
        taker = _current(least, assigned, 1)
        if len(assigned[giver]) - len(assigned[taker]) <= 1:
            break
        partition = own[giver].pop()
        del assigned[giver][partition]
        assigned[taker][partition] = None
        own[taker].append(partition)
        moved = True
        if own[giver]:
            heapq.heapreplace(most, (-len(assigned[giver]), giver))
        else:
            heapq.heappop(most)
        heapq.heapreplace(least, (len(assigned[taker]), taker))
        heapq.heappush(least, (len(assigned[giver]), giver))
    return moved


def _current(
    heap: list[tuple[int, str]], assigned: dict[str, dict[TopicPartition, None]], sign: int
) -> str:
    """The member at the top of a heap whose entries may be out of date."""
    while True:
        load, member = heap[0]
        now = sign * len(assigned[member])
        if load == now:
            return member
        heapq.heapreplace(heap, (now, member))


def _valid_target(spec: GroupSpec, member_id: str) -> list[TopicPartition]:
    """What a member has now and may keep: existing partitions of topics it subscribes to."""
    member = spec.members[member_id]
    return [
        (topic, index)
        for topic in member.topics
        for index in member.target.get(topic, ())
        if index < spec.partition_counts[topic]
    ]
