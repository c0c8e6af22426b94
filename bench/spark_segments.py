"""How fast segment files are read: MB of records for each CPU-second, codec by codec.

    python bench/spark_segments.py [--gb 1] [--master local[1]] [--rounds 3] [--codecs none lz4 ...]

Writes segments of 128 MB with 1 KB records (half of each compressible, batches of 100 records, four
partitions) and reads them from the page cache: `alone`, in this process to Arrow batches, and
`spark`, `spark.read.format("kwire-segments").load(...)` with all columns to the noop sink. CPU is
user and system time of driver, JVM and Python workers while a read runs, after one read that starts
the workers and warms the JVM; MB are those of the records, before compression. Prints the median.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kwire.protocol.records import Codec, Record, build_batch, stamp  # noqa: E402
from kwire.spark.segment_plan import Selection, plan  # noqa: E402
from kwire.spark.segment_reading import COMPILED, read_segment  # noqa: E402
from kwire.spark.segment_source import COLUMNS  # noqa: E402
from kwire.spark.stores import open_store  # noqa: E402

RECORD_BYTES = 1000
BATCH_RECORDS = 100
SEGMENT_BYTES = 128 << 20
PARTITIONS = 4


def write(folder: pathlib.Path, codec: Codec, size_bytes: int) -> int:
    """Segments in partition folders of `bench`; how many bytes of records they hold."""
    rng = random.Random(1)
    bodies = [rng.randbytes(RECORD_BYTES // 2) + b"x" * (RECORD_BYTES // 2) for _ in range(1000)]
    batches = []
    for start in range(0, 1000, BATCH_RECORDS):
        records = [
            Record(number, 1_760_000_000_000, b"key-%d" % number, body, [])
            for number, body in enumerate(bodies[start : start + BATCH_RECORDS])
        ]
        batches.append(build_batch(records, codec=codec))
    per_batch = sum(len(b"key-%d" % n) + RECORD_BYTES for n in range(BATCH_RECORDS))
    count = max(1, size_bytes // per_batch // PARTITIONS)
    for partition in range(PARTITIONS):
        inner = folder / f"bench-{partition}"
        inner.mkdir(parents=True)
        number = 0
        while number < count:
            with open(inner / f"{number * BATCH_RECORDS:020d}.log", "wb") as file:
                while number < count and file.tell() < SEGMENT_BYTES:
                    batch = bytearray(batches[number % len(batches)])
                    stamp(batch, 0, number * BATCH_RECORDS, 0)
                    file.write(batch)
                    number += 1
    return count * PARTITIONS * per_batch


def tree_cpu_s() -> float:
    """CPU-seconds of this process and all below it that are still there (Linux)."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(path.parent.name)
        parents[process] = int(fields[1])
        # With what its children used that have ended.
        used[process] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while grown := {process for process, parent in parents.items() if parent in own} - own:
        own |= grown
    return sum(used[process] for process in own) / os.sysconf("SC_CLK_TCK")


def read_alone(location: str) -> int:
    """Read everything to Arrow; the records."""
    store, path = open_store(location)
    return sum(
        batch.num_rows
        for task in plan(store, path, location, Selection())
        for batch in read_segment(task, COLUMNS)
    )


def read_in_spark(spark: object, location: str) -> None:
    """Read everything through the data source."""
    frame = spark.read.format("kwire-segments").load(location)  # type: ignore[attr-defined]
    frame.write.format("noop").mode("overwrite").save()


def main() -> int:
    parser = argparse.ArgumentParser(description="MB of records a CPU-second from segment files.")
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--master", default="local[1]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codecs", nargs="+", default=[codec.name.lower() for codec in Codec])
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    from kwire.spark.segment_source import register
    from kwire.spark.session import open_session

    spark = open_session(
        argparse.Namespace(master=options.master, jars="", spark_conf=[]),
        "segments",
        needs_kafka=False,
    )
    register(spark)
    print(f"compiled kernel: {COMPILED}", flush=True)
    for name in options.codecs:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kwire-segments-", dir=options.folder))
        try:
            size_bytes = write(folder, Codec[name.upper()], int(options.gb * 1e9))
            files = list(folder.rglob("*.log"))
            on_disk = sum(path.stat().st_size for path in files)
            found: dict[str, list[float]] = {"alone": [], "spark": []}
            read_in_spark(spark, str(folder))
            for _ in range(options.rounds):
                started_s = time.process_time()
                read_alone(str(folder))
                found["alone"].append(size_bytes / 1e6 / (time.process_time() - started_s))
                before_s = tree_cpu_s()
                read_in_spark(spark, str(folder))
                found["spark"].append(size_bytes / 1e6 / (tree_cpu_s() - before_s))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        row = {key: round(statistics.median(values)) for key, values in found.items()}
        row |= {"segments": len(files)}
        print(
            json.dumps({"codec": name, "ratio": round(size_bytes / on_disk, 2), **row}), flush=True
        )
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
