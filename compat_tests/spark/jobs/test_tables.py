"""The lake's tables in other hands: foreign commits, old lakes, other readers, other writers."""

from __future__ import annotations

import itertools
import json
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kwire.spark import archive, convert, lake
from kwire.spark.cluster import Cluster
from kwire.spark.delta import OPEN_FOLDERS, DeltaTable
from kwire.spark.job import Progress, parser_of
from kwire.spark.lake_files import LocalLakeFiles
from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import old_lakes
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000
FOREIGN_COMMITS = 200


def numbered(first: int, last: int, partitions: int = 2) -> list[Sent]:
    return [
        Sent(i % partitions, b"k%d" % (i % 7), b"%d" % i, (), BASE_MS + i)
        for i in range(first, last)
    ]


def optimize_again(table: pathlib.Path, count: int) -> None:
    """Commits of a compaction, `count` times: a file gives way to another with the same rows."""
    log = table / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json"))
    actions = map(json.loads, (log / f"{version:020d}.json").read_text().splitlines())
    add = next(action["add"] for action in actions if "add" in action)
    for number in range(version + 1, version + 1 + count):
        folder = pathlib.PurePath(add["path"]).parent
        new = {**add, "path": str(folder / f"optimized-{number}.parquet"), "dataChange": False}
        shutil.copyfile(table / add["path"], table / new["path"])
        remove = {
            "path": add["path"],
            "deletionTimestamp": add["modificationTime"],
            "dataChange": False,
            "extendedFileMetadata": True,
            "partitionValues": add["partitionValues"],
            "size": add["size"],
        }
        info = {"timestamp": add["modificationTime"], "operation": "OPTIMIZE"}
        lines = ({"commitInfo": info}, {"remove": remove}, {"add": new})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (log / f"{number:020d}.json").write_text(text)
        add = new


