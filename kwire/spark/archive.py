"""archive: topics to a lake of Delta tables, exactly once.

A batch is a range of offsets of some topics. For each topic its files are written, then one commit
of the topic's table names them together with the offsets behind them (topic_table.py). Where a run
is killed before a commit its files are nobody's and are removed at the next start; behind it that
topic's part of the batch is done. There is no checkpoint beside the tables that could say something
else.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import lake
from kwire.spark.archive_source import parse_time
from kwire.spark.batching import (
    add_batch_options,
    behind_gap,
    check_batch_options,
    exit_status,
    run_batches,
)
from kwire.spark.cluster import (
    EARLIEST,
    LATEST,
    Cluster,
    Partition,
    TopicInfo,
    partitions_of,
)
from kwire.spark.column_types import Type
from kwire.spark.decoded_columns import ColumnMaker
from kwire.spark.decoding import (
    Decoding,
    add_decoding_options,
    check_decoding,
    check_registry,
)
from kwire.spark.delta import DeltaTable
from kwire.spark.job import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    Job,
    Progress,
    check_pattern,
    check_topics,
    one_line,
    require,
    run_job,
)
from kwire.spark.lake_files import check_folder, is_local, open_lake_files
from kwire.spark.latest import Changes, LatestTable, add_latest_option, changes_of
from kwire.spark.maintenance import (
    add_maintenance_options,
    check_maintenance,
    maintain,
    maintains,
    tables_of,
)
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
from kwire.spark.topic_table import Added, TopicTable, Write, Writer
from kwire.spark.usage import FinalError, UsageError
from kwire.spark.watching import Watch

RETRY_PAUSE_S = 2.0
DAY_MS = 86_400_000
# Spark keeps an entry of each.
TASKS_MAX = 100_000
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
    add_latest_option(parser)
    add_maintenance_options(parser)


def check(options: argparse.Namespace) -> None:
    require(options, "lake")
    check_folder(options.lake, "--lake")
    if is_local(options.lake):
        files = open_lake_files(options.lake)
        lake.refuse_old(files, options.lake, "--lake")
        if lake.has_log(files, ""):
            raise UsageError(f"--lake {options.lake}: is a table itself, no folder of tables")
        lake.table_folders(files)  # a file may be where a table should
    check_decoding(options)
    check_maintenance(options)
    if options.maintain_only:
        lake.check_archive(options.lake, "--lake")
        return
    require(options, "bootstrap")
    check_batch_options(options)
    if bool(options.topics) == bool(options.pattern):
        raise UsageError("give either --topics or --pattern")
    options.topic_list = check_topics(options.topics)
    if is_local(options.lake):
        lake.refuse_without_log(open_lake_files(options.lake), options.topic_list)
    if options.pattern:
        check_pattern(options.pattern, "--pattern")
    if options.start not in (EARLIEST, LATEST):
        start_ms = parse_time(options.start, "--from")
        if start_ms is None or start_ms < 0:  # to a broker those are no times
            raise UsageError(
                f"--from {options.start}: neither earliest, latest nor a time from 1970"
            )
    if not 0 <= options.tasks <= TASKS_MAX:
        raise UsageError(f"--tasks {options.tasks}: expected 0 to {TASKS_MAX}")
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
    file_bytes: int = 0
    dead_letters: int = 0
    gaps: list[str] = dataclasses.field(default_factory=list)


class Archiver:
    """One session of an archive."""

    def __init__(self, options: argparse.Namespace, progress: Progress, spark: Any) -> None:
        self.options = options
        self.progress = progress
        self.spark = spark
        self.root = open_lake_files(options.lake, spark).root
        self.writer = Writer(writer_name(options), SystemRandom().random_bytes(6).hex())
        self.cluster = Cluster(
            options.bootstrap, options.settings, progress.say, lambda: progress.stopping
        )
        self.decoding = Decoding.of(options)
        self.maker: ColumnMaker | None = None
        if self.decoding is not None and self.decoding.has_columns:
            self.maker = ColumnMaker(spark, self.decoding)
        self.committed = options.isolation == "read_committed"
        self.totals = Totals()
        self.is_complete = False
        self.tables: dict[str, TopicTable] = {}
        self.latest: dict[str, LatestTable] = {}
        self._seen: set[str] = set()
        self._ids: dict[str, str] = {}

    def open(self) -> None:
        """Take over the tables of the topics that are there; what an older session still wants to
        commit to them fails from now on."""
        self._open_tables(self._describe())

    def _open_tables(self, topics: Mapping[str, TopicInfo]) -> None:
        new = {name: info.topic_id for name, info in topics.items() if name not in self.tables}
        tables = {name: self.new_table(name) for name in new}
        latest = {name: self.new_latest(name) for name in new if self.options.latest_by_key}
        # All of them are looked at before the first commit.
        for name, topic_id in new.items():
            for table in (tables[name], latest.get(name)):
                if table is not None:
                    table.check(topic_id)
        for name, topic_id in new.items():
            self._tell_removed(tables[name].open(topic_id))
            self.tables[name] = tables[name]
            if name in latest:
                self._tell_removed(latest[name].open(topic_id))
                self.latest[name] = latest[name]

    def new_table(self, topic: str) -> TopicTable:
        """The table of a topic, not yet opened."""
        return TopicTable(
            self.root,
            topic,
            self.writer,
            lambda path: DeltaTable(self.spark, path),
            form=self._form(),
        )

    def new_latest(self, topic: str) -> LatestTable:
        """The table of a topic's newest records, not yet opened."""
        return LatestTable(self.root, topic, self.writer, lambda path: DeltaTable(self.spark, path))

    def changes(self, topic: str) -> Changes:
        """What the newest records of a topic come from."""
        return changes_of(self.spark, self.tables[topic])

    def _follow(self) -> None:
        """Merge what was archived into the tables of newest records, where they are behind."""
        for topic, latest in self.latest.items():
            with Watch(self.spark, self.progress):
                latest.follow(
                    self.tables[topic].offsets, self.changes(topic), self.options.compression
                )

    def _all_tables(self) -> list[TopicTable | LatestTable]:
        return [*self.tables.values(), *self.latest.values()]

    def _form(self) -> lake.Form | None:
        if self.decoding is None:
            return None
        if not self.decoding.has_columns:
            return lake.JSON_TEXT
        return lake.form_of(self.decoding.sides, self.decoding.flatten)

    def remove_left_overs(self) -> None:
        """Remove files of this writer that no commit names. Again at the end: the executors of a
        session whose driver was killed may have gone on for a moment."""
        self._tell_removed(
            sum(table.remove_left_overs(everything=True) for table in self._all_tables())
        )

    def _tell_removed(self, removed: int) -> None:
        if removed:
            self.progress.say(f"{removed} files removed of an attempt that did not end")

    def run(self) -> None:
        """Batches until there is nothing new (--once: it is complete) or it is time to stop."""
        try:
            self.is_complete = run_batches(
                self.options, self.progress, self.batch, self._before_retry, RETRY_PAUSE_S
            )
        except BaseException:
            # Best done here: on a full disk they are in the way of others.
            with contextlib.suppress(Exception):
                for table in self._all_tables():
                    table.remove_left_overs()
            raise

    def _before_retry(self) -> None:
        for table in self._all_tables():
            self._tell_removed(table.recover())

    def batch(self) -> int:
        """One batch, a commit for each of its topics; how many offsets are left behind it."""
        starts, ends = self._positions()
        self._follow()
        if self.options.start != EARLIEST:
            self._note_begin(starts)
        ranges = limit_ranges(starts, ends, self.options.batch_records)
        if not ranges:
            return 0
        added = {topic: self._archive(topic, found) for topic, found in by_topic(ranges).items()}
        self._follow()
        files = [file for one in added.values() for file in one.records + one.dead_letters]
        self.totals.batches += 1
        self.totals.files += len(files)
        self.totals.dead_letters += sum(
            file.records for one in added.values() for file in one.dead_letters
        )
        offsets = {key: end for key, (_, end) in ranges.items()}
        lag = ranges_lag({**starts, **offsets}, ends)
        records = sum(file.records for file in files)
        self.totals.file_bytes += sum(file.size_bytes for file in files)
        size_bytes = self._record_bytes(added)
        self.progress.add(records, size_bytes, lag, f"batch {self.totals.batches}")
        every = self.options.compact_every
        if self.options.compact and every and self.totals.batches % every == 0:
            maintain(self.spark, self.options, self.progress)
        return lag

    def _record_bytes(self, added: Mapping[str, Added]) -> int:
        """The bytes of the records of a batch. It is done: what cannot be told fails nothing."""
        try:
            return sum(self.tables[topic].record_bytes(one) for topic, one in added.items())
        except Exception as error:
            self.progress.say(f"bytes of the batch are not known: {one_line(error)}")
            return 0

    def _archive(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Added:
        table = self.tables[topic]

        def confirm() -> None:
            check_not_replaced(self.cluster, {topic: self._ids[topic]})

        def write(records: Write, dead_letters: Write) -> Added:
            wanted = {(topic, number): found for number, found in ranges.items()}
            try:
                with Watch(self.spark, self.progress, scans=True):
                    return self._write(wanted, records, dead_letters)
            except Exception as error:
                check_times(self.cluster, wanted, error)
                raise

        return table.append(ranges, write, confirm, self.options.compression)

    def _describe(self) -> dict[str, TopicInfo]:
        names = self.cluster.matching(self.options.topic_list, self.options.pattern)
        topics = self.cluster.describe(names)
        missing = [name for name in self.options.topic_list if name not in topics]
        if missing:
            raise FinalError(f"topic {missing[0]}: not found")
        self._note_gone(topics)
        for name, info in topics.items():
            if self._ids.setdefault(name, info.topic_id) != info.topic_id:
                raise replaced(name)
        return topics

    def _positions(self) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """(where to go on, where the log ends) of all partitions wanted."""
        topics = self._describe()
        self._open_tables(topics)
        partitions = partitions_of(topics)
        firsts = self.cluster.offsets(partitions, EARLIEST)
        ends = self.cluster.offsets(partitions, LATEST, committed=self.committed)
        starts = self._starts(partitions, firsts, ends)
        return starts, ends

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
        known = self.offsets()
        new = [key for key in partitions if key not in known]
        # A partition that was added to a topic is read from its beginning in any case.
        new_topics = {topic for topic, _ in new} - {topic for topic, _ in known}
        chosen = {} if self.options.start == EARLIEST else self._chosen(new, new_topics, ends)
        starts: dict[Partition, int] = {}
        for key in partitions:
            start = known.get(key, chosen.get(key, firsts[key]))
            allow_gaps, tell = self.options.allow_gaps, self.totals.gaps.append
            starts[key] = behind_gap(key, start, firsts[key], allow_gaps, tell)
        check_ends(self.cluster, starts, ends)
        return starts

    def offsets(self) -> dict[Partition, int]:
        """The next offset of every partition that was archived."""
        return {
            (topic, number): offset
            for topic, table in self.tables.items()
            for number, offset in table.offsets.items()
        }

    def _note_begin(self, starts: Mapping[Partition, int]) -> None:
        """Commit where partitions begin that are new: what comes behind that belongs to the
        archive, also what comes before there is a first batch."""
        known = self.offsets()
        new = {key: (start, start) for key, start in starts.items() if key not in known}
        for topic, found in by_topic(new).items():
            self.tables[topic].begin_at({number: at for number, (at, _) in found.items()})

    def _chosen(
        self, new: list[Partition], new_topics: set[str], ends: dict[Partition, int]
    ) -> dict[Partition, int]:
        wanted = [key for key in new if key[0] in new_topics]
        if self.options.start == LATEST:
            return {key: ends[key] for key in wanted}
        found = self.cluster.offsets(wanted, parse_time(self.options.start, "--from") or 0)
        return {key: offset if offset >= 0 else ends[key] for key, offset in found.items()}

    def _write(self, ranges: Ranges, records: Write, dead_letters: Write) -> Added:
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        # Each range comes in the order of its offsets.
        frame = read_ranges(
            self.spark,
            self.options.bootstrap,
            self.options.settings,
            ranges,
            committed=self.committed,
            tasks_min=self.options.tasks,
            fail_on_loss=not self.options.allow_gaps,
            shares_tasks=True,
        )
        none_known = f.lit(None).cast("int").alias("leaderEpoch")
        columns = [name for name in lake.RECORD_COLUMNS if name not in ("topic", "leaderEpoch")]
        # One step: Spark analyses each.
        frame = frame.select(*columns, none_known, _date().alias("date"))
        if self.decoding is None:
            return Added(records(frame), [])
        schema = f"{_fields(frame)}, {self.decoding.checked_schema}"
        checked = frame.mapInArrow(self.decoding.check_batches, schema).persist(
            StorageLevel.DISK_ONLY
        )
        try:
            topic = next(iter(ranges))[0]
            decoded = self._decoded(checked, self.tables[topic].columns)
            good = records(decoded.where("reason is null").drop("reason"))
            ids = [f"{side}SchemaId" for side in self.decoding.sides]
            bad = decoded.where("reason is not null").select(*frame.columns, *ids, "reason")
            return Added(good, dead_letters(bad))
        finally:
            checked.unpersist()

    def _decoded(self, checked: Any, columns: Mapping[str, Type]) -> Any:
        if self.maker is not None:
            return self.maker.decoded(checked, columns)
        return checked.drop("valueMessage").withColumnRenamed("valueText", "valueJson")


def by_topic(ranges: Ranges) -> dict[str, dict[int, tuple[int, int]]]:
    """{topic: {partition: range}}."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for (topic, number), limits in sorted(ranges.items()):
        found.setdefault(topic, {})[number] = limits
    return found


def _date() -> Any:
    """The day of a record (UTC) as text. Most come of today: for these no time is formatted."""
    from pyspark.sql import functions as f

    begin = SystemClock().wall_ms() // DAY_MS * DAY_MS
    today = datetime.datetime.fromtimestamp(begin / 1000, datetime.UTC).strftime("%Y-%m-%d")
    time = f.col("timestamp")
    first, behind = (f.timestamp_millis(f.lit(at)) for at in (begin, begin + DAY_MS))
    is_today = (time >= first) & (time < behind)
    return f.when(is_today, f.lit(today)).otherwise(f.date_format(time, "yyyy-MM-dd"))


def _fields(frame: Any) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)


def check_place(location: str, spark: Any, topics: Collection[str] = ()) -> None:
    """UsageError where the lake is of the older form, has files of one of these topics and no table
    of it, or its store cannot keep commits."""
    files = open_lake_files(location, spark)
    lake.refuse_old(files, location, "--lake")
    lake.refuse_without_log(files, topics)
    files.check_commits(of_delta=True)


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    if options.maintain_only:
        spark = open_session(options, "archive", needs_kafka=False, needs_delta=True)
        check_place(options.lake, spark)
        progress.has_batches = True
        maintained = maintain(spark, options, progress)
        status = EXIT_INTERRUPTED if progress.stopping else EXIT_DONE
        return status, {"lake": options.lake, **maintained}
    cluster = Cluster(options.bootstrap, options.settings, progress.say)
    found = cluster.describe(cluster.matching(options.topic_list, options.pattern))
    missing = [name for name in options.topic_list if name not in found]
    if missing:
        raise UsageError(f"--topics {missing[0]}: not found at {options.bootstrap}")
    if options.pattern and not found:
        progress.say(f"no topic matches --pattern {options.pattern}")
    decoding = Decoding.of(options)
    if decoding is not None and decoding.registry:
        check_registry(decoding, found, options.retry_seconds, progress.say, progress.wait)
    needs_avro = "avro" in (options.decode, options.decode_key)
    spark = open_session(
        options, "archive", needs_kafka=True, needs_delta=True, needs_avro=needs_avro
    )
    check_place(options.lake, spark, found)
    if maintains(options):
        tables_of(spark, options.lake)  # refuses now what would be refused at the end
    archiver = Archiver(options, progress, spark)
    archiver.open()
    archiver.run()
    archiver.remove_left_overs()
    maintained = maintain(spark, options, progress)
    summary = {
        "lake": options.lake,
        **dataclasses.asdict(archiver.totals),
        **maintained,
        "offsets": {f"{topic}-{n}": at for (topic, n), at in sorted(archiver.offsets().items())},
        "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    return exit_status(options, archiver.is_complete), summary


JOB = Job(
    name="archive",
    summary="topics to a lake of Delta tables, exactly once",
    description="Archive topics into a lake: a Delta table a topic, by date and partition.\n"
    "Records and offsets are committed together: killed at any point and run again, nothing is\n"
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
