"""Upkeep of a lake: small files become larger ones, old ones go, what was replaced is removed.

OPTIMIZE joins files, and a commit of `remove` actions takes whole old files out. What is not of a
table any more is deleted `--keep-replaced` seconds later: until then older versions can be read.
That goes by the table's own list of removed files, so that what others are writing is not touched;
files that no version of the last week names go with VACUUM, under `--maintain-only`.

Another one's upkeep may come first, at the same time: a commit that names files which are gone by
then is refused, and what is left to do is looked for again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import lake
from kwire.spark.delta import PREFIX_SETTING, ConflictError, DeltaTable, TableState
from kwire.spark.job import Progress
from kwire.spark.lake_files import open_lake_files
from kwire.spark.usage import UsageError

DAY_MS = 86_400_000
DAYS_MAX = 365_000
FOLDERS_AT_ONCE = 200
# Delta's own: how long a table remembers which files it has removed, and VACUUM's least horizon.
KEEP_S = 604_800.0
OPTIMIZE = "spark.databricks.delta.optimize"
# How often upkeep looks again where another one's commits come first.
ATTEMPTS = 5


def add_maintenance_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("upkeep of the lake")
    group.add_argument("--compact", action="store_true", help="join small files at the end")
    group.add_argument("--compact-every", type=int, default=50, metavar="N", help="and by batches")
    group.add_argument("--target-mb", type=float, default=128.0, metavar="MB", help="size of files")
    group.add_argument("--files-min", type=int, default=4, metavar="N", help="in a folder, to join")
    group.add_argument("--retention-days", type=int, metavar="N", help="remove older dates")
    group.add_argument("--retention-mb", type=float, metavar="MB", help="remove the oldest above")
    group.add_argument(
        "--keep-replaced",
        type=float,
        default=KEEP_S,
        metavar="S",
        help="before files are deleted that older versions need",
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


def expires(options: argparse.Namespace) -> bool:
    """Whether the options ask for retention."""
    return options.retention_days is not None or options.retention_mb is not None


def maintains(options: argparse.Namespace) -> bool:
    """Whether the options ask for any upkeep."""
    return expires(options) or options.compact or options.maintain_only


class LakeTable(NamedTuple):
    """A table of a lake with its state."""

    kind: str
    topic: str
    table: DeltaTable
    state: TableState


def tables_of(spark: Any, location: str) -> list[LakeTable]:
    """The tables of a lake. UsageError where one is another's: of that nothing is joined, and
    nothing removed. FinalError where a log is damaged."""
    files = open_lake_files(location, spark)
    found = []
    for kind, topic in lake.table_folders(files):
        table = DeltaTable(spark, lake.table_path(files.root, kind, topic))
        table.check_log()
        state = lake.read_state(table)
        lake.check_own(table.path, state, kind, topic)
        table.check_writable()
        found.append(LakeTable(kind, topic, table, state))
    return found


def maintain(spark: Any, options: argparse.Namespace, progress: Progress) -> dict[str, int]:
    """Do what the options ask for; what was done, for the summary."""
    result = {"compacted_files": 0, "expired_files": 0, "removed_files": 0}
    if not maintains(options):
        return result
    found = tables_of(spark, options.lake)
    if expires(options):
        # The newest record of a key has no age; and what waits to become one is kept.
        merged = {one.topic: lake.offsets_of(one.state) for one in found if one.kind == lake.LATEST}
        old = [(one.table, merged.get(one.topic)) for one in found if one.kind != lake.LATEST]
        add = _adder(result, "expired_files")
        _beside_others(lambda: expire(old, options, add), progress)
    for table in (one.table for one in found):
        if progress.stopping:
            break
        if options.compact:
            add = _adder(result, "compacted_files")
            _beside_others(partial(compact, table, options, progress, add), progress)
        result["removed_files"] += purge(table, options.keep_replaced)
        if options.maintain_only:
            table.vacuum(max(options.keep_replaced, KEEP_S) / 3600)
    return result


def _adder(result: dict[str, int], name: str) -> Callable[[int], None]:
    """Counts what is done, as it is done: what fails later takes nothing of it back."""

    def add(count: int) -> None:
        result[name] += count

    return add


def _beside_others(step: Callable[[], None], progress: Progress) -> None:
    """Do a step of upkeep; again where another one's commit came first."""
    for _ in range(ATTEMPTS - 1):
        try:
            step()
        except ConflictError as error:
            progress.say(f"{error}; looking again")
        else:
            return
    step()


