"""replay: an archive, or a range of it, back into topics, every record once.

Each record carries two headers: `kwire-replay-id` and `kwire-replay-source` (topic/partition/offset
in the archive). A run that was killed is run again with the same id: it looks into the target,
from where the first run began, for the last record of each source partition that has arrived in
each target partition, and goes on behind it. Order within a partition makes that enough: what is
there is always a beginning.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwire.clock import SystemClock
from kwire.spark.archive_source import (
    add_as_of_option,
    add_range_options,
    archive_frame,
    check_range,
    parse_as_of,
)
from kwire.spark.client_settings import client_config, read_settings
from kwire.spark.cluster import LATEST, MESSAGE_LIMIT, Cluster, Partition, TopicInfo, partitions_of
from kwire.spark.headers import (
    REPLAY_ID,
    REPLAY_SOURCE,
    header_text,
    headers_size,
    source_place,
)
from kwire.spark.job import (
    EXIT_DONE,
    INT64_MAX,
    Job,
    Progress,
    add_kafka_options,
    add_patience_option,
    check_patience,
    check_topic,
    require,
    run_job,
)
from kwire.spark.lake import LAKE_COLUMNS, REPLAYS, Archive, check_archive
from kwire.spark.sending import (
    RUN_SCHEMA,
    SEND_COLUMNS,
    Place,
    SendSettings,
    check_producer,
    needed_bytes,
    sender,
)
from kwire.spark.session import open_session
from kwire.spark.topic_source import read_ranges
from kwire.spark.usage import JobError, UsageError, pairs
from kwire.spark.watching import Watch

# Kafka's default of `max.message.bytes`.
MESSAGE_BYTES = (1 << 20) + 12
SETTLE_S = 0.5
WATCH_S = 2.0


def add_options(parser: argparse.ArgumentParser) -> None:
    add_kafka_options(parser)
    parser.add_argument("--lake", metavar="FOLDER", help="the archive")
    parser.add_argument("--to-topic", metavar="NAME", help="one target; default: the own names")
    parser.add_argument(
        "--partitioner",
        default="same",
        choices=("same", "murmur2"),
        help="the source's partition, or Kafka's by key (without one: the source's, modulo)",
    )
    parser.add_argument("--id", help="of this replay, to go on with; default: by its options")
    parser.add_argument(
        "--create",
        action="store_true",
        help="make targets, kept for ever",
    )
    parser.add_argument("--create-partitions", type=int, metavar="N", help="with so many")
    parser.add_argument(
        "--topic-config", metavar="NAME=VALUE", action="append", default=[], help="with --create"
    )
    parser.add_argument("--rate", type=float, default=0, metavar="N", help="records a second")
    parser.add_argument("--rate-mb", type=float, default=0, metavar="MB", help="MB a second")
    add_patience_option(parser)
    add_as_of_option(parser)
    add_range_options(parser)


def check(options: argparse.Namespace) -> None:
    require(options, "lake")
    require(options, "bootstrap")
    options.moment = parse_as_of(options.as_of)
    check_range(options, LAKE_COLUMNS)
    check_patience(options.retry_seconds)
    options.settings = read_settings(options.command_config, options.kafka_option, "--kafka-option")
    # Records keep their old timestamps: a default retention would remove them at once.
    options.topic_configs = {"retention.ms": "-1", **pairs(options.topic_config, "--topic-config")}
    if options.to_topic:
        check_topic(options.to_topic, "--to-topic")
    if options.rate < 0 or options.rate_mb < 0:
        raise UsageError("--rate and --rate-mb must not be negative")
    if options.create_partitions is not None and options.create_partitions < 1:
        raise UsageError("--create-partitions must be above 0")
    if options.id is not None and not options.id:
        raise UsageError("--id must not be empty")


def replay_id(options: argparse.Namespace) -> str:
    """The given id, else one that the same options give again."""
    if options.id:
        return str(options.id)
    names = (
        "lake",
        "bootstrap",
        "to_topic",
        "partitioner",
        "topics",
        "partitions",
        "from_time",
        "to_time",
        "from_offset",
        "to_offset",
        "keys",
        "where",
    )
    chosen = [getattr(options, name) for name in names]
    text = json.dumps(chosen if options.as_of is None else [*chosen, options.as_of])
    return "replay-" + hashlib.sha256(text.encode()).hexdigest()[:12]


class Replay:
    """One run of a replay."""

    def __init__(self, options: argparse.Namespace, progress: Progress) -> None:
        self.options = options
        self.progress = progress
        self.id = replay_id(options)
        self.cluster = Cluster(options.bootstrap, options.settings, progress.say)
        self.found: Any = None

    def prepare(self, archive: Archive) -> None:
        """Look at archive and target; UsageError for what cannot work."""
        self.archive = archive
        for name in self.options.topic_list or ():
            if name not in archive.topics:
                raise UsageError(f"--topics {name}: not in the archive {archive.root}")
        newest: dict[Partition, int] = {}
        for table in archive.select(self.options.topic_list):
            newest |= table.places(self.options)
        self.newest_ms = max(newest.values(), default=0)
        self.sources = sorted(newest)
        if not self.sources:
            raise UsageError("the archive holds nothing of what is asked for")
        self.targets = {t: self.options.to_topic or t for t, _ in self.sources}
        self.needed: dict[str, int] = {}
        for topic, partition in self.sources:
            target = self.targets[topic]
            self.needed[target] = max(self.needed.get(target, 0), partition + 1)
        self.there = self._check_targets(missing_too=not self.options.create)

    def _check_targets(self, *, missing_too: bool) -> dict[str, TopicInfo]:
        """The target topics. UsageError for one that has too few partitions, or is missing."""
        found = self.cluster.describe(sorted(self.needed))
        for target, count in self.needed.items():
            if target not in found:
                if missing_too:
                    raise UsageError(f"topic {target}: not found; --create makes it")
                continue
            have = len(found[target].partitions)
            if self.options.partitioner == "same" and have < count:
                raise UsageError(
                    f"topic {target} has {have} partitions, the archive {count}: "
                    "--partitioner murmur2 spreads records anew"
                )
        return found

    def begin(self, largest: Mapping[str, int]) -> None:
        """Make targets that are missing, if that is asked for, and note where they end.

        `largest`: of each source topic the bytes of the largest record.
        """
        found = self.there
        missing = {target: n for target, n in self.needed.items() if target not in found}
        for target, count in missing.items():
            partitions = self.options.create_partitions or count
            self.cluster.create_topic(target, partitions, self._configs(target, largest))
        if missing:
            found = self._check_targets(missing_too=True)
        self.partitions = {target: len(info.partitions) for target, info in found.items()}
        self.target_partitions = partitions_of(found)
        self.limits = {
            target: limit
            for target in found
            if (limit := self.cluster.message_limit(target)) is not None
        }
        self.begins = self._begin(found)

    def _configs(self, target: str, largest: Mapping[str, int]) -> dict[str, str]:
        """Of a target that is made: what its records need, and what the options say."""
        sources = [topic for topic, to in self.targets.items() if to == target]
        needed = needed_bytes(max(largest.get(topic, 0) for topic in sources))
        limit = {MESSAGE_LIMIT: str(needed)} if needed > MESSAGE_BYTES else {}
        return {**self._configs_of_times(), **limit, **self.options.topic_configs}

    def _configs_of_times(self) -> dict[str, str]:
        """Kafka refuses records from more than an hour ahead, unless a topic allows it."""
        if self.newest_ms <= SystemClock().wall_ms():
            return {}
        return {"message.timestamp.after.max.ms": str(INT64_MAX)}

    def _begin(self, found: Mapping[str, TopicInfo]) -> dict[Partition, int]:
        """Where the target ended when this replay began for the first time."""
        path = f"{REPLAYS}/{hashlib.sha256(self.id.encode()).hexdigest()[:32]}.json"
        ends = self.cluster.offsets(self.target_partitions, LATEST)
        ids = {target: info.topic_id for target, info in found.items()}
        note = {
            "id": self.id,
            "topics": ids,
            "began_ms": SystemClock().wall_ms(),
            "ends": [[*key, offset] for key, offset in sorted(ends.items())],
        }
        self.archive.files.create(path, json.dumps(note).encode())
        data = self.archive.files.read(path)
        if data is None:
            raise JobError(f"{self.archive.files.root}: cannot be written")
        try:
            read = json.loads(data)
            known = read.get("topics", ids)
            begun = {
                # In a target that was made anew the offsets of the old one say nothing.
                (topic, int(n)): int(offset) if known.get(topic) == ids.get(topic) else 0
                for topic, n, offset in read["ends"]
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            where = f"{self.archive.files.root}/{path}"
            raise JobError(f"{where} is damaged: it says where this replay began") from None
        # Two that look at the target at the same time would both send what is not there yet.
        if (holder := self.archive.files.hold(path)) is not None:
            raise JobError(f"{self.id} runs already, in process {holder or 'unknown'}")
        return {key: begun.get(key, 0) for key in self.target_partitions}

    def settled_ends(self) -> dict[Partition, int]:
        """Where the target ends once nothing of a killed run arrives any more."""
        ends = self.cluster.offsets(self.target_partitions, LATEST)
        while True:
            self.progress.wait(SETTLE_S)
            again = self.cluster.offsets(self.target_partitions, LATEST)
            if again == ends or self.progress.stopping:
                return again
            ends = again

    def done(self, spark: Any) -> tuple[dict[Place, int], int]:
        """(last source offset that has arrived, by place; how many records have)."""
        ends = self.settled_ends()
        firsts = self.cluster.offsets(self.target_partitions, "earliest")
        ranges = {
            key: (max(begin, firsts[key]), ends[key])
            for key, begin in self.begins.items()
            if ends[key] > max(begin, firsts[key])
        }
        if not ranges:
            return {}, 0
        found = read_ranges(
            spark, self.options.bootstrap, self.options.settings, ranges, committed=False
        )
        self.found = arrived_records(found, self.id)
        rows = arrived(self.found).collect()
        places = {(row.topic, row.source, row.partition): row.last for row in rows}
        return places, sum(row.records for row in rows)

    def still_chosen(self, frame: Any) -> int:
        """How many of the records that had arrived before are chosen now: retention may have
        removed some of them from the archive since."""
        chosen = frame.select("topic", frame["partition"].alias("source"), "offset")
        number: int = self.found.join(chosen, ["topic", "source", "offset"], "left_semi").count()
        return number

    def send(self, spark: Any, frame: Any, done: Mapping[Place, int]) -> tuple[int, int]:
        """Produce what is missing; (records, bytes)."""
        from pyspark.sql import functions as f

        at_once = max(1, min(len(self.sources), spark.sparkContext.defaultParallelism))
        settings = SendSettings(
            config=client_config(self.options.bootstrap, self.options.settings, producer=True),
            partitions=self.partitions if self.options.partitioner == "murmur2" else None,
            headers=((REPLAY_ID, self.id.encode()),),
            source_header=REPLAY_SOURCE,
            full_source=True,
            done=dict(done),
            records_per_s=self.options.rate / at_once,
            bytes_per_s=self.options.rate_mb * 1e6 / at_once,
            timeout_s=self.options.retry_seconds,
            limits=self.limits,
        )
        runs = self.rows(frame).mapInArrow(sender(settings), RUN_SCHEMA)
        total = runs.agg(f.sum("records"), f.sum("bytes")).collect()[0]
        return total[0] or 0, total[1] or 0

    def rows(self, frame: Any) -> Any:
        """SEND_COLUMNS, a task for each source partition, by offset."""
        from pyspark.sql import functions as f

        mapping = f.create_map(*[f.lit(x) for pair in self.targets.items() for x in pair])
        return (
            frame.withColumn("timestampMs", f.unix_millis("timestamp"))
            .withColumn("targetTopic", mapping[f.col("topic")])
            .select(*SEND_COLUMNS)
            .repartitionById(len(self.sources), task_of(self.sources))
            .sortWithinPartitions("topic", "partition", "offset")
        )

    @contextlib.contextmanager
    def watched(self, selected: int, before: int) -> Iterator[None]:
        """Progress meanwhile. Its end waits for the watcher only a moment: that one may wait for
        a broker that is gone."""
        stop = threading.Event()
        watcher = threading.Thread(target=self.watch, args=(selected, before, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join(WATCH_S)

    def watch(self, selected: int, before: int, stop: threading.Event) -> None:
        """Progress while a job sends: what the target has got since the beginning."""
        ends = self.cluster.offsets(self.target_partitions, LATEST)
        while not stop.wait(WATCH_S):
            try:
                now = self.cluster.offsets(self.target_partitions, LATEST)
            except JobError:
                continue
            if stop.is_set():
                return
            sent = sum(now[key] - ends[key] for key in now)
            left = max(0, selected - before - sent)
            self.progress.say(f"{before + sent:,} of {selected:,} records, lag {left:,}")


def task_of(sources: Sequence[Partition]) -> Any:
    """A column with the place of a record's partition in `sources`, from 0: one task for each.

    A hash would give several partitions to one task and none to another.
    """
    from pyspark.sql import functions as f

    places: dict[str, dict[int, int]] = {}
    for place, (topic, partition) in enumerate(sources):
        places.setdefault(topic, {})[partition] = place
    topics = [
        entry
        for topic, found in places.items()
        for entry in (
            f.lit(topic),
            f.lit([found.get(partition, 0) for partition in range(max(found) + 1)]),
        )
    ]
    return f.create_map(*topics)[f.col("topic")][f.col("partition")]


def arrived_records(frame: Any, replay: str) -> Any:
    """Of a target topic: what has arrived of a replay. Columns: topic, source and offset (the
    archive's topic, partition and offset), partition (the target's)."""
    from pyspark.sql import functions as f

    topic, source, offset = source_place()
    return (
        frame.where(header_text(REPLAY_ID) == replay)
        .select(topic.alias("topic"), source.alias("source"), "partition", offset.alias("offset"))
        .where(f.col("source").isNotNull() & f.col("offset").isNotNull())
    )


def arrived(records: Any) -> Any:
    """By topic, source and partition: last (offset), records."""
    from pyspark.sql import functions as f

    return records.groupBy("topic", "source", "partition").agg(
        f.max("offset").alias("last"), f.count("*").alias("records")
    )


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    from pyspark.sql import functions as f

    replay = Replay(options, progress)
    check_producer(client_config(options.bootstrap, options.settings, producer=True))
    check_archive(options.lake, "--lake")
    spark = open_session(options, "replay", needs_kafka=True, needs_delta=True, sends=True)
    replay.prepare(Archive(options.lake, spark, "--lake", options.moment))
    progress.say(f"{replay.id}: {len(replay.sources)} partitions")
    frame = archive_frame(spark, replay.archive, options)
    size = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))
    with Watch(spark, progress):
        # librdkafka takes a time of 0 for none.
        timeless = f.count_if(f.unix_millis("timestamp") == 0)
        largest = f.max(size + headers_size())
        totals = frame.groupBy("topic").agg(f.count("*"), f.sum(size), timeless, largest).collect()
        selected, selected_bytes, of_1970 = (
            sum(row[at] or 0 for row in totals) for at in (1, 2, 3)
        )
        replay.begin({row[0]: row[4] for row in totals})
        done, before = replay.done(spark)
    if of_1970:
        progress.say(f"{of_1970:,} records of 1970-01-01 00:00 get the time of sending")
    if before:
        progress.say(f"{before:,} records have arrived already, going on behind them")
    with replay.watched(selected, before):
        sent, sent_bytes = replay.send(spark, frame, done)
    progress.add(sent, sent_bytes, max(0, selected - before - sent))
    gone = 0
    if before and before + sent > selected:
        gone = before - replay.still_chosen(frame)
        progress.say(f"{gone:,} of the records that had arrived are no longer in the archive")
    if before - gone + sent != selected:
        there = f"{before - gone} + {sent}"
        raise JobError(f"{selected} records were to be replayed, {there} are there")
    return EXIT_DONE, {
        "id": replay.id,
        "selected": selected,
        "selected_bytes": selected_bytes,
        "already_there": before,
        "no_longer_chosen": gone,
        "sent": sent,
        "times_changed": of_1970,
        "targets": sorted(set(replay.targets.values())),
    }


JOB = Job(
    name="replay",
    summary="an archive, or a range of it, back into topics",
    description="Replay an archive, or a range of it by time, offsets, keys or an SQL condition,\n"
    "into topics: key, value, headers, timestamps and the order in each partition stay.\n"
    "Killed and run again it goes on where it stopped, every record is there once.",
    example="kwire spark replay -b localhost:9092 --lake /data/lake --topics clicks "
    "--to-topic clicks-again --create",
    add_options=add_options,
    check=check,
    run=run,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark replay`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
