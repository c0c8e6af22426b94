"""Batches as Kafka 4.4's cleaner leaves them, byte for byte where they are not compressed.

`retained` are the offsets of the records that stay, `left` what Kafka writes: nothing, the batch's
header alone (`keep_empty`), the batch itself or a new one. `empty_marker` is a marker of a
transaction without data, which is given a delete horizon.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol.records.header import HEADER_SIZE
from tests.support.kernels import record_packages
from tests.support.vectors import rows

FAR = 10**15


def left_of(records: Any, row: dict[str, Any], data: bytes) -> bytes:
    compaction = records.compaction
    header = records.parse_header(data)
    if row["empty_marker"]:
        return bytes(compaction.with_delete_horizon(data, 0, header, row["delete_horizon_ms"]))
    offsets = records.compaction_kernel.OffsetMap(24 * 100, bytes(16))
    for record in records.read_batch(data):
        offsets.put(record.key, record.offset if record.offset in row["retained"] else FAR)
    offsets.latest_offset = FAR
    left = compaction.filter_batch(
        data, 0, header, offsets, keep_tombstones=True, delete_horizon_ms=row["delete_horizon_ms"]
    )
    if left.data is not None:
        return bytes(left.data)
    return bytes(compaction.emptied(header)) if row["keep_empty"] else b""


def check(records: Any, row: dict[str, Any]) -> None:
    """Assert that kwire leaves of the row's batch what Kafka leaves."""
    left, wanted = left_of(records, row, bytes.fromhex(row["hex"])), bytes.fromhex(row["left"])
    if left == wanted:
        return
    ours, kafka_s = (records.parse_header(batch) for batch in (left, wanted))
    assert ours.is_compressed, row
    assert records.check_crc(left, 0, ours), row
    same = {"crc": 0, "size_bytes": 0}
    assert ours._replace(**same) == kafka_s._replace(**same), row
    assert records.read_batch(left) == records.read_batch(wanted), row


@pytest.mark.parametrize("records", record_packages())
def test_kwire_leaves_what_kafka_leaves(records: Any) -> None:
    for row in rows("filtered"):
        check(records, row)


def test_the_vectors_are_worth_something() -> None:
    everything = rows("filtered")
    assert any(row["left"] == row["hex"] for row in everything), "nothing goes"
    assert any(row["left"] == "" for row in everything), "the batch goes"
    assert any(len(row["left"]) == 2 * HEADER_SIZE for row in everything), "its header stays"
    some = [2 * HEADER_SIZE < len(row["left"]) < len(row["hex"]) for row in everything]
    assert any(some), "records go"
