"""Jobs on what people do not think of: odd paths, large records, internal and empty topics."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000


def test_a_lake_in_a_folder_with_any_name(broker: Broker, run: Run, tmp_path: pathlib.Path) -> None:
    """Spark takes brackets, braces and stars in a path for patterns, and % for an escape."""
    at, lake = broker.bootstrap, str(tmp_path / "a b%20c [x] {y,z} *?" / "topic=t")
    topic = client.create(at, partitions=2)
    client.send(at, topic, [Sent(i % 2, b"k", b"%d" % i, (), BASE_MS) for i in range(20)])
    small = ("--batch-records", "5", "--compact", "--files-min", "2")
    done = run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", *small)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert (done.summary["records"], done.summary["compacted_files"] > 0) == (20, True)
    sides = ("--left", f"topic:{topic}", "--right", f"archive:{lake}")
    audited = run("audit", "-b", at, *sides)
    assert audited.status == 0, (audited.summary, audited.stderr)
    sent = run("replay", "-b", at, "--lake", lake, "--to-topic", f"{topic}-again", "--create")
    assert sent.status == 0, sent.stderr


def test_records_of_ten_megabytes(broker: Broker, run: Run, lake: str) -> None:
    """20,000 of them were one Arrow batch: a batch ends at 16 MB as well. And a page of a file had
    a hundred of them, which a task held when it wrote and read it."""
    at, large = broker.bootstrap, 24 << 20
    topic = client.create(at, max_message_bytes=large)
    values = [b'"' + b"%d" % i + b"x" * (10 << 20) + b'"' for i in range(16)]
    limits = {"message.max.bytes": str(large)}
    client.send(at, topic, [Sent(0, None, value) for value in values], **limits)
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--once", "--decode", "json")
    done = run("archive", *arguments)
    assert done.status == 0, done.stderr
    sent = run(
        *("replay", "-b", at, "--lake", lake, "--to-topic", f"{topic}-again", "--create"),
        *("--topic-config", f"max.message.bytes={large}"),
    )
    assert sent.status == 0, sent.stderr
    sides = ("--left", f"topic:{topic}", "--right", f"replay:{topic}-again")
    assert run("audit", "-b", at, *sides).status == 0


def test_replay_names_a_record_above_the_targets_limit(broker: Broker, run: Run, lake: str) -> None:
    """It ended with librdkafka's word on a batch, or with a SystemError."""
    at, size = broker.bootstrap, 2 << 20
    topic, small = (
        client.create(at, partitions=2, max_message_bytes=4 << 20),
        client.create(at, partitions=2),
    )
    values = [b"a", b"b", random.Random(1).randbytes(size), b"c"]
    sent = [Sent(0, b"k", value) for value in values] + [Sent(1, None, b"d")] * 50
    client.send(at, topic, sent, **{"message.max.bytes": str(4 << 20)})
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    arguments = ("replay", "-b", at, "--lake", lake, "--to-topic")
    refused = run(*arguments, small)
    assert refused.status == 3
    told = f"kwire spark replay: the record of {topic}-0 at offset 2 has 2,097,"
    assert told in refused.stderr, refused.stderr
    assert (
        f"topic {small} takes 1,048,588 (max.message.bytes): set it to at least" in refused.stderr
    )
    made = run(*arguments, f"{topic}-again", "--create")
    assert made.status == 0, made.stderr
    assert [r.content for r in client.consume(at, f"{topic}-again")[0]] == [
        r.content for r in client.consume(at, topic)[0]
    ]


def test_an_internal_topic(broker: Broker, run: Run, lake: str) -> None:
    """Spark's connector did not find it, and the job tried for minutes."""
    at = broker.bootstrap
    topic = client.create(at)
    client.send(at, topic, [Sent(0, None, b"x")])
    assert client.consume_as(at, "someone", topic) == [b"x"]
    internal = "__consumer_offsets"
    done = run("archive", "-b", at, "--topics", internal, "--lake", lake, "--once")
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["records"] > 0
    sides = ("--left", f"topic:{internal}", "--right", f"archive:{lake}", "--common")
    assert run("audit", "-b", at, *sides).status == 0


