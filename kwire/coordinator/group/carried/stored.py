"""The records of groups that are not coordinated here (KIP-1071), kept as they are.

record type -> what it holds of a group (measured on Apache Kafka 4.4):

    streams  17 group, 19 member, 20 target epoch, 21 a member's target, 22 a member's tasks,
             23 topology

A group exists as long as one of its records does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.protocol.structs import Message

STREAMS = "streams"

# Record type -> kind of group.
CARRIED_KINDS: dict[int, str] = {
    **dict.fromkeys((17, 19, 20, 21, 22, 23), STREAMS),
}

# Record type, and the key's bytes.
CarriedKey = tuple[int, bytes]
CarriedGroup = dict[CarriedKey, tuple[Message, Message]]


class StoredCarriedGroups:
    """The groups of one kind on record: (key message, value message) of every record by its key.
    `on_group(group_id)` is called for a group with a record."""

    def __init__(self, name: str, on_group: Callable[[str], None]) -> None:
        self.name = name
        self.groups: dict[str, CarriedGroup] = {}
        types = [record_type for record_type, kind in CARRIED_KINDS.items() if kind == name]
        self.replayers = dict.fromkeys(types, self._replay)
        self._on_group = on_group

    def _replay(self, key: Any, value: Message | None, *_: int) -> None:
        """Any key has a group id; there is no class that all of them are of."""
        group_id: str = key.group_id
        carried_key = (key.API_KEY, key.encode(0))
        if value is not None:
            self.groups.setdefault(group_id, {})[carried_key] = (key, value)
            self._on_group(group_id)
            return
        records = self.groups.get(group_id)
        if records is None:
            return
        records.pop(carried_key, None)
        if not records:
            del self.groups[group_id]

    def snapshot(self) -> dict[str, CarriedGroup]:
        """A view, to compare two shards."""
        return self.groups
