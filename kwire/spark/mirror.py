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
from collections.abc import Iterable, Mapping
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import mirror_offsets as mapping
from kwire.spark.batching import (
    add_batch_options,
    behind_gap,
    check_batch_options,
    exit_status,
    note_begin,
    run_batches,
)
from kwire.spark.client_settings import client_config, read_settings
from kwire.spark.cluster import EARLIEST, LATEST, Cluster, Partition, TopicInfo, partitions_of
from kwire.spark.headers import MIRROR_OFFSET, MIRROR_PATH
from kwire.spark.job import (
    TOPIC_NAME,
    Job,
    Progress,
    check_output,
    check_pattern,
    one_line,
    require,
    run_job,
)
from kwire.spark.lake_files import check_folder, open_lake_files
from kwire.spark.lake_log import LakeLog
from kwire.spark.sending import (
    RUN_SCHEMA,
    SEND_COLUMNS,
    MirrorPath,
    SendSettings,
    check_producer,
    sender,
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
from kwire.spark.usage import FinalError, JobError, UsageError
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
    add_batch_options(parser, interval_s=1.0, batch_records=500_000)
    parser.add_argument("--to", metavar="HOST:PORT", help="the target cluster")
    parser.add_argument(
        "--to-option", metavar="NAME=VALUE", action="append", default=[], help="-o of the target"
    )
    parser.add_argument(
        "--to-command-config", metavar="FILE", help="a file of client settings of the target"
    )
    parser.add_argument("--alias", metavar="NAME", help="of the source cluster, in headers")
    parser.add_argument("--to-alias", metavar="NAME", help="of the target cluster")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="of the names in the target")
    parser.add_argument("--state", metavar="FOLDER", help="where the mirror keeps what it has done")
    parser.add_argument("--groups", metavar="REGEX", help="translate offsets of these groups")
    parser.add_argument(
        "--group-interval", type=float, default=30.0, metavar="S", help="between translations"
    )
    parser.add_argument(
        "--from", dest="start", default=EARLIEST, choices=(EARLIEST, LATEST), help="at first"
    )
    parser.add_argument("--lag-report", metavar="FILE", help="JSON, written after every batch")


