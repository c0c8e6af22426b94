"""archive -> replay -> audit -> profile on a running broker: random records survive byte for byte."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.effort import seeds
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
HOUR_MS = 3_600_000
BASE_MS = 1_760_000_000_000


def random_records(seed: int, count: int, partitions: int) -> list[Sent]:
    """Records of all shapes: nulls, empty, binary, large, headers double, null and of no ASCII."""
    rng = random.Random(seed)

    def text(sizes: tuple[int, ...]) -> bytes | None:
        size = rng.choice(sizes)
        return None if size < 0 else rng.randbytes(size)

    records = []
    for _ in range(count):
        headers = [
            (rng.choice(["a", "a", "é", "日本", ""]), text((-1, 0, 3, 40)))
            for _ in range(rng.choice((0, 0, 1, 3)))
        ]
        records.append(
            Sent(
                rng.randrange(partitions),
                text((-1, 0, 1, 8, 8, 200)),
                text((-1, 0, 1, 30, 30, 5000)),
                headers,
                BASE_MS + rng.randrange(60 * HOUR_MS),
            )
        )
    return records


def same_content(left: dict[int, list[client.Got]], right: dict[int, list[client.Got]]) -> bool:
    return {n: [got.content for got in found] for n, found in left.items()} == {
        n: [got.content for got in found] for n, found in right.items()
    }


@pytest.mark.parametrize("seed", seeds(1))
def test_random_records_survive(
    broker: Broker, run: Run, lake: str, seed: int, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=3)
    client.send(at, topic, random_records(seed, 2500, 3), **{"compression.type": "zstd"})
    small = ("--batch-records", "1300", "--compact", "--files-min", "2")
    done = run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", *small)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["records"] == 2500
    assert done.summary["compacted_files"] > 0
    again = run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    assert again.summary is not None
    assert again.summary["records"] == 0

    target = f"{topic}-again"
    sent = run("replay", "-b", at, "--lake", lake, "--to-topic", target, "--create")
    assert sent.status == 0, sent.stderr
    assert sent.summary is not None
    assert sent.summary["sent"] == 2500
    assert same_content(client.consume(at, topic), client.consume(at, target))
    once_more = run("replay", "-b", at, "--lake", lake, "--to-topic", target)
    assert once_more.summary is not None
    assert (once_more.summary["sent"], once_more.summary["already_there"]) == (0, 2500)

    report = tmp_path / "audit.html"
    for right in (f"archive:{lake}", f"replay:{target}"):
        audited = run(
            "audit", "-b", at, "--left", f"topic:{topic}", "--right", right, "--report", str(report)
        )
        assert audited.status == 0, audited.summary
        assert audited.summary is not None
        assert audited.summary["left"]["records"] == audited.summary["right"]["records"] == 2500
        assert "<svg" in report.read_text()


def test_audit_finds_what_is_wrong(
    broker: Broker, run: Run, lake: str, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    client.send(at, topic, random_records(7, 300, 2))
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    client.send(at, topic, [Sent(0, b"k", b"one more", (), BASE_MS)])
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 1
    assert audited.summary is not None
    last = client.consume(at, topic)[0][-1].offset
    assert audited.summary["examples"] == [
        {"topic": topic, "partition": 0, "offset": last, "what": "missing right"}
    ]
    common = run(
        "audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}", "--common"
    )
    assert common.status == 0


def test_replay_of_a_range_by_key(broker: Broker, run: Run, lake: str) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    records = [Sent(i % 2, b"key-%d" % (i % 10), b"%d" % i, (), BASE_MS + i) for i in range(400)]
    client.send(at, topic, records)
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    target = client.create(at, partitions=5)
    arguments = ("-b", at, "--lake", lake, "--to-topic", target, "--partitioner", "murmur2")
    chosen = ("--from-time", str(BASE_MS + 100), "--where", "cast(key as string) <> 'key-3'")
    done = run("replay", *arguments, *chosen)
    assert done.status == 0, done.stderr
    # Spread over other partitions it is the same records, in order.
    sides = ("--left", f"archive:{lake}", "--right", f"replay:{target}")
    audited = run("audit", "-b", at, *sides, *chosen)
    assert audited.status == 0, audited.summary
    got = client.consume(at, target)
    values = sorted(int(record.value or b"") for found in got.values() for record in found)
    assert values == [i for i in range(100, 400) if i % 10 != 3]
    # Kafka's own producers put a key where murmur2 does: librdkafka's is asked.
    check = client.create(at, partitions=5)
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": at, "partitioner": "murmur2_random"})
    for i in range(10):
        producer.produce(check, b"", b"key-%d" % i)
    producer.flush(30)
    where = {r.key: n for n, found in client.consume(at, check).items() for r in found}
    assert all(where[r.key] == n for n, found in got.items() for r in found)


def test_archive_compaction_and_retention(broker: Broker, run: Run, lake: str, spark: Any) -> None:
    from pyarrow import parquet as pq

    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    client.send(at, topic, random_records(3, 1000, 2))
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--once")
    compacting = ("--compact", "--files-min", "2", "--keep-replaced", "0")
    done = run("archive", *arguments, "--batch-records", "250", *compacting)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["batches"] >= 4
    assert done.summary["compacted_files"] > 0
    files = list(pathlib.Path(lake).rglob("partition=*/*.parquet"))
    folders = {file.parent for file in files}
    assert len(files) == len(folders)
    # As OPTIMIZE writes: archive's own files are replaced by then. INT96 has no statistics.
    for file in files:
        columns = pq.ParquetFile(file).schema
        found = {columns.column(at).name: columns.column(at) for at in range(len(columns.names))}
        assert found["timestamp"].physical_type == "INT64"
        assert "microseconds" in str(found["timestamp"].logical_type)
    assert support.table(spark, lake, topic).count() == 1000
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary
    retention = ("--retention-days", "1", "--keep-replaced", "0")
    gone = run("archive", "--lake", lake, "--maintain-only", *retention)
    assert gone.status == 0, gone.stderr
    assert not list(pathlib.Path(lake).rglob("partition=*/*.parquet"))
    again = run("archive", *arguments)
    assert again.summary is not None
    assert again.summary["records"] == 0


def test_undecodable_values_are_dead_letters(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    at = broker.bootstrap
    topic = client.create(at)
    values = [b'{"a": 1}', b"\0\0\0\0\7[1, 2]", b"{no json", b"\xff\xfe", None, b"NaN"]
    client.send(at, topic, [Sent(0, b"k", value) for value in values])
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--once", "--decode", "json")
    done = run("archive", *arguments)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert (done.summary["records"], done.summary["dead_letters"]) == (6, 3)
    rows = support.table(spark, lake, topic).orderBy("offset").collect()
    assert [(row.valueJson, row.valueSchemaId) for row in rows] == [
        ('{"a": 1}', None),
        ("[1, 2]", 7),
        (None, None),
    ]
    dead = support.dead_letters(spark, lake, topic).orderBy("offset").collect()
    assert [bytes(row.value) for row in dead] == [values[2], values[3], values[5]]
    assert all(row.reason for row in dead)
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary


def test_profile(broker: Broker, run: Run, tmp_path: pathlib.Path) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    records = [
        Sent(i % 2, b"hot" if i % 4 == 0 else b"k%d" % i, b"word " * 20, (), BASE_MS + i * 1000)
        for i in range(1000)
    ]
    client.send(at, topic, records)
    from kwire.spark.cluster import Cluster

    assert Cluster(at).set_group_offsets("readers", {(topic, 0): 100, (topic, 1): 500}) is None
    report = tmp_path / "profile.html"
    done = run("profile", "-b", at, "--source", f"topic:{topic}", "--lag", "--report", str(report))
    assert done.status == 0, done.stderr
    assert done.summary is not None
    first = done.summary["hot_keys"][0]
    assert (first["key"], first["records"]) == ("hot", 250)
    assert done.summary["topics"][topic]["records"] == 1000
    assert {row["codec"] for row in done.summary["codecs"]} == {
        "none",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    }
    assert done.summary["codecs"][0]["ratio"] > 2
    assert [row["lag"] for row in done.summary["lag"]][-1] == 400
    assert report.read_text().count("<svg") >= 4
    assert "The number of keys is an estimate" in report.read_text()


def test_wrong_options_are_one_line(broker: Broker, run: Run, lake: str) -> None:
    at = broker.bootstrap
    for job, arguments, words in (
        ("archive", ("-b", at, "--topics", "nosuch", "--lake", lake, "--once"), "nosuch"),
        ("archive", ("-b", at, "--lake", lake), "--topics or --pattern"),
        ("archive", ("-b", at, "--pattern", "(", "--lake", lake), "--pattern"),
        ("archive", ("-b", at, "--topics", "a", "--lake", lake, "-o", "group.id=x"), "group.id"),
        ("replay", ("-b", at, "--lake", lake), "no archive there"),
        ("replay", ("-b", at, "--lake", lake, "--from-time", "soon"), "--from-time"),
        ("replay", ("-b", at, "--lake", lake, "--where", "ofset > 1"), "no column ofset"),
        ("replay", ("-b", at, "--lake", lake, "--where", "(offset > 1"), "is not closed"),
        ("replay", ("-b", at, "--lake", lake, "--from-offset", "5", "--to-offset", "5"), "behind"),
        ("audit", ("-b", at, "--left", "topic:nosuch", "--right", "archive:x"), "nosuch"),
        ("audit", ("--left", "what", "--right", "archive:x"), "--left what"),
        ("profile", ("--source", "segments:/nowhere"), "/nowhere"),
        ("mirror", ("-b", at, "--to", at, "--alias", "a"), "--to-alias"),
    ):
        done = run(job, *arguments)
        assert done.status == 2, (job, arguments, done)
        assert words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_condition_that_only_spark_can_refuse_is_one_line_too(
    broker: Broker, run: Run, lake: str
) -> None:
    at = broker.bootstrap
    topic = client.create(at)
    client.send(at, topic, [Sent(0, None, b"x")])
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    for condition in ("no_such_function(offset) = 1", "offset > 1 partition = 2 3", "offset + 1"):
        done = run("replay", "-b", at, "--lake", lake, "--where", condition, "--quiet")
        assert done.status == 2, done.stderr
        assert done.stderr.startswith(f"kwire spark replay: --where {condition}: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    for place, words in (
        ("s3a://bucket/lake", "--packages org.apache.hadoop:hadoop-aws:"),
        ("nothing://bucket/lake", "--packages GROUP:ARTIFACT:VERSION"),
    ):
        done = run("replay", "-b", at, "--lake", place, "--quiet")
        assert (done.status, done.stderr.count("\n")) == (2, 1), done.stderr
        assert words in done.stderr, done.stderr


def test_a_lake_where_hadoop_reaches(spark: Any, tmp_path: pathlib.Path) -> None:
    """The commit log through Hadoop's client, on a file system that can be looked at from here."""
    from kwire.spark.lake_files import HadoopLakeFiles
    from kwire.spark.lake_log import Commit, LakeLog

    files = HadoopLakeFiles(spark, f"file://{tmp_path}/lake")
    assert files.read("a/b.json") is None
    assert files.create("a/b.json", b"one")
    assert not files.create("a/b.json", b"two")
    assert files.read("a/b.json") == b"one"
    assert files.names("a") == ["b.json"]
    assert files.names("none") == []
    assert [info for info in files.walk("") if not info.path.endswith(".crc")] == [("a/b.json", 3)]
    files.delete(["a/b.json", "a/none"])
    assert files.names("a") == []
    # A move is taken up where it was cut off: behind its end, or between a store's copy and removal.
    for _ in range(2):
        assert files.create("a/c", b"c")
        for _ in range(2):
            files.move("a/c", "b/c")
        assert (files.read("a/c"), files.read("b/c")) == (None, b"c")
    with pytest.raises(FileNotFoundError, match="a/none"):
        files.move("a/none", "b/none")
    first, second = LakeLog(files, "w", "one"), LakeLog(files, "w", "two")
    first.open(1)
    second.open(2)
    with pytest.raises(Exception, match="taken over"):
        first.commit(Commit("append", "w", "one", 3))
    for number in range(25):
        second.commit(second.new_commit("append", 4, offsets={("t", 0): number}))
    again = LakeLog(files)
    assert again.load().offsets == {("t", 0): 24}


