"""Archives as they were: at a version, at a time, and versions that are gone or never were."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from kwire.spark.delta import DeltaTable
from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000


def test_every_reader_takes_an_older_version_or_says_why_not(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=2)
    sent = [Sent(i % 2, b"k", b"%d" % i, (), BASE_MS + i) for i in range(60)]
    archive = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", "--quiet")
    client.send(at, topic, sent[:40])
    assert run(*archive).status == 0
    table = DeltaTable(spark, f"{lake}/topic.{topic}")
    version = table.snapshot().version()
    client.send(at, topic, sent[40:])
    assert run(*archive).status == 0
    moment_ms = table.timestamp_ms(version)
    moment = datetime.datetime.fromtimestamp(moment_ms / 1000, datetime.UTC).isoformat()

    def read(name: str, as_of: str) -> Outcome:
        place, quiet = f"archive:{lake}", ("--as-of", as_of, "--quiet")
        arguments = {
            "profile": ("--source", place),
            "audit": ("-b", at, "--left", place, "--right", f"topic:{topic}", "--common"),
            "replay": ("-b", at, "--lake", lake, "--to-topic", f"{topic}-again", "--create"),
            "query": (f"SELECT value FROM `{topic}`", "--lake", lake),
        }
        return run(name, *arguments[name], *quiet)

    def count(name: str, as_of: str) -> int:
        done = read(name, as_of)
        assert done.status == 0, (name, as_of, done.stderr)
        found: Any = done.summary
        if name == "audit":
            found = found["left"]
        return int(found[{"replay": "sent", "query": "rows"}.get(name, "records")])

    names = ("profile", "audit", "replay", "query")
    assert [count(name, str(version)) for name in names] == [40] * 4
    assert [count(name, moment) for name in ("profile", "query")] == [40] * 2

    keeping = ("archive", "--lake", lake, "--maintain-only", "--compact", "--files-min", "2")
    assert run(*keeping, "--keep-replaced", "0", "--quiet").status == 0
    gone = f"{table.path}: version {version} is gone: files that it needs were deleted"
    for name, as_of, words in (
        ("profile", "999", "999"),
        ("replay", "999", "999"),
        ("profile", "1999-06-15T12:00", "1999-06-1"),
        ("profile", str(version), gone),
        ("profile", moment, gone),
        ("replay", str(version), gone),
    ):
        done = read(name, as_of)
        assert (done.status, done.stderr.count("\n")) == (2, 1), (name, as_of, done.stderr)
        assert words in done.stderr, (name, as_of, done.stderr)
