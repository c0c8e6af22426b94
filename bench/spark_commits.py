"""What small batches of an archive cost: CPU-seconds, seconds, Spark jobs (docs/adr/0048).

    python bench/spark_commits.py [--batches 8] [--records 100] [--partitions 2] [--jars FOLDER]

One topic and one session, at compiler level 1: batch for batch what the JVM used, and how many
jobs of Spark it ran. The first has the start of everything in it, so that the mean is that of the
second half. With `--partitions 100 --records 1500` it is many small partitions.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.spark import cpu_of  # noqa: E402
from kwire.spark import archive  # noqa: E402
from kwire.spark.job import Progress, parser_of  # noqa: E402
from kwire.spark.session import open_session  # noqa: E402
from kwire.testing.cluster import Broker  # noqa: E402

TOPIC = "bench"
JAVA = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"


def fill(bootstrap: str, partitions: int, records: int) -> None:
    """A topic with records in turn for each partition."""
    from confluent_kafka import Producer

    from kwire.spark.cluster import Cluster

    Cluster(bootstrap).create_topic(TOPIC, partitions, {"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(records):
        producer.produce(TOPIC, b"%d" % number, b"key", number % partitions)
        producer.poll(0)
    assert producer.flush(300) == 0


def jobs_of(spark: Any) -> int:
    """The number of the newest job that Spark has begun."""
    context = spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    return -1 if jobs.isEmpty() else int(jobs.apply(0).jobId())


def measure(options: argparse.Namespace, bootstrap: str, lake: str) -> None:
    """Archive batch by batch and print what each cost."""
    arguments = ["-b", bootstrap, "--topics", TOPIC, "--lake", lake, "--spark-conf", JAVA]
    arguments += ["--batch-records", str(options.records), "--master", options.master]
    if options.jars:
        arguments += ["--jars", options.jars]
    job = parser_of(archive.JOB).parse_args(arguments)
    archive.JOB.check(job)
    spark = open_session(job, "bench", needs_kafka=True, needs_delta=True)
    jvm = spark.sparkContext._gateway.proc.pid
    one = archive.Archiver(job, Progress("archive", quiet=True), spark)
    one.open()
    found, lag = [], 1
    while lag:
        cpu_s, jobs, began_s = cpu_of(jvm), jobs_of(spark), time.monotonic()
        lag = one.batch()
        seconds = round(time.monotonic() - began_s, 2)
        found.append((round(cpu_of(jvm) - cpu_s, 2), seconds, jobs_of(spark) - jobs))
    half = found[len(found) // 2 :]
    means = (sum(batch[n] for batch in half) / len(half) for n in (0, 1))
    print("CPU-seconds, seconds and jobs a batch:", *found)
    print("mean of the second half: {:.2f} CPU-seconds, {:.2f} seconds".format(*means))
    spark.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description="Cost of small batches of an archive.")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--records", type=int, default=100, help="a batch")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--jars", default=os.environ.get("KWIRE_SPARK_JARS", ""))
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kwire-bench-")
    try:
        with Broker() as broker:
            fill(broker.bootstrap, options.partitions, options.batches * options.records)
            measure(options, broker.bootstrap, f"{folder}/lake")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
