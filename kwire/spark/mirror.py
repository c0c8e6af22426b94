"""mirror: topics of one cluster to another, continuously, every record once (docs/MIRROR.md).

A record keeps its partition, key, value, headers and timestamp. Two headers are added:
`kwire-mirror-path`, the aliases of the clusters it has come through, and `kwire-mirror-offset`, its
offset in the last of them. A record that has been in the target already is not sent there again:
two mirrors may run against each other.

What is done is in a log of its own (`--state`, like a lake's): the next source offset of every
partition, and the runs that say which source offset lies at which target offset. After a kill the
target's end is read: records behind the last commit tell by their header how far it had come.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import mirror_offsets as mapping
from kwire.spark.client_settings import check_settings, client_config
from kwire.spark.cluster import EARLIEST, LATEST, Cluster, Partition, TopicInfo, partitions_of
from kwire.spark.job import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    TOPIC_NAME,
    FinalError,
    Job,
    JobError,
    Progress,
    UsageError,
    add_kafka_options,
    check_output,
    check_patience,
    check_pattern,
    one_line,
    pairs,
    require,
    run_job,
)
from kwire.spark.lake_files import check_folder, open_lake_files
from kwire.spark.lake_log import LakeLog
from kwire.spark.mirror_offsets import OFFSET_HEADER, PATH_HEADER
from kwire.spark.sending import (
    RUN_SCHEMA,
    SEND_COLUMNS,
    MirrorPath,
    SendSettings,
    check_producer,
    sender,
)
from kwire.spark.session import lost_jvm, open_session
from kwire.spark.topic_source import (
    Ranges,
    check_ends,
    check_not_replaced,
    limit_ranges,
    ranges_lag,
    read_ranges,
    replaced,
)
from kwire.spark.watching import Watch

# Longer than Spark needs to end the workers of a failed job: none of them sends any more then.
RETRY_PAUSE_S = 5.0
# What makes a copy differ from its source, or belongs to the source's own placement.
NOT_COPIED = (
    "min.insync.replicas",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_kafka_options(parser)
    parser.add_argument("--to", metavar="HOST:PORT", help="the target cluster")
    parser.add_argument(
        "--to-option", metavar="NAME=VALUE", action="append", default=[], help="-o of the target"
    )
    parser.add_argument("--alias", metavar="NAME", help="of the source cluster, in headers")
    parser.add_argument("--to-alias", metavar="NAME", help="of the target cluster")
    parser.add_argument("--pattern", metavar="REGEX", help="topics whose whole name matches")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="of the names in the target")
    parser.add_argument("--state", metavar="FOLDER", help="where the mirror keeps what it has done")
    parser.add_argument("--groups", metavar="REGEX", help="translate offsets of these groups")
    parser.add_argument(
        "--group-interval", type=float, default=30.0, metavar="S", help="between translations"
    )
    parser.add_argument("--once", action="store_true", help="up to what is there now, then end")
    parser.add_argument("--interval", type=float, default=1.0, metavar="S", help="between looks")
    parser.add_argument(
        "--batch-records", type=int, default=500_000, metavar="N", help="at most, in a commit"
    )
    parser.add_argument(
        "--from", dest="start", default=EARLIEST, choices=(EARLIEST, LATEST), help="at first"
    )
    parser.add_argument(
        "--isolation",
        default="read_committed",
        choices=("read_committed", "read_uncommitted"),
        help="of transactions",
    )
    parser.add_argument("--lag-report", metavar="FILE", help="JSON, written after every batch")
    parser.add_argument("--allow-gaps", action="store_true", help="go on behind deleted records")
    parser.add_argument(
        "--retry-seconds", type=float, default=300.0, metavar="S", help="patience with clusters"
    )


def check(options: argparse.Namespace) -> None:
    for name in ("bootstrap", "to", "alias", "to-alias", "pattern", "state"):
        require(options, name)
    check_pattern(options.pattern, "--pattern")
    if options.groups:
        check_pattern(options.groups, "--groups")
    options.settings = pairs(options.kafka_option, "--kafka-option")
    options.to_settings = pairs(options.to_option, "--to-option")
    check_settings(options.settings)
    check_settings(options.to_settings)
    for option, alias in (("--alias", options.alias), ("--to-alias", options.to_alias)):
        if not all(letter.isalnum() or letter in "-_." for letter in alias):
            raise UsageError(f"{option} {alias}: letters, digits, -, _ and . only")
    if options.alias == options.to_alias:
        raise UsageError("--alias and --to-alias must not be the same")
    if options.batch_records < 1 or options.interval < 0 or options.group_interval < 0:
        raise UsageError("--batch-records and intervals must not be negative")
    check_patience(options.retry_seconds)
    check_output(options.lag_report, "--lag-report")
    check_folder(options.state, "--state")
    check_topic_prefix(options.prefix)


def check_topic_prefix(prefix: str) -> None:
    """UsageError when no topic's name can begin so."""
    if prefix and not TOPIC_NAME.match(f"{prefix}x"):
        raise UsageError(f"--prefix {prefix}: no topic's name can begin so")


