"""Upkeep of a lake: small files become larger ones, old ones go, what was replaced is removed."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from kwire.clock import SystemClock
from kwire.spark import lake
from kwire.spark.job import Progress
from kwire.spark.lake_log import RECORDS, DataFile, LakeLog, LakeState
from kwire.spark.usage import JobError, UsageError

DAY_MS = 86_400_000
DAYS_MAX = 365_000
FOLDERS_AT_ONCE = 200


def add_maintenance_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("upkeep of the lake")
    group.add_argument("--compact", action="store_true", help="join small files at the end")
    group.add_argument("--compact-every", type=int, default=50, metavar="N", help="and by batches")
    group.add_argument("--target-mb", type=float, default=128.0, metavar="MB", help="size of files")
    group.add_argument("--files-min", type=int, default=4, metavar="N", help="in a folder, to join")
    group.add_argument("--retention-days", type=int, metavar="N", help="remove older dates")
    group.add_argument("--retention-mb", type=float, metavar="MB", help="remove the oldest above")
    group.add_argument(
        "--keep-replaced", type=float, default=0.0, metavar="S", help="before files are deleted"
    )
    group.add_argument("--maintain-only", action="store_true", help="archive nothing")


def check_maintenance(options: argparse.Namespace) -> None:
    if options.target_mb <= 0 or options.files_min < 2 or options.compact_every < 0:
        raise UsageError("--target-mb and --files-min must be above 0 and 1")
    if options.retention_days is not None and not 0 <= options.retention_days <= DAYS_MAX:
        raise UsageError(f"--retention-days {options.retention_days}: expected 0 to {DAYS_MAX}")
    if options.keep_replaced < 0:
        raise UsageError(f"--keep-replaced {options.keep_replaced:g}: must not be negative")
    if options.retention_mb is not None and options.retention_mb < 0:
        raise UsageError(f"--retention-mb {options.retention_mb}: must not be negative")


def maintain(
    spark: Any, log: LakeLog, options: argparse.Namespace, progress: Progress
) -> dict[str, int]:
    """Do what the options ask for; what was done, for the summary."""
    result = {"compacted_files": 0, "expired_files": 0, "removed_files": 0}
    if options.retention_days is not None or options.retention_mb is not None:
        result["expired_files"] = expire(log, options)
    if options.compact:
        result["compacted_files"] = compact(spark, log, options, progress)
    result["removed_files"] = purge(log, options.keep_replaced)
    return result


def expire(log: LakeLog, options: argparse.Namespace) -> int:
    """Retention; offsets stay, so that nothing is archived again."""
    now_ms = SystemClock().wall_ms()
    before = None
    if options.retention_days is not None:
        before = (now_ms // DAY_MS - options.retention_days) * DAY_MS
    limit = None if options.retention_mb is None else int(options.retention_mb * 1e6)
    paths = lake.expired(log.state, before_ms=before, size_bytes_max=limit)
    if paths:
        log.commit(log.new_commit("expire", now_ms, remove=paths), _all_there(paths))
    return len(paths)


def compact(spark: Any, log: LakeLog, options: argparse.Namespace, progress: Progress) -> int:
    """Join small files; how many were replaced. A commit for some folders at a time."""
    work = lake.small_files(log.state, int(options.target_mb * 1e6), options.files_min)
    replaced = 0
    for table in dict.fromkeys(key[0] for key, _ in work):
        chosen = [(key, bins) for key, bins in work if key[0] == table]
        for at in range(0, len(chosen), FOLDERS_AT_ONCE):
            if progress.stopping:
                return replaced
            part = chosen[at : at + FOLDERS_AT_ONCE]
            bins = [files for _, found in part for files in found]
            try:
                replaced += _join(spark, log, options, table, bins)
            except BaseException:
                # Best done here: plain readers would see the records of these files twice.
                with contextlib.suppress(Exception):
                    lake.discard_session(log)
                raise
            progress.say(f"compacted {replaced} files")
    return replaced


def _join(
    spark: Any,
    log: LakeLog,
    options: argparse.Namespace,
    table: str,
    bins: list[list[DataFile]],
) -> int:
    from pyspark.sql import functions as f

    root = log.files.root
    files = [file for found in bins for file in found]
    number = f"{log.state.version + 1:06d}"
    prefix = f"{log.writer}.{log.session}.c{number}"
    # One task's files in several folders have the same name: only the path is a file's own.
    by_path = [(_inner(file.path), at) for at, found in enumerate(bins) for file in found]
    names = f.broadcast(spark.createDataFrame(by_path, "name string, bin int"))
    inner = f.regexp_extract("_metadata.file_path", "topic=[^/]*/date=[^/]*/[^/]*/[^/]*$", 0)
    frame = lake.read_files(spark, root, files).select("*", inner.alias("inner"))
    binned = frame.join(names, frame.inner == names.name).drop("name")
    tasks = max(1, min(len(bins), 10_000))
    columns = [name for name in frame.columns if name != "inner"]
    if table == RECORDS:
        columns.remove("reason")
    rows = binned.repartitionById(tasks, f.col("bin") % tasks).select(*columns)
    added = lake.write_table(spark, rows, root, table, prefix, options.compression)
    if sum(file.records for file in added) != sum(file.records for file in files):
        raise JobError("compaction counted other records than before and was not committed")
    log.files.sync(file.path for file in added)
    paths = [file.path for file in files]
    commit = log.new_commit("compact", SystemClock().wall_ms(), add=added, remove=paths)
    log.commit(commit, _all_there(paths))
    purge(log, options.keep_replaced)
    return len(paths)


def _inner(path: str) -> str:
    """The path of a data file from its topic's folder on."""
    return path[path.index("topic=") :]


def _all_there(paths: list[str]) -> Any:
    def check(state: LakeState) -> None:
        gone = [path for path in paths if path not in state.files]
        if gone:
            raise JobError(f"{gone[0]} was replaced by another writer; run it again")

    return check


def purge(log: LakeLog, keep_s: float) -> int:
    """Delete files that commits have removed, those older than `keep_s`."""
    now_ms = SystemClock().wall_ms()
    paths = [path for path, at in log.state.removed.items() if at + keep_s * 1000 <= now_ms]
    if paths:
        log.files.delete(paths)
        log.commit(log.new_commit("purge", now_ms, purged=paths))
    return len(paths)
