"""What the jobs say of records, on frames and small topics: ranges, checksums, shares, plans."""

from __future__ import annotations

import datetime
import json
import pathlib
import re
import signal
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome
from tests.support.spark_kills import WAIT_S, wait_until

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000
SIDE = (
    "topic string, partition int, offset bigint, lane int, position bigint, timestamp timestamp, "
    "timestampType int, key binary, value binary, headers array<struct<key: string, value: binary>>"
)


@pytest.fixture(scope="module")
def durable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    often = {"replica.high.watermark.checkpoint.interval.ms": 50}
    with Broker(data_dir=tmp_path_factory.mktemp("data"), options=often) as running:
        yield running


def test_an_archive_goes_on_until_it_is_stopped(
    broker: Broker, jars: str, lake: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    """Continuous: topics of a pattern as they appear; SIGTERM ends it in order."""
    at = broker.bootstrap
    first = client.create(at)
    log = tmp_path / "log"
    client.send(at, first, [Sent(0, b"k", b"%d" % i, (), BASE_MS) for i in range(10)])
    process = support.start_process(
        *("archive", "-b", at, "--pattern", f"{first}.*", "--lake", lake, "--jars", jars),
        *("--interval", "0.1"),
        log=log,
    )

    def archived() -> int:
        found = pathlib.Path(lake).glob("*")
        tables = [place for place in found if (place / "_delta_log" / f"{0:020d}.json").exists()]
        names = [place.name.partition(".")[2] for place in tables]
        return sum(support.table(spark, lake, name).count() for name in names)

    wait_until(lambda: archived() == 10, process, log)
    second = client.create(at, f"{first}-later", partitions=2)
    client.send(at, second, [Sent(i % 2, None, b"%d" % i, (), BASE_MS) for i in range(6)])
    client.send(at, first, [Sent(0, None, b"more")])
    wait_until(lambda: archived() == 17, process, log)
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 0, log.read_text()[-2000:]
    assert process.stdout is not None
    summary = support.summary_of(process.stdout.read())
    process.stdout.close()
    assert summary is not None
    assert (summary["job"], summary["status"], summary["records"]) == ("archive", 0, 17)
    told = log.read_text()
    # The rate's unit is the machine's: bytes/s where it is slow.
    assert re.search(r"\d records, .*[\d.]+ \w+/s, lag 0, batch \d", told), told
    assert "stopping after" in told, told
    frame = support.table(spark, lake, second)
    assert frame.columns == [
        *("offset", "timestamp", "timestampType", "key", "value", "headers", "leaderEpoch"),
        *("date", "partition"),
    ]
    day = datetime.datetime.fromtimestamp(BASE_MS / 1000, datetime.UTC).date()
    folder = pathlib.Path(lake) / f"topic.{second}" / f"date={day}" / "partition=1"
    assert list(folder.glob("*.parquet"))


def test_avro_values_are_decoded(
    broker: Broker, run: Run, lake: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = client.create(at)
    (tmp_path / "7.avsc").write_text(
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})
    )
    good, unknown = struct.pack(">bi", 0, 7) + b"\x06", struct.pack(">bi", 0, 8) + b"\x06"
    values = [good, unknown, good[:5], b"plain", None]
    client.send(at, topic, [Sent(0, None, value) for value in values])
    done = run(
        *("archive", "-b", at, "--topics", topic, "--lake", lake, "--once"),
        *("--decode", "avro", "--schemas", str(tmp_path)),
    )
    assert done.status == 0, done.stderr
    rows = support.table(spark, lake, topic).orderBy("offset").collect()
    assert [(row.valueSchemaId, row.valueDecoded) for row in rows] == [(7, (3,)), (None, None)]
    dead = support.dead_letters(spark, lake, topic).orderBy("offset").collect()
    assert [(row.offset, bytes(row["value"])) for row in dead] == list(enumerate(values))[1:4]
    assert all(row.reason for row in dead)


