"""query: SQL over the topics of lakes and clusters, by their names."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from kwire.spark.archive_source import add_as_of_option, check_as_of, parse_as_of
from kwire.spark.client_settings import read_settings
from kwire.spark.cluster import Cluster
from kwire.spark.job import (
    EXIT_DONE,
    Job,
    Progress,
    add_isolation_option,
    add_kafka_options,
    one_line,
    run_job,
)
from kwire.spark.lake import Archive, check_archive
from kwire.spark.session import open_session
from kwire.spark.sides import Side, topic_frame
from kwire.spark.usage import UsageError
from kwire.spark.watching import Watch

ROWS_MAX = 100_000
FORMATS = ("json", "tsv")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="one query")
    add_kafka_options(parser)
    parser.add_argument("--lake", metavar="FOLDER", help="an archive whose topics it may name")
    add_as_of_option(parser)
    add_isolation_option(parser)
    parser.add_argument("--rows", type=int, default=1000, metavar="N", help="at most, shown")
    parser.add_argument("--format", default="tsv", choices=FORMATS, help="of the rows")


def check(options: argparse.Namespace) -> None:
    options.settings = read_settings(options.command_config, options.kafka_option, "--kafka-option")
    options.moment = parse_as_of(options.as_of)
    if not options.lake and not options.bootstrap:
        raise UsageError("--lake or --bootstrap is needed")
    check_as_of(options.as_of, "--as-of", bool(options.lake))
    if not options.sql.strip():
        raise UsageError("SQL: must not be empty")
    if not 1 <= options.rows <= ROWS_MAX:
        raise UsageError(f"--rows {options.rows}: expected 1 to {ROWS_MAX:,}")
    if options.lake:
        check_archive(options.lake, "--lake")


def named_in(text: str, kind: str, names: Iterable[str]) -> list[str]:
    """Which topics a query names: quoted as a whole, with `kind:` or without, or as a plain word
    that is no field of something. A name within another word or name is none, nor is a number.

    >>> sql = "SELECT clicks.key FROM clicks JOIN `archive:a-b`"
    >>> named_in(sql, "archive", ["a", "a-b", "click", "clicks"])
    ['a-b', 'clicks']
    """
    found = []
    for name in names:
        quoted = rf"[`\"]({kind}:)?{re.escape(name)}[`\"]"
        # To Spark a word may begin with a digit.
        is_word = re.fullmatch(r"\w+", name) and not name.isdigit()
        plain = rf"(?<![\w.:`\"]){name}(?!\w)" if is_word else quoted
        if re.search(f"{quoted}|{plain}", text):
            found.append(name)
    return found


def check_apart(views: Iterable[str]) -> None:
    """UsageError for names of which Spark would take one for the other."""
    known: dict[str, str] = {}
    for name in views:
        if (other := known.setdefault(name.lower(), name)) != name:
            raise UsageError(f"SQL: names {other} and {name}, which are one name to Spark")


def check_version(moment: tuple[str, int] | None, tables: Sequence[str]) -> None:
    """UsageError for a version of several tables, each of which counts its own."""
    if moment is not None and moment[0] == "version" and len(tables) > 1:
        raise UsageError(
            f"--as-of {moment[1]}: a version is one table's, of {' and '.join(tables)}; give a time"
        )


def register(spark: Any, options: argparse.Namespace, progress: Progress) -> list[str]:
    """Views of the topics that the query names: `archive:NAME` of the lake, `topic:NAME` of the
    cluster, and NAME: the lake's, or the cluster's where the lake has none. Returns their names."""
    views: dict[str, Any] = {}
    text = options.sql
    if options.bootstrap:
        cluster = Cluster(options.bootstrap, options.settings, progress.say)
        for name in named_in(text, "topic", cluster.matching((), ".*")):
            side = Side("topic", name, options.bootstrap, options.settings)
            committed = options.isolation == "read_committed"
            frame = topic_frame(spark, side, committed, progress.say)
            views[f"topic:{name}"] = views[name] = frame
    if options.lake:
        archive = Archive(options.lake, spark, "--lake", options.moment)
        names = archive.topics if archive.alone is None else archive.alone.names
        named = named_in(text, "archive", names)
        newest = [
            name
            for name in archive.latest
            if re.search(rf"[`\"]latest:{re.escape(name)}[`\"]", text)
        ]
        tables = archive.select(named)
        check_version(
            options.moment, [*(t.topic for t in tables), *(f"latest:{name}" for name in newest)]
        )
        for table in tables:
            frame = table.frame(whole=True)
            for name in (one for one in table.names if one in named):
                part = frame if name == table.topic else frame.where(frame["topic"] == name)
                views[f"archive:{name}"] = views[name] = part
        for name in newest:
            views[f"latest:{name}"] = archive.newest(name).frame(whole=True)
    check_apart(views)
    for name, frame in views.items():
        # A view of several parts would be one of a database.
        frame.createOrReplaceTempView(f"`{name}`")
    return sorted(views)


def shown(value: Any) -> Any:
    """A value as text or JSON has it: bytes that are UTF-8 as text, others in hexadecimal."""
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return "0x" + bytes(value).hex()
    if isinstance(value, list | tuple) and not hasattr(value, "asDict"):
        return [shown(item) for item in value]
    if hasattr(value, "asDict"):
        return {name: shown(item) for name, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(shown(name)): shown(item) for name, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    from pyspark.errors import AnalysisException, ParseException

    spark = open_session(
        options, "query", needs_kafka=bool(options.bootstrap), needs_delta=bool(options.lake)
    )
    try:
        # What is no query, and would be carried out at once, is refused.
        spark._jsparkSession.sessionState().sqlParser().parseQuery(options.sql)
        views = register(spark, options, progress)
        frame = spark.sql(options.sql)
    except (AnalysisException, ParseException) as error:
        raise UsageError(f"SQL: {one_line(error)}") from None
    with Watch(spark, progress):
        rows = frame.limit(options.rows + 1).collect()
    for number, row in enumerate(rows[: options.rows]):
        values = {name: shown(value) for name, value in zip(frame.columns, row)}
        if options.format == "json":
            sys.stdout.write(json.dumps(values) + "\n")
            continue
        if not number:
            sys.stdout.write("\t".join(frame.columns) + "\n")
        texts = (v if isinstance(v, str) else json.dumps(v) for v in values.values())
        sys.stdout.write("\t".join(t.replace("\t", " ").replace("\n", " ") for t in texts) + "\n")
    more = len(rows) > options.rows
    if more:
        progress.say(f"there are more rows than --rows {options.rows}")
    return EXIT_DONE, {"rows": len(rows[: options.rows]), "more": more, "views": views}


JOB = Job(
    name="query",
    summary="SQL over the topics of lakes and clusters, by their names",
    description="Run one SQL query. A topic's name is a table of the lake, or of the cluster\n"
    "where the lake has none; `archive:NAME` and `topic:NAME` say which, `latest:NAME` is the\n"
    "newest record of each key. Bytes that are text\n"
    "are shown as text.",
    example="kwire spark query --lake /data/lake 'SELECT count(*) FROM clicks'",
    add_options=add_options,
    check=check,
    run=run,
    needs_kafka=False,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark query`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