class OldFile(NamedTuple):
    """A data file, its newest time in ms, and which of the tables it is of."""

    newest_ms: int
    path: str
    size_bytes: int
    table: int


def expired(
    files: Iterable[OldFile], before_ms: int | None, size_bytes_max: int | None
) -> list[OldFile]:
    """What retention removes: all from before `before_ms`, then the oldest above the size."""
    kept = sorted(files)
    gone: list[OldFile] = []
    if before_ms is not None:
        gone = [file for file in kept if file.newest_ms < before_ms]
        kept = kept[len(gone) :]
    if size_bytes_max is not None:
        total = sum(file.size_bytes for file in kept)
        for file in kept:
            if total <= size_bytes_max:
                break
            gone.append(file)
            total -= file.size_bytes
    return gone


def expire(
    tables: Sequence[tuple[DeltaTable, Mapping[int, int] | None]],
    options: argparse.Namespace,
    add: Callable[[int], None],
) -> None:
    """Retention by whole files; offsets stay, so that nothing is archived again.

    First what is older than the days, then the oldest of all tables above the size. The newest time
    of a file counts; one that has none is kept. Beside each table stands up to which offsets its
    records are in the table of newest ones, None without such a table. `add`: see `_adder`."""
    from pyspark.sql import functions as f

    now_ms = SystemClock().wall_ms()
    found: list[OldFile] = []
    for at, (table, merged) in enumerate(tables):
        columns = (
            "path",
            "partition",
            "last_offset",
            f.col("size").alias("bytes"),
            f.unix_millis("last_time").alias("newest"),
        )
        rows = table.files().select(*columns).where("newest is not null").collect()
        found += [
            OldFile(row.newest, row.path, row.bytes, at)
            for row in rows
            if merged is None or (row.last_offset or 0) < merged.get(row.partition, 0)
        ]
    before_ms = None
    if options.retention_days is not None:
        before_ms = (now_ms // DAY_MS - options.retention_days) * DAY_MS
    limit = None if options.retention_mb is None else int(options.retention_mb * 1e6)
    gone = expired(found, before_ms, limit)
    for at, (table, _) in enumerate(tables):
        paths = [file.path for file in gone if file.table == at]
        if paths:
            table.sync((), table.remove(paths, now_ms))
            add(len(paths))


def compact(
    table: DeltaTable,
    options: argparse.Namespace,
    progress: Progress,
    add: Callable[[int], None],
) -> None:
    """Join small files of folders that have several; `add` (see `_adder`): how many of them."""
    from pyspark.sql import functions as f

    target = int(options.target_mb * 1e6)
    small = table.files().where(f.col("size") < target // 2)
    folders = small.groupBy("date", "partition").agg(f.count("*").alias("files"))
    chosen = folders.where(f.col("files") >= options.files_min).select("date", "partition")
    work = sorted((row.date, row.partition) for row in chosen.dropna().collect())
    conf = table.spark._jsparkSession.sessionState().conf()
    prefix = f"compact.{SystemRandom().random_bytes(6).hex()}."
    conf.setConfString(PREFIX_SETTING, prefix)
    conf.setConfString("spark.sql.parquet.compression.codec", options.compression)
    sizes = {f"{OPTIMIZE}.maxFileSize": str(target), f"{OPTIMIZE}.minFileSize": str(target // 2)}
    replaced = 0
    for at in range(0, len(work), FOLDERS_AT_ONCE):
        if progress.stopping:
            break
        part = work[at : at + FOLDERS_AT_ONCE]
        wanted = (f"(date = '{date}' AND partition = {number})" for date, number in part)
        try:
            count = table.optimize(" OR ".join(wanted), sizes)
        except ConflictError:
            # The larger files are nobody's; a name of theirs is of this attempt alone.
            table.remove_unnamed(prefix, lambda state: None)
            raise
        add(count)
        replaced += count
        progress.say(f"compacted {replaced} files of {table.path}")


def purge(table: DeltaTable, keep_s: float) -> int:
    """Delete files that were removed from the table `keep_s` ago or earlier; how many."""
    now_ms = SystemClock().wall_ms()
    due = [path for path, at in table.removed_files() if at + keep_s * 1000 <= now_ms]
    files = open_lake_files(table.path, table.spark)
    there = {info.path for info in files.walk("")} if due else set()
    gone = [path for path in due if path in there]
    files.delete(gone)
    return len(gone)