class Mirror:
    """One session of a mirror."""

    def __init__(self, options: argparse.Namespace, progress: Progress, spark: Any) -> None:
        self.options = options
        self.progress = progress
        self.spark = spark
        self.clock = SystemClock()
        self.source = Cluster(options.bootstrap, options.settings)
        self.target = Cluster(options.to, options.to_settings)
        self.log = LakeLog(
            open_lake_files(options.state, spark),
            f"mirror-{options.alias}-{options.to_alias}",
            SystemRandom().random_bytes(6).hex(),
        )
        self.committed = options.isolation == "read_committed"
        self.batches = 0
        self.is_complete = False
        self._left_out: set[str] = set()
        self.groups: dict[str, str] = {}
        self.lag: dict[Partition, int] = {}
        self._groups_at_s = 0.0
        self._recovered: dict[Partition, int] = {}

    def name_of(self, topic: str) -> str:
        """A topic's name in the target."""
        return f"{self.options.prefix}{topic}"

    # -- what a batch needs ----------------------------------------------------------------------

    def topics(self) -> dict[str, TopicInfo]:
        """The source's topics, made in the target with partitions and configs where they lack."""
        names = [
            name
            for name in self.source.matching([], self.options.pattern)
            if not self.is_copy_of_target(name)
        ]
        found = self.source.describe(names)
        there = self.target.describe([self.name_of(name) for name in found])
        for name, info in found.items():
            if self.log.state.topics.get(name, info.topic_id) != info.topic_id:
                raise replaced(name)
            copy = there.get(self.name_of(name))
            if copy is None:
                configs = self.source.topic_configs(name)
                kept = {key: value for key, value in configs.items() if key not in NOT_COPIED}
                self.target.create_topic(self.name_of(name), len(info.partitions), kept)
            elif len(copy.partitions) < len(info.partitions):
                self.target.add_partitions(self.name_of(name), len(info.partitions))
        return found

    def is_copy_of_target(self, topic: str) -> bool:
        """Whether a topic is by its name what a mirror with the prefix ALIAS. made of the target's.

        Its records would not be sent back, but a topic for them would be made there, and by the
        other mirror one for that, and so on.
        """
        if not self.options.prefix or not topic.startswith(f"{self.options.to_alias}."):
            return False
        if topic not in self._left_out:
            self._left_out.add(topic)
            self.progress.say(f"topic {topic} is left out: a copy from {self.options.to_alias}")
        return True

    def recover(self, partitions: list[Partition]) -> None:
        """Find what a killed session has sent behind its last commit, once for each partition."""
        new = [key for key in partitions if key not in self._recovered]
        if not new:
            return
        done = mapping.recover(self, new)
        for key in new:
            self._recovered[key] = done.get(key, 0)

    def positions(
        self, partitions: list[Partition]
    ) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """(where to go on, where the source ends)."""
        firsts = self.source.offsets(partitions, EARLIEST)
        ends = self.source.offsets(partitions, LATEST, committed=self.committed)
        known = self.log.state.offsets
        starts: dict[Partition, int] = {}
        for key in partitions:
            begin = ends[key] if self.options.start == LATEST else firsts[key]
            # A partition that was added later is mirrored from its beginning.
            if key[0] in self.log.state.topics:
                begin = firsts[key]
            start = max(known.get(key, begin), self._recovered.get(key, 0))
            if start < firsts[key]:
                gap = f"{key[0]}-{key[1]}: offsets {start} to {firsts[key] - 1} are gone"
                if not self.options.allow_gaps:
                    raise FinalError(f"{gap}; --allow-gaps goes on behind them")
                self.progress.say(gap)
                start = firsts[key]
            starts[key] = start
        check_ends(self.source, starts, ends)
        return starts, ends

    def begin(self, topics: dict[str, TopicInfo], starts: dict[Partition, int]) -> None:
        """Where --from is the end, where that was at first is kept: what comes behind it is
        mirrored, also what comes before there is a first batch."""
        new = {key: start for key, start in starts.items() if key not in self.log.state.offsets}
        if self.options.start == EARLIEST or not new:
            return
        commit = self.log.new_commit(
            "begin",
            self.clock.wall_ms(),
            offsets=new,
            topics={topic: topics[topic].topic_id for topic, _ in new},
        )
        self.log.commit(commit)

    # -- the loop --------------------------------------------------------------------------------

    def run(self) -> None:
        """Batches until there is nothing new (--once) or it is time to stop."""
        self.log.open(self.clock.wall_ms())
        failing_since: float | None = None
        while not self.progress.stopping:
            try:
                if failing_since is not None:
                    self.log.confirm()  # a commit may be there though its answer was lost
                lag = self.batch()
                if time.monotonic() - self._groups_at_s >= self.options.group_interval:
                    self.translate_groups()
                failing_since = None
            except (FinalError, UsageError):
                raise
            except Exception as error:
                if lost_jvm():
                    raise
                now_s = time.monotonic()
                failing_since = failing_since or now_s
                if now_s - failing_since > self.options.retry_seconds:
                    raise JobError(f"gave up after {one_line(error)}") from error
                self.progress.say(f"{one_line(error)}; trying again")
                self._recovered = {}
                self.progress.wait(RETRY_PAUSE_S)
                continue
            if lag == 0:
                if self.options.once:
                    self.is_complete = True
                    break
                self.progress.wait(self.options.interval)
        try:
            self.translate_groups()
        except JobError as error:
            # A mirror is stopped because its source is lost: that is no failure of the mirror.
            if not self.progress.stopping:
                raise
            self.progress.say(f"groups are as they were: {one_line(error)}")

    def batch(self) -> int:
        """One batch; how many offsets are left behind it."""
        topics = self.topics()
        partitions = partitions_of(topics)
        self.recover(partitions)
        starts, ends = self.positions(partitions)
        self.begin(topics, starts)
        ranges = limit_ranges(starts, ends, self.options.batch_records)
        if ranges:
            folder = mapping.new_folder(self.log, self.batches)
            with Watch(self.spark, self.progress):
                self.send(ranges, folder)
            check_not_replaced(self.source, {t: topics[t].topic_id for t, _ in ranges})
            self.commit(ranges, topics, starts, folder)
        moved = {key: end for key, (_, end) in ranges.items()}
        self.lag = {key: max(0, ends[key] - moved.get(key, starts[key])) for key in partitions}
        self.report_lag(ends)
        return ranges_lag({**starts, **moved}, ends)

    def send(self, ranges: Ranges, folder: str) -> None:
        """Send a batch and leave its runs in a folder."""
        from pyspark.sql import functions as f

        frame = read_ranges(
            self.spark,
            self.options.bootstrap,
            self.options.settings,
            ranges,
            committed=self.committed,
            fail_on_loss=not self.options.allow_gaps,
        )
        settings = SendSettings(
            config=client_config(self.options.to, self.options.to_settings, producer=True),
            partitions=None,
            headers=(),
            source_header=OFFSET_HEADER,
            full_source=False,
            done={},
            path=MirrorPath(PATH_HEADER, self.options.alias, self.options.to_alias),
            timeout_s=self.options.retry_seconds,
        )
        rows = (
            frame.withColumn("targetTopic", f.concat(f.lit(self.options.prefix), "topic"))
            .withColumn("timestampMs", f.unix_millis("timestamp"))
            .select(*SEND_COLUMNS)
        )
        mapping.write(rows.mapInArrow(sender(settings), RUN_SCHEMA), self.log, folder)

    def commit(
        self,
        ranges: Ranges,
        topics: dict[str, TopicInfo],
        starts: dict[Partition, int],
        folder: str,
    ) -> None:
        """Offsets and runs become visible together."""
        records, size_bytes, added = mapping.count(self.spark, self.log, folder)
        target_partitions = [(self.name_of(topic), n) for topic, n in ranges]
        target_ends = self.target.offsets(target_partitions, LATEST)
        noted = dict(self.log.state.extra.get("target_ends", {}))
        noted |= {f"{topic}/{n}": end for (topic, n), end in target_ends.items()}
        commit = self.log.new_commit(
            "mirror",
            self.clock.wall_ms(),
            add=added,
            offsets={key: end for key, (_, end) in ranges.items()},
            topics={topic: topics[topic].topic_id for topic, _ in ranges},
            extra={"target_ends": noted},
        )
        self.log.commit(commit)
        self.batches += 1
        for key, (_, end) in ranges.items():
            self._recovered[key] = end
        self.progress.add(records, size_bytes, None, f"batch {self.batches}")
        mapping.compact(self.spark, self.log, self.clock.wall_ms())

    # -- groups and lag --------------------------------------------------------------------------

    def translate_groups(self) -> None:
        """Commit in the target what groups have committed in the source."""
        self._groups_at_s = time.monotonic()
        if not self.options.groups:
            return
        groups = self.source.groups(self.options.groups)
        rows = [
            (group, topic, partition, offset)
            for group in groups
            for (topic, partition), offset in self.source.group_offsets(group).items()
        ]
        translated = mapping.translate(self.spark, self.log, rows, self.options.prefix)
        for group, offsets in sorted(translated.items()):
            there = self.target.group_offsets(group)
            # Only forward: a group that has moved to the target is not set back.
            ahead = {key: offset for key, offset in offsets.items() if offset > there.get(key, -1)}
            if not ahead:
                self.groups.setdefault(group, "up to date")
                continue
            refusal = self.target.set_group_offsets(group, ahead)
            self.groups[group] = refusal or f"{len(ahead)} partitions set"
            self.progress.say(f"group {group}: {self.groups[group]}")

    def report_lag(self, ends: dict[Partition, int]) -> None:
        """How far the target is behind, by partition."""
        if not self.options.lag_report:
            return
        report = {
            "time_ms": self.clock.wall_ms(),
            "lag": sum(self.lag.values()),
            "partitions": {
                f"{topic}-{n}": {"end": ends[topic, n], "lag": lag}
                for (topic, n), lag in sorted(self.lag.items())
            },
        }
        write_report(self.options.lag_report, report)


