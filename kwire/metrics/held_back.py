"""Who holds back the last stable offset of a partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.metrics.blocks import Row, in_blocks, single
from kwire.replica.partition import Partition

SHOWN_MAX = 1000
PARTITIONS_A_TURN = 300
MS_PER_S = 1000


def read_held_back(partitions: Iterable[Partition], wall_ms: int, late_ms: int) -> Iterator[bytes]:
    """By partition whose last stable offset stands behind its high watermark: the producer that
    holds it back, and how long ago it has written. After `late_ms` its transaction is late."""
    rows: list[Row] = []
    late = 0
    for at, partition in enumerate(list(partitions)):
        log = partition.log
        if at % PARTITIONS_A_TURN == PARTITIONS_A_TURN - 1:
            yield b""
        if log is None or not partition.is_leader:
            continue
        stable = log.producers.first_unstable_offset
        if stable is None or stable >= log.high_watermark:
            continue
        for entry in log.producers.entries.values():
            if entry.transaction_first_offset == stable:
                age_s = round(max(0.0, (wall_ms - entry.last_timestamp) / MS_PER_S), 3)
                late += age_s * MS_PER_S > late_ms
                if len(rows) < SHOWN_MAX:
                    held = log.high_watermark - stable
                    rows.append(
                        (partition.topic, str(partition.index), str(entry.producer_id), held, age_s)
                    )
                break
    yield from in_blocks(
        ("topic", "partition", "producerId"),
        ("kwire_lso_held_back_records", "kwire_lso_held_back_seconds"),
        rows,
    )
    yield single({"kafka_server_replicamanager_partitionswithlatetransactionscount": late})
