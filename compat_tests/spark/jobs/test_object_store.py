"""Lakes on S3, the store being moto: what a kill, a second writer and a wrong setting make of them
(`make stress`: the connector that the jobs fetch as a package has hundreds of megabytes)."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import object_store
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.object_store import ObjectStore, StoreFront
from tests.support.spark_kills import RECORDS, fill, kill, wait_until

LAKE = f"s3a://{object_store.BUCKET}/lake"
Archive = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as running:
        yield running


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path / "store.log") as running:
        yield running


@pytest.fixture
def log(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log"


@pytest.fixture
def archive(broker: Broker, jars: str, log: pathlib.Path) -> Iterator[Archive]:
    """archive(endpoint, *options): the job as a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(endpoint: str, *arguments: str) -> subprocess.Popen[str]:
        place = ("-b", broker.bootstrap, "--lake", LAKE, "--jars", jars)
        options = object_store.options(endpoint)
        command = ("archive", *place, *arguments, *options)
        started.append(support.start_process(*command, log=log))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            kill(process)


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    told, _ = process.communicate(timeout=support.JOB_TIMEOUT_S)
    return process.returncode, support.summary_of(told) or {}


def rows(store: ObjectStore, jars: str, topic: str) -> tuple[int, int]:
    """(rows, different offsets) of a topic's table."""
    sql = f"SELECT count(*) AS a, count(DISTINCT partition, offset) AS b FROM `{topic}`"
    options = object_store.options(store.endpoint)
    command = support.command("query", sql, "--lake", LAKE, "--jars", jars, "--format", "json")
    done = subprocess.run(
        [*command, *options], cwd=support.ROOT, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[0])
    return found["a"], found["b"]


def test_an_archive_on_s3_that_is_killed_goes_on_behind_its_commits(
    broker: Broker, store: ObjectStore, archive: Archive, jars: str, log: pathlib.Path
) -> None:
    topic = fill(broker.bootstrap)
    arguments = ("--topics", topic, "--once", "--batch-records", "4000")

    def commits() -> int:
        return sum("/_delta_log/" in n and n.endswith(".json") for n in store.names())

    process = archive(store.endpoint, *arguments)
    wait_until(lambda: commits() >= 2, process, log)  # of the session, and of a batch
    kill(process)
    assert commits() < 6
    status, summary = ended(archive(store.endpoint, *arguments))
    assert status == 0, log.read_text()[-2000:]
    assert 0 < summary["records"] < RECORDS
    assert rows(store, jars, topic) == (RECORDS, RECORDS)


def test_the_later_of_two_commits_is_refused_by_the_store(
    broker: Broker, store: ObjectStore, archive: Archive, jars: str, log: pathlib.Path
) -> None:
    """A driver's commit is on its way while another one takes over, archives the same and ends.
    By Delta's own log store for S3 it then replaced the other's, and the table was none."""
    topic = client.create(broker.bootstrap, partitions=2)
    client.send(broker.bootstrap, topic, [Sent(i % 2, b"k", b"%d" % i) for i in range(100)])
    commit = f"topic.{topic}/_delta_log/{1:020d}.json"
    patience = ("--spark-conf", "spark.hadoop.fs.s3a.connection.timeout=300s")
    with StoreFront(store, hold=commit) as front:
        older = archive(front.endpoint, "--topics", topic, "--once", *patience)
        assert front.came.wait(support.JOB_TIMEOUT_S), log.read_text()[-2000:]
        status, summary = ended(archive(store.endpoint, "--topics", topic, "--once"))
        assert (status, summary["records"]) == (0, 100), log.read_text()[-2000:]
        front.release.set()
        status, summary = ended(older)
        assert front.refused.is_set()
    assert status == 3
    assert "has taken over this lake" in summary["error"]
    assert rows(store, jars, topic) == (100, 100)


def test_what_is_wrong_with_a_store_is_one_line(
    store: ObjectStore, jars: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kwire.spark import s3
    from kwire.spark.lake_files import open_lake_files
    from kwire.spark.session import open_session
    from kwire.spark.usage import UsageError

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    conf = [text for text in support.FAST if text.startswith("spark.")]
    options = support.session_options(jars, conf, object_store.CONNECTOR)
    spark = open_session(options, "tests", needs_kafka=False, needs_delta=True)
    try:
        hadoop = spark._jsc.hadoopConfiguration()

        def opened(place: str, **changed: str) -> Any:
            s3._reached.clear()
            found = object_store.settings(store.endpoint) | {
                f"fs.s3a.{name.replace('_', '.')}": value for name, value in changed.items()
            }
            for name, value in found.items():
                hadoop.set(name, value) if value else hadoop.unset(name)
            return open_lake_files(place, spark)

        def line(place: str, **changed: str) -> str:
            with pytest.raises(UsageError) as refused:
                opened(place, **changed)
            text = str(refused.value)
            assert text.startswith(f"{place}: "), text
            assert "\n" not in text, text
            assert "secret" not in text.replace("fs.s3a.secret.key", ""), text
            return text

        assert opened(LAKE).names("") == []
        assert "no bucket nosuch at http://" in line("s3a://nosuch/lake")
        assert "no credentials for http://" in line(LAKE, access_key="", secret_key="")
        away = line(LAKE, endpoint="http://127.0.0.1:1")
        assert "http://127.0.0.1:1 does not answer: Connection refused" in away
        assert "nosuch.invalid does not answer" in line(LAKE, endpoint="http://nosuch.invalid")
        # Without a scheme S3A takes TLS for granted.
        bare = store.endpoint.removeprefix("http://")
        assert f"no TLS with {bare}: " in line(LAKE, endpoint=bare)
        assert "its connector is not there" in line("s3://bucket/lake")
        for answers, words in (
            ((301, "PermanentRedirect"), "spark.hadoop.fs.s3a.endpoint.region=eu-west-1"),
            ((400, "AuthorizationHeaderMalformed"), "request: AuthorizationHeaderMalformed: as"),
            ((403, "InvalidAccessKeyId"), "from fs.s3a.access.key (InvalidAccessKeyId)"),
            ((404, "null"), "is no S3"),
        ):
            with StoreFront(store, answers=answers) as front:
                assert words in line(LAKE, endpoint=front.endpoint)
        opened(LAKE).check_commits(of_delta=True)
        with StoreFront(store, forgets=True) as front:
            hadoop.set("fs.s3a.impl.disable.cache", "true")
            files = opened(LAKE, endpoint=front.endpoint)
            with pytest.raises(UsageError, match="replaces files in spite of If-None-Match"):
                files.check_commits(of_delta=True)
        assert store.names() in ([], ["lake/"])  # S3A's marker of a folder
    finally:
        spark.stop()
