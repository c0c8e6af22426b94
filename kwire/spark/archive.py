"""archive: topics to a lake of Parquet files, exactly once.

A batch is a range of offsets. Its files are written first, then one commit names them together
with the offsets behind them (lake_log.py). Where a run is killed before the commit its files are
nobody's and are removed at the next start; behind it the batch is done. There is no checkpoint
beside the lake that could say something else.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
from collections.abc import Collection
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import lake
from kwire.spark.archive_source import load_archive, parse_time
from kwire.spark.batching import (
    add_batch_options,
    behind_gap,
    check_batch_options,
    exit_status,
    note_begin,
    run_batches,
)
from kwire.spark.cluster import EARLIEST, LATEST, Cluster, Partition, partitions_of
from kwire.spark.decoding import add_decoding_options, check_decoding, decoder_of
from kwire.spark.job import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    Job,
    Progress,
    check_pattern,
    check_topics,
    require,
    run_job,
)
from kwire.spark.lake_files import check_folder, is_local, open_lake_files
from kwire.spark.lake_log import DEAD_LETTERS, RECORDS, LakeLog, LakeState
from kwire.spark.maintenance import add_maintenance_options, check_maintenance, maintain
from kwire.spark.session import open_session
from kwire.spark.topic_source import (
    Ranges,
    check_ends,
    check_not_replaced,
    check_times,
    limit_ranges,
    ranges_lag,
    read_ranges,
    replaced,
)
from kwire.spark.usage import FinalError, UsageError
from kwire.spark.watching import Watch

RETRY_PAUSE_S = 2.0
COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "none")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_batch_options(parser, interval_s=10.0, batch_records=2_000_000)
    parser.add_argument("--topics", metavar="A,B", help="topics to archive")
    parser.add_argument("--lake", metavar="FOLDER", help="where to: a path or an URI Spark knows")
    parser.add_argument(
        "--from", dest="start", default=EARLIEST, help="at first: earliest, latest or a time"
    )
    parser.add_argument("--name", help="of this writer, if several share the lake")
    parser.add_argument("--compression", default="zstd", choices=COMPRESSIONS, help="of files")
    parser.add_argument("--tasks", type=int, default=0, metavar="N", help="at least so many tasks")
    add_decoding_options(parser)
    add_maintenance_options(parser)


def check(options: argparse.Namespace) -> None:
    require(options, "lake")
    check_folder(options.lake, "--lake")
    check_decoding(options)
    check_maintenance(options)
    if options.maintain_only:
        if is_local(options.lake):
            load_archive(options.lake)
        return
    require(options, "bootstrap")
    check_batch_options(options)
    if bool(options.topics) == bool(options.pattern):
        raise UsageError("give either --topics or --pattern")
    options.topic_list = check_topics(options.topics)
    if options.pattern:
        check_pattern(options.pattern, "--pattern")
    if options.start not in (EARLIEST, LATEST) and parse_time(options.start, "--from") is None:
        raise UsageError(f"--from {options.start}: neither earliest, latest nor a time")
    if options.name and not all(letter.isalnum() or letter in "-_" for letter in options.name):
        raise UsageError(f"--name {options.name}: letters, digits, - and _ only")


def writer_name(options: argparse.Namespace) -> str:
    """The writer's name: the given one, else one by what it archives."""
    if options.name:
        return str(options.name)
    what = options.pattern or ",".join(sorted(options.topic_list))
    return "archive-" + hashlib.sha256(what.encode()).hexdigest()[:8]


@dataclasses.dataclass
class Totals:
    """What a run did."""

    batches: int = 0
    files: int = 0
    dead_letters: int = 0
    gaps: list[str] = dataclasses.field(default_factory=list)


