"""Maps that forget what is oldest: a long trace is read in bounded memory."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

ENTRIES_MAX = 20_000


class BoundedMap(Generic[Key, Value]):
    """As a dict; the oldest entry goes where there are more than `entries_max`."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries: dict[Key, Value] = {}
        self._entries_max = entries_max

    def get(self, key: Key) -> Value | None:
        """None where there is no such entry."""
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """A new entry is the youngest, also in the place of another."""
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > self._entries_max:
            del self._entries[next(iter(self._entries))]

    def pop(self, key: Key) -> Value | None:
        """Take it out."""
        return self._entries.pop(key, None)

    def keys(self) -> list[Key]:
        """The oldest first."""
        return list(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries
