"""profile: what a topic is like: skew, hot keys, sizes, rates, codecs, partitions, consumer lag."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kwire.protocol.records import Codec, Record, build_batch
from kwire.spark.archive_source import (
    add_as_of_option,
    add_range_options,
    check_as_of,
    check_range,
    parse_as_of,
)
from kwire.spark.client_settings import read_settings
from kwire.spark.cluster import EARLIEST, LATEST, Cluster, partitions_of
from kwire.spark.job import (
    EXIT_DONE,
    Job,
    Progress,
    add_isolation_option,
    add_kafka_options,
    check_output,
    run_job,
)
from kwire.spark.lag_history import COMMIT_SCHEMA, OFFSETS_TOPIC, decode_commits, lag_history
from kwire.spark.report import (
    Report,
    bars,
    lines,
    moment_text,
    power_text,
    rate_text,
    size_text,
    span_text,
)
from kwire.spark.session import open_session
from kwire.spark.sides import ON_CLUSTER, check_known, check_side, parse_side, side_frame
from kwire.spark.topic_source import read_ranges
from kwire.spark.usage import UsageError
from kwire.spark.watching import Watch

SAMPLE_BATCH_BYTES = 64 << 10
POINTS_MAX = 240
CODEC_SCHEMA = "codec string, rawBytes bigint, compressedBytes bigint"
HEADROOM = 2.0


def add_options(parser: argparse.ArgumentParser) -> None:
    add_kafka_options(parser)
    parser.add_argument(
        "--source", metavar="SIDE", help="topic:NAME[,NAME], archive:FOLDER or segments:FOLDER"
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="hot keys a partition")
    parser.add_argument("--sample-mb", type=float, default=16.0, metavar="MB", help="to compress")
    parser.add_argument(
        "--partition-mb", type=float, default=10.0, metavar="MB", help="a second, for a partition"
    )
    add_isolation_option(parser)
    parser.add_argument("--lag", action="store_true", help="lag of groups (needs --bootstrap)")
    parser.add_argument("--report", metavar="FILE", help="an HTML report with plots")
    add_as_of_option(parser)
    add_range_options(parser)


def check(options: argparse.Namespace) -> None:
    options.settings = read_settings(options.command_config, options.kafka_option, "--kafka-option")
    if not options.source:
        raise UsageError("--source is needed")
    options.side = parse_side(
        options.source,
        "--source",
        options.bootstrap,
        options.settings,
        parse_as_of(options.as_of),
    )
    if options.side.kind not in ("topic", "archive", "segments"):
        raise UsageError(f"--source {options.source}: only topic, archive and segments")
    check_as_of(options.as_of, "--as-of", options.side.kind == "archive")
    check_range(options, options.side.columns)
    if options.top < 1 or options.sample_mb < 0 or options.partition_mb <= 0:
        raise UsageError("--top, --sample-mb and --partition-mb must be above 0")
    if options.lag and not options.bootstrap:
        raise UsageError("--lag needs --bootstrap")
    check_output(options.report, "--report")
    check_side(options.side, "--source", options.say)
    check_known(options.topic_list, (options.side,))


def slim(records: Any) -> Any:
    """What the figures need of each record: place, time, key and sizes."""
    from pyspark.sql import functions as f

    size = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))
    return records.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        f.col("value").isNull().alias("tombstone"),
        size.alias("size"),
    )


def by_partition(frame: Any) -> Any:
    """A row a partition: records, bytes, sizes, keys, first and last time."""
    from pyspark.sql import functions as f

    return (
        frame.groupBy("topic", "partition")
        .agg(
            f.count("*").alias("records"),
            f.sum("size").alias("bytes"),
            f.max("size").alias("largest"),
            f.percentile_approx("size", f.array(f.lit(0.5), f.lit(0.99))).alias("sizes"),
            f.count_if(f.col("key").isNull()).alias("without_key"),
            f.count_if(f.col("tombstone")).alias("tombstones"),
            f.approx_count_distinct("key").alias("keys"),
            f.min(f.unix_millis("timestamp")).alias("first_ms"),
            f.max(f.unix_millis("timestamp")).alias("last_ms"),
        )
        .orderBy("topic", "partition")
    )


def hot_keys(frame: Any, top: int) -> Any:
    """The keys of each partition with the most bytes, and their share of the partition's."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    place = Window.partitionBy("topic", "partition")
    total = f.sum("bytes").over(place)
    counted = frame.groupBy("topic", "partition", "key").agg(
        f.count("*").alias("records"), f.sum("size").alias("bytes")
    )
    # Records without a key count for the share, but are no key.
    order = place.orderBy(f.col("key").isNull(), f.desc("bytes"), "key")
    return (
        counted.withColumn("rank", f.row_number().over(order))
        # Where nothing has any bytes a key has none of them.
        .withColumn("share", f.coalesce(f.try_divide("bytes", total), f.lit(0.0)))
        .where((f.col("rank") <= top) & f.col("key").isNotNull())
        .orderBy("topic", "partition", "rank")
    )