def test_transactions_and_batches_that_hold_only_markers(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    from confluent_kafka import Producer

    at = broker.bootstrap
    topic = client.create(at)
    producer = Producer({"bootstrap.servers": at, "transactional.id": topic})
    producer.init_transactions(30)
    for count, end in (
        (1, producer.commit_transaction),
        (2, producer.abort_transaction),
        (1, producer.commit_transaction),
    ):
        producer.begin_transaction()
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=0)
        producer.flush(30)
        end(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)
    # Offsets: a record, marker, two aborted, marker, a record, marker, one that is open.
    done = run(
        "archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--batch-records", "1"
    )
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["offsets"] == {f"{topic}-0": 7}
    assert [
        row.offset for row in support.table(spark, lake, topic).orderBy("offset").collect()
    ] == [0, 5]
    producer.commit_transaction(30)
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    assert [
        row.offset for row in support.table(spark, lake, topic).orderBy("offset").collect()
    ] == [0, 5, 7]
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary


def test_a_jvm_that_ended_fails_one_job_in_one_line(
    broker: Broker, run: Run, spark: Any, lake: str
) -> None:
    at = broker.bootstrap
    topic = client.create(at)
    client.send(at, topic, [Sent(0, None, b"x")])
    gateway = spark.sparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    lost = run(*arguments)
    assert lost.status == 3
    first, _, told = lost.stderr.rpartition("Spark's JVM is gone")
    assert "status -9" in told
    assert first.splitlines()[-1].startswith("kwire spark archive: "), first
    again = run(*arguments)
    assert again.status == 0, again.stderr
    assert again.summary is not None
    assert again.summary["records"] == 1


def test_a_job_under_spark_submit(broker: Broker, jars: str, lake: str) -> None:
    from kwire.spark.session import jars_in

    topic = client.create(broker.bootstrap)
    client.send(broker.bootstrap, topic, [Sent(0, None, b"%d" % i) for i in range(10)])
    submit = pathlib.Path(sys.executable).parent / "spark-submit"
    done = subprocess.run(
        [
            *(submit, "--master", "local[1]", "--jars", ",".join(jars_in(jars))),
            *("--conf", "spark.ui.enabled=false", support.ROOT / "kwire" / "spark" / "archive.py"),
            *("-b", broker.bootstrap, "--topics", topic, "--lake", lake, "--once"),
        ],
        env={**os.environ, "PYTHONPATH": str(support.ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=support.JOB_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    summary = support.summary_of(done.stdout)
    assert summary is not None
    assert summary["records"] == 10
