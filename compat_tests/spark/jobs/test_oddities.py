"""Jobs on what people do not think of: odd paths, large records, internal and empty topics."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

from tests.support import kafka_client as client
from tests.support.broker import BrokerProcess
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000


def test_a_lake_in_a_folder_with_any_name(
    broker: BrokerProcess, run: Run, tmp_path: pathlib.Path
) -> None:
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


def test_an_internal_topic(broker: BrokerProcess, run: Run, lake: str) -> None:
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
