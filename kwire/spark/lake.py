"""A lake: Parquet files by topic, date and partition, and the log that says which of them count.

    topic=T/date=YYYY-MM-DD/partition=N/WRITER.SESSION.SEQ-....parquet
    _dead_letter/topic=T/...                       values that could not be decoded, with a reason
    _kwire/                                        the commit log (lake_log.py)

Plain readers may read the folder as a Parquet table: it holds what is committed, but for the
moments while a batch is being committed and until a killed writer has been started again.
"""

from __future__ import annotations

import contextlib
import os
import urllib.parse
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from kwire.spark.lake_files import is_local, open_lake_files
from kwire.spark.lake_log import DEAD_LETTERS, RECORDS, DataFile, LakeLog, LakeState
from kwire.spark.usage import JobError

DEAD_LETTER_FOLDER = "_dead_letter"
# Hadoop's, below each folder that is written to.
GATHERING_FOLDER = "_temporary"
HEADERS = "array<struct<key: string, value: binary>>"
DATA_SCHEMA = (
    "offset bigint, timestamp timestamp, timestampType int, key binary, value binary, "
    f"headers {HEADERS}, leaderEpoch int"
)
DECODED_SCHEMA = "valueSchemaId int, valueJson string"
REASON_SCHEMA = "reason string"
PARTITION_SCHEMA = "topic string, date string, partition int"
LAKE_SCHEMA = f"{DATA_SCHEMA}, {DECODED_SCHEMA}, {REASON_SCHEMA}, {PARTITION_SCHEMA}"
RECORD_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "leaderEpoch",
)
# Spark takes a path for a pattern otherwise, and a lake may lie in a folder of any name.
PLAIN_PATHS = ("__globPaths__", "false")
PARTITION_COLUMNS = ("topic", "date", "partition")
LAKE_COLUMNS = (*RECORD_COLUMNS, "date", "valueSchemaId", "valueJson", "reason")


def folder_of(table: str) -> str:
    """The folder of a table, relative to the lake; the records' is the lake itself."""
    return DEAD_LETTER_FOLDER if table == DEAD_LETTERS else ""