def write_report(path: str, report: Mapping[str, Any]) -> None:
    """Whoever looks at the file sees a whole report, this one or the one before."""
    draft = f"{path}.new"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(report, file)
    os.replace(draft, path)


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    Cluster(options.bootstrap, options.settings).topic_names()
    Cluster(options.to, options.to_settings).topic_names()
    check_producer(client_config(options.to, options.to_settings, producer=True))
    spark = open_session(options, "mirror", needs_kafka=True, sends=True)
    mirror = Mirror(options, progress, spark)
    mirror.run()
    state = mirror.log.state
    status = EXIT_INTERRUPTED if options.once and not mirror.is_complete else EXIT_DONE
    return status, {
        "from": options.alias,
        "to": options.to_alias,
        "batches": mirror.batches,
        "topics": sorted({topic for topic, _ in state.offsets}),
        "offsets": {f"{topic}-{n}": offset for (topic, n), offset in sorted(state.offsets.items())},
        "lag": sum(mirror.lag.values()),
        "groups": mirror.groups,
    }


JOB = Job(
    name="mirror",
    summary="topics of one cluster to another, continuously",
    description="Mirror topics to another cluster: partitions, keys, values, headers, timestamps\n"
    "stay, every record is there once, offsets of groups are translated, and two mirrors\n"
    "may run against each other. docs/MIRROR.md tells how to fail over and back.",
    example="kwire spark mirror -b east:9092 --to west:9092 --alias east --to-alias west "
    "--pattern 'orders.*' --groups '.*' --state /data/mirror",
    add_options=add_options,
    check=check,
    run=run,
    in_batches=True,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark mirror`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