def test_empty_topics_and_empty_archives(broker: Broker, run: Run, lake: str) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=3)
    done = run("archive", "-b", at, "--topics", f"{topic},{topic}", "--lake", lake, "--once")
    assert done.status == 0, done.stderr
    sides = ("--left", f"topic:{topic}", "--right", f"archive:{lake}")
    audited = run("audit", "-b", at, *sides)
    assert audited.status == 0, audited.stderr
    for source in (f"topic:{topic}", f"archive:{lake}"):
        profiled = run("profile", "-b", at, "--source", source, "--lag")
        assert profiled.status == 0, profiled.stderr
    sent = run("replay", "-b", at, "--lake", lake, "--to-topic", "none", "--create")
    assert (sent.status, "holds nothing" in sent.stderr) == (2, True)


def test_copies_that_have_records_of_others(broker: Broker, run: Run, lake: str) -> None:
    """What others wrote into a copy, with headers of their own, made the query fail."""
    at = broker.bootstrap
    topic, target = client.create(at), client.create(at)
    headers = [("own", b"1"), ("own", None)]
    client.send(at, topic, [Sent(0, None, b"%d" % i, headers, BASE_MS) for i in range(5)])
    client.send(at, target, [Sent(0, None, b"other", headers, BASE_MS)])
    # Nor has it to be a place what stands in a header of the jobs' own names.
    odd = [(f"kwire-{name}", b"no/place") for name in ("replay-source", "mirror-offset")]
    headers += [*odd, ("kwire-replay-id", b"mine"), ("kwire-mirror-path", None)]
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    for _ in range(2):
        sent = run("replay", "-b", at, "--lake", lake, "--to-topic", target, "--id", "mine")
        assert sent.status == 0, sent.stderr
        client.send(at, target, [Sent(0, None, b"another", headers, BASE_MS)])
    for kind, status in (("replay", 0), ("mirror", 1)):
        sides = ("--left", f"topic:{topic}", "--right", f"{kind}:{target}")
        audited = run("audit", "-b", at, *sides)
        assert audited.status == status, audited.stderr


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_times_of_records(broker: Broker, run: Run, lake: str, kind: str) -> None:
    """Times long before 1970 and long ago stay; the broker's own are there as a plain time."""
    at = broker.bootstrap
    topic = client.create(at, message_timestamp_type=kind)
    times = (-86_400_000, -1, 1, BASE_MS)
    client.send(at, topic, [Sent(0, None, b"%d" % ms, (), ms) for ms in times])
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    target = f"{topic}-again"
    sent = run("replay", "-b", at, "--lake", lake, "--to-topic", target, "--create")
    assert sent.status == 0, sent.stderr
    there, copy = client.consume(at, topic)[0], client.consume(at, target)[0]
    assert [r.timestamp for r in copy] == [r.timestamp for r in there]
    sides = ("--left", f"topic:{topic}", "--right", f"replay:{target}")
    assert run("audit", "-b", at, *sides, "--ignore", "timestampType").status == 0
    assert run("audit", "-b", at, *sides).status == (0 if kind == "CreateTime" else 1)


def test_replay_into_a_topic_that_was_made_anew(broker: Broker, run: Run, lake: str) -> None:
    """It went on from where the topic of that name had ended before, and counted wrong."""
    from confluent_kafka.admin import AdminClient

    at = broker.bootstrap
    topic, target = client.create(at), client.create(at)
    client.send(at, topic, [Sent(0, None, b"%d" % i, (), BASE_MS) for i in range(30)])
    client.send(at, target, [Sent(0, None, b"before") for _ in range(20)])
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    arguments = ("replay", "-b", at, "--lake", lake, "--to-topic", target)
    assert run(*arguments).status == 0
    admin = AdminClient({"bootstrap.servers": at})
    admin.delete_topics([target])[target].result(30)
    client.create(at, target)
    for sent, there in ((30, 0), (0, 30)):
        done = run(*arguments)
        assert done.status == 0, done.stderr
        summary: Any = done.summary
        assert (summary["sent"], summary["already_there"]) == (sent, there)


