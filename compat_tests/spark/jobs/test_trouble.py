"""Jobs in trouble: signals, full disks, registries that are away, topics that come and go."""

from __future__ import annotations

import contextlib
import pathlib
import random
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.clock import SystemClock
from kwire.spark import archive, mirror
from kwire.spark.cluster import Cluster
from kwire.spark.job import Progress, parser_of
from kwire.spark.usage import FinalError, JobError
from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.registry import running_registry
from tests.support.spark import Outcome
from tests.support.spark_kills import RECORDS, WAIT_S, ends_of, fill, wait_until

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000


@pytest.fixture
def durable(tmp_path: pathlib.Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as running:
        yield running


def numbered(first: int, last: int, partition: int = 0) -> list[Sent]:
    return [Sent(partition, None, b"%d" % i, (), BASE_MS + i) for i in range(first, last)]


def test_a_replay_that_is_stopped_while_the_broker_is_gone(
    durable: Broker, run: Run, jars: str, lake: str, tmp_path: pathlib.Path
) -> None:
    """One line, status 130, a summary; the same command goes on where it was."""
    at = durable.bootstrap
    topic = fill(at)
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    target = client.create(at, partitions=2)
    log = tmp_path / "log"
    arguments = ("-b", at, "--lake", lake, "--to-topic", target)
    process = support.start_process(
        *("replay", *arguments, "--jars", jars, "--rate", "4000"), log=log
    )
    wait_until(lambda: ends_of(at, target) > 1000, process, log)
    durable.kill()
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 130, log.read_text()[-2000:]
    assert process.stdout is not None
    summary = support.summary_of(process.stdout.read())
    process.stdout.close()
    assert summary is not None
    assert (summary["status"], summary["error"]) == (130, "interrupted")
    assert log.read_text().endswith("kwire spark replay: interrupted\n")
    durable.start()
    again = run("replay", *arguments)
    assert again.status == 0, again.stderr
    assert again.summary is not None
    assert again.summary["already_there"] > 0
    assert again.summary["already_there"] + again.summary["sent"] == RECORDS
    source, copy = client.consume(at, topic), client.consume(at, target)
    for number, records in source.items():
        assert [r.content for r in copy[number]] == [r.content for r in records]


@pytest.fixture
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A file system of 4 MB; where none may be mounted the test is skipped."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_lake_on_a_full_disk(
    broker: Broker, run: Run, small_disk: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an attempt had written there stayed in the way of the next one."""
    monkeypatch.setattr(archive, "RETRY_PAUSE_S", 0.1)
    at, lake = broker.bootstrap, str(small_disk / "lake")
    topic = client.create(at, partitions=2)
    rng = random.Random(1)
    records = [Sent(i % 2, b"%d" % i, rng.randbytes(1000), (), BASE_MS) for i in range(6000)]
    client.send(at, topic, records)
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    arguments += ("--batch-records", "1000")
    full = run(*arguments, "--retry-seconds", "1", "--quiet")
    assert full.status == 3
    assert full.stderr.count("\n") == 1, full.stderr
    assert "No space left on device" in full.stderr
    sides = ("-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")

    def plain() -> int:
        from pyarrow import parquet as pq

        found = small_disk.rglob("partition=*/*.parquet")
        return sum(pq.read_metadata(path).num_rows for path in found)

    there = run("audit", *sides, "--common")
    assert there.status == 0, there.summary
    assert there.summary is not None
    assert 0 < there.summary["right"]["records"] == plain() < 6000
    assert not list(small_disk.rglob("_temporary"))
    # Not a byte is left: neither for a commit.
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", 0) as file:
        while True:
            file.write(b"x" * 4096)
    none = run(*arguments, "--retry-seconds", "0.1", "--quiet")
    assert (none.status, none.stderr.count("\n")) == (3, 1), none.stderr
    assert run("audit", *sides, "--common").status == 0
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    done = run(*arguments)
    assert done.status == 0, done.stderr
    assert run("audit", *sides).status == 0
    assert plain() == 6000


def test_a_registry_that_goes_away_and_comes_back(
    broker: Broker, run: Run, lake: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead letters are records that nobody can decode, not those that came at a bad time."""
    monkeypatch.setattr(archive, "RETRY_PAUSE_S", 0.01)
    at = broker.bootstrap
    topic = client.create(at)
    good, bad = struct.pack(">bi", 0, 1) + b"\x06", struct.pack(">bi", 0, 2) + b"\x06"
    values = [bad if i % 10 == 9 else good for i in range(60)]
    client.send(at, topic, [Sent(0, None, value) for value in values])
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    arguments += ("--batch-records", "10", "--decode", "avro")
    with running_registry() as registry:
        registry.answers = {"/schemas/ids/1": (200, {"schema": '"int"'})}
        page = b"<html>not now</html>"
        trouble = [(503, {}), (404, page), (200, page), (200, {}), (404, {"error_code": 404})]
        # The first two are asked before any work: whether there is a registry, and the subject.
        registry.troubles = iter(
            [None, None, None, None, *trouble, None, None, None, (500, {}), *trouble]
        )
        done = run(*arguments, "--registry", registry.url)
        away = registry.url
    assert done.status == 0, done.stderr
    assert done.stderr.count("trying again") == 2 * len(trouble) + 1
    assert done.summary is not None
    assert (done.summary["records"], done.summary["dead_letters"]) == (60, 6)
    decoded = support.table(spark, lake, topic).collect()
    assert {row.valueDecoded for row in decoded} == {3}
    dead = support.dead_letters(spark, lake, topic).collect()
    assert {row.reason for row in dead} == {"schema 2 is not known"}
    # And one that stays away ends the job: what came meanwhile is not lost.
    client.send(at, topic, [Sent(0, None, good)])
    lost = run(*arguments, "--registry", away, "--retry-seconds", "0.1", "--quiet")
    assert (lost.status, lost.stderr.count("\n")) == (3, 1), lost.stderr
    assert away in lost.stderr
    with running_registry() as registry:
        registry.answers = {"/schemas/ids/1": (200, {"schema": '"int"'})}
        done = run(*arguments, "--registry", registry.url)
    assert done.summary is not None
    assert (done.summary["records"], done.summary["dead_letters"]) == (1, 0)


def delete(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(WAIT_S)


def test_topics_that_come_and_go_under_an_archive(
    broker: Broker, lake: str, spark: Any, jars: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = broker.bootstrap
    topic, other = client.create(at), client.create(at)
    arguments = ("-b", at, "--pattern", f"{topic}|{other}", "--lake", lake, "--jars", jars)
    options = parser_of(archive.JOB).parse_args([*arguments, "--batch-records", "20"])
    archive.JOB.check(options)
    one = archive.Archiver(options, Progress("archive"), spark)
    one.open()
    client.send(at, topic, numbered(0, 10))
    client.send(at, other, numbered(0, 10))
    assert one.batch() == 0
    Cluster(at).add_partitions(topic, 3)
    for number in range(3):
        client.send(at, topic, numbered(10, 15, number))
    assert one.batch() == 0
    assert one.offsets() == {(topic, 0): 15, (topic, 1): 5, (topic, 2): 5, (other, 0): 10}
    # One that is deleted while it is read: the batch fails, the next one is of what is left.
    client.send(at, topic, numbered(15, 20))
    client.send(at, other, numbered(10, 20))
    write = one._write

    def deleted(*found: Any) -> Any:
        delete(at, other)
        return write(*found)

    one._write = deleted  # type: ignore[method-assign]
    with contextlib.suppress(Exception):
        one.batch()
    one._write = write  # type: ignore[method-assign]
    one._before_retry()
    assert one.batch() == 0
    assert one.offsets()[topic, 0] == 20
    assert f"topic {other} is gone; what was archived of it stays" in capsys.readouterr().err
    client.create(at, other)
    client.send(at, other, numbered(0, 50))
    with pytest.raises(FinalError, match=f"topic {other} was deleted and created again"):
        one.batch()
    rows = support.table(spark, lake, topic)
    assert rows.count() == rows.select("partition", "offset").distinct().count() == 30


def test_topics_that_come_and_go_under_a_mirror(
    broker: Broker,
    spark: Any,
    jars: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at = broker.bootstrap
    topic, other = client.create(at), client.create(at)
    with Broker() as west:
        arguments = ("-b", at, "--to", west.bootstrap, "--alias", "e", "--to-alias", "w")
        arguments += ("--pattern", f"{topic}|{other}", "--state", str(tmp_path / "state"))
        options = parser_of(mirror.JOB).parse_args([*arguments, "--jars", jars])
        mirror.JOB.check(options)
        one = mirror.Mirror(options, Progress("mirror"), spark)
        one.log.open(0)
        client.send(at, topic, numbered(0, 10))
        client.send(at, other, numbered(0, 10))
        assert one.batch() == 0
        Cluster(at).add_partitions(topic, 2)
        client.send(at, topic, numbered(10, 15, 1))
        assert one.batch() == 0
        delete(at, other)
        assert one.batch() == 0
        assert f"topic {other} is gone from the source" in capsys.readouterr().err
        copy = client.consume(west.bootstrap, topic)
        assert [[r.value for r in copy[n]] for n in (0, 1)] == [
            [b"%d" % i for i in found] for found in (range(10), range(10, 15))
        ]
        assert len(client.consume(west.bootstrap, other)[0]) == 10
        client.create(at, other)
        with pytest.raises(FinalError, match=f"topic {other} was deleted and created again"):
            one.batch()
        delete(at, other)
        # The copy is deleted under a batch, and there again with another id.
        client.send(at, topic, numbered(15, 20))
        send = one.send

        def deleted(*found: Any) -> None:
            delete(west.bootstrap, topic)
            client.create(west.bootstrap, topic, partitions=2)
            send(*found)

        one.send = deleted  # type: ignore[method-assign]
        with pytest.raises(JobError, match="made anew in the target"):
            one.batch()
        one.send = send  # type: ignore[method-assign]
        with pytest.raises(FinalError, match=f"topic {topic} was made anew in the target"):
            one.batch()


def test_retention_between_two_runs_of_a_replay(broker: Broker, run: Run, lake: str) -> None:
    """Records that had arrived and were no longer in the archive made the sum wrong for ever."""
    at = broker.bootstrap
    topic, target = client.create(at), client.create(at)
    now_ms = SystemClock().wall_ms()
    old = [Sent(0, None, b"old %d" % i, (), BASE_MS) for i in range(50)]
    new = [Sent(0, None, b"new %d" % i, (), now_ms) for i in range(20)]
    client.send(at, topic, old + new)
    archived = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    assert run(*archived).status == 0
    arguments = ("replay", "-b", at, "--lake", lake, "--to-topic", target)
    assert run(*arguments).status == 0
    client.send(at, topic, new)
    done = run(*archived, "--retention-days", "3")
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["expired_files"] == 1
    again = run(*arguments)
    assert again.status == 0, again.stderr
    summary: Any = again.summary
    assert (summary["selected"], summary["sent"], summary["no_longer_chosen"]) == (40, 20, 50)
    assert [r.value for r in client.consume(at, target)[0]] == [r.value for r in old + new + new]
