"""audit: are two of topic, archive, mirror, replay and segment files the same?

First both sides are reduced to a row for each partition and hour: counts, distinct offsets, first
and last, reordering, a checksum over all that a record is. Those rows are compared. Only where
they differ the records themselves are joined, to name some of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from kwire.spark.archive_source import (
    add_as_of_option,
    add_range_options,
    check_as_of,
    check_range,
    parse_as_of,
)
from kwire.spark.client_settings import read_settings
from kwire.spark.job import (
    EXIT_DONE,
    EXIT_FOUND,
    Job,
    Progress,
    add_isolation_option,
    add_kafka_options,
    check_output,
    run_job,
)
from kwire.spark.report import Report, bars, cell, heat_map, size_text
from kwire.spark.session import open_session
from kwire.spark.sides import ON_CLUSTER, Side, check_known, check_side, parse_side, side_frame
from kwire.spark.usage import UsageError, pairs
from kwire.spark.watching import Watch

PARTS = ("timestamp", "timestampType", "key", "value", "headers")
FIGURES = ("records", "distinct", "first", "last", "reordered", "bytes", "checksum")
EXAMPLES = 20
HOUR = "yyyy-MM-dd HH:00"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_kafka_options(parser)
    side = "topic:NAME, archive:FOLDER, segments:FOLDER, mirror:NAME or replay:NAME"
    parser.add_argument("--left", metavar="SIDE", help=side)
    parser.add_argument("--right", metavar="SIDE", help="the same, of what is compared with it")
    parser.add_argument("--right-bootstrap", metavar="HOST:PORT", help="if on another cluster")
    parser.add_argument(
        "--right-kafka-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="-o of that cluster",
    )
    parser.add_argument(
        "--right-command-config", metavar="FILE", help="a file of client settings of that cluster"
    )
    add_isolation_option(parser)
    parser.add_argument(
        "--common", action="store_true", help="only offsets that both sides reach, by partition"
    )
    parser.add_argument(
        "--ignore",
        metavar="A,B",
        default="",
        help=f"leave out of the comparison: {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--rename", metavar="LEFT=RIGHT", action="append", default=[], help="topics named otherwise"
    )
    parser.add_argument("--report", metavar="FILE", help="an HTML report with plots")
    add_as_of_option(parser)
    parser.add_argument("--right-as-of", metavar="VERSION|TIME", help="the same of --right")
    add_range_options(parser)


def check(options: argparse.Namespace) -> None:
    options.settings = read_settings(options.command_config, options.kafka_option, "--kafka-option")
    right_settings = options.settings
    if options.right_kafka_option or options.right_command_config:
        right_settings = read_settings(
            options.right_command_config, options.right_kafka_option, "--right-kafka-option"
        )
    if not options.left or not options.right:
        raise UsageError("--left and --right are needed")
    as_of = parse_as_of(options.as_of)
    options.left_side = parse_side(
        options.left, "--left", options.bootstrap, options.settings, as_of
    )
    right_as_of = as_of if options.right_as_of is None else parse_as_of(options.right_as_of)
    right_bootstrap = options.right_bootstrap or options.bootstrap
    options.right_side = parse_side(
        options.right, "--right", right_bootstrap, right_settings, right_as_of
    )
    kinds = (options.left_side.kind, options.right_side.kind)
    check_as_of(options.as_of, "--as-of", "archive" in kinds)
    check_as_of(options.right_as_of, "--right-as-of", kinds[1] == "archive")
    both = [name for name in options.left_side.columns if name in options.right_side.columns]
    check_range(options, both)
    options.ignored = [name for name in options.ignore.split(",") if name]
    for name in options.ignored:
        if name not in PARTS:
            raise UsageError(f"--ignore {name}: not one of {', '.join(PARTS)}")
    options.renames = pairs(options.rename, "--rename")
    check_output(options.report, "--report")
    check_side(options.left_side, "--left", options.say)
    check_side(options.right_side, "--right", options.say)
    check_known(options.topic_list, (options.left_side, options.right_side))


def with_checksum(frame: Any, ignored: Sequence[str]) -> Any:
    """topic, partition, offset, lane, position, hour, size and hash of each record: nothing larger
    is moved. The hash is over all parts that are not ignored; nulls are told from empty."""
    from pyspark.sql import functions as f

    parts: list[Any] = []
    if "timestamp" not in ignored:
        parts.append(f.unix_micros("timestamp"))
    if "timestampType" not in ignored:
        parts.append(f.col("timestampType"))
    for name in ("key", "value"):
        if name not in ignored:
            parts += [f.col(name).isNull(), f.col(name)]
    if "headers" not in ignored:
        # No headers are null from the connector and may be an empty list elsewhere.
        texts = f.transform(
            f.coalesce("headers", f.array()),
            lambda entry: f.concat_ws(
                ":",
                f.length(entry["key"]).cast("string"),
                entry["key"],
                f.coalesce(f.base64(entry["value"]), f.lit("-")),
            ),
        )
        parts.append(f.concat_ws("|", texts))
    size = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))
    return frame.select(
        "topic",
        "partition",
        "offset",
        "lane",
        "position",
        f.date_format("timestamp", HOUR).alias("hour"),
        size.alias("size"),
        f.xxhash64(f.lit(len(parts)), *parts).alias("hash"),
    )


def figures(frame: Any, is_copied: bool = True) -> Any:
    """A row for each topic, partition and hour: FIGURES. `is_copied`: see `Side`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    place = f.xxhash64("offset", "hash")
    reordered = f.lit(0)
    if is_copied:
        order = Window.partitionBy("topic", "partition", "lane").orderBy("position")
        # One shuffle for both, what is put in order and what is summed.
        frame = frame.repartition("topic", "partition").withColumn(
            "before", f.lag("offset").over(order)
        )
        reordered = f.count_if(f.col("offset") < f.col("before"))
    return frame.groupBy("topic", "partition", "hour").agg(
        f.count("*").alias("records"),
        f.count_distinct("offset").alias("distinct"),
        f.min("offset").alias("first"),
        f.max("offset").alias("last"),
        reordered.cast("long").alias("reordered"),
        f.sum("size").alias("bytes"),
        f.sum(place.cast("decimal(38,0)")).cast("string").alias("checksum"),
    )


def compared(left: Any, right: Any) -> Any:
    """Both sides' figures next to each other, `same` where all agree."""
    from pyspark.sql import functions as f

    keys = ["topic", "partition", "hour"]
    for name in FIGURES:
        left = left.withColumnRenamed(name, f"left_{name}")
        right = right.withColumnRenamed(name, f"right_{name}")
    joined = left.join(right, keys, "full_outer")
    same = f.lit(True)
    for name in FIGURES:
        same = same & f.col(f"left_{name}").eqNullSafe(f.col(f"right_{name}"))
    return joined.withColumn("same", same).orderBy(*keys)


def examples(left: Any, right: Any, differing: Any) -> Any:
    """Some records of the hours that differ: missing on a side, doubled, or not the same."""
    from pyspark.sql import functions as f

    places = differing.select("topic", "partition").distinct()

    def reduced(frame: Any, name: str) -> Any:
        return (
            frame.join(f.broadcast(places), ["topic", "partition"], "left_semi")
            .groupBy("topic", "partition", "offset")
            .agg(f.count("*").alias(f"{name}_n"), f.min("hash").alias(f"{name}_hash"))
        )

    joined = reduced(left, "left").join(
        reduced(right, "right"), ["topic", "partition", "offset"], "full_outer"
    )
    what = (
        f.when(f.col("left_n").isNull(), "missing left")
        .when(f.col("right_n").isNull(), "missing right")
        .when(f.col("left_n") != f.col("right_n"), "not as often")
        .when(~f.col("left_hash").eqNullSafe(f.col("right_hash")), "not the same")
    )
    return (
        joined.withColumn("what", what)
        .where(f.col("what").isNotNull())
        .select("topic", "partition", "offset", "what")
        .orderBy("topic", "partition", "offset")
        .limit(EXAMPLES)
    )


def common_only(left: Any, right: Any) -> tuple[Any, Any]:
    """Both sides without what the other does not reach, by partition."""
    from pyspark.sql import functions as f

    keys = ["topic", "partition"]

    def bounds(frame: Any) -> Any:
        return frame.groupBy(*keys).agg(f.min("offset").alias("lo"), f.max("offset").alias("hi"))

    other = bounds(right).select(*keys, f.col("lo").alias("lo2"), f.col("hi").alias("hi2"))
    shared = (
        bounds(left)
        .join(other, keys)
        .select(*keys, f.greatest("lo", "lo2").alias("lo"), f.least("hi", "hi2").alias("hi"))
    )

    def cut(frame: Any) -> Any:
        inside = frame.join(f.broadcast(shared), keys)
        return inside.where(f.col("offset").between(f.col("lo"), f.col("hi"))).drop("lo", "hi")

    return cut(left), cut(right)


def totals(rows: Sequence[Any], side: str) -> dict[str, int]:
    """A side's sums over the compared rows."""
    found = [row for row in rows if row[f"{side}_records"] is not None]
    spans: dict[tuple[str, int], list[int]] = {}
    for row in found:
        first, last = row[f"{side}_first"], row[f"{side}_last"]
        span = spans.setdefault((row["topic"], row["partition"]), [first, last])
        span[0], span[1] = min(span[0], first), max(span[1], last)
    records = sum(row[f"{side}_records"] for row in found)
    distinct = sum(row[f"{side}_distinct"] for row in found)
    return {
        "records": records,
        "bytes": sum(row[f"{side}_bytes"] for row in found),
        "partitions": len(spans),
        "missing_offsets": sum(last - first + 1 for first, last in spans.values()) - distinct,
        "duplicates": records - distinct,
        "reordered": sum(row[f"{side}_reordered"] for row in found),
    }


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    from pyspark.sql import functions as f

    sides: tuple[Side, Side] = (options.left_side, options.right_side)
    needs_kafka = any(side.kind in ON_CLUSTER for side in sides)
    needs_delta = any(side.kind == "archive" for side in sides)
    spark = open_session(options, "audit", needs_kafka=needs_kafka, needs_delta=needs_delta)
    left, right = (
        with_checksum(side_frame(spark, side, options), options.ignored) for side in sides
    )
    if options.renames:
        names = f.create_map(*[f.lit(x) for pair in options.renames.items() for x in pair])
        left = left.withColumn("topic", f.coalesce(names[f.col("topic")], f.col("topic")))
    if options.common:
        left, right = common_only(left, right)
    progress.say(f"comparing {sides[0].name} with {sides[1].name}")
    table = compared(figures(left, sides[0].is_copied), figures(right, sides[1].is_copied))
    with Watch(spark, progress):
        rows = [row.asDict() for row in table.collect()]
    left_totals, right_totals = totals(rows, "left"), totals(rows, "right")
    progress.add(
        left_totals["records"] + right_totals["records"],
        left_totals["bytes"] + right_totals["bytes"],
        what=f"{len(rows)} partition hours",
    )
    differing = [row for row in rows if not row["same"]]
    shown: list[dict[str, Any]] = []
    if differing:
        places = spark.createDataFrame(
            sorted({(row["topic"], row["partition"]) for row in differing}),
            "topic string, partition int",
        )
        with Watch(spark, progress):
            shown = [row.asDict() for row in examples(left, right, places).collect()]
        for example in shown[:5]:
            progress.say(json.dumps(example))
    if options.report:
        write_report(options.report, sides, rows, shown, (left_totals, right_totals))
    summary = {
        "left": {"side": sides[0].name, **left_totals},
        "right": {"side": sides[1].name, **right_totals},
        "partition_hours": len(rows),
        "differing": len(differing),
        "same": not differing,
        "examples": shown,
        "report": options.report,
    }
    return (EXIT_FOUND if differing else EXIT_DONE), summary