def test_hostile_records(broker: Broker, run: Run, lake: str) -> None:
    """Through archive, replay and mirror byte for byte, in the order and at the times they had."""
    at, large = broker.bootstrap, 16 << 20
    forever = str((1 << 63) - 1)
    topic = client.create(
        at, partitions=2, max_message_bytes=large, message_timestamp_after_max_ms=forever
    )
    many = [(f"name {i % 10}", b"%d" % i if i % 3 else None) for i in range(1000)]
    odd = [
        ("", b""),
        ("", None),
        ("é日本\U0001f600", b"\xff\x00"),
        ("a\nb\0c", b"\n"),
        ("kwire", b""),
    ]
    times = (-1, 1, -2, -(1 << 33), BASE_MS, 253_402_300_800_000, 9_000_000_000_000_000)
    records = [
        *(Sent(0, b"k", b"%d" % ms, (), ms) for ms in times),
        Sent(0, None, None, (), BASE_MS),
        Sent(0, b"", b"", (), BASE_MS),
        Sent(0, b"gone", None, many, BASE_MS),
        Sent(0, None, b"", odd, BASE_MS),
        Sent(1, b"\xff" * 100_000, b"x" * (5 << 20), many[:100], BASE_MS),
        Sent(1, b"k" * (5 << 20), None, odd * 50, BASE_MS - 1),
        Sent(1, None, bytes(range(256)) * 20_000, (("large", b"h" * (1 << 20)),), 1),
    ]
    limits = {"message.max.bytes": str(large)}
    client.send(at, topic, records, **limits)
    done = run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    assert done.status == 0, done.stderr
    compacted = run("archive", "--lake", lake, "--maintain-only", "--compact", "--files-min", "2")
    assert compacted.status == 0, compacted.stderr
    sent = run(
        *("replay", "-b", at, "--lake", lake, "--to-topic", f"{topic}-again", "--create"),
        *("--topic-config", f"max.message.bytes={large}"),
    )
    assert sent.status == 0, sent.stderr
    mirrored = run(
        *("mirror", "-b", at, "--to", at, "--alias", "a", "--to-alias", "b", "--once"),
        *("--pattern", topic, "--prefix", "m.", "--state", f"{lake}-state"),
    )
    assert mirrored.status == 0, mirrored.stderr
    source = client.consume(at, topic)
    assert [r.timestamp for r in source[0]][: len(times)] == list(times)
    for copy in (f"{topic}-again", f"m.{topic}"):
        found = client.consume(at, copy)
        for number in (0, 1):
            assert [r.content for r in found[number]] == [r.content for r in source[number]]
    left = ("-b", at, "--left", f"topic:{topic}", "--right")
    for right in (f"archive:{lake}", f"replay:{topic}-again"):
        audited = run("audit", *left, right)
        assert audited.status == 0, audited.summary
    mirror = (f"mirror:m.{topic}", "--rename", f"{topic}=m.{topic}")
    assert run("audit", *left, *mirror).status == 0
    assert run("profile", "-b", at, "--source", f"topic:{topic}").status == 0


@pytest.mark.parametrize("job", ["archive", "mirror", "audit"])
def test_a_time_that_spark_cannot_hold(broker: Broker, run: Run, lake: str, job: str) -> None:
    """It was tried for minutes, and said to be a long overflow."""
    at = broker.bootstrap
    topic = client.create(at, message_timestamp_after_max_ms=(1 << 63) - 1)
    times = (BASE_MS, 1 << 62)
    client.send(at, topic, [Sent(0, None, b"%d" % ms, (), ms) for ms in times])
    arguments = {
        "archive": ("--topics", topic, "--lake", lake, "--once"),
        "mirror": (
            *("--to", at, "--alias", "a", "--to-alias", "b", "--prefix", "m.", "--once"),
            *("--pattern", topic, "--state", lake),
        ),
        "audit": ("--left", f"topic:{topic}", "--right", f"topic:{topic}"),
    }
    done = run(job, "-b", at, *arguments[job], "--quiet")
    assert done.status == 3
    assert done.stderr.count("\n") == 1
    place = f"{topic}-0: the record at offset 1" if job != "audit" else "a record"
    assert f"{place} has a time that Spark cannot hold" in done.stderr