def size_histogram(frame: Any) -> Any:
    """topic, power, records: how many records are below 2^power bytes and not below half of it."""
    from pyspark.sql import functions as f

    power = f.when(f.col("size") == 0, 0).otherwise(f.floor(f.log2("size")) + 1).cast("int")
    return (
        frame.groupBy("topic", power.alias("power"))
        .agg(f.count("*").alias("records"))
        .orderBy("topic", "power")
    )


def rates(frame: Any, step_s: int) -> Any:
    """topic, at (s since 1970), records and bytes by spans of `step_s`."""
    from pyspark.sql import functions as f

    at = (f.floor(f.unix_seconds("timestamp") / step_s) * step_s).cast("bigint")
    return (
        frame.groupBy("topic", at.alias("at"))
        .agg(f.count("*").alias("records"), f.sum("size").alias("bytes"))
        .orderBy("topic", "at")
    )


def step_of(first_ms: int, last_ms: int) -> int:
    """A span in seconds that gives at most POINTS_MAX points."""
    needed = (last_ms - first_ms) / 1000 / POINTS_MAX
    for step_s in (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86_400):
        if step_s >= needed:
            return step_s
    return 86_400 * math.ceil(needed / 86_400)


def compressor(budget_bytes: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For `mapInArrow`: the first bytes of a task as batches of records, with every codec."""

    def compress_batches(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        sums = {codec: [0, 0] for codec in Codec}
        waiting: list[Record] = []
        size_bytes = done_bytes = 0
        for batch in batches:
            for key, value in zip(
                batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
            ):
                waiting.append(Record(len(waiting), 0, key, value, []))
                size_bytes += len(key or b"") + len(value or b"")
                if size_bytes >= SAMPLE_BATCH_BYTES:
                    _compress(waiting, sums)
                    done_bytes += size_bytes
                    waiting, size_bytes = [], 0
            if done_bytes >= budget_bytes:
                break
        if waiting:
            _compress(waiting, sums)
        names = [codec.name.lower() for codec in sums]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(names, pa.string()),
                pa.array([raw for raw, _ in sums.values()], pa.int64()),
                pa.array([small for _, small in sums.values()], pa.int64()),
            ],
            names=["codec", "rawBytes", "compressedBytes"],
        )

    return compress_batches


def _compress(records: Sequence[Record], sums: dict[Codec, list[int]]) -> None:
    raw_bytes = len(build_batch(records))
    for codec, found in sums.items():
        found[0] += raw_bytes
        found[1] += raw_bytes if codec == Codec.NONE else len(build_batch(records, codec=codec))


def recommend(
    partitions: Sequence[dict[str, Any]], peak_mb: float, target_mb: float, hottest: float
) -> dict[str, Any]:
    """How many partitions a topic should have, and why.

    Enough for twice the peak at `target_mb` a second each, but a key cannot be split: beyond
    1 / (share of the hottest key of all bytes) more partitions do not help.
    """
    total = sum(row["bytes"] for row in partitions)
    mean = total / max(1, len(partitions))
    skew = max((row["bytes"] for row in partitions), default=0) / mean if mean else 1.0
    wanted = max(1, math.ceil(HEADROOM * peak_mb / target_mb))
    useful = math.floor(1 / hottest) if hottest > 0 else wanted
    if wanted > useful >= 1:
        why = f"the hottest key has {hottest:.0%} of the bytes: more than {useful} do not help"
        wanted = useful
    else:
        why = f"{HEADROOM:g} times the peak of {peak_mb:.3g} MB/s at {target_mb:g} MB/s each"
    return {
        "partitions": len(partitions),
        "recommended": wanted,
        "why": why,
        "skew": round(skew, 3),
        "peak_mb_per_s": round(peak_mb, 6),
    }


class Profile:
    """All figures of a source."""

    def __init__(self, options: argparse.Namespace, progress: Progress, spark: Any) -> None:
        self.options = options
        self.progress = progress
        self.spark = spark

    def read(self) -> None:
        """Run the queries; what comes to the driver is aggregated."""
        from pyspark import StorageLevel

        records = side_frame(self.spark, self.options.side, self.options)
        kept = slim(records).persist(StorageLevel.DISK_ONLY)
        try:
            self.partitions = [row.asDict() for row in by_partition(kept).collect()]
            self.progress.add(
                sum(row["records"] for row in self.partitions),
                sum(row["bytes"] or 0 for row in self.partitions),
                what="sizes and skew",
            )
            self.keys = [row.asDict() for row in hot_keys(kept, self.options.top).collect()]
            self.sizes = [row.asDict() for row in size_histogram(kept).collect()]
            first = min((row["first_ms"] for row in self.partitions), default=0)
            last = max((row["last_ms"] for row in self.partitions), default=0)
            self.step_s = step_of(first, last)
            self.rates = [row.asDict() for row in rates(kept, self.step_s).collect()]
            self.lag = self._lag(kept) if self.options.lag else []
        finally:
            kept.unpersist()
        self.codecs = self._codecs(records)
        self.progress.say("hot keys, rates and codecs done")

    def _codecs(self, records: Any) -> list[dict[str, Any]]:
        from pyspark.sql import functions as f

        tasks = max(1, len(self.partitions))
        budget_bytes = int(self.options.sample_mb * 1e6 / tasks)
        if budget_bytes == 0:
            return []
        frame = records.select("key", "value").mapInArrow(compressor(budget_bytes), CODEC_SCHEMA)
        summed = frame.groupBy("codec").agg(
            f.sum("rawBytes").alias("raw_bytes"), f.sum("compressedBytes").alias("bytes")
        )
        found = [row.asDict() for row in summed.orderBy("bytes").collect()]
        return [{**row, "ratio": row["raw_bytes"] / max(1, row["bytes"])} for row in found]

    def _lag(self, records: Any) -> list[dict[str, Any]]:
        cluster = Cluster(self.options.bootstrap, self.options.settings, self.progress.say)
        partitions = partitions_of(cluster.describe([OFFSETS_TOPIC]))
        firsts = cluster.offsets(partitions, EARLIEST)
        ends = cluster.offsets(partitions, LATEST)
        ranges = {key: (firsts[key], ends[key]) for key in partitions if ends[key] > firsts[key]}
        if not ranges:
            return []
        frame = read_ranges(self.spark, self.options.bootstrap, self.options.settings, ranges)
        commits = frame.select("key", "value", "offset").mapInArrow(decode_commits, COMMIT_SCHEMA)
        return [row.asDict() for row in lag_history(commits, records).collect()]

    def topics(self) -> dict[str, dict[str, Any]]:
        """Per topic: totals and the recommendation."""
        found: dict[str, dict[str, Any]] = {}
        for topic in dict.fromkeys(row["topic"] for row in self.partitions):
            rows = [row for row in self.partitions if row["topic"] == topic]
            total = sum(row["bytes"] for row in rows)
            spans = [row for row in self.rates if row["topic"] == topic]
            peak_mb = max(row["bytes"] for row in spans) / self.step_s / 1e6
            keys = [row for row in self.keys if row["topic"] == topic]
            hottest = max((row["bytes"] for row in keys), default=0) / max(1, total)
            found[topic] = {
                "records": sum(row["records"] for row in rows),
                "bytes": total,
                **recommend(rows, peak_mb, self.options.partition_mb, hottest),
            }
        return found


HEADS = {"peak_mb_per_s": "peak", "keys": "keys (about)"}
ESTIMATES = (
    "The number of keys is an estimate, off by 5 % as a rule (HyperLogLog); median and p99 of "
    "sizes are within 0.01 % of the rank. All other figures are counted."
)
_SIZES = ("bytes", "largest")


def _shown(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Figures of a row, sizes and rates in the units that fit."""
    shown = []
    for name in names:
        value = row[name]
        if name in _SIZES:
            value = size_text(value or 0)
        elif name == "peak_mb_per_s":
            value = rate_text(value * 1e6)
        shown.append(value)
    return shown


def write_report(path: str, profile: Profile) -> None:
    """The HTML report of a profile."""
    report = Report(f"Profile of {profile.options.side.name}")
    topics = profile.topics()
    report.heading("Topics")
    names = ("records", "bytes", "partitions", "recommended", "why", "skew", "peak_mb_per_s")
    report.table(
        ("topic", *(HEADS.get(name, name.replace("_", " ")) for name in names)),
        [(topic, *_shown(row, names)) for topic, row in topics.items()],
    )
    rows = profile.partitions
    report.heading("Bytes by partition")
    labels = [f"{row['topic']}-{row['partition']}" for row in rows]
    report.plot(bars(labels, [("bytes", [row["bytes"] for row in rows])], size_text))
    report.heading("Partitions")
    columns = ("records", "bytes", "largest", "without_key", "tombstones", "keys")
    report.table(
        (
            "partition",
            *(HEADS.get(name, name.replace("_", " ")) for name in columns),
            "median",
            "p99",
        ),
        [
            (label, *_shown(row, columns), *map(size_text, row["sizes"]))
            for label, row in zip(labels, rows, strict=True)
        ],
    )
    report.paragraph(ESTIMATES, "note")
    report.heading("Hot keys")
    report.table(
        ("partition", "key", "records", "bytes", "share of the partition's bytes"),
        [
            (
                f"{row['topic']}-{row['partition']}",
                key_text(row["key"]),
                row["records"],
                size_text(row["bytes"]),
                f"{row['share']:.1%}",
            )
            for row in profile.keys
        ],
    )
    report.heading("Sizes of records")
    for topic in topics:
        found = [row for row in profile.sizes if row["topic"] == topic]
        labels = [f"{topic}: below {power_text(row['power'])}" for row in found]
        if found:
            report.plot(bars(labels, [("records", [row["records"] for row in found])]))
    report.heading(f"Rate, by {span_text(profile.step_s)}")
    times = sorted({row["at"] for row in profile.rates})
    series: list[tuple[str, Sequence[float | None]]] = []
    for topic in topics:
        at = {r["at"]: r["bytes"] / profile.step_s for r in profile.rates if r["topic"] == topic}
        series.append((topic, [at.get(moment, 0.0) for moment in times]))
    texts = [moment_text(moment) for moment in times]
    report.plot(lines(texts, series, text=rate_text))
    if profile.codecs:
        report.heading("Compression, of a sample")
        names_of = [row["codec"] for row in profile.codecs]
        report.plot(bars(names_of, [("ratio", [row["ratio"] for row in profile.codecs])]))
    if profile.options.lag:
        _lag_report(report, profile.lag)
    report.write(path)


def _lag_report(report: Report, rows: Sequence[dict[str, Any]]) -> None:
    report.heading("Consumer lag, records by minute")
    if not rows:
        report.paragraph("No group has committed offsets of these topics.", "note")
        return
    minutes = sorted({row["minute"] for row in rows})
    series: list[tuple[str, Sequence[float | None]]] = []
    for key in dict.fromkeys((row["group"], row["topic"]) for row in rows):
        at = {row["minute"]: row["lag"] for row in rows if (row["group"], row["topic"]) == key}
        series.append((f"{key[0]} of {key[1]}", [at.get(minute) for minute in minutes]))
    texts = [moment_text(minute * 60, "minutes") for minute in minutes]
    report.plot(lines(texts, series))


def key_text(key: bytes | bytearray | None) -> str:
    """A key as text, or its bytes in hex."""
    if key is None:
        return "(none)"
    try:
        text = bytes(key).decode()
    except UnicodeDecodeError:
        return bytes(key).hex()
    return text if text.isprintable() else bytes(key).hex()


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    needs_kafka = options.side.kind in ON_CLUSTER or options.lag
    needs_delta = options.side.kind == "archive"
    spark = open_session(options, "profile", needs_kafka=needs_kafka, needs_delta=needs_delta)
    profile = Profile(options, progress, spark)
    with Watch(spark, progress):
        profile.read()
    if options.report:
        write_report(options.report, profile)
    keys = [{**row, "key": key_text(row["key"])} for row in profile.keys]
    for row in keys:
        row["share"] = round(row["share"], 6)
    return EXIT_DONE, {
        "source": options.side.name,
        "topics": profile.topics(),
        "hot_keys": keys,
        "sizes": profile.sizes,
        "codecs": profile.codecs,
        "lag": profile.lag,
        "report": options.report,
    }


JOB = Job(
    name="profile",
    summary="hot keys, skew, sizes, rates, codecs, consumer lag",
    description="Profile a topic, an archive or segment files: skew of partitions, hot keys with\n"
    "their share of bytes, sizes and rates, compression by codec, how many partitions it\n"
    "should have, and the lag of consumer groups over time.",
    example="kwire spark profile -b localhost:9092 --source topic:clicks --lag --report p.html",
    add_options=add_options,
    check=check,
    run=run,
    needs_kafka=False,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark profile`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
