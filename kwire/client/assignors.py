"""How the leader of a classic group shares partitions out: Kafka's range and round-robin.

An assignor takes the topics of each member and the number of partitions of each topic that is
there, and gives every member its partitions. Members are taken in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Partition: TypeAlias = tuple[str, int]
Assigned: TypeAlias = dict[str, list[Partition]]
Assignor: TypeAlias = Callable[[Mapping[str, Sequence[str]], Mapping[str, int]], Assigned]

RANGE, ROUND_ROBIN = "range", "roundrobin"


def assign_range(members: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assigned:
    """Of every topic each of its subscribers gets consecutive partitions, the first ones one more
    where they do not come out even."""
    found: Assigned = {member: [] for member in sorted(members)}
    for topic in sorted(counts):
        subscribers = [member for member in found if topic in members[member]]
        if not subscribers:
            continue
        share, more = divmod(counts[topic], len(subscribers))
        at = 0
        for position, member in enumerate(subscribers):
            end = at + share + (position < more)
            found[member] += [(topic, index) for index in range(at, end)]
            at = end
    return found


def assign_round_robin(members: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assigned:
    """All partitions in order, one after the other to the next member that subscribes to them."""
    found: Assigned = {member: [] for member in sorted(members)}
    order = list(found)
    turn = 0
    for topic in sorted(counts):
        if not any(topic in topics for topics in members.values()):
            continue
        for index in range(counts[topic]):
            while topic not in members[order[turn % len(order)]]:
                turn += 1
            found[order[turn % len(order)]].append((topic, index))
            turn += 1
    return found


ASSIGNORS: Mapping[str, Assignor] = {RANGE: assign_range, ROUND_ROBIN: assign_round_robin}
"""By the name that members agree on."""