def test_what_the_options_choose_of_an_archive(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    from kwire.spark.archive_source import archive_frame
    from kwire.spark.job import parser_of
    from kwire.spark.lake import Archive
    from kwire.spark.replay import JOB

    at = broker.bootstrap
    topic = client.create(at, partitions=3)
    client.send(
        at,
        topic,
        [Sent(i % 3, b"k%d" % (i % 10), b"%d" % i, (), BASE_MS + i * 1000) for i in range(300)],
    )
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    archive = Archive(lake, spark, "--lake")
    second = datetime.datetime.fromtimestamp(BASE_MS / 1000 + 250, datetime.UTC)
    for arguments, count in (
        ((), 300),
        (("--topics", topic), 300),
        (("--topics", "another"), 0),
        (("--partitions", "0,2"), 200),
        (("--from-offset", "90"), 30),
        (("--to-offset", "10", "--partitions", "1"), 10),
        (("--from-time", str(BASE_MS + 290_000)), 10),
        (("--from-time", second.isoformat(), "--to-time", str(BASE_MS + 260_000)), 10),
        (("--keys", "k1,k2"), 60),
        (("--where", "partition = 1 and cast(cast(value as string) as int) < 30"), 10),
        (("--keys", "k1", "--where", "offset % 2 = 0", "--to-offset", "50"), 5),
    ):
        options = parser_of(JOB).parse_args(["-b", at, "--lake", lake, *arguments])
        JOB.check(options)
        rows = archive_frame(spark, archive, options)
        assert rows.count() == count, arguments
        tables = archive.select(options.topic_list)
        found = {number for table in tables for _, number in table.places(options)}
        assert {row.partition for row in rows.select("partition").distinct().collect()} <= found


def test_an_audit_of_segment_files(durable: Broker, run: Run) -> None:
    at = durable.bootstrap
    topic = client.create(at, partitions=2)
    client.send(
        at,
        topic,
        [Sent(i % 2, b"k", b"%d" % i, (("h", None),), BASE_MS + i) for i in range(200)],
        **{"compression.type": "zstd"},
    )
    durable.restart()
    sides = ("--left", f"topic:{topic}", "--right", f"segments:file://{durable.data_dir}")
    done = run("audit", "-b", at, *sides, "--topics", topic)
    assert done.status == 0, done
    assert done.summary is not None
    assert done.summary["right"]["records"] == 200
    nowhere = ("--left", f"topic:{topic}", "--right", "segments:file:///nowhere")
    done = run("audit", "-b", at, *nowhere, "--topics", topic)
    assert done.status == 2
    assert done.stderr.endswith("--right file:///nowhere: no such folder\n"), done.stderr


def test_progress_of_a_query_that_runs(spark: Any, tmp_path: pathlib.Path) -> None:
    from kwire.spark.job import Progress
    from kwire.spark.watching import Watch

    gate = tmp_path / "gate"

    def held(rows: Any) -> Any:
        import pathlib as paths
        import time

        yield from rows
        while not paths.Path(gate).exists():
            time.sleep(0.05)

    told: list[str] = []

    class Told(Progress):
        def say(self, text: str) -> None:
            told.append(text)
            gate.touch()

    frame = spark.range(100).repartition(3).rdd.mapPartitions(held)
    with Watch(spark, Told("test"), 0.05):
        assert frame.count() == 100
    assert "tasks left" in told[0]
    assert Watch(spark, Told("test")).line(0.0) is None


def test_a_worker_that_fails_is_one_line(spark: Any, tmp_path: pathlib.Path) -> None:
    from kwire.spark.job import one_line

    (tmp_path / "t-0").mkdir()
    for base in (0, 10):
        (tmp_path / "t-0" / f"{base:020d}.log").write_bytes(b"x" * 100)
    with pytest.raises(Exception, match="Traceback") as caught:
        spark.read.format("kwire-segments").load(str(tmp_path)).count()
    assert one_line(caught.value).startswith("DamagedSegmentError: ")


def test_a_stream_follows_the_files_of_a_running_broker(
    durable: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    """Each record once, over queries that end and start again; the format is found by its name."""
    topic = client.create(durable.bootstrap, partitions=2)
    found, kept = str(tmp_path / "found"), str(tmp_path / "kept")

    def read_now() -> list[tuple[int, bytes]]:
        stream = spark.readStream.format("kwire-segments").option("topic", topic)
        rows = stream.load(str(durable.data_dir)).select("partition", "value")
        writer = rows.writeStream.format("parquet").option("checkpointLocation", kept)
        query = writer.trigger(availableNow=True).start(found)
        query.awaitTermination()
        read = spark.read.schema("partition int, value binary").parquet(found).collect()
        return sorted((row.partition, bytes(row.value)) for row in read)

    sent: list[Sent] = []
    for turn in range(2):
        more = [Sent(at % 2, None, b"%d-%d" % (turn, at), (), BASE_MS) for at in range(100)]
        client.send(durable.bootstrap, topic, more)
        sent += more
        wanted = sorted((record.partition, record.value) for record in sent)
        deadline_s = time.monotonic() + WAIT_S
        while (now := read_now()) != wanted:
            assert len(now) < len(wanted)
            assert time.monotonic() < deadline_s, len(now)


def test_figures_of_two_sides_that_differ(spark: Any) -> None:
    """A record that is missing, one that is twice, one with another value, two in wrong order."""
    from kwire.spark import audit

    moment = datetime.datetime(2026, 1, 1, 10, 30)

    def frame(rows: list[tuple[int, bytes | None]]) -> Any:
        full = [
            ("t", 0, offset, 0, place, moment, 0, None, value, None)
            for place, (offset, value) in enumerate(rows)
        ]
        return audit.with_checksum(spark.createDataFrame(full, SIDE), ())

    clean = [(offset, b"v%d" % offset) for offset in range(6)]
    left = frame(clean)
    for rows, figures, what in (
        (clean[:3] + clean[4:], {"missing_offsets": 1}, {(3, "missing right")}),
        (clean[:3] + clean[2:], {"duplicates": 1}, {(2, "not as often")}),
        ([*clean[:2], (2, b"other"), *clean[3:]], {}, {(2, "not the same")}),
        ([*clean[:2], (2, None), *clean[3:]], {}, {(2, "not the same")}),
        ([*clean[:2], clean[3], clean[2], *clean[4:]], {"reordered": 1}, set()),
        (clean, {}, set()),
    ):
        right = frame(rows)
        found = audit.compared(audit.figures(left), audit.figures(right)).collect()
        assert [row.same for row in found] == [rows == clean]
        sums = audit.totals([row.asDict() for row in found], "right")
        none = {"missing_offsets": 0, "duplicates": 0, "reordered": 0}
        assert {name: sums[name] for name in none} == none | figures
        places = spark.createDataFrame([("t", 0)], "topic string, partition int")
        named = audit.examples(left, right, places).collect()
        assert {(row.offset, row.what) for row in named} == what
    # Spread over two lanes in order is in order: positions of different lanes say nothing.
    spread = [
        ("t", 0, offset, offset % 2, 9 - offset % 2 * 5 + offset // 2, moment, 0, None, value, None)
        for offset, value in clean
    ]
    right = audit.with_checksum(spark.createDataFrame(spread, SIDE), ())
    found = audit.compared(audit.figures(left), audit.figures(right)).collect()
    assert [row.same for row in found] == [True]


def test_figures_of_a_side_that_is_no_copy_keep_nothing_in_order(spark: Any) -> None:
    """A window over a whole partition, and the sort before it, go to disk in hundreds of pieces
    that are read at once: an audit of 16 million records had too little memory."""
    from kwire.spark import audit

    moment = datetime.datetime(2026, 1, 1, 10, 30)
    rows = [("t", 0, at, 0, at, moment, 0, None, b"v", None) for at in (0, 1, 1, 3)]
    frame = audit.with_checksum(spark.createDataFrame(rows, SIDE), ())
    alone, copied = audit.figures(frame, is_copied=False), audit.figures(frame)
    assert alone.collect() == copied.collect()
    plans = [str(one._jdf.queryExecution().optimizedPlan()) for one in (alone, copied)]
    assert ["Window" in plan for plan in plans] == [False, True]


def test_lag_of_partitions_where_nothing_happens(spark: Any) -> None:
    """Of a minute only those partitions counted in which there was a commit or a record then, and
    of the commits of a minute the largest, though a group may have been set back."""
    from kwire.spark.lag_history import COMMIT_SCHEMA, lag_history

    commits = spark.createDataFrame(
        [
            *(("g", "t", 0, 7, 2, 1), ("g", "t", 0, 5, 2, 2), ("g", "t", 1, 2, 2, 3)),
            *(("g", "t", 0, 9, 3, 4), ("late", "t", 1, 4, 9, 5)),
        ],
        COMMIT_SCHEMA,
    )
    moment = datetime.datetime(1970, 1, 1, 0, 1, tzinfo=datetime.UTC)
    minute = datetime.timedelta(minutes=1)
    records = spark.createDataFrame(
        [("t", n, 9, moment) for n in (0, 1)] + [("t", 0, 11, moment + 3 * minute)],
        "topic string, partition int, offset bigint, timestamp timestamp",
    )
    found = [tuple(row) for row in lag_history(commits, records).collect()]
    # Minute 2: 5 and 8, 3: 1 and 8, 4: two records more in the first partition.
    assert found == [
        ("g", "t", 2, 13),
        ("g", "t", 3, 9),
        ("g", "t", 4, 11),
        ("late", "t", 9, 6),
    ]


def test_shares_of_hot_keys_are_of_all_bytes(spark: Any) -> None:
    from pyspark.sql import functions as f

    from kwire.spark.profiles import hot_keys

    rows = [("t", 0, key, size) for key, size in ((b"a", 30), (b"b", 10), (None, 60), (b"a", 0))]
    frame = spark.createDataFrame(rows, "topic string, partition int, key binary, size int")
    found = [(bytes(row.key), row.records, row.share) for row in hot_keys(frame, 5).collect()]
    assert found == [(b"a", 2, 0.3), (b"b", 1, 0.1)]
    # Records without a byte ended the job: divided by nothing.
    nothing = frame.where("key is null or size = 0").withColumn("size", f.lit(0))
    assert [(bytes(row.key), row.share) for row in hot_keys(nothing, 5).collect()] == [(b"a", 0.0)]


def test_no_job_brings_records_to_the_driver(
    broker: Broker,
    run: Run,
    lake: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is collected are rows about files, partitions, hours and keys: few, and never values."""
    from pyspark.sql.classic.dataframe import DataFrame

    at = broker.bootstrap
    topic = client.create(at, partitions=3)
    records = [
        Sent(i % 3, b"k%d" % (i % 10), b"a value " * 20, (), BASE_MS + i) for i in range(3000)
    ]
    client.send(at, topic, records)
    collected: list[int] = []
    collect = DataFrame.collect

    def counted(frame: Any) -> Any:
        rows = collect(frame)
        collected.append(len(rows))
        assert not any(
            isinstance(value, bytearray) and len(value) > 100 for r in rows for value in r
        )
        return rows

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("records were about to come to the driver")

    monkeypatch.setattr(DataFrame, "collect", counted)
    for name in ("toLocalIterator", "toPandas", "toArrow", "take", "foreach"):
        monkeypatch.setattr(DataFrame, name, refused)
    target = f"{topic}-again"
    for job, arguments in (
        ("archive", ("--topics", topic, "--lake", lake, "--once", "--batch-records", "1000")),
        ("archive", ("--topics", topic, "--lake", lake, "--once", "--compact")),
        ("audit", ("--left", f"topic:{topic}", "--right", f"archive:{lake}")),
        ("replay", ("--lake", lake, "--to-topic", target, "--create")),
        ("audit", ("--left", f"archive:{lake}", "--right", f"replay:{target}")),
        ("profile", ("--source", f"topic:{topic}", "--report", str(tmp_path / "p.html"))),
        (
            "mirror",
            (
                *("--to", at, "--alias", "a", "--to-alias", "b", "--pattern", topic),
                *("--prefix", "copy-", "--state", str(tmp_path / "state"), "--once"),
            ),
        ),
    ):
        done = run(job, "-b", at, *arguments)
        assert done.status == 0, done.stderr
    assert len(collected) > 10
    assert max(collected) <= 3 * 10


def test_plans_scale_with_partitions(broker: Broker, run: Run, lake: str, spark: Any) -> None:
    """A task a partition where records are read and sent; nothing is brought to one task."""
    from kwire.spark import audit, profiles
    from kwire.spark.archive_source import archive_frame
    from kwire.spark.job import Progress, parser_of
    from kwire.spark.lake import Archive
    from kwire.spark.replay import JOB, Replay
    from kwire.spark.topic_source import read_ranges

    def plan_of(frame: Any) -> str:
        return str(frame._jdf.queryExecution().executedPlan().toString())

    at = broker.bootstrap
    topic = client.create(at, partitions=5)
    client.send(at, topic, [Sent(i % 5, b"k", b"v", (), BASE_MS) for i in range(500)])
    read = read_ranges(spark, at, {}, {(topic, n): (0, 100) for n in range(5)})
    assert "Exchange" not in plan_of(read)
    assert read.rdd.getNumPartitions() == 5
    many = read_ranges(spark, at, {}, {(topic, n): (0, 100) for n in range(5)}, tasks_min=10)
    assert many.rdd.getNumPartitions() == 10
    # Small ranges share the two tasks that run at a time, without a shuffle; a large one does not.
    ranges = {(topic, n): (0, 100) for n in range(5)}
    shared = read_ranges(spark, at, {}, ranges, shares_tasks=True)
    assert "Exchange" not in plan_of(shared)
    assert shared.rdd.getNumPartitions() == 2
    assert shared.count() == 500
    ranges[topic, 0] = (0, 1 << 40)
    assert read_ranges(spark, at, {}, ranges, shares_tasks=True).rdd.getNumPartitions() == 2
    split = read_ranges(spark, at, {}, ranges, tasks_min=10, shares_tasks=True)
    assert split.rdd.getNumPartitions() >= 10

    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    options = parser_of(JOB).parse_args(["-b", at, "--lake", lake])
    JOB.check(options)
    replay = Replay(options, Progress("replay", quiet=True))
    archive = Archive(lake, spark, "--lake")
    replay.prepare(archive)
    rows = replay.rows(archive_frame(spark, archive, options))
    assert plan_of(rows).count("Exchange") == 1
    tasks = rows.rdd.mapPartitions(
        lambda found: [sorted({row["partition"] for row in found})]
    ).collect()
    assert sorted(tasks) == [[n] for n in range(5)]

    placed = read.withColumn("position", read["offset"]).withColumn("lane", read["partition"])
    side = audit.with_checksum(placed, ())
    both = audit.compared(audit.figures(side), audit.figures(side))
    for frame in (both, profiles.hot_keys(profiles.slim(read), 3)):
        text = plan_of(frame)
        assert "hashpartitioning(topic" in text
        assert "SinglePartition" not in text
        assert "Broadcast" not in text or "BroadcastHashJoin" in text
