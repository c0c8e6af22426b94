"""Every job on a lake on S3, the store being moto: upkeep, newest records, other versions, old
lakes; compactions that are killed, or come at the same time as another or as an archive
(`make stress`)."""

from __future__ import annotations

import itertools
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import object_store, old_lakes
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.object_store import ObjectStore, StoreFront
from tests.support.spark import Outcome
from tests.support.spark_kills import kill

BUCKET = "jobs"
BASE_MS = 1_760_000_000_000
KEYS = 7
PATIENCE = ("--spark-conf", "spark.hadoop.fs.s3a.connection.timeout=300s")
Run = Callable[..., Outcome]
Start = Callable[..., subprocess.Popen[str]]
_lakes = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("store") / "log", BUCKET) as running:
        yield running


@pytest.fixture(scope="module")
def spark(jars: str, store: ObjectStore) -> Iterator[Any]:
    """The session that the jobs of this process use, with the connector."""
    from kwire.spark.session import open_session

    settings = [text for text in support.FAST if text.startswith("spark.")]
    settings += [
        f"spark.hadoop.{name}={value}"
        for name, value in object_store.settings(store.endpoint).items()
    ]
    options = support.session_options(jars, settings, object_store.CONNECTOR)
    session = open_session(options, "tests", needs_kafka=True, needs_delta=True, sends=True)
    yield session
    session.stop()


@pytest.fixture
def folder() -> str:
    """A lake's folder in the bucket."""
    return f"lake-{next(_lakes)}"


@pytest.fixture
def place(folder: str) -> str:
    return f"s3a://{BUCKET}/{folder}"