class Archiver:
    """One session of an archive."""

    def __init__(self, options: argparse.Namespace, progress: Progress, spark: Any) -> None:
        self.options = options
        self.progress = progress
        self.spark = spark
        self.clock = SystemClock()
        files = open_lake_files(options.lake, spark)
        session = SystemRandom().random_bytes(6).hex()
        self.log = LakeLog(files, writer_name(options), session)
        self.root = files.root
        self.cluster = Cluster(
            options.bootstrap, options.settings, progress.say, lambda: progress.stopping
        )
        self.committed = options.isolation == "read_committed"
        self.totals = Totals()
        self.is_complete = False
        self._sequence = 0
        self._seen: set[str] = set()

    def open(self) -> None:
        """Take the lake over; what an older session still wants to commit fails from now on."""
        self.log.open(self.clock.wall_ms())
        self.remove_left_overs()

    def remove_left_overs(self) -> None:
        """Remove files of this writer that no commit names. Again at the end: the executors of a
        session whose driver was killed may have gone on for a moment."""
        if removed := lake.remove_orphans(self.log):
            self.progress.say(f"{removed} files removed of an attempt that did not end")

    def run(self) -> None:
        """Batches until there is nothing new (--once: it is complete) or it is time to stop."""
        try:
            self.is_complete = run_batches(
                self.options, self.progress, self.batch, self.remove_left_overs, RETRY_PAUSE_S
            )
        except BaseException:
            # Best done here: plain readers would see it until this writer is started again.
            with contextlib.suppress(Exception):
                lake.discard_session(self.log)
            raise

    def batch(self) -> int:
        """One batch; how many offsets are left behind it."""
        topics, starts, ends = self._positions()
        if self.options.start != EARLIEST:
            note_begin(self.log, starts, topics, self.clock.wall_ms(), _check_unmoved)
        ranges = limit_ranges(starts, ends, self.options.batch_records)
        if not ranges:
            return 0
        prefix = self._next_prefix()
        try:
            with Watch(self.spark, self.progress):
                added = self._write(ranges, prefix)
        except Exception as error:
            check_times(self.cluster, ranges, error)
            raise
        check_not_replaced(self.cluster, {topic: topics[topic] for topic, _ in ranges})
        self.log.files.sync(file.path for file in added)
        now_ms = self.clock.wall_ms()
        offsets = {key: end for key, (_, end) in ranges.items()}
        commit = self.log.new_commit(
            "append", now_ms, add=added, offsets=offsets, topics={t: topics[t] for t, _ in ranges}
        )
        self.log.commit(commit, lambda state: _check_unmoved(state, ranges))
        self.totals.batches += 1
        self.totals.files += len(added)
        self.totals.dead_letters += sum(f.records for f in added if f.table == DEAD_LETTERS)
        lag = ranges_lag({**starts, **offsets}, ends)
        records = sum(file.records for file in added)
        size_bytes = sum(file.size_bytes for file in added)
        self.progress.add(records, size_bytes, lag, f"batch {self.totals.batches}")
        every = self.options.compact_every
        if self.options.compact and every and self.totals.batches % every == 0:
            maintain(self.spark, self.log, self.options, self.progress)
        return lag

    def _positions(self) -> tuple[dict[str, str], dict[Partition, int], dict[Partition, int]]:
        """(topic ids, where to go on, where the log ends) of all partitions wanted."""
        names = self.cluster.matching(self.options.topic_list, self.options.pattern)
        topics = self.cluster.describe(names)
        missing = [name for name in self.options.topic_list if name not in topics]
        if missing:
            raise FinalError(f"topic {missing[0]}: not found")
        self._note_gone(topics)
        state = self.log.state
        for name, info in topics.items():
            if state.topics.get(name, info.topic_id) != info.topic_id:
                raise replaced(name)
        partitions = partitions_of(topics)
        firsts = self.cluster.offsets(partitions, EARLIEST)
        ends = self.cluster.offsets(partitions, LATEST, committed=self.committed)
        starts = self._starts(partitions, firsts, ends)
        return {name: info.topic_id for name, info in topics.items()}, starts, ends

    def _note_gone(self, topics: Collection[str]) -> None:
        """Say once that a topic of the pattern is not there any more."""
        for name in sorted(self._seen - set(topics)):
            self.progress.say(f"topic {name} is gone; what was archived of it stays")
        self._seen = set(topics)

    def _starts(
        self,
        partitions: list[Partition],
        firsts: dict[Partition, int],
        ends: dict[Partition, int],
    ) -> dict[Partition, int]:
        state = self.log.state
        new = [key for key in partitions if key not in state.offsets]
        # A partition that was added to a topic is read from its beginning in any case.
        new_topics = {topic for topic, _ in new} - set(state.topics)
        chosen = {} if self.options.start == EARLIEST else self._chosen(new, new_topics, ends)
        starts: dict[Partition, int] = {}
        for key in partitions:
            start = state.offsets.get(key, chosen.get(key, firsts[key]))
            allow_gaps, tell = self.options.allow_gaps, self.totals.gaps.append
            starts[key] = behind_gap(key, start, firsts[key], allow_gaps, tell)
        check_ends(self.cluster, starts, ends)
        return starts

    def _chosen(
        self, new: list[Partition], new_topics: set[str], ends: dict[Partition, int]
    ) -> dict[Partition, int]:
        wanted = [key for key in new if key[0] in new_topics]
        if self.options.start == LATEST:
            return {key: ends[key] for key in wanted}
        found = self.cluster.offsets(wanted, parse_time(self.options.start, "--from") or 0)
        return {key: offset if offset >= 0 else ends[key] for key, offset in found.items()}

    def _next_prefix(self) -> str:
        self._sequence += 1
        return f"{self.log.writer}.{self.log.session}.{self._sequence:06d}"

    def _write(self, ranges: Ranges, prefix: str) -> list[Any]:
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        frame = read_ranges(
            self.spark,
            self.options.bootstrap,
            self.options.settings,
            ranges,
            committed=self.committed,
            tasks_min=self.options.tasks,
            fail_on_loss=not self.options.allow_gaps,
        )
        frame = frame.withColumn("date", f.date_format("timestamp", "yyyy-MM-dd")).withColumn(
            "leaderEpoch", f.lit(None).cast("int")
        )
        frame = frame.select("date", *lake.RECORD_COLUMNS)
        codec = self.options.compression
        decoder = decoder_of(self.options)
        if decoder is None:
            return lake.write_table(self.spark, frame, self.root, RECORDS, prefix, codec)
        schema = f"date string, {_fields(frame)}, {lake.DECODED_SCHEMA}, {lake.REASON_SCHEMA}"
        decoded = frame.mapInArrow(decoder, schema).persist(StorageLevel.DISK_ONLY)
        try:
            found = []
            for table, rows in (
                (RECORDS, decoded.where("reason is null").drop("reason")),
                (DEAD_LETTERS, decoded.where("reason is not null").drop("valueJson")),
            ):
                found += lake.write_table(self.spark, rows, self.root, table, prefix, codec)
            return found
        finally:
            decoded.unpersist()


