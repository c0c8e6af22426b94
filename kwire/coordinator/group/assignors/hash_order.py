"""The order in which Java's HashMap and HashSet go through their keys.

An assignor of Apache Kafka goes through such tables, so who gets a partition follows from it. A
key stands in bucket `(hash ^ hash >>> 16) & (capacity - 1)`, keys of one bucket in the order in
which `put` and `add` brought them, the newest first where `computeIfAbsent` did; the capacity is a
power of two and doubles when three quarters are taken. (Buckets of eight keys and more become
trees in Java; their order is not followed.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_CAPACITY = 16


def java_hash_of_uuid(uuid: bytes) -> int:
    """`Uuid.hashCode` of 16 bytes, unsigned."""
    mixed = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return (mixed >> 32 ^ mixed) & 0xFFFFFFFF


def java_hash_of_partition(topic_partition: tuple[bytes, int]) -> int:
    """`TopicIdPartition.hashCode` of (topic id, partition), unsigned."""
    topic, partition = topic_partition
    return (31 * java_hash_of_uuid(topic) + partition) & 0xFFFFFFFF


def capacity_for(expected: int) -> int:
    """The capacity of a table that Kafka's assignors make for `expected` keys."""
    asked = int((expected + 1) / 0.75 + 1)
    capacity = 1
    while capacity < asked:
        capacity *= 2
    return capacity


class HashTable(Generic[K, V]):
    """A table that goes through its keys in Java's order. `hash_of` gives a key's unsigned Java
    hash; with `computed` keys come by `computeIfAbsent`."""

    __slots__ = ("_capacity", "_computed", "_hash_of", "entries")

    def __init__(
        self, hash_of: Callable[[K], int], capacity: int = DEFAULT_CAPACITY, computed: bool = False
    ) -> None:
        self.entries: dict[K, V] = {}
        self._hash_of = hash_of
        self._capacity = capacity
        self._computed = computed

    def put(self, key: K, value: V) -> None:
        if self._computed:  # grows when the next key comes
            self._grow()
        self.entries[key] = value
        if not self._computed:
            self._grow()

    def _grow(self) -> None:
        if len(self.entries) * 4 > self._capacity * 3:
            self._capacity *= 2

    def keys(self) -> list[K]:
        """All keys now, in order; the table may change meanwhile."""
        hash_of, last = self._hash_of, self._capacity - 1

        def bucket(key: K) -> int:
            value = hash_of(key)
            return (value ^ value >> 16) & last

        return sorted(reversed(self.entries) if self._computed else self.entries, key=bucket)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


def in_hash_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The keys of a Java table of the default size, filled in the order given."""
    table: HashTable[K, None] = HashTable(hash_of)
    for key in keys:
        table.put(key, None)
    return table.keys()
