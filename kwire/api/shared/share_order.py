"""The order in which Apache Kafka 4.4 names the partitions of a share fetch's answer.

It shows: of a session, partitions that gave records go behind those that did not, in this order,
and the next fetches look at them later. Kafka goes through a hash table of Scala: by the bucket of
a partition's hash, within one by the hash. Measured on Apache Kafka 4.4 (walks of several
partitions, `tests/differential/test_share_live.py`).
"""

from __future__ import annotations

from collections.abc import Collection

from kwire.coordinator.group.assignors.hash_order import java_hash_of_uuid
from kwire.coordinator.partitioner import java_hash
from kwire.share.sessions import PartitionKey

CAPACITY = 16
MASK = 0xFFFFFFFF


def in_answer_order(keys: Collection[PartitionKey], names: dict[bytes, str]) -> list[PartitionKey]:
    """Partitions of an answer, each (topic id, partition), in Kafka's order; `names` has the names
    of their topics."""
    if len(keys) < 2:
        return list(keys)
    capacity = CAPACITY
    while (len(keys) + 1) * 4 > capacity * 3:
        capacity *= 2
    mixed: dict[PartitionKey, int] = {}
    for key in keys:
        topic_id, index = key
        of_partition = 31 * (31 + index) + java_hash(names.get(topic_id, ""))
        value = (31 * (31 + java_hash_of_uuid(topic_id)) + of_partition) & MASK
        mixed[key] = value ^ value >> 16

    def place(key: PartitionKey) -> tuple[int, int]:
        value = mixed[key]
        signed = value - (MASK + 1) if value > MASK >> 1 else value
        return value & (capacity - 1), signed

    return sorted(mixed, key=place)
