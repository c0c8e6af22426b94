"""What a table knows of its log from its own commits, and the bytes of records in its files."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from kwire.spark import footers
from kwire.spark.delta import DeltaTable

pytest.importorskip("pyspark")


def snapshot(version: int, table_id: str = "one", ids: str = "") -> Any:
    """delta-spark's snapshot of a table; `ids`: its transaction ids, by the checksum file."""
    metadata = {
        "id": table_id,
        "schemaString": json.dumps({"fields": []}),
        "partitionColumns": [],
    }
    found = MagicMock()
    found.version.return_value = version
    found.metadata().json.return_value = json.dumps({"metaData": metadata})
    found.checksumOpt().get().setTransactions().get().mkString.return_value = ids
    return found


@pytest.mark.parametrize(
    ("version", "read", "now", "expected"),
    [
        (3, 2, snapshot(3, ids="SetTransaction(a,1,None)"), {"a": 7, "b": 2}),
        (0, -1, snapshot(0, ids="SetTransaction(a,1,None)"), {"a": 7, "b": 2}),
        # Another commit lies between, lies behind it, or the table is another one.
        (4, 2, snapshot(4, ids="SetTransaction(a,1,None)"), {"a": 1}),
        (3, 2, snapshot(4, ids="SetTransaction(a,1,None)"), {"a": 1}),
        (3, 2, snapshot(3, "two", "SetTransaction(a,1,None)"), {"a": 1}),
    ],
)
def test_ids_of_a_commit_of_its_own_are_known(
    version: int, read: int, now: Any, expected: dict[str, int]
) -> None:
    table = DeltaTable(MagicMock(), "nowhere")
    table.note_applications("one", version, read, {"a": 7, "b": 2})
    assert table._state_of(now, by_checksum=True).applications == expected
    # An opening asks the whole log, whatever is known.
    now.transactions().mkString.return_value = "c -> 5"
    assert table._state_of(now).applications == {"c": 5}


def column(name: str, counted: int | None, encoded: int, *, has_statistics: bool = True) -> Any:
    statistics = MagicMock()
    statistics.getUnencodedByteArrayDataBytes().isPresent.return_value = counted is not None
    statistics.getUnencodedByteArrayDataBytes().get.return_value = counted
    found = MagicMock()
    found.getPath().toDotString.return_value = name
    found.getSizeStatistics.return_value = statistics if has_statistics else None
    found.getTotalUncompressedSize.return_value = encoded
    return found


@pytest.mark.parametrize("folder", ["/lake", "s3a://bucket/lake"])
def test_bytes_of_records_are_those_before_any_encoding(folder: str) -> None:
    """Of 1 GB in records that repeat an archive told 2.56 MB."""
    block = SimpleNamespace(
        getColumns=lambda: [
            column("key", 20, 3),
            column("value", 1_000, 40),
            column("date", 70, 5),
            column("offset", None, 8),
        ]
    )
    spark = MagicMock()
    parquet = spark._jvm.org.apache.parquet.hadoop
    footer = parquet.ParquetFileReader.open().getFooter()
    footer.getBlocks.return_value = [block, block]
    assert footers.record_bytes(spark, folder, ["a", "b"]) == 4 * 1_020
    assert footers.record_bytes(spark, folder, []) == 0
    # A writer that does not count leaves what is nearest.
    block.getColumns = lambda: [column("key", None, 3), column("value", 9, 4, has_statistics=False)]
    assert footers.record_bytes(spark, folder, ["a"]) == 14
