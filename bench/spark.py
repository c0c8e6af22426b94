"""What the Spark jobs cost: seconds and CPU-seconds per GB at growing sizes (docs/SPARK.md).

    python bench/spark.py [--gb 1 4] [--jars FOLDER] [--master local[2]] [--folder DIR] [--out FILE]

Fills a topic of four partitions with 1 KB records (half of each compressible) on a kwire broker,
then archives, audits, replays, mirrors and profiles it, and reads the segment files. CPU is that of
the job's whole process tree (driver, JVM, Python workers), not of the broker.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.broker import BrokerProcess  # noqa: E402

RECORD_BYTES = 1000
PARTITIONS = 4
TOPIC = "bench"


def fill(bootstrap: str, size_bytes: int) -> None:
    """Produce `size_bytes` of records."""
    from confluent_kafka import Producer

    from kwire.spark.cluster import Cluster

    Cluster(bootstrap).create_topic(TOPIC, PARTITIONS, {"retention.ms": "-1"})
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "queue.buffering.max.kbytes": 256 << 10,
            "log_level": 0,
        }
    )
    rng = random.Random(1)
    bodies = [rng.randbytes(RECORD_BYTES // 2) + b"x" * (RECORD_BYTES // 2) for _ in range(1000)]
    for number in range(size_bytes // RECORD_BYTES):
        while True:
            try:
                producer.produce(
                    TOPIC, bodies[number % 1000], b"key-%d" % (number % 5000), number % PARTITIONS
                )
                break
            except BufferError:
                producer.poll(1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0


def timed(command: list[str]) -> tuple[float, float]:
    """(seconds, CPU-seconds of all processes of its session) of a command; raises when it fails.

    The JVM and the workers are not waited for by the driver: their times are read from /proc while
    they run (Linux), so that what they use in their last half second is missing.
    """
    started_s = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    used_s: dict[str, float] = {}
    while process.poll() is None:
        used_s |= cpu_of_session(process.pid)
        time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[3:])}: status {process.returncode}")
    return time.monotonic() - started_s, sum(used_s.values())


def cpu_of_session(session: int) -> dict[str, float]:
    """{pid: CPU-seconds} of the processes of a session."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found[path.parent.name] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def measure(gb: float, options: argparse.Namespace) -> list[dict[str, object]]:
    """A row for each job at this size."""
    size_bytes = int(gb * 1e9)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kwire-bench-", dir=options.folder))
    rows: list[dict[str, object]] = []
    west = BrokerProcess(data_dir=folder / "west")
    broker = BrokerProcess(data_dir=folder / "data")
    try:
        broker.start()
        at = ("-b", broker.bootstrap)
        started_s = time.monotonic()
        fill(broker.bootstrap, size_bytes)
        print(f"{gb} GB in the topic after {time.monotonic() - started_s:.0f} s", flush=True)
        lake = str(folder / "lake")
        west.start()
        jobs: dict[str, tuple[str, ...]] = {
            "archive": ("archive", *at, "--topics", TOPIC, "--lake", lake, "--once"),
            "audit": ("audit", *at, "--left", f"topic:{TOPIC}", "--right", f"archive:{lake}"),
            "profile": ("profile", "--source", f"archive:{lake}"),
            "segments": ("profile", "--source", f"segments:{folder / 'data'}", "--sample-mb", "0"),
            "replay": ("replay", "-b", west.bootstrap, "--lake", lake, "--create"),
            "mirror": (
                *("mirror", *at, "--to", west.bootstrap, "--alias", "a", "--to-alias", "b"),
                *("--pattern", TOPIC, "--prefix", "copy-", "--once"),
                *("--state", str(folder / "state")),
            ),
        }
        for name, arguments in jobs.items():
            if options.jobs and name not in options.jobs:
                continue
            line = [sys.executable, "-m", "kwire", "spark", *arguments, "--quiet"]
            line += ["--master", options.master]
            if options.jars:
                line += ["--jars", options.jars]
            seconds, cpu_s = timed(line)
            row = {
                "job": name,
                "gb": gb,
                "seconds": round(seconds, 1),
                "cpu_s": round(cpu_s, 1),
                "seconds_per_gb": round(seconds / gb, 1),
                "cpu_s_per_gb": round(cpu_s / gb, 1),
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
    finally:
        broker.close()
        west.close()
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Cost of the Spark jobs.")
    parser.add_argument("--gb", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--jobs", nargs="*", default=[])
    parser.add_argument("--jars", default=os.environ.get("KWIRE_SPARK_JARS", ""))
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", default=None, help="for the data; default: the temporary one")
    parser.add_argument("--out", help="write the rows as JSON lines here")
    options = parser.parse_args()
    rows = [row for gb in options.gb for row in measure(gb, options)]
    if options.out:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        pathlib.Path(options.out).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