def test_records_of_more_days_than_a_task_has_open_folders(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    """Days that come in turn in one partition: a file each, in the order of their offsets, with
    all records and the statistics of all of them."""
    from pyarrow import parquet as pq

    at, days, records = broker.bootstrap, OPEN_FOLDERS + 3, 300
    topic = client.create(at, partitions=1)
    times = [BASE_MS + (n % days) * 86_400_000 + n for n in range(records)]
    client.send(at, topic, [Sent(0, b"k", b"%d" % n, (), time) for n, time in enumerate(times)])
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    rows = support.table(spark, lake, topic).selectExpr(
        "_metadata.file_path file", "date", "offset", "int(string(value)) number"
    )
    files: dict[tuple[str, str], list[int]] = {}
    for row in rows.collect():
        assert row.number == row.offset
        files.setdefault((row.file, row.date), []).append(row.offset)
    for path in pathlib.Path(lake).rglob("partition=*/*.parquet"):
        group = pq.ParquetFile(path).metadata.row_group(0)
        columns = {one.path_in_schema: one for one in map(group.column, range(group.num_columns))}
        assert columns["timestamp"].physical_type == "INT64"  # of INT96 there are no statistics
        assert columns["timestamp"].is_stats_set
    assert sorted(files.values()) == [list(range(day, records, days)) for day in range(days)]
    assert len({date for _, date in files}) == days
    known = DeltaTable(spark, f"{lake}/topic.{topic}").files().collect()
    assert sorted((file.records, file.first_offset, file.last_offset) for file in known) == sorted(
        (len(found), found[0], found[-1]) for found in files.values()
    )


def test_an_archive_goes_on_behind_foreign_commits_and_an_emptied_table(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    """Another program compacts 200 times, the log is cleaned up to a checkpoint and retention takes
    every record: where the archive goes on is still known."""
    Foreign = pytest.importorskip("deltalake").DeltaTable
    at, place = broker.bootstrap, pathlib.Path(lake)
    topic = client.create(at, partitions=2)
    client.send(at, topic, numbered(0, 100))
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    assert run(*arguments, "--batch-records", "50").status == 0
    log = place / f"topic.{topic}" / "_delta_log"
    Foreign(str(log.parent)).optimize.compact()
    optimize_again(log.parent, FOREIGN_COMMITS)
    assert Foreign(str(log.parent)).to_pyarrow_table(columns=["offset"]).num_rows == 100
    retention = ("--retention-days", "1", "--keep-replaced", "0", "--quiet")
    assert run("archive", "--lake", lake, "--maintain-only", *retention).status == 0
    table = Foreign(str(log.parent))
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    table.cleanup_metadata()
    version = Foreign(str(log.parent)).version()
    left = sorted(path.name for path in log.glob("*.json"))
    assert version > FOREIGN_COMMITS
    assert f"{0:020d}.json" not in left
    assert not list(place.rglob("partition=*/*.parquet"))
    again = run(*arguments)
    assert again.status == 0, again.stderr
    assert again.summary is not None
    assert (again.summary["records"], again.summary["offsets"]) == (
        0,
        {f"{topic}-0": 50, f"{topic}-1": 50},
    )
    client.send(at, topic, numbered(100, 120))
    assert run(*arguments).status == 0
    rows = support.table(spark, lake, topic).select("partition", "offset").collect()
    assert sorted(map(tuple, rows)) == [(n, at) for n in (0, 1) for at in range(50, 60)]


def test_a_new_archive_reads_no_log(broker: Broker, lake: str, spark: Any, jars: str) -> None:
    """The whole log was read at the opening, behind each commit and at the end, in several jobs of
    Spark each: one writes a batch, and there are no others."""
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    sent = numbered(0, 100)
    client.send(at, topic, sent)
    arguments = ["-b", at, "--topics", topic, "--lake", lake, "--jars", jars]
    options = parser_of(archive.JOB).parse_args([*arguments, "--batch-records", "20"])
    archive.JOB.check(options)
    one = archive.Archiver(options, Progress("archive", quiet=True), spark)
    context = spark._jsc.sc()

    def jobs() -> int:
        context.listenerBus().waitUntilEmpty()
        found = context.statusStore().jobsList(None)
        return -1 if found.isEmpty() else int(found.apply(0).jobId())

    seen = [jobs()]
    one.open()
    seen.append(jobs())
    while one.batch():
        seen.append(jobs())
    seen.append(jobs())
    one.remove_left_overs()
    seen.append(jobs())
    steps = [later - before for before, later in itertools.pairwise(seen)]
    assert steps == [0, *[1] * 5, 0]
    # The bytes that are told are those of the records, not of the files.
    told = one.progress.size_bytes
    assert told == sum(len(record.key or b"") + len(record.value or b"") for record in sent)
    assert one.totals.file_bytes > told
    assert one.offsets() == {(topic, 0): 50, (topic, 1): 50}
    # What no commit names is removed all the same, and nothing else.
    table = pathlib.Path(lake) / f"topic.{topic}"
    named = set(table.rglob("partition=*/*.parquet"))
    stray = next(iter(named)).with_name(f"{one.writer.prefix}stray.parquet")
    shutil.copyfile(next(iter(named)), stray)
    one.remove_left_overs()
    assert set(table.rglob("partition=*/*.parquet")) == named
    assert support.table(spark, lake, topic).count() == 100
    # Another session knows nothing of these files: it asks the log.
    again = archive.Archiver(options, Progress("archive", quiet=True), spark)
    again.open()
    again.remove_left_overs()
    assert set(table.rglob("partition=*/*.parquet")) == named
    assert again.offsets() == one.offsets()


def test_damage_foreign_rows_and_newer_protocols_are_named(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    at, place = broker.bootstrap, pathlib.Path(lake)
    topic = client.create(at)
    client.send(at, topic, numbered(0, 10, 1))
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    assert run(*arguments).status == 0
    log = place / f"topic.{topic}" / "_delta_log"
    sides = ("audit", "--left", f"archive:{lake}", "--right", f"archive:{lake}", "--quiet")

    def damage(name: str, data: bytes) -> Callable[[], None]:
        """Write a commit; what takes it back. delta-spark keeps what it has read by path."""
        path, known = log / name, (log / name).read_bytes() if (log / name).exists() else None
        path.write_bytes(data)
        (log / f".{name}.crc").unlink(missing_ok=True)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

        def undo() -> None:
            path.unlink() if known is None else path.write_bytes(known)
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

        return undo

    newest = f"{DeltaTable(spark, str(log.parent)).snapshot().version():020d}.json"
    later = f"{DeltaTable(spark, str(log.parent)).snapshot().version() + 1:020d}.json"
    feature = b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["new"],'
    feature += b'"writerFeatures":["new"]}}\n'
    newer = b'{"protocol":{"minReaderVersion":4,"minWriterVersion":8}}\n'
    for name, data, status, words in (
        (newest, b"", 3, f"{newest} is damaged"),
        (newest, b"no json\n", 3, newest),
        (later, feature, 2, "needs a newer Delta"),
        (later, newer, 2, f"needs a newer Delta: _delta_log/{later} asks for protocol 4"),
    ):
        undo = damage(name, data)
        for command in (arguments, sides):
            done = run(*command)
            assert (done.status, done.stderr.count("\n")) == (status, 1), (words, done.stderr)
            assert words in done.stderr
        undo()
    foreign = (
        support.table(spark, lake, topic).limit(1).selectExpr("* except(offset)", "77L offset")
    )
    foreign.write.format("delta").mode("append").save(str(log.parent))
    done = run(*arguments)
    assert (done.status, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "holds offset 77 of partition 0 where 10 comes next: another program" in done.stderr


def test_an_old_lake_is_converted_and_archived_on(
    broker: Broker, run: Run, spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off behind every step it is taken up again; no record is copied."""
    at, place = broker.bootstrap, tmp_path / "lake"
    topic = client.create(at, partitions=2)
    client.send(
        at,
        topic,
        [Sent(n, b"k", b"%d" % i, (), BASE_MS + i) for i in range(25) for n in (0, 1)],
    )
    topic_id = Cluster(at).describe([topic])[topic].topic_id
    old_lakes.write_lake(place, {topic: topic_id}, partitions=2, batches=2)
    before = sorted(path.name for path in place.rglob("*.parquet"))

    class CutOffError(BaseException):
        pass

    class Files(LocalLakeFiles):
        left = 0

        def step(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise CutOffError

        def move(self, path: str, target: str) -> None:
            self.step()
            super().move(path, target)

        def delete(self, paths: Any) -> None:
            for path in paths:
                self.step()
                super().delete([path])

    cuts = 0
    for steps in (1, 3, 4, 6, 8):
        files = Files(str(place))
        files.left = steps
        try:
            assert convert.Conversion(spark, files, Progress("lake", quiet=True)).run()
            break
        except CutOffError:
            cuts += 1
            refused = run("audit", "--left", f"archive:{place}", "--right", f"archive:{place}")
            assert refused.status == 2
            assert "kwire spark lake convert" in refused.stderr
    assert cuts >= 3
    if lake.is_old(LocalLakeFiles(str(place))):
        done = run("lake", "convert", "--lake", str(place))
        assert done.status == 0, done.stderr
    after = sorted(path.name for path in place.rglob("partition=*/*.parquet"))
    assert after == before
    archived = run("archive", "-b", at, "--topics", topic, "--lake", str(place), "--once")
    assert archived.status == 0, archived.stderr
    assert archived.summary is not None
    assert archived.summary["records"] == 10
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    assert audited.status == 0, audited.summary


def test_a_conversion_that_is_killed(
    run: Run, jars: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    """kill -9 when the first table is there."""
    from tests.support.spark_kills import kill, wait_until

    place, log = tmp_path / "lake", tmp_path / "log"
    topics = {f"t{number}": f"id{number}" for number in range(6)}
    old_lakes.write_lake(place, topics, partitions=1, batches=2)
    arguments = ("lake", "convert", "--lake", str(place), "--jars", jars)
    process = support.start_process(*arguments, log=log)
    wait_until(lambda: support.commits(str(place)) > 0, process, log)
    kill(process)
    assert run("lake", "convert", "--lake", str(place)).status in (0, 2)
    for topic in topics:
        rows = support.table(spark, str(place), topic).select("offset").collect()
        rows += support.dead_letters(spark, str(place), topic).select("offset").collect()
        assert sorted(row.offset for row in rows) == list(range(20)), topic


def test_another_table_in_the_way_of_a_conversion(
    run: Run, spark: Any, tmp_path: pathlib.Path
) -> None:
    """It was taken for what had been converted, and the old log went; then topics before it were
    converted, before it was found."""
    place = tmp_path / "lake"
    old_lakes.write_lake(place, {"s": "id s", "t": "id"}, partitions=1, batches=2)
    before = sorted(path.name for path in (place / "_kwire" / "commits").iterdir())
    spark.range(3).write.format("delta").save(str(place / "topic.t"))
    refused = run("lake", "convert", "--lake", str(place), "--quiet")
    assert (refused.status, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert f"{place}/topic.t is another table, in the way of t's" in refused.stderr
    left = sorted(path.name for path in (place / "_kwire" / "commits").iterdir())
    assert before == left
    assert not (place / "topic.s").exists()
    (place / "topic.t").rename(tmp_path / "theirs")
    assert run("lake", "convert", "--lake", str(place), "--quiet").status == 0
    rows = support.table(spark, str(place), "t").select("offset").collect()
    rows += support.dead_letters(spark, str(place), "t").select("offset").collect()
    assert sorted(row.offset for row in rows) == list(range(20))


def test_dead_letters_of_an_attempt_that_did_not_end(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    """They are committed before the records; readers pass over them, the next archive takes them
    out, also where a compaction has joined them with others."""
    from pyspark.sql import functions as f

    at = broker.bootstrap
    topic = client.create(at)
    values = [b"{no json" if i % 5 == 0 else b"%d" % i for i in range(20)]
    client.send(at, topic, [Sent(0, None, value, (), BASE_MS) for value in values[:10]])
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    arguments += ("--decode", "json")
    assert run(*arguments).status == 0
    table = DeltaTable(spark, f"{lake}/dead_letter.{topic}")
    left = table.begin()
    rows = support.dead_letters(spark, lake, topic).withColumn("offset", f.col("offset") + 10)
    left.write(rows, "w.s.", "zstd")
    left.commit({"kwire:offset/0": 20}, time_ms=1)
    assert table.optimize("partition = 0", {}) == 2
    client.send(at, topic, [Sent(0, None, value, (), BASE_MS) for value in values[10:]])
    sides = ("-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}", "--quiet")
    assert run("audit", *sides, "--common").status == 0
    assert run(*arguments).status == 0
    assert run("audit", *sides).status == 0
    found = support.dead_letters(spark, lake, topic).select("offset").collect()
    assert sorted(row.offset for row in found) == [0, 5, 10, 15]


def test_versions_of_an_archive_and_tables_of_others(
    broker: Broker, run: Run, lake: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    client.send(at, topic, numbered(0, 40))
    assert run(*arguments).status == 0
    table = DeltaTable(spark, f"{lake}/topic.{topic}")
    version = table.snapshot().version()
    client.send(at, topic, numbered(40, 60))
    assert run(*arguments).status == 0
    sides = ("--left", f"archive:{lake}", "--right", f"topic:{topic}", "-b", at, "--quiet")
    old = run("audit", *sides, "--as-of", str(version))
    assert old.summary is not None
    assert (old.status, old.summary["left"]["records"]) == (1, 40)
    assert run("audit", *sides, "--as-of", str(version), "--common").status == 0
    target = f"{topic}-old"
    replay = ("replay", "-b", at, "--lake", lake, "--to-topic", target, "--create", "--quiet")
    sent = run(*replay, "--as-of", str(version))
    assert sent.summary is not None
    assert sent.summary["sent"] == 40, sent.stderr
    wrong = run("audit", *sides, "--as-of", "999")
    assert (wrong.status, wrong.stderr.count("\n")) == (2, 1), wrong.stderr
    # A table that another program has made, with other types and without some columns.
    other = str(tmp_path / "theirs")
    columns = ("cast(partition as bigint) partition", "offset", "timestamp", "key", "value")
    rows = support.table(spark, lake, topic).selectExpr(*columns, f"'{topic}' topic")
    rows.write.format("delta").save(other)
    left = ("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{other}")
    same = run(*left, "--ignore", "timestampType,headers")
    assert same.status == 0, (same.stderr, same.summary)
    again = ("replay", "-b", at, "--lake", other, "--to-topic", f"{topic}-theirs", "--create")
    sent = run(*again, "--topics", topic, "--partitions", "1", "--quiet")
    assert sent.summary is not None
    assert sent.summary["sent"] == 30, sent.stderr
    spark.range(3).write.format("delta").save(str(tmp_path / "numbers"))
    none = run("profile", "--source", f"archive:{tmp_path}/numbers", "--quiet")
    assert (none.status, none.stderr.count("\n")) == (2, 1), none.stderr
    assert "no column partition" in none.stderr


def test_a_table_that_is_not_the_one_of_its_name(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    """Upkeep took files of another program's table out of it, and records that stood where the dead
    letters should be were read twice."""
    at, topic, place = broker.bootstrap, client.create(broker.bootstrap), pathlib.Path(lake)
    client.send(at, topic, numbered(0, 10, 1))
    archive = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    assert run(*archive, "--decode", "json").status == 0
    keeping = ("archive", "--lake", lake, "--maintain-only", "--retention-mb", "0", "--quiet")
    read = ("profile", "--source", f"archive:{lake}", "--topics", topic, "--quiet")

    def refused(words: str, *jobs: tuple[str, ...]) -> None:
        before = support.commits(lake)
        for job in jobs:
            done = run(*job)
            assert (done.status, done.stderr.count("\n")) == (2, 1), (job, done.stderr)
            assert words in done.stderr, done.stderr
        assert support.commits(lake) == before

    theirs = place / "topic.theirs"
    rows = support.table(spark, lake, topic)
    rows.write.format("delta").partitionBy("date", "partition").save(str(theirs))
    refused(f"{theirs} is a table of another program", keeping)
    shutil.rmtree(theirs)
    shutil.copytree(place / f"topic.{topic}", theirs)
    refused(f"{theirs} is the table of topic {topic}", keeping)
    shutil.rmtree(theirs)
    dead = place / f"dead_letter.{topic}"
    shutil.rmtree(dead)
    shutil.copytree(place / f"topic.{topic}", dead)
    refused(f"{dead} is another table of topic {topic}", keeping, read)
    shutil.rmtree(dead)
    log = place / f"topic.{topic}" / "_delta_log"
    feature = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []}
    later = log / f"{len(list(log.glob('*.json'))):020d}.json"
    later.write_text(json.dumps({"protocol": {**feature, "writerFeatures": ["new"]}}) + "\n")
    refused("needs a newer Delta", (*keeping, "--compact"), archive)


def test_jobs_in_a_session_that_was_begun_without_delta(
    broker: Broker, run: Run, lake: str, spark: Any, jars: str
) -> None:
    """A notebook's, or that of a mirror in this process: VACUUM failed there with an internal error
    of Spark, and a row that another program had deleted was read."""
    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    client.send(at, topic, numbered(0, 40))
    archive = ["archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet"]
    assert run(*archive, "--batch-records", "10").status == 0
    path = f"{lake}/topic.{topic}"
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"DELETE FROM delta.`{path}` WHERE offset = 3")
    keeping = ["archive", "--lake", lake, "--maintain-only", "--compact", "--files-min", "2"]
    jobs = [
        ["profile", "-b", at, "--source", f"topic:{topic}", "--quiet"],
        ["profile", "--source", f"archive:{lake}", "--quiet"],
        archive,
        [*keeping, "--quiet"],
        ["profile", "-b", at, "--source", f"topic:{topic}", "--quiet"],
        ["query", f"SELECT offset FROM `{topic}`", "--lake", lake, "--quiet"],
    ]
    program = (
        "import json, sys; from kwire.spark import commands; "
        "print([commands.main(job) for job in json.loads(sys.argv[1])])"
    )
    options = ["--jars", jars, *support.FAST]
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps([[*job, *options] for job in jobs])],
        cwd=support.ROOT,
        capture_output=True,
        text=True,
        timeout=support.JOB_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["status"] for one in told] == [0] * len(jobs), done.stderr
    assert [one["records"] for one in told[:2]] == [40, 38]
    assert told[3]["compacted_files"] >= 8
    assert told[5]["rows"] == 38


def test_queries_by_name(
    broker: Broker, run: Run, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    client.send(at, topic, numbered(0, 30))
    archive = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    assert run(*archive).status == 0
    client.send(at, topic, numbered(30, 34))
    both = ("-b", at, "--lake", lake, "--quiet")
    text = (
        f"select (select count(*) from `{topic}`) a, (select count(*) from `topic:{topic}`) t, "
        f"(select max(key) from `archive:{topic}`) k"
    )
    done = run("query", text, *both, "--summary", str(pathlib.Path(lake).parent / "s"))
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["rows"] == 1
    for wrong in (f"drop table `{topic}`", "select 1 +", "select * from nowhere"):
        done = run("query", wrong, *both)
        assert (done.status, done.stderr.count("\n")) == (2, 1), done.stderr


def test_readers_without_spark(broker: Broker, run: Run, lake: str) -> None:
    """examples/lake: deltalake, Polars and DuckDB see the same records."""
    for module in ("deltalake", "polars", "duckdb"):
        pytest.importorskip(module)
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    client.send(at, topic, numbered(0, 200))
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    assert run(*arguments, "--batch-records", "100").status == 0
    for name in ("read_with_deltalake", "read_with_polars", "read_with_duckdb"):
        program = support.ROOT / "examples" / "lake" / f"{name}.py"
        done = subprocess.run(
            [sys.executable, program, lake, topic],
            capture_output=True,
            text=True,
            timeout=support.JOB_TIMEOUT_S,
            check=True,
        )
        assert done.stdout.splitlines() == [
            "partition 0: 100 records, offsets 0 to 99",
            "partition 1: 100 records, offsets 0 to 99",
            "the newest: 199",
        ], name
