"""The order in which Apache Kafka 4.4 names the partitions of a share fetch's answer.

It shows: of a session, partitions that gave records go behind those that did not, in this order,
and the next fetches look at them later. The order is one of hashes of the topic's id and name and
the partition, so that two topics of the same kind differ in it. Up to four partitions stand as in
Scala's mutable hash table: by the bucket of a hash, within one by the hash. More of them stand as
in Scala's immutable map: a tree that takes five bits of a hash at each level, keys of a node in
front of the nodes below it. Measured on the classes of Apache Kafka 4.4
(`tests/golden/broker/test_share_order.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from kwire.coordinator.group.assignors.hash_order import java_hash_of_uuid
from kwire.coordinator.partitioner import java_hash
from kwire.share.sessions import PartitionKey

TABLE_MAX = 4
"""Entries of a map that Scala keeps without a tree."""
CAPACITY = 16
BITS = 5
HASHES_MAX = 10_000
"""That are kept: a fetch of many partitions asks for the same ones each time."""
MASK = 0xFFFFFFFF


def in_answer_order(keys: Collection[PartitionKey], names: dict[bytes, str]) -> list[PartitionKey]:
    """Partitions of an answer, each (topic id, partition), in Kafka's order; `names` has the names
    of their topics."""
    if len(keys) < 2:
        return list(keys)
    if len(keys) <= TABLE_MAX:
        return sorted(keys, key=lambda key: _bucket(_hash(key, names.get(key[0], ""))))
    return _in_tree({key: _improved(_hash(key, names.get(key[0], ""))) for key in keys}, 0)


@lru_cache(maxsize=HASHES_MAX)
def _hash(key: PartitionKey, name: str) -> int:
    """`TopicIdPartition.hashCode`, unsigned."""
    topic_id, index = key
    of_partition = 31 * (31 + index) + java_hash(name)
    return (31 * (31 + java_hash_of_uuid(topic_id)) + of_partition) & MASK


def _bucket(value: int) -> tuple[int, int]:
    mixed = value ^ value >> 16
    signed = mixed - (MASK + 1) if mixed > MASK >> 1 else mixed
    return mixed & (CAPACITY - 1), signed


def _improved(value: int) -> int:
    """The hash that the tree goes by."""
    value = (value + ~(value << 9)) & MASK
    value ^= value >> 14
    value = (value + (value << 4)) & MASK
    return value ^ value >> 10


def _in_tree(hashes: dict[PartitionKey, int], shift: int) -> list[PartitionKey]:
    """The keys of a node and below. Those of one hash stand as they were given."""
    if shift > 32:
        return list(hashes)
    places: dict[int, dict[PartitionKey, int]] = {}
    for key, value in hashes.items():
        places.setdefault(value >> shift & (1 << BITS) - 1, {})[key] = value
    order: list[PartitionKey] = []
    below: list[PartitionKey] = []
    for place in sorted(places):
        if len(places[place]) == 1:
            order += places[place]
        else:
            below += _in_tree(places[place], shift + BITS)
    return order + below
