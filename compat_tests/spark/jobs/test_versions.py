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

    def read(as_of: str) -> dict[str, Outcome]:
        asked = ("--as-of", as_of, "--quiet")
        place, other = f"archive:{lake}", f"topic:{topic}"
        target = f"{topic}-{as_of}".replace(":", ".").replace("+", ".")
        replay = ("-b", at, "--lake", lake, "--to-topic", target, "--create")
        return {
            "profile": run("profile", "--source", place, *asked),
            "audit": run("audit", "-b", at, "--left", place, "--right", other, "--common", *asked),
            "replay": run("replay", *replay, *asked),
            "query": run("query", f"SELECT value FROM `{topic}`", "--lake", lake, *asked),
        }

    for as_of in (str(version), moment):
        done = read(as_of)
        assert {name: one.status for name, one in done.items()} == dict.fromkeys(done, 0), done
        found: dict[str, Any] = {name: one.summary for name, one in done.items()}
        assert (
            found["profile"]["records"] == found["replay"]["sent"] == found["query"]["rows"] == 40
        )
        assert found["audit"]["left"]["records"] == 40

    keeping = ("archive", "--lake", lake, "--maintain-only", "--compact", "--files-min", "2")
    assert run(*keeping, "--keep-replaced", "0", "--quiet").status == 0
    gone = f"{table.path}: version {version} is gone: files that it needs were deleted"
    for as_of, status, words in (
        ("999", 2, "999"),
        ("1999-01-01", 2, "1999-01-01"),
        (str(version), 2, gone),
        (moment, 2, gone),
    ):
        for name, one in read(as_of).items():
            assert (one.status, one.stderr.count("\n")) == (status, 1), (name, as_of, one.stderr)
            assert words in one.stderr, (name, one.stderr)
