"""What the Spark jobs cost: seconds and CPU-seconds per GB at growing sizes (docs/SPARK.md).

    python bench/spark.py [--gb 1 4 16] [--jars FOLDER] [--master local[2]] [--folder DIR]
                          [--out FILE] [--jobs archive ...] [--rounds N]

A topic of four partitions on a kwire broker is filled with 1 KB records (half of each compressible)
up to the first size, the jobs run, then up to the next. Every figure is printed and appended to
`--out` (JSON lines) at once; what is in that file already is not measured again, and with
`--folder` the topic is there again, so that a bench that was cut off goes on.

CPU is that of the job's whole process tree (driver, JVM, Python workers) to its end, and beside it
that of the broker or brokers. `segments` reads a data directory from the page cache to nowhere;
it and `archive` are what everything else is made of. `plain` is what Spark itself does between the
two: `format("kafka")` to Parquet files, compressed as the archive's, with all columns and headers,
compiled as Java does by default; `alike` is the same with the JVM options that the jobs have.
`--rounds` alternate, so that what else a machine does meets all jobs.
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
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kwire.testing.cluster import Broker  # noqa: E402

RECORD_BYTES = 1000
PARTITIONS = 4
TOPIC = "bench"
PR_SET_CHILD_SUBREAPER = 36
SPARKS_OWN = ["spark.driver.extraJavaOptions=-XX:+IgnoreUnrecognizedVMOptions"]


def fill(bootstrap: str, size_bytes: int) -> int:
    """Produce records until the topic holds `size_bytes` of them; how many were sent."""
    from confluent_kafka import Producer

    from kwire.spark.cluster import LATEST, Cluster

    cluster = Cluster(bootstrap)
    cluster.create_topic(TOPIC, PARTITIONS, {"retention.ms": "-1"})
    places = [(TOPIC, number) for number in range(PARTITIONS)]
    there = sum(cluster.offsets(places, LATEST).values())
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
    for number in range(there, size_bytes // RECORD_BYTES):
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
    return max(0, size_bytes // RECORD_BYTES - there)


def run_to_the_end(command: list[str]) -> int:
    """Run a command and wait for all that it leaves behind; prints seconds, CPU-seconds and the
    most memory that one of its processes had (the JVM).

    The JVM is not waited for by the driver, nor the workers by the JVM. A process that is its
    descendants' reaper (Linux) gets every one of them, with what it used.
    """
    import ctypes
    import resource

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started_s = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    status = process.wait()
    seconds = time.monotonic() - started_s
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s, rss_mb = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
    print(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "rss_mb": rss_mb}))
    return status


def timed(command: list[str]) -> tuple[float, float, int]:
    """(seconds, CPU-seconds of the whole process tree, MB of its largest process) of a command;
    raises when it fails."""
    done = subprocess.run(
        [sys.executable, __file__, "--run", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    figures = json.loads(done.stdout.splitlines()[-1])
    return figures["seconds"], figures["cpu_s"], figures["rss_mb"]


def cpu_of(process: int) -> float:
    """CPU-seconds that a process has used so far (Linux)."""
    text = pathlib.Path(f"/proc/{process}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_segments(folder: str, master: str) -> int:
    """Read segment files to nowhere: all columns, through Spark."""
    from kwire.spark.segment_source import NAME, register
    from kwire.spark.session import open_session

    options = argparse.Namespace(master=master, jars="", spark_conf=[])
    spark = open_session(options, "segments", needs_kafka=False)
    register(spark)
    frame = spark.read.format(NAME).option("topic", TOPIC).load(folder)
    frame.write.format("noop").mode("overwrite").save()
    spark.stop()
    return 0


def write_plain(bootstrap: str, folder: str, master: str, jars: str, alike: bool) -> int:
    """A topic to Parquet files by Spark alone; `alike`: with the settings of the jobs."""
    from kwire.spark.session import open_session

    own = [] if alike else SPARKS_OWN
    options = argparse.Namespace(master=master, jars=jars, spark_conf=own)
    spark = open_session(options, "plain", needs_kafka=True)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", TOPIC).option("includeHeaders", "true").load()
    frame.write.option("compression", "zstd").mode("overwrite").parquet(folder)
    spark.stop()
    return 0


class Bench:
    """The jobs at one size after the other, on the same growing topic."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = pathlib.Path(
            options.folder or tempfile.mkdtemp(prefix="kwire-bench-")
        ).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.broker = Broker(data_dir=self.folder / "data")
        self.known: set[tuple[str, float]] = set()
        if options.out and pathlib.Path(options.out).exists():
            rows = map(json.loads, pathlib.Path(options.out).read_text().splitlines())
            self.known = {(row["job"], row["gb"]) for row in rows}

    def run(self) -> None:
        try:
            self.broker.start()
            for gb in self.options.gb:
                self.measure(gb)
        finally:
            self.broker.close()
            if not self.options.keep:
                shutil.rmtree(self.folder, ignore_errors=True)

    def measure(self, gb: float) -> None:
        """All jobs at this size."""
        jobs: dict[str, Callable[[], tuple[list[str], list[Broker]]]] = {
            "archive": self.archive,
            "plain": self.plain,
            "alike": self.alike,
            "segments": self.segments,
            "audit": self.audit,
            "replay": self.replay,
            "profile": self.profile,
            "mirror": self.mirror,
        }
        wanted = [
            name
            for name in jobs
            if (not self.options.jobs or name in self.options.jobs) and (name, gb) not in self.known
        ]
        if not wanted:
            return
        started_s, before_s = time.monotonic(), cpu_of(self.broker.pid)
        sent = fill(self.broker.bootstrap, int(gb * 1e9))
        if sent:
            print(
                f"{sent:,} records sent in {time.monotonic() - started_s:.0f} s, "
                f"{cpu_of(self.broker.pid) - before_s:.1f} CPU-s of the broker",
                flush=True,
            )
        # What reads the lake needs it, also where archive itself is not asked for again.
        for name in list(jobs) * self.options.rounds:
            if name in wanted or (name == "archive" and not self.lake.exists()):
                self.measure_job(name, gb, jobs[name])
        shutil.rmtree(self.lake, ignore_errors=True)

    def measure_job(
        self, name: str, gb: float, prepare: Callable[[], tuple[list[str], list[Broker]]]
    ) -> None:
        command, brokers = prepare()
        try:
            before_s = sum(cpu_of(broker.pid) for broker in brokers)
            seconds, cpu_s, rss_mb = timed(command)
            broker_s = sum(cpu_of(broker.pid) for broker in brokers) - before_s
        finally:
            for broker in brokers:
                if broker is not self.broker:
                    broker.close()
                    shutil.rmtree(self.folder / "west", ignore_errors=True)
        row = {
            "job": name,
            "gb": gb,
            "seconds": round(seconds, 1),
            "cpu_s": round(cpu_s, 1),
            "broker_cpu_s": round(broker_s, 1),
            "rss_mb": rss_mb,
            "cpu_s_per_gb": round(cpu_s / gb, 1),
        }
        print(json.dumps(row), flush=True)
        if self.options.out:
            with open(self.options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    # -- what each job runs, and the brokers that take part --------------------------------------

    @property
    def lake(self) -> pathlib.Path:
        return self.folder / "lake"

    @property
    def at(self) -> tuple[str, str]:
        return ("-b", self.broker.bootstrap)

    def job(self, name: str, *arguments: str) -> list[str]:
        line = [sys.executable, "-m", "kwire", "spark", name, *arguments, "--quiet"]
        line += ["--master", self.options.master]
        return line + (["--jars", self.options.jars] if self.options.jars else [])

    def west(self) -> Broker:
        shutil.rmtree(self.folder / "west", ignore_errors=True)
        return Broker(data_dir=self.folder / "west").start()

    def archive(self) -> tuple[list[str], list[Broker]]:
        shutil.rmtree(self.lake, ignore_errors=True)
        arguments = ("--topics", TOPIC, "--lake", str(self.lake), "--once")
        return self.job("archive", *self.at, *arguments), [self.broker]

    def plain(self) -> tuple[list[str], list[Broker]]:
        line = [sys.executable, __file__, "--plain", self.broker.bootstrap]
        line += ["--read", str(self.folder / "plain"), "--master", self.options.master]
        return line + ["--jars", self.options.jars], [self.broker]

    def alike(self) -> tuple[list[str], list[Broker]]:
        line, brokers = self.plain()
        return [*line, "--alike"], brokers

    def segments(self) -> tuple[list[str], list[Broker]]:
        data = str(self.folder / "data")
        return [sys.executable, __file__, "--read", data, "--master", self.options.master], []

    def audit(self) -> tuple[list[str], list[Broker]]:
        sides = ("--left", f"topic:{TOPIC}", "--right", f"archive:{self.lake}")
        return self.job("audit", *self.at, *sides), [self.broker]

    def replay(self) -> tuple[list[str], list[Broker]]:
        west = self.west()
        arguments = ("-b", west.bootstrap, "--lake", str(self.lake), "--create")
        return self.job("replay", *arguments), [west]

    def profile(self) -> tuple[list[str], list[Broker]]:
        return self.job("profile", "--source", f"archive:{self.lake}"), []

    def mirror(self) -> tuple[list[str], list[Broker]]:
        west = self.west()
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        arguments = (
            *(*self.at, "--to", west.bootstrap, "--alias", "a", "--to-alias", "b"),
            *("--pattern", TOPIC, "--once", "--state", str(self.folder / "state")),
        )
        return self.job("mirror", *arguments), [self.broker, west]


def main() -> int:
    if sys.argv[1:2] == ["--run"]:
        return run_to_the_end(sys.argv[2:])
    parser = argparse.ArgumentParser(description="Cost of the Spark jobs.")
    parser.add_argument("--gb", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--jobs", nargs="*", default=[])
    parser.add_argument("--jars", default=os.environ.get("KWIRE_SPARK_JARS", ""))
    parser.add_argument("--rounds", type=int, default=1, help="of all jobs at each size")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", default=None, help="for the data; default: the temporary one")
    parser.add_argument("--keep", action="store_true", help="leave the folder as it is at the end")
    parser.add_argument("--out", help="append the rows as JSON lines here")
    parser.add_argument("--read", metavar="DIR", help="only read these segment files")
    parser.add_argument("--plain", metavar="HOST:PORT", help="only write the topic there")
    parser.add_argument("--alike", action="store_true", help="with the settings of the jobs")
    options = parser.parse_args()
    if options.plain:
        return write_plain(options.plain, options.read, options.master, options.jars, options.alike)
    if options.read:
        return read_segments(options.read, options.master)
    Bench(options).run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
