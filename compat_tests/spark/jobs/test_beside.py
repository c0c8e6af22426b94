"""Several at work on one lake at the same time: who archives, who keeps it up, who reads."""

from __future__ import annotations

import argparse
import pathlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kwire.spark import archive, lake
from kwire.spark.archive_source import load_archive
from kwire.spark.job import Progress, parser_of
from kwire.spark.lake_files import LocalLakeFiles
from kwire.spark.lake_log import LakeLog
from kwire.spark.maintenance import maintain
from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000
DAY_MS = 86_400_000


def options_of(*arguments: str) -> argparse.Namespace:
    options = parser_of(archive.JOB).parse_args(list(arguments))
    archive.JOB.check(options)
    return options


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
        *("-b", at, "--topics", topic, "--lake", place, "--batch-records", "200", "--once"),
    )
    writer = archive.Archiver(options, Progress("archive", quiet=True), spark)
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
    over = threading.Event()

    def keep_up() -> int:
        done = 0
        log = LakeLog(LocalLakeFiles(place), "maintenance", "one")
        log.open(1)
        while True:
            last = over.is_set()
            lake.remove_orphans(log)
            done += maintain(spark, log, keeping, Progress("m", quiet=True))["compacted_files"]
            if last:
                return done

    def read() -> int:
        looks = 0
        while not over.is_set():
            log = load_archive(place)
            files = log.state.select()
            rows = lake.read_files(spark, place, files).select("partition", "offset")
            assert rows.count() == rows.distinct().count() == sum(f.records for f in files)
            looks += 1
        return looks

    with ThreadPoolExecutor(2) as threads:
        keeper, reader = threads.submit(keep_up), threads.submit(read)
        try:
            writer.run()
        finally:
            over.set()
        assert keeper.result() > 0
        assert reader.result() > 0
    sides = ("-b", at, "--left", f"topic:{topic}", "--right", f"archive:{place}")
    assert run("audit", *sides).status == 0
    done = run("archive", "--lake", place, "--maintain-only")
    assert done.status == 0, done.stderr
    assert spark.read.parquet(place).count() == count
