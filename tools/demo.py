"""`make demo`: a click stream through kwire and Spark, with a broker that is killed on the way.

    1. serve a broker                     4. audit the archive against the topic
    2. generate clicks of a shop          5. replay it into a new topic, audit that too
    3. archive them; the broker is        6. profile the topic
       killed (-9) in the middle

Ends with the reports in `build/demo`. Exits with the first step's status that is not 0.

    python tools/demo.py [--records N] [--out FOLDER] [--jars FOLDER] [--master local[2]]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import random
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
READY = "kwire ready on "
READY_TIMEOUT_S = 60.0
PARTITIONS = 4
TOPIC = "clicks"
AGAIN = "clicks-again"
GROUP = "recommendations"
PAGES = ("home", "search", "product", "cart", "checkout", "thanks")
AGENTS = ("Firefox 128", "Chrome 141", "Safari 18", "shop-app 7.2")


class Broker:
    """A kwire broker process that can be killed and started again at the same place."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.address = "127.0.0.1:0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        with (self.folder.parent / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kwire", "serve", "--listen", self.address),
                    *("--data-dir", str(self.folder), "-o", "log.segment.bytes=16777216"),
                ],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], READY_TIMEOUT_S)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith(READY):
            raise SystemExit(f"demo: the broker did not start; see {self.folder.parent}/broker.log")
        self.address = line.removeprefix(READY).strip()

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """In order."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


def clicks(count: int, seed: int = 1) -> Iterator[tuple[int, str, dict[str, object]]]:
    """(timestamp ms, user, event) of sessions in the last three hours; some users are busy."""
    rng = random.Random(seed)
    moment = int(time.time() * 1000) - 3 * 3_600_000
    step_ms = 3 * 3_600_000 / count
    active: list[tuple[str, str, int]] = []
    for number in range(count):
        if len(active) < 200 or rng.random() < 0.2:
            user = f"user-{min(int(rng.paretovariate(0.9)), 50_000)}"
            active.append((user, f"{rng.getrandbits(64):016x}", 0))
        at = rng.randrange(len(active))
        user, session, page = active[at]
        event = {
            "event": number,
            "session": session,
            "page": PAGES[page],
            "item": rng.randrange(20_000) if PAGES[page] in ("product", "cart") else None,
            "agent": rng.choice(AGENTS),
            "ms": rng.randrange(20, 3000),
            "query": " ".join(rng.choices(("red", "blue", "shoe", "lamp", "desk", "sale"), k=3)),
        }
        yield int(moment + number * step_ms), user, event
        if page + 1 == len(PAGES) or rng.random() < 0.15:
            active.pop(at)
        else:
            active[at] = (user, session, page + 1)


def generate(address: str, count: int) -> None:
    """Produce the clicks; a group that reads along, slower and slower, commits on the way."""
    from confluent_kafka import Producer

    from kwire.spark.cluster import LATEST, Cluster

    cluster = Cluster(address)
    cluster.create_topic(TOPIC, PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 20,
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
            "log_level": 0,
        }
    )
    places = [(TOPIC, number) for number in range(PARTITIONS)]
    for number, (timestamp_ms, user, event) in enumerate(clicks(count)):
        value = json.dumps(event).encode()
        while True:
            try:
                producer.produce(
                    TOPIC,
                    value,
                    user,
                    timestamp=timestamp_ms,
                    headers=[("source", b"web")] if number % 3 else None,
                )
                break
            except BufferError:
                producer.poll(1)
        producer.poll(0)
        if number % (count // 10) == count // 10 - 1:
            producer.flush(60)
            ends = cluster.offsets(places, LATEST)
            part = 1 - number / count / 2
            cluster.set_group_offsets(GROUP, {key: int(end * part) for key, end in ends.items()})
    if producer.flush(120):
        raise SystemExit("demo: not all clicks were delivered")


def job(options: argparse.Namespace, name: str, *arguments: str) -> list[str]:
    """The command line of a job."""
    line = [sys.executable, "-m", "kwire", "spark", name, *arguments, "--master", options.master]
    if options.jars:
        line += ["--jars", options.jars]
    return line


def step(title: str, command: list[str]) -> None:
    """Run a job; its summary is printed, a failure ends the demo."""
    print(f"\n== {title}\n   kwire {' '.join(command[3:])}", flush=True)
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status:
        raise SystemExit(status)


def archive_with_a_kill(options: argparse.Namespace, broker: Broker, lake: pathlib.Path) -> None:
    """Archive; once some batches are committed the broker is killed and started again."""
    command = job(
        options,
        *("archive", "-b", broker.address, "--topics", TOPIC, "--lake", str(lake), "--once"),
        *("--batch-records", str(max(1000, options.records // 5)), "--decode", "json", "--compact"),
    )
    print(f"\n== Archive, with the broker killed in the middle\n   kwire {' '.join(command[3:])}")
    process = subprocess.Popen(command, cwd=ROOT)
    commits = lake / f"topic.{TOPIC}" / "_delta_log"
    while process.poll() is None:
        if commits.exists() and len(list(commits.glob("*.json"))) >= 3:
            print("   kill -9 of the broker, and a new start", flush=True)
            broker.kill()
            broker.start()
            break
        time.sleep(0.1)
    if status := process.wait():
        raise SystemExit(status)


def main() -> int:
    parser = argparse.ArgumentParser(description="A click stream through kwire and Spark.")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--out", default=str(ROOT / "build" / "demo"))
    parser.add_argument("--jars", default=os.environ.get("KWIRE_SPARK_JARS", ""))
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    lake = out / "lake"
    broker = Broker(out / "data")
    started_s = time.monotonic()
    broker.start()
    try:
        print(f"== {options.records:,} clicks into {broker.address}", flush=True)
        generate(broker.address, options.records)
        archive_with_a_kill(options, broker, lake)
        at = ("-b", broker.address)
        step(
            "Audit: is the archive what the topic is?",
            job(
                options,
                *("audit", *at, "--left", f"topic:{TOPIC}", "--right", f"archive:{lake}"),
                *("--report", str(out / "audit-archive.html")),
            ),
        )
        if all(importlib.util.find_spec(name) for name in ("deltalake", "duckdb")):
            reader = ROOT / "examples" / "lake" / "read_with_duckdb.py"
            print(f"\n== The archive read by DuckDB\n   {reader.relative_to(ROOT)}", flush=True)
            subprocess.run([sys.executable, reader, lake, TOPIC], cwd=ROOT, check=True)
        step(
            "Replay the archive into a new topic",
            job(
                options,
                *("replay", *at, "--lake", str(lake), "--to-topic", AGAIN, "--create"),
            ),
        )
        step(
            "Audit: is the new topic what the archive is?",
            job(
                options,
                *("audit", *at, "--left", f"archive:{lake}", "--right", f"replay:{AGAIN}"),
                *("--report", str(out / "audit-replay.html")),
            ),
        )
        step(
            "Profile the topic",
            job(
                options,
                *("profile", *at, "--source", f"topic:{TOPIC}", "--lag"),
                *("--report", str(out / "profile.html")),
            ),
        )
    finally:
        broker.stop()
    print(f"\nDone in {time.monotonic() - started_s:.0f} s. Reports:")
    for path in sorted(out.glob("*.html")):
        print(f"  {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
