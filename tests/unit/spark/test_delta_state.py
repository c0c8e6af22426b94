"""What a table knows of its log from its own commits, and the bytes of records in its files."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from kwire.spark import footers
from kwire.spark.delta import DeltaTable, damaged
from kwire.spark.usage import FinalError, UsageError

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


def failing(text: str) -> Any:
    """Something that delta-spark fails at."""

    def ask() -> None:
        raise RuntimeError(text)

    return ask


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "CHECK constraint c (offset < 3) violated"),
        ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "NOT NULL constraint violated for column: x."),
        ("DELTA_CANNOT_MODIFY_APPEND_ONLY", "This table is configured to only allow appends."),
    ],
)
def test_rules_of_a_table_end_a_job_at_once(condition: str, words: str) -> None:
    """The batch was tried again for five minutes."""
    table = DeltaTable(MagicMock(), "/lake/topic.t")
    values = " by row with values:" if "VALUES" in condition else ""
    with pytest.raises(FinalError) as ended:
        table._call(failing(f"org.apache.X: [{condition}] {words}{values}\n - offset : 3\n\tat y"))
    assert str(ended.value) == f"/lake/topic.t: {words}"


def test_a_newer_protocol_is_named_whatever_delta_says_of_it(tmp_path: Path) -> None:
    """It was an action that could not be decoded, and a status that says: run it again."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    table = DeltaTable(MagicMock(), str(tmp_path))
    said = "[EXPRESSION_DECODING_FAILED] Failed to decode a row. SQLSTATE: 42846"
    known = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}
    (log / f"{0:020d}.json").write_text(f"no json\n[]\n{json.dumps(known)}\n")
    with pytest.raises(RuntimeError, match="Failed to decode"):
        table._read(failing(said))
    newer = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 8}}
    (log / f"{1:020d}.json").write_text(json.dumps(newer) + "\n")
    with pytest.raises(UsageError, match=r"needs a newer Delta: _delta_log/0+1.json .* 8 "):
        table._read(failing(said))


def test_a_file_of_the_log_that_cannot_be_read_is_named() -> None:
    text = "footer is too large: 7\nCaused by: file:/lake/t/_delta_log/02.checkpoint.parquet x"
    told = str(damaged("/lake/t", RuntimeError(text)))
    assert told.startswith("/lake/t/_delta_log/02.checkpoint.parquet: its log cannot be read: foot")
    text = "Encountered error while reading file file:/lake/t/_delta_log/02.json.  SQLSTATE: KD001"
    assert str(damaged("/lake/t", RuntimeError(text))).endswith("file:/lake/t/_delta_log/02.json.")


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