@pytest.fixture
def log(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log"


@pytest.fixture
def job(run: Run, store: ObjectStore, spark: Any) -> Run:
    """job(name, *options): in this process, done without a difference."""

    def run_here(name: str, *arguments: str, status: int = 0) -> Outcome:
        done = run(name, *arguments, "--quiet", *object_store.options(store.endpoint))
        assert done.status == status, (arguments, done.stderr, done.summary)
        return done

    return run_here


@pytest.fixture
def start(jars: str, log: pathlib.Path) -> Iterator[Start]:
    """start(endpoint, name, *options): a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def begin(endpoint: str, name: str, *arguments: str) -> subprocess.Popen[str]:
        options = (*object_store.options(endpoint), *PATIENCE, "--jars", jars)
        started.append(support.start_process(name, *arguments, *options, log=log))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            kill(process)


def numbered(first: int, last: int) -> list[Sent]:
    """Every tenth takes its key out."""
    return [
        Sent(i % 2, b"k%d" % (i % KEYS), b"%d" % i if i % 10 else None, (), BASE_MS + i)
        for i in range(first, last)
    ]


def newest(records: list[Sent]) -> dict[tuple[int, bytes | None], bytes]:
    found = {(one.partition, one.key): one.value for one in records}
    return {place: value for place, value in found.items() if value is not None}


def newest_of(spark: Any, place: str, topic: str) -> dict[tuple[int, bytes], bytes]:
    rows = support.table(spark, place, topic, "latest").collect()
    assert len({(row.partition, bytes(row.key)) for row in rows}) == len(rows)
    return {(row.partition, bytes(row.key)): bytes(row["value"]) for row in rows}


def commits(store: ObjectStore, folder: str, topic: str) -> int:
    names = store.names(f"{folder}/topic.{topic}/_delta_log/")
    return sum(name.endswith(".json") for name in names)


def data_files(store: ObjectStore, folder: str, topic: str) -> list[str]:
    """Without S3A's markers of folders."""
    names = store.names(f"{folder}/topic.{topic}/date=")
    return [name for name in names if name.endswith(".parquet")]


def summary(done: Outcome) -> dict[str, Any]:
    assert done.summary is not None
    return done.summary


def test_every_job_on_a_lake_on_s3(
    broker: Broker, store: ObjectStore, folder: str, place: str, job: Run, spark: Any
) -> None:
    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    records = numbered(0, 400)
    client.send(at, topic, records)
    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    archive += ("--latest-by-key",)
    assert summary(job(*archive, "--batch-records", "100"))["records"] == 400
    before = commits(store, folder, topic) - 1
    sides = ("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    assert newest_of(spark, place, topic) == newest(records)

    keeping = ("archive", "--lake", place, "--maintain-only", "--compact", "--files-min", "2")
    kept = summary(job(*keeping))
    assert kept["compacted_files"] >= 8
    assert kept["removed_files"] == 0
    job(*sides)
    # The versions before are there as long as their files are.
    job(*sides, "--right-as-of", str(before))
    old = ("--as-of", str(before - 1), "--common")
    job("audit", "-b", at, "--left", f"archive:{place}", "--right", f"topic:{topic}", *old)
    data = len(data_files(store, folder, topic))
    removed = summary(job(*keeping, "--keep-replaced", "0"))["removed_files"]
    assert removed >= 8
    assert len(data_files(store, folder, topic)) == data - 8
    job(*sides)
    gone = job(*sides, "--right-as-of", str(before), status=2)
    assert gone.stderr.count("\n") == 1, gone.stderr

    target = f"{topic}-again"
    replay = ("replay", "-b", at, "--lake", place, "--topics", topic, "--to-topic", target)
    assert summary(job(*replay, "--create"))["sent"] == 400
    assert summary(job(*replay, "--create"))["sent"] == 0
    job("audit", "-b", at, "--left", f"replay:{target}", "--right", f"archive:{place}")
    profile = summary(job("profile", "--source", f"archive:{place}", "--topics", topic))
    assert profile["records"] == 400
    asked = job("query", f"SELECT key FROM `latest:{topic}`", "--lake", place)
    assert summary(asked)["rows"] == len(newest(records))

    # Retention takes every row of the archive, none of the newest ones, and nothing comes back.
    expired = summary(job(*keeping, "--keep-replaced", "0", "--retention-days", "0"))
    assert expired["expired_files"] >= 2
    assert data_files(store, folder, topic) == []
    assert support.table(spark, place, topic).count() == 0
    more = numbered(400, 420)
    client.send(at, topic, more)
    assert summary(job(*archive))["records"] == 20
    assert newest_of(spark, place, topic) == newest(records + more)


def test_retention_on_s3_that_empties_a_table(
    broker: Broker, store: ObjectStore, folder: str, place: str, job: Run, spark: Any
) -> None:
    """By size: no record and no dead letter is left. An empty table is an archive for every job,
    its older version is read while the files are there, and an archive goes on behind it."""
    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    archive += ("--decode", "json")
    values = [b"{no json" if i % 5 == 0 else b"%d" % i for i in range(60)]
    sent = [Sent(i % 2, b"k", value, (), BASE_MS + i) for i, value in enumerate(values)]
    client.send(at, topic, sent[:50])
    done = summary(job(*archive, "--batch-records", "25"))
    assert (done["records"], done["dead_letters"]) == (50, 10)
    full = commits(store, folder, topic) - 1
    dead = f"{folder}/dead_letter.{topic}/date="

    retention = ("archive", "--lake", place, "--maintain-only", "--retention-mb", "0")
    assert summary(job(*retention))["expired_files"] >= 4
    sides = ("audit", "-b", at, "--left", f"archive:{place}", "--right", f"topic:{topic}")
    job(*sides, "--as-of", str(full))
    gone = summary(job(*retention, "--keep-replaced", "0"))
    assert (gone["expired_files"], gone["removed_files"] >= 4) == (0, True)
    assert data_files(store, folder, topic) == []
    assert [name for name in store.names(dead) if name.endswith(".parquet")] == []

    again = summary(job(*retention, "--compact", "--files-min", "2", "--keep-replaced", "0"))
    kinds = ("expired_files", "compacted_files", "removed_files")
    assert [again[name] for name in kinds] == [0, 0, 0]
    assert summary(job("profile", "--source", f"archive:{place}"))["records"] == 0
    asked = job("query", f"SELECT count(*) AS n FROM `{topic}`", "--lake", place)
    assert summary(asked)["rows"] == 1
    missing = summary(job(*sides, status=1))
    assert (missing["left"]["records"], missing["right"]["records"]) == (0, 50)
    replay = ("replay", "-b", at, "--lake", place, "--to-topic", f"{topic}-again", "--create")
    none = job(*replay, status=2)
    assert "holds nothing" in none.stderr
    lost = job(*sides, "--as-of", str(full), status=2)
    assert lost.stderr.count("\n") == 1, lost.stderr

    client.send(at, topic, sent[50:])
    done = summary(job(*archive))
    assert (done["records"], done["dead_letters"]) == (10, 2)
    job(*sides, "--common", "--from-offset", "25")
    assert summary(job(*replay))["sent"] == 10


def test_compactions_on_s3_that_are_killed(
    broker: Broker,
    store: ObjectStore,
    folder: str,
    place: str,
    job: Run,
    start: Start,
    log: pathlib.Path,
) -> None:
    """kill -9 while a larger file is on its way, and while the commit is: that one arrives when an
    archive has taken its version, and is refused."""
    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    client.send(at, topic, numbered(0, 200))
    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    job(*archive, "--batch-records", "50")
    keeping = ("archive", "--lake", place, "--maintain-only", "--compact", "--files-min", "2")
    sides = ("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")

    with StoreFront(store, hold="/compact.") as front:
        process = start(front.endpoint, *keeping)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        kill(process)
    before = commits(store, folder, topic)
    job(*sides)

    with StoreFront(store, hold=f"topic.{topic}/_delta_log/{before:020d}.json") as front:
        process = start(front.endpoint, *keeping)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        kill(process)
        client.send(at, topic, numbered(200, 220))
        assert summary(job(*archive))["records"] == 20
        assert commits(store, folder, topic) > before
        front.release.set()
        assert front.refused.wait(support.JOB_TIMEOUT_S)
    job(*sides)
    assert summary(job(*keeping))["compacted_files"] >= 8
    job(*sides)


def test_two_compactions_on_s3_at_the_same_time(
    broker: Broker,
    store: ObjectStore,
    folder: str,
    place: str,
    job: Run,
    start: Start,
    spark: Any,
    log: pathlib.Path,
) -> None:
    """The commit of one is on its way while the other one joins the same files and deletes what
    was replaced: it is refused, and no record is there twice or gone."""
    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    client.send(at, topic, numbered(0, 100))
    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    job(*archive, "--batch-records", "25")
    keeping = ("archive", "--lake", place, "--maintain-only", "--compact", "--files-min", "2")
    keeping += ("--keep-replaced", "0")
    version = commits(store, folder, topic)
    with StoreFront(store, hold=f"topic.{topic}/_delta_log/{version:020d}.json") as front:
        process = start(front.endpoint, *keeping)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        beside = summary(job(*keeping))
        front.release.set()
        told, _ = process.communicate(timeout=support.JOB_TIMEOUT_S)
        assert front.refused.is_set()
    assert process.returncode == 0, log.read_text()[-2000:]
    found = support.summary_of(told)
    assert found is not None
    assert (found["compacted_files"], beside["compacted_files"] >= 8) == (0, True)
    sides = ("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    job(*sides)
    assert len(support.table(spark, place, topic).inputFiles()) == 2
    client.send(at, topic, numbered(100, 120))
    assert summary(job(*archive))["records"] == 20
    job(*sides)


@pytest.mark.parametrize("held", ["archive", "compaction"])
def test_an_archive_and_a_compaction_on_s3_at_the_same_time(
    broker: Broker,
    store: ObjectStore,
    folder: str,
    place: str,
    job: Run,
    start: Start,
    log: pathlib.Path,
    held: str,
) -> None:
    """The commit of one is on its way while the other one's takes its version: it is refused, and
    done as a later one."""
    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    client.send(at, topic, numbered(0, 100))
    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    job(*archive, "--batch-records", "25")
    client.send(at, topic, numbered(100, 120))
    keeping = ("archive", "--lake", place, "--maintain-only", "--compact", "--files-min", "2")
    keeping += ("--keep-replaced", "0")
    first, second = (archive, keeping) if held == "archive" else (keeping, archive)
    # An archive's first commit is that of its session.
    version = commits(store, folder, topic) + (held == "archive")
    with StoreFront(store, hold=f"topic.{topic}/_delta_log/{version:020d}.json") as front:
        process = start(front.endpoint, *first)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        beside = summary(job(*second))
        front.release.set()
        told, _ = process.communicate(timeout=support.JOB_TIMEOUT_S)
        assert front.refused.is_set()
    assert process.returncode == 0, log.read_text()[-2000:]
    found = support.summary_of(told)
    assert found is not None
    archived, kept = (found, beside) if held == "archive" else (beside, found)
    assert archived["records"] == 20
    assert kept["compacted_files"] >= 8
    job("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")


def test_an_old_lake_on_s3_is_converted_where_it_is(
    broker: Broker,
    store: ObjectStore,
    folder: str,
    place: str,
    job: Run,
    start: Start,
    spark: Any,
    tmp_path: pathlib.Path,
    log: pathlib.Path,
) -> None:
    """Killed when some files are moved: a second run found them gone, and ended."""
    from kwire.spark.cluster import Cluster

    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    client.send(
        at,
        topic,
        [Sent(n, b"k", b"%d" % i, (), BASE_MS + i) for i in range(25) for n in (0, 1)],
    )
    topic_id = Cluster(at).describe([topic])[topic].topic_id
    old = tmp_path / "old"
    old_lakes.write_lake(old, {topic: topic_id}, partitions=2, batches=2)
    for file in sorted(path for path in old.rglob("*") if path.is_file()):
        store.put(f"{folder}/{file.relative_to(old)}", file.read_bytes())
    before = sorted(path.name for path in old.rglob("*.parquet"))
    convert = ("lake", "convert", "--lake", place)
    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    refused = job(*archive, status=2)
    assert "kwire spark lake convert" in refused.stderr
    assert refused.stderr.count("\n") == 1

    # The second file of records; the first one is moved then.
    with StoreFront(store, hold="w.old.000011-0.parquet") as front:
        process = start(front.endpoint, *convert)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        kill(process)
    job(*convert)
    names = [pathlib.PurePath(name).name for name in store.names(f"{folder}/")]
    assert sorted(name for name in names if name in before) == before
    left = store.names(f"{folder}/_kwire/commits")
    assert not [name for name in left if name.endswith(".json")]
    assert summary(job(*archive))["records"] == 10
    job("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    rows = support.table(spark, place, topic).select("partition", "offset").collect()
    assert len({(row.partition, row.offset) for row in rows}) == len(rows) == 42


def test_an_archive_on_s3_goes_on_behind_a_conversion(
    broker: Broker,
    store: ObjectStore,
    folder: str,
    place: str,
    job: Run,
    start: Start,
    spark: Any,
    tmp_path: pathlib.Path,
    log: pathlib.Path,
) -> None:
    """In several batches, killed while the commit of one is on its way, beside newest records that
    begin with what was converted; then old and new files become one."""
    from kwire.spark.cluster import Cluster

    at, topic = broker.bootstrap, client.create(broker.bootstrap, partitions=2)
    sent = [
        Sent(n, b"k" if i < 20 else b"k%d" % (i % 3), b"%d" % i, (), BASE_MS + i)
        for i in range(80)
        for n in (0, 1)
    ]
    client.send(at, topic, sent)
    topic_id = Cluster(at).describe([topic])[topic].topic_id
    old = tmp_path / "old"
    old_lakes.write_lake(old, {topic: topic_id}, partitions=2, batches=2)
    for file in sorted(path for path in old.rglob("*") if path.is_file()):
        store.put(f"{folder}/{file.relative_to(old)}", file.read_bytes())
    job("lake", "convert", "--lake", place)
    converted = commits(store, folder, topic)

    archive = ("archive", "-b", at, "--topics", topic, "--lake", place, "--once")
    archive += ("--batch-records", "40", "--latest-by-key")
    # Behind the session's: a batch, and one that does not arrive.
    held = f"topic.{topic}/_delta_log/{converted + 2:020d}.json"
    with StoreFront(store, hold=held) as front:
        process = start(front.endpoint, *archive)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        kill(process)
    done = summary(job(*archive))
    assert 0 < done["records"] < 120
    sides = ("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    job(*sides)
    assert newest_of(spark, place, topic) == newest(sent)
    rows = support.table(spark, place, topic).select("partition", "offset").collect()
    rows += support.dead_letters(spark, place, topic).select("partition", "offset").collect()
    assert len({(row.partition, row.offset) for row in rows}) == len(rows) == 160

    keeping = ("archive", "--lake", place, "--maintain-only", "--compact", "--files-min", "2")
    assert summary(job(*keeping, "--keep-replaced", "0"))["compacted_files"] >= 8
    job(*sides)
    replay = ("replay", "-b", at, "--lake", place, "--to-topic", f"{topic}-again", "--create")
    assert summary(job(*replay))["sent"] == 160
