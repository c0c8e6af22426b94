"""Lakes as older versions of kwire wrote them: Parquet with INT96 times and a log of commits."""

from __future__ import annotations

import datetime
import pathlib
from typing import Any

from kwire.spark.lake_files import LocalLakeFiles
from kwire.spark.lake_log import DEAD_LETTERS, RECORDS, DataFile, LakeLog

BASE_MS = 1_760_000_000_000
BATCH = 10


def _write(root: pathlib.Path, table: str, topic: str, number: int, offsets: list[int]) -> DataFile:
    import pyarrow as pa
    from pyarrow import parquet as pq

    day = datetime.datetime.fromtimestamp(BASE_MS / 1000, datetime.UTC).date().isoformat()
    folder = "" if table == RECORDS else "_dead_letter/"
    path = f"{folder}topic={topic}/date={day}/partition={number}/w.old.{offsets[0]:06d}-0.parquet"
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    columns: dict[str, Any] = {
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([BASE_MS + at for at in offsets], pa.timestamp("ms", "UTC")),
        "timestampType": pa.array([0] * len(offsets), pa.int32()),
        "key": pa.array([b"k"] * len(offsets), pa.binary()),
        "value": pa.array([b"%d" % at for at in offsets], pa.binary()),
        "headers": pa.array([None] * len(offsets), pa.list_(header)),
        "leaderEpoch": pa.array([None] * len(offsets), pa.int32()),
    }
    if table == DEAD_LETTERS:
        columns["reason"] = pa.array(["no JSON"] * len(offsets))
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), root / path, use_deprecated_int96_timestamps=True)
    size, first, last = (root / path).stat().st_size, offsets[0], offsets[-1]
    times = (BASE_MS + first, BASE_MS + last)
    return DataFile(path, table, topic, day, number, len(offsets), size, first, last, *times)


def write_lake(
    root: pathlib.Path, topics: dict[str, str], *, partitions: int, batches: int
) -> None:
    """A lake of topics ({name: id}): in each partition `batches` files of BATCH offsets, every
    fifth of them a dead letter. Offset N has the value N and the time BASE_MS + N."""
    log = LakeLog(LocalLakeFiles(str(root)), "w", "old")
    log.open(1)
    for batch in range(batches):
        offsets = list(range(batch * BATCH, (batch + 1) * BATCH))
        good, bad = [at for at in offsets if at % 5], [at for at in offsets if not at % 5]
        for topic, topic_id in topics.items():
            added = [
                _write(root, table, topic, number, chosen)
                for number in range(partitions)
                for table, chosen in ((RECORDS, good), (DEAD_LETTERS, bad))
            ]
            ends = {(topic, number): offsets[-1] + 1 for number in range(partitions)}
            log.commit(
                log.new_commit("append", 2, add=added, offsets=ends, topics={topic: topic_id})
            )
