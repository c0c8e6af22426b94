"""The groups of one kind that `__consumer_offsets` has records of. Only `replay` changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar


class StoredGroup(Protocol):
    """One group: what its records say."""

    def replay(self, record_type: int | None, key: Any, value: Any) -> None: ...

    def is_gone(self) -> bool:
        """Whether no record of the group is left."""
        ...

    def snapshot(self) -> dict[str, Any]: ...


G = TypeVar("G", bound=StoredGroup)


class GroupsOnRecord(Generic[G]):
    """Groups by id, in the order of their records. `new_group()` is one without records;
    `on_group(group_id)` is called for each new one."""

    def __init__(
        self,
        name: str,
        record_types: Iterable[int],
        new_group: Callable[[], G],
        on_group: Callable[[str], None],
    ) -> None:
        self.name = name
        self.groups: dict[str, G] = {}
        self.replayers = dict.fromkeys(record_types, self._replay)
        self._new_group = new_group
        self._on_group = on_group

    def _replay(self, key: Any, value: Any, *_: int) -> None:
        """Any key of these types has a group id."""
        group_id: str = key.group_id
        group = self.groups.get(group_id)
        if group is None:
            if value is None:
                return
            group = self.groups[group_id] = self._new_group()
            self._on_group(group_id)
        group.replay(key.API_KEY, key, value)
        if value is None and group.is_gone():
            del self.groups[group_id]

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain values, to compare two shards."""
        return {group_id: group.snapshot() for group_id, group in self.groups.items()}
