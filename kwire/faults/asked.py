"""What a request names: topics and partitions, groups, transactional ids.

Read off any request by the names of its fields, so that each API answers without a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from kwire.protocol import messages as m
from kwire.protocol.structs import Struct
from kwire.protocol.uuids import ZERO

NameOf: TypeAlias = Callable[[bytes], str | None]
"""The name of the topic with this id."""

TOPIC_FIELDS = ("name", "topic", "topic_name")
PARTITION_FIELDS = ("partition_index", "index", "partition", "partition_id")
GROUP_FIELDS = ("group_id",)
GROUP_LISTS = ("groups_names", "group_ids")
ID_FIELDS = ("transactional_id", "v3_and_below_transactional_id")
ID_LISTS = ("transactional_ids",)
GROUP_KEY, TRANSACTION_KEY = 0, 1
CONSUMER = -1


class Entry(NamedTuple):
    """A topic or a partition that a request names; a topic as a whole has no partition."""

    topic: str | None
    partition: int | None


def topic_of(struct: Struct, name_of: NameOf) -> str | None:
    """The topic that an entry names; None where it names none."""
    topic_id = getattr(struct, "topic_id", ZERO)
    if topic_id != ZERO:
        return name_of(topic_id)
    for field in TOPIC_FIELDS:
        name = getattr(struct, field, None)
        if isinstance(name, str) and name:
            return name
    return None


def partition_of(item: Struct | int) -> int | None:
    """The partition that an entry names: the entry itself, where it is a number."""
    if isinstance(item, int):
        return item
    for field in PARTITION_FIELDS:
        index = getattr(item, field, None)
        if isinstance(index, int):
            return index
    return None


def entries_of(request: Struct, name_of: NameOf) -> list[Entry]:
    """The topics and partitions in the order of the request."""
    return list(_entries(request, name_of, None))


def _entries(struct: Struct, name_of: NameOf, topic: str | None) -> Iterator[Entry]:
    for field in struct.FIELDS:
        items = getattr(struct, field)
        if not isinstance(items, list) or not items or "forgotten" in field:
            continue
        if "partition" in field and topic is not None:
            yield from (Entry(topic, partition_of(item)) for item in items)
        elif "topic" in field:
            for item in items:
                yield from _topic_entries(item, name_of)
        elif isinstance(items[0], Struct):
            for item in items:
                yield from _entries(item, name_of, None)


def _topic_entries(item: Struct | str, name_of: NameOf) -> Iterator[Entry]:
    if isinstance(item, str):
        yield Entry(item, None)
        return
    if not isinstance(item, Struct):
        return
    name = topic_of(item, name_of)
    inner = list(_entries(item, name_of, name))
    if inner:
        yield from inner
    elif name is not None:
        yield Entry(name, None)


def groups_of(request: Struct) -> set[str]:
    """The groups that a request is about."""
    found = _named(request, GROUP_FIELDS, GROUP_LISTS)
    if isinstance(request, m.DescribeGroupsRequest):
        found.update(request.groups)
    return found | _coordinator_keys(request, GROUP_KEY)


def transactional_ids_of(request: Struct) -> set[str]:
    """The transactional ids that a request is about."""
    return _named(request, ID_FIELDS, ID_LISTS) | _coordinator_keys(request, TRANSACTION_KEY)


def _named(struct: Struct, fields: tuple[str, ...], lists: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for field in struct.FIELDS:
        value = getattr(struct, field)
        if field in fields and isinstance(value, str):
            found.add(value)
        elif field in lists:
            found.update(value or ())
        elif field in ("groups", "transactions"):
            for one in value or ():
                if isinstance(one, Struct):
                    found |= _named(one, fields, ())
    return found


def _coordinator_keys(request: Struct, key_type: int) -> set[str]:
    if not isinstance(request, m.FindCoordinatorRequest) or request.key_type != key_type:
        return set()
    return {request.key, *request.coordinator_keys} - {""}


def follower_of(request: Struct) -> int:
    """The broker that a Fetch replicates for; -1 for a consumer's, and all other requests."""
    if not isinstance(request, m.FetchRequest):
        return CONSUMER
    return max(request.replica_id, request.replica_state.replica_id)
