"""Several at work on one lake at the same time: who archives, who keeps it up, who reads."""

from __future__ import annotations

import argparse
import pathlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kwire.spark import archive, replay
from kwire.spark.archive_source import archive_frame
from kwire.spark.job import Progress, parser_of
from kwire.spark.lake import Archive, offsets_of
from kwire.spark.maintenance import maintain
from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000
DAY_MS = 86_400_000


def options_of(*arguments: str) -> argparse.Namespace:
    options = parser_of(archive.JOB).parse_args(list(arguments))
    archive.JOB.check(options)
    return options


class Batches(Progress):
    """Progress of an archive that others wait for: a round of theirs for each batch."""

    def __init__(self) -> None:
        super().__init__("archive", quiet=True)
        self._changed = threading.Condition()
        self._batches = 0
        self.over = False

    def add(self, records: int, size_bytes: int, lag: int | None = None, what: str = "") -> None:
        super().add(records, size_bytes, lag, what)
        with self._changed:
            self._batches += 1
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self.over = True
            self._changed.notify_all()

    def next(self, seen: int) -> int:
        """Wait for a batch behind the first `seen`, or for the end; how many there are."""
        with self._changed:
            self._changed.wait_for(lambda: self.over or self._batches > seen)
            return self._batches


def test_upkeep_beside_an_archive_and_readers(
    broker: Broker, run: Run, spark: Any, tmp_path: pathlib.Path
) -> None:
    """Small files are joined and old ones go while batches are written and the lake is read."""
    at, place = broker.bootstrap, str(tmp_path / "lake")
    topic = client.create(at, partitions=2)
    days, count = 4, 4000
    client.send(
        at,
        topic,
        [
            Sent(i % 2, b"k", b"%d" % i, (), BASE_MS + i * days * DAY_MS // count)
            for i in range(count)
        ],
    )
    options = options_of(
        *("-b", at, "--topics", topic, "--lake", place, "--batch-records", "500", "--once"),
    )
    batches = Batches()
    writer = archive.Archiver(options, batches, spark)
    writer.open()
    keeping = options_of(
        "--lake",
        place,
        "--maintain-only",
        "--compact",
        "--files-min",
        "2",
        "--keep-replaced",
        "600",
    )
    reading = parser_of(replay.JOB).parse_args(["-b", at, "--lake", place])
    replay.JOB.check(reading)

    def keep_up() -> int:
        done = seen = 0
        # Settings of writes are a session's: a job of its own has one of its own.
        own = spark.newSession()
        while True:
            seen, last = batches.next(seen), batches.over
            done += maintain(own, keeping, Progress("m", quiet=True))["compacted_files"]
            if last:
                return done

    def read() -> int:
        looks = number = 0
        while not batches.over:
            lake = Archive(place, spark, "--lake")
            (table,) = lake.select(None)
            rows = archive_frame(spark, lake, reading).select("partition", "offset")
            archived = sum(offsets_of(table.state).values())
            assert rows.count() == rows.distinct().count() == archived
            looks += 1
            number = batches.next(number)
        return looks

    with ThreadPoolExecutor(2) as threads:
        keeper, reader = threads.submit(keep_up), threads.submit(read)
        try:
            writer.run()
        finally:
            batches.end()
        assert keeper.result() > 0
        assert reader.result() > 0
    sides = ("-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    assert run("audit", *sides).status == 0
    done = run("archive", "--lake", place, "--maintain-only")
    assert done.status == 0, done.stderr
    assert support.table(spark, place, topic).count() == count