def _fields(frame: Any) -> str:
    return ", ".join(
        f"{field.name} {field.dataType.simpleString()}"
        for field in frame.schema.fields
        if field.name != "date"
    )


def _check_unmoved(state: LakeState, ranges: Ranges) -> None:
    """Nobody else may have archived the same partitions meanwhile."""
    for key, (start, _) in ranges.items():
        if state.offsets.get(key, start) > start:
            raise FinalError(f"{key[0]}-{key[1]} is archived by another writer of this lake")


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    if options.maintain_only:
        spark = open_session(options, "archive", needs_kafka=False)
        log = LakeLog(
            open_lake_files(options.lake, spark),
            "maintenance",
            SystemRandom().random_bytes(6).hex(),
        )
        log.load()
        if not log.exists():
            raise UsageError(f"--lake {options.lake}: no lake there")
        log.open(SystemClock().wall_ms())
        lake.remove_orphans(log)
        progress.has_batches = True
        maintained = maintain(spark, log, options, progress)
        status = EXIT_INTERRUPTED if progress.stopping else EXIT_DONE
        return status, {"lake": options.lake, **maintained}
    cluster = Cluster(options.bootstrap, options.settings, progress.say)
    found = cluster.describe(cluster.matching(options.topic_list, options.pattern))
    missing = [name for name in options.topic_list if name not in found]
    if missing:
        raise UsageError(f"--topics {missing[0]}: not found at {options.bootstrap}")
    spark = open_session(options, "archive", needs_kafka=True)
    archiver = Archiver(options, progress, spark)
    archiver.open()
    archiver.run()
    archiver.remove_left_overs()
    maintained = maintain(spark, archiver.log, options, progress)
    state = archiver.log.state
    summary = {
        "lake": options.lake,
        "version": state.version,
        **dataclasses.asdict(archiver.totals),
        **maintained,
        "offsets": {f"{topic}-{n}": offset for (topic, n), offset in sorted(state.offsets.items())},
        "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    return exit_status(options, archiver.is_complete), summary


JOB = Job(
    name="archive",
    summary="topics to a Parquet lake, exactly once",
    description="Archive topics into a lake of Parquet files by topic, date and partition. Files\n"
    "and offsets are committed together: killed at any point and run again, nothing is\n"
    "there twice and nothing is missing.",
    example="kwire spark archive -b localhost:9092 --topics clicks --lake /data/lake --once",
    add_options=add_options,
    check=check,
    run=run,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark archive`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
