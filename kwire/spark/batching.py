"""What archive and mirror have in common: options of jobs that work in batches, and their loop."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

from kwire.spark.client_settings import read_settings
from kwire.spark.cluster import Partition
from kwire.spark.job import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    Progress,
    add_isolation_option,
    add_kafka_options,
    add_patience_option,
    check_patience,
    one_line,
)
from kwire.spark.lake_log import LakeLog
from kwire.spark.session import lost_jvm
from kwire.spark.usage import FinalError, JobError, UsageError


def add_batch_options(
    parser: argparse.ArgumentParser, *, interval_s: float, batch_records: int
) -> None:
    """Which topics of which cluster, how much in a batch, and what happens between batches."""
    add_kafka_options(parser)
    parser.add_argument("--pattern", metavar="REGEX", help="topics whose whole name matches")
    parser.add_argument("--once", action="store_true", help="up to what is there now, then end")
    parser.add_argument(
        "--interval", type=float, default=interval_s, metavar="S", help="between looks"
    )
    parser.add_argument(
        "--batch-records", type=int, default=batch_records, metavar="N", help="at most, in a commit"
    )
    add_isolation_option(parser)
    parser.add_argument(
        "--allow-gaps", action="store_true", help="go on behind records that were deleted before"
    )
    add_patience_option(parser)


def check_batch_options(options: argparse.Namespace) -> None:
    """UsageError for values that no batch can go by; sets `options.settings`, the client's."""
    options.settings = read_settings(options.command_config, options.kafka_option, "--kafka-option")
    if options.batch_records < 1 or options.interval < 0:
        raise UsageError("--batch-records must be above 0, --interval not below")
    check_patience(options.retry_seconds)


def run_batches(
    options: argparse.Namespace,
    progress: Progress,
    batch: Callable[[], int],
    before_retry: Callable[[], None],
    pause_s: float,
) -> bool:
    """Batches until there is nothing new (--once) or it is time to stop; whether it was the first.

    `batch()` is one batch, and how many offsets are left behind it. What fails is tried again,
    `pause_s` later and behind `before_retry()`, until --retry-seconds are over: JobError. A
    FinalError, a UsageError and whatever comes of Spark's end are raised at once.
    """
    progress.has_batches = True
    failing_since_s: float | None = None
    while not progress.stopping:
        try:
            if failing_since_s is not None:
                before_retry()
            lag = batch()
            failing_since_s = None
        except (FinalError, UsageError):
            raise
        except Exception as error:
            if lost_jvm():
                raise
            if progress.stopping:
                progress.say(f"{one_line(error)}; the batch is left for the next run")
                break
            now_s = time.monotonic()
            failing_since_s = failing_since_s or now_s
            if now_s - failing_since_s > options.retry_seconds:
                raise JobError(f"gave up after {one_line(error)}") from error
            progress.say(f"{one_line(error)}; trying again")
            progress.wait(pause_s)
            continue
        if lag == 0:
            if options.once:
                return True
            progress.wait(options.interval)
    return False


def exit_status(options: argparse.Namespace, is_complete: bool) -> int:
    """Stopped between batches: fine for a job that goes on for ever, not all of --once."""
    return EXIT_INTERRUPTED if options.once and not is_complete else EXIT_DONE


def behind_gap(
    key: Partition, start: int, first: int, allow_gaps: bool, tell: Callable[[str], None]
) -> int:
    """Where a partition goes on: `start`, or its first offset where records before that are gone.

    `tell` hears of such a gap; FinalError where gaps are not allowed.
    """
    if start >= first:
        return start
    gap = f"{key[0]}-{key[1]}: offsets {start} to {first - 1} are gone"
    if not allow_gaps:
        raise FinalError(f"{gap}; --allow-gaps goes on behind them")
    tell(gap)
    return first


def note_begin(
    log: LakeLog,
    starts: Mapping[Partition, int],
    topic_ids: Mapping[str, str],
    time_ms: int,
) -> None:
    """Commit where partitions begin that the log does not know yet: what comes behind that
    belongs to it, also what comes before there is a first batch."""
    new = {key: start for key, start in starts.items() if key not in log.state.offsets}
    if new:
        topics = {topic: topic_ids[topic] for topic, _ in new}
        log.commit(log.new_commit("begin", time_ms, offsets=new, topics=topics))