def read_files(spark: Any, root: str, files: Sequence[DataFile]) -> Any:
    """A frame of these files' rows with LAKE_SCHEMA; empty without any."""
    frames = []
    for table in (RECORDS, DEAD_LETTERS):
        base = "/".join(filter(None, (root, folder_of(table))))
        paths = [f"{root}/{file.path}" for file in files if file.table == table]
        if paths:
            reader = spark.read.schema(LAKE_SCHEMA).option(*PLAIN_PATHS).option("basePath", base)
            frames.append(reader.parquet(*paths))
    if not frames:
        return spark.createDataFrame([], LAKE_SCHEMA)
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def write_frame(
    frame: Any, root: str, table: str, prefix: str, codec: str
) -> tuple[set[tuple[str, ...]], int]:
    """Write rows into a table; (the (topic, date, partition) folders that got a file, rows).

    Rows of one task and folder go to one file in the order of their offsets. File names begin
    with `prefix`, WRITER.SESSION.SEQ: those of an attempt that came to nothing can be told.
    Hadoop gathers all that is written to a folder in one place below it, and empties that at the
    end: writers of one lake would take each other's files away. Each has a place of its own.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observed = Observation()
    names = f.struct(*(f.col(name).cast("string") for name in PARTITION_COLUMNS))
    target = "/".join(filter(None, (root, folder_of(table))))
    place = str(zlib.crc32(prefix.split(".")[0].encode()) & 0x7FFFFFFF)
    writer = (
        frame.observe(observed, f.collect_set(names).alias("folders"), f.count("*").alias("rows"))
        .sortWithinPartitions(*PARTITION_COLUMNS, "offset")
        .write.mode("append")
        .partitionBy(*PARTITION_COLUMNS)
        .option("mapreduce.output.basename", prefix)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .option("mapreduce.job.application.attempt.id", place)
        .option("mapreduce.fileoutputcommitter.cleanup.skipped", "true")
        .option("compression", codec)
    )
    try:
        writer.parquet(target)
    except Exception:
        # On a full disk it is what is in the way.
        with contextlib.suppress(Exception):
            _remove_gathering_place(frame.sparkSession, f"{target}/{GATHERING_FOLDER}", place)
        raise
    _remove_gathering_place(frame.sparkSession, f"{target}/{GATHERING_FOLDER}", place)
    found = observed.get
    return {tuple(row) for row in found["folders"] or []}, found["rows"]


def _remove_gathering_place(spark: Any, folder: str, place: str) -> None:
    """Remove what a write leaves in its place, and the folder of all places when it is empty."""
    path_of: Any = spark._jvm.org.apache.hadoop.fs.Path
    system = path_of(folder).getFileSystem(spark._jsc.hadoopConfiguration())
    system.delete(path_of(f"{folder}/{place}"), True)
    if is_local(folder):
        with contextlib.suppress(OSError):
            os.rmdir(open_lake_files(folder).root)


def write_table(
    spark: Any, frame: Any, root: str, table: str, prefix: str, codec: str
) -> list[DataFile]:
    """Write rows into a table; the files that hold them, to be named by a commit.

    Raises JobError where they hold other rows than were written: somebody has taken files away.
    """
    folders, rows = write_frame(frame, root, table, prefix, codec)
    found = written_files(spark, root, table, folders, prefix)
    records = sum(file.records for file in found)
    if records != rows:
        raise JobError(f"{rows} records were written to {root}, its files hold {records}")
    return found


def written_files(
    spark: Any, root: str, table: str, folders: Iterable[tuple[str, ...]], prefix: str
) -> list[DataFile]:
    """What a write has left in these folders: counted from the files themselves."""
    from pyspark.sql import functions as f

    base = "/".join(filter(None, (root, folder_of(table))))
    paths = [f"{base}/topic={t}/date={d}/partition={p}" for t, d, p in sorted(folders)]
    if not paths:
        return []
    frame = (
        spark.read.schema(LAKE_SCHEMA)
        .option(*PLAIN_PATHS)
        .option("basePath", base)
        .option("pathGlobFilter", f"{prefix}-*")
        .parquet(*paths)
        .select("*", "_metadata.file_path", "_metadata.file_size")
        .groupBy("file_path", "file_size", *PARTITION_COLUMNS)
        .agg(
            f.count("*"),
            f.min("offset"),
            f.max("offset"),
            f.min(f.unix_millis("timestamp")),
            f.max(f.unix_millis("timestamp")),
        )
    )
    found = []
    for (
        path,
        size,
        topic,
        date,
        partition,
        count,
        first,
        last,
        first_ms,
        last_ms,
    ) in frame.collect():
        inner = "topic=" + urllib.parse.unquote(path).rsplit("/topic=", 1)[1]
        relative = "/".join(filter(None, (folder_of(table), inner)))
        found.append(
            DataFile(
                relative,
                table,
                topic,
                date,
                int(partition),
                count,
                size,
                first,
                last,
                first_ms,
                last_ms,
            )
        )
    return sorted(found)


def remove_orphans(log: LakeLog) -> int:
    """Remove the data files of this writer that no commit names: what killed attempts left.

    Listed first, then the log is read: where this session is still the newest one then, no file
    of the list is another's who is at work. Raises FinalError where it is not.
    """
    found = _files_named(log, f"{log.writer}.")
    return _delete_unnamed(log, found, log.confirm())


def discard_session(log: LakeLog) -> None:
    """Remove what this session has written and not committed; also after it was replaced."""
    found = _files_named(log, f"{log.writer}.{log.session}.")
    _delete_unnamed(log, found, log.load() if found else log.state)


def _delete_unnamed(log: LakeLog, found: Iterable[str], state: LakeState) -> int:
    """Delete those files that no commit names; how many."""
    left = [path for path in found if path not in state.files and path not in state.removed]
    log.files.delete(left)
    return len(left)


def _files_named(log: LakeLog, start: str) -> list[str]:
    return [
        info.path
        for info in log.files.walk("")
        if not info.path.startswith("_kwire/") and info.path.rsplit("/", 1)[-1].startswith(start)
    ]


def small_files(
    state: LakeState, target_bytes: int, files_min: int
) -> list[tuple[tuple[str, str, str, str], list[list[DataFile]]]]:
    """What compaction rewrites: per folder, runs of small files in offset order up to the target.

    A folder takes part when it has at least `files_min` files below half of the target.
    """
    folders: dict[tuple[str, str, str, str], list[DataFile]] = {}
    for file in state.files.values():
        if file.size_bytes < target_bytes // 2:
            key = (file.table, file.topic, file.date, str(file.partition))
            folders.setdefault(key, []).append(file)
    work: list[tuple[tuple[str, str, str, str], list[list[DataFile]]]] = []
    for key, found in sorted(folders.items()):
        if len(found) < max(2, files_min):
            continue
        bins: list[list[DataFile]] = [[]]
        size_bytes = 0
        for file in sorted(found, key=lambda file: file.first_offset):
            if bins[-1] and size_bytes + file.size_bytes > target_bytes:
                bins.append([])
                size_bytes = 0
            bins[-1].append(file)
            size_bytes += file.size_bytes
        bins = [files for files in bins if len(files) > 1]
        if bins:
            work.append((key, bins))
    return work


def expired(state: LakeState, *, before_ms: int | None, size_bytes_max: int | None) -> list[str]:
    """Paths that retention removes: all from before `before_ms`, then the oldest over the size.

    Dates as text are in order for four digits only: a time in microseconds is one of year 57743.
    """
    gone = {
        file.path: None
        for file in state.files.values()
        if before_ms is not None and file.last_ms < before_ms
    }
    if size_bytes_max is not None:
        kept = [file for file in state.files.values() if file.path not in gone]
        total = sum(file.size_bytes for file in kept)
        for file in sorted(kept, key=lambda file: (file.last_ms, file.path)):
            if total <= size_bytes_max:
                break
            gone[file.path] = None
            total -= file.size_bytes
    return list(gone)
