"""The batch that a partition's operations fill until it is appended.

What operations of one turn of the loop decide goes into one batch: one append, one write, one move
of the high watermark, whose replies leave together (group.coordinator.append.linger.ms, KIP-1102;
-1 is the end of the turn, Kafka's adaptive time without a thread to wait for). Records are replayed
when they are taken in, at the offsets that they will have; should the log give them others, or
refuse the batch, the shard is built anew from what the log says (DESIGN.md, decision 9).
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.protocol.records.build import MadeBatch, framed, make_plain

NO_LEADER_EPOCH = -1
Encoded = tuple[bytes, bytes | None]

# Bytes of a record's framing at most: varints of length, timestamp, offset, key and value lengths.
RECORD_OVERHEAD_BYTES = 32
BATCH_OVERHEAD_BYTES = 61


def size_of(encoded: Sequence[Encoded]) -> int:
    """What records take of a batch, at most."""
    total = RECORD_OVERHEAD_BYTES * len(encoded)
    for key, value in encoded:
        total += len(key)
        if value is not None:
            total += len(value)
    return total


class OpenBatch:
    """Plain records from `base_offset` on, at most `bytes_max` of them.

    Who has records as they stand in the log puts them into `rows`, (timestamp, `framed` record),
    and moves `next_offset` and `size_bytes`.
    """

    __slots__ = ("base_offset", "bytes_max", "next_offset", "rows", "size_bytes")

    def __init__(self, base_offset: int, bytes_max: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.bytes_max = bytes_max
        self.size_bytes = BATCH_OVERHEAD_BYTES
        self.rows: list[tuple[int, bytes]] = []

    def has_room(self, size_bytes: int) -> bool:
        return self.size_bytes + size_bytes <= self.bytes_max

    def add(self, encoded: Sequence[Encoded], size_bytes: int, wall_ms: int) -> None:
        """Take records in, all with timestamp `wall_ms`."""
        self.size_bytes += size_bytes
        self.next_offset += len(encoded)
        for key, value in encoded:
            self.rows.append((wall_ms, framed(key, value)))

    def make(self, base_sequence: int, leader_epoch: int) -> MadeBatch:
        """The batch as Kafka's coordinators write it, uncompressed and without a producer, in its
        place."""
        return make_plain(self.rows, base_sequence, self.base_offset, leader_epoch)

    def build(self, base_sequence: int) -> bytearray:
        """The same as a client would send it."""
        return bytearray(make_plain(self.rows, base_sequence, 0, NO_LEADER_EPOCH).data)