def check(options: argparse.Namespace) -> None:
    for name in ("bootstrap", "to", "alias", "to-alias", "pattern", "state"):
        require(options, name)
    check_pattern(options.pattern, "--pattern")
    if options.groups:
        check_pattern(options.groups, "--groups")
    check_batch_options(options)
    options.to_settings = read_settings(options.to_command_config, options.to_option, "--to-option")
    for option, alias in (("--alias", options.alias), ("--to-alias", options.to_alias)):
        if not all(letter.isalnum() or letter in "-_." for letter in alias):
            raise UsageError(f"{option} {alias}: letters, digits, -, _ and . only")
    if options.alias == options.to_alias:
        raise UsageError("--alias and --to-alias must not be the same")
    if options.group_interval < 0:
        raise UsageError(f"--group-interval {options.group_interval:g}: must not be negative")
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

        def stopping() -> bool:
            return progress.stopping

        self.source = Cluster(options.bootstrap, options.settings, progress.say, stopping)
        self.target = Cluster(options.to, options.to_settings, progress.say, stopping)
        self.log = LakeLog(
            open_lake_files(options.state, spark),
            f"mirror-{options.alias}-{options.to_alias}",
            SystemRandom().random_bytes(6).hex(),
        )
        self.committed = options.isolation == "read_committed"
        self.batches = 0
        self.is_complete = False
        self._left_out: set[str] = set()
        self._copies: dict[str, str] = {}
        self._missed: set[str] = set()
        self._seen: set[str] = set()
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
        for name in sorted(self._seen - set(found)):
            self.progress.say(f"topic {name} is gone from the source; its copy stays")
        self._seen = set(found)
        there = self.target.describe([self.name_of(name) for name in found])
        self._check_copies(found, there)
        for name, info in found.items():
            if self.log.state.topics.get(name, info.topic_id) != info.topic_id:
                raise replaced(name)
            copy = there.get(self.name_of(name))
            if copy is None:
                configs = self.source.topic_configs(name)
                kept = {key: value for key, value in configs.items() if key not in NOT_COPIED}
                self.target.create_topic(self.name_of(name), len(info.partitions), kept)
                there |= self.target.describe([self.name_of(name)])
            elif len(copy.partitions) < len(info.partitions):
                self.target.add_partitions(self.name_of(name), len(info.partitions))
        self._copies = {name: copy.topic_id for name, copy in there.items()}
        return found

    def _check_copies(self, topics: Iterable[str], there: Mapping[str, TopicInfo]) -> None:
        """A copy that is gone would be made anew, and hold only what comes from now on; so would
        another topic that has got its name. Raises FinalError then, at the second look."""
        known = self.log.state.extra.get(mapping.COPY_IDS, {})
        begun = {topic for topic, _ in self.log.state.offsets}
        for name in map(self.name_of, filter(begun.__contains__, topics)):
            if name not in there:
                # A broker that has just started may not know it yet.
                kind = FinalError if name in self._missed else JobError
                self._missed.add(name)
                raise kind(f"topic {name} is gone from the target; {mapping.ANEW}")
            if known.get(name, there[name].topic_id) != there[name].topic_id:
                raise FinalError(f"topic {name} was made anew in the target; {mapping.ANEW}")
            self._missed.discard(name)

    def is_copy_of_target(self, topic: str) -> bool:
        """Whether a topic is by its name what mirrors with the prefix ALIAS. made of the target's,
        directly or by way of other clusters (C.B.A.t).

        Its records would not be sent back, but a topic for them would be made there, and by the
        other mirror one for that, and so on.
        """
        if not self.options.prefix or f".{self.options.to_alias}." not in f".{topic}":
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
            allow_gaps, tell = self.options.allow_gaps, self.progress.say
            starts[key] = behind_gap(key, start, firsts[key], allow_gaps, tell)
        check_ends(self.source, starts, ends)
        return starts, ends

    # -- the loop --------------------------------------------------------------------------------

    def run(self) -> None:
        """Batches until there is nothing new (--once) or it is time to stop."""
        self.log.open(self.clock.wall_ms())
        mapping.remove_orphans(self.log)
        self.is_complete = run_batches(
            self.options, self.progress, self._batch_and_groups, self._before_retry, RETRY_PAUSE_S
        )
        try:
            self.translate_groups()
        except JobError as error:
            # A mirror is stopped because its source is lost: that is no failure of the mirror.
            if not self.progress.stopping:
                raise
            self.progress.say(f"groups are as they were: {one_line(error)}")

    def _batch_and_groups(self) -> int:
        lag = self.batch()
        if time.monotonic() - self._groups_at_s >= self.options.group_interval:
            self.translate_groups()
        return lag

    def _before_retry(self) -> None:
        self._recovered = {}
        mapping.remove_orphans(self.log)  # a commit may be there though its answer was lost

    def batch(self) -> int:
        """One batch; how many offsets are left behind it."""
        topics = self.topics()
        partitions = partitions_of(topics)
        self.recover(partitions)
        starts, ends = self.positions(partitions)
        topic_ids = {name: info.topic_id for name, info in topics.items()}
        if self.options.start != EARLIEST:
            note_begin(self.log, starts, topic_ids, self.clock.wall_ms())
        ranges = limit_ranges(starts, ends, self.options.batch_records)
        if ranges:
            folder = mapping.new_folder(self.log, self.batches)
            try:
                with Watch(self.spark, self.progress, scans=True):
                    self.send(ranges, folder)
            except Exception as error:
                check_times(self.source, ranges, error)
                raise
            check_not_replaced(self.source, {t: topic_ids[t] for t, _ in ranges})
            self.commit(ranges, topic_ids, folder)
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
            source_header=MIRROR_OFFSET,
            full_source=False,
            done={},
            path=MirrorPath(MIRROR_PATH, self.options.alias, self.options.to_alias),
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
        topic_ids: dict[str, str],
        folder: str,
    ) -> None:
        """Offsets and runs become visible together."""
        records, size_bytes, added = mapping.count(self.spark, self.log, folder)
        target_partitions = [(self.name_of(topic), n) for topic, n in ranges]
        copies = dict(self.log.state.extra.get(mapping.COPY_IDS, {}))
        for name, copy in self.target.describe(sorted({t for t, _ in target_partitions})).items():
            if copy.topic_id != self._copies.get(name):
                raise JobError(f"topic {name} was made anew in the target meanwhile")
            copies[name] = copy.topic_id
        target_ends = self.target.offsets(target_partitions, LATEST)
        noted = dict(self.log.state.extra.get("target_ends", {}))
        noted |= {f"{topic}/{n}": end for (topic, n), end in target_ends.items()}
        commit = self.log.new_commit(
            "mirror",
            self.clock.wall_ms(),
            add=added,
            offsets={key: end for key, (_, end) in ranges.items()},
            topics={topic: topic_ids[topic] for topic, _ in ranges},
            extra={"target_ends": noted, mapping.COPY_IDS: copies},
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
        try:
            write_report(self.options.lag_report, report)
        except OSError as error:  # the mirror goes on; whoever watches it sees an old report
            self.progress.say(f"--lag-report {self.options.lag_report}: {error.strerror}")


def write_report(path: str, report: Mapping[str, Any]) -> None:
    """Whoever looks at the file sees a whole report, this one or the one before."""
    draft = f"{path}.new"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(report, file)
    os.replace(draft, path)


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    Cluster(options.bootstrap, options.settings, progress.say).topic_names()
    Cluster(options.to, options.to_settings, progress.say).topic_names()
    check_producer(client_config(options.to, options.to_settings, producer=True))
    spark = open_session(options, "mirror", needs_kafka=True, sends=True)
    mirror = Mirror(options, progress, spark)
    mirror.log.files.check_commits(of_delta=False)
    mirror.run()
    state = mirror.log.state
    return exit_status(options, mirror.is_complete), {
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
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark mirror`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