def write_report(
    path: str,
    sides: tuple[Side, Side],
    rows: Sequence[dict[str, Any]],
    shown: Sequence[dict[str, Any]],
    sums: tuple[dict[str, int], dict[str, int]],
) -> None:
    """The HTML report of a comparison."""
    report = Report(f"Audit: {sides[0].name} and {sides[1].name}")
    differing = [row for row in rows if not row["same"]]
    if differing:
        report.paragraph(f"{len(differing)} of {len(rows)} partition hours differ.", "bad")
    else:
        report.paragraph(f"All {len(rows)} partition hours are the same.", "good")
    report.heading("Totals")
    report.table(
        ("", sides[0].name, sides[1].name),
        [
            (name.replace("_", " "), *(_figure(name, side[name]) for side in sums))
            for name in sums[0]
        ],
    )
    if shown:
        report.heading("Records that differ")
        report.table(tuple(shown[0]), [tuple(row.values()) for row in shown])
    places = sorted({(row["topic"], row["partition"]) for row in rows})
    place_of = {place: at for at, place in enumerate(places)}
    labels = [f"{topic}-{partition}" for topic, partition in places]
    counts: list[list[float]] = [[0.0] * len(places), [0.0] * len(places)]
    for row in rows:
        at = place_of[row["topic"], row["partition"]]
        counts[0][at] += row["left_records"] or 0
        counts[1][at] += row["right_records"] or 0
    report.heading("Records by partition")
    report.plot(bars(labels, [(sides[0].name, counts[0]), (sides[1].name, counts[1])]))
    hours = sorted({row["hour"] for row in rows})
    hour_of = {hour: at for at, hour in enumerate(hours)}
    marks: dict[tuple[int, int], bool] = {}
    for row in rows:
        at_hour = (place_of[row["topic"], row["partition"]], hour_of[row["hour"]])
        marks[at_hour] = marks.get(at_hour, True) and row["same"]
    report.heading("Hours (UTC): green is the same, red is not")
    report.plot(heat_map(hours, labels, marks))
    columns = ("topic", "partition", "hour")
    heading = "By partition and hour, both sides"
    report.heading("Partition hours that differ: left ≠ right" if differing else heading)
    report.table(
        (*columns, *FIGURES),
        [
            [*(row[name] for name in columns), *(_both(name, row) for name in FIGURES)]
            for row in differing or rows
        ],
    )
    report.write(path)


def _both(name: str, row: dict[str, Any]) -> Any:
    """A figure of both sides, once where they are the same."""
    left, right = row[f"left_{name}"], row[f"right_{name}"]
    if left == right:
        return _figure(name, left)
    shown = [cell(_figure(name, side)) or "nothing" for side in (left, right)]
    if shown[0] == shown[1]:  # they differ beyond the digits shown
        shown = [cell(side) for side in (left, right)]
    return " ≠ ".join(shown)


def _figure(name: str, value: Any) -> Any:
    """A figure as the report has it: bytes in the unit that fits, a checksum in hexadecimal."""
    if value is None:
        return None
    if name.endswith("bytes"):
        return size_text(value)
    if name == "checksum":
        return f"{int(value) & 0xFFFFFFFFFFFFFFFF:016x}"
    return value


JOB = Job(
    name="audit",
    summary="compare two of topic, archive, mirror and segment files",
    description="Compare two of topic, archive, mirror, replay and segment files: counts, gaps,\n"
    "duplicates, reordering and a checksum for each partition and hour. Exit status 1 when\n"
    "they differ.",
    example="kwire spark audit -b localhost:9092 --left topic:clicks --right archive:/data/lake "
    "--topics clicks --report audit.html",
    add_options=add_options,
    check=check,
    run=run,
    needs_kafka=False,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark audit`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
