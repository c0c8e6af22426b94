"""What the log engine costs a running broker, and how fast it is; measured in turns.

    python -m bench.storage [--rounds 3] [--requests 60000] [--only durable ...]

durable  Requests of one record over 100 connections: a topic with `flush.messages=1` beside one
         without, of one partition and of 12.
beside   The p99 of 1,000 messages a second, alone and while the cleaner goes over another topic.
start    10,000 partitions with one small segment each after a clean stop, through `kwire serve`.
verify   `kwire log verify` of a log of 1 KB records, and a process that waits for the
         interpreter's lock beside the cleaner.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from bench.build import build
from bench.cleaner import fill
from bench.frames import one_record_request
from bench.partitions import cpu_seconds, measure
from bench.side_by_side import run
from kwire.log.compaction.job import CleaningJob
from kwire.log.compaction.plan import candidate, make_plan
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.tools import verification
from kwire.protocol.records import Codec

ROOT = pathlib.Path(__file__).resolve().parents[1]
CONNECTIONS = 100
RECORD_BYTES = 100
PARTS = ["durable", "beside", "start", "verify"]


class Serving:
    """kwire with an impatient cleaner on a directory that is removed at the end."""

    def __init__(self, *options: str) -> None:
        self.directory = tempfile.mkdtemp(prefix="bench-storage-")
        self.log = pathlib.Path(self.directory + ".log")
        command = [sys.executable, "-m", "kwire", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data-dir", self.directory, *options]
        with self.log.open("wb") as stderr:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline().decode()
        self.port = int(ready.rsplit(":", 1)[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """User and system time of the process so far."""
        return cpu_seconds(self._process.pid)

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        named = {name.replace("_", "."): value for name, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.address})
        for done in admin.create_topics([NewTopic(topic, partitions, 1, config=named)]).values():
            done.result(30)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(self.directory)
        self.log.unlink()


def durable(
    tools: pathlib.Path, rounds: int, requests: int, partitions: int = 1
) -> dict[str, float]:
    """Requests a second of either topic, the ratio, and the broker's processor time of one."""
    broker = Serving()
    rates: dict[str, list[float]] = {"plain": [], "flushed": []}
    costs: dict[str, list[float]] = {"plain": [], "flushed": []}
    try:
        broker.create("plain", partitions)
        broker.create("flushed", partitions, flush_messages="1")
        frames = {
            topic: [
                one_record_request(
                    pathlib.Path(broker.directory) / f"frame-{topic}-{at}",
                    topic,
                    1,
                    RECORD_BYTES,
                    at,
                )
                for at in range(partitions)
            ]
            for topic in rates
        }
        for round_ in range(rounds + 1):
            for topic in sorted(rates, reverse=round_ % 2 == 0):
                before = broker.cpu_s()
                figures = run(
                    tools / "blast",
                    "produce",
                    broker.port,
                    CONNECTIONS,
                    1,
                    requests,
                    *frames[topic],
                )
                if figures["err"]:
                    raise SystemExit(f"bench: {figures['err']} requests were refused")
                if round_:
                    rates[topic].append(figures["reqps"])
                    costs[topic].append((broker.cpu_s() - before) / requests * 1e6)
    finally:
        broker.stop()
    ratios = [b / a for a, b in zip(rates["plain"], rates["flushed"], strict=True)]
    return {
        f"{partitions}p plain requests/s": statistics.median(rates["plain"]),
        f"{partitions}p flush.messages=1 requests/s": statistics.median(rates["flushed"]),
        f"{partitions}p ratio": statistics.median(ratios),
        f"{partitions}p plain CPU us": statistics.median(costs["plain"]),
        f"{partitions}p flush.messages=1 CPU us": statistics.median(costs["flushed"]),
    }


def beside(tools: pathlib.Path, rounds: int, megabytes: int) -> dict[str, float]:
    """p50 and p99 of 1,000 messages a second, alone and beside a cleaner at work."""
    alone: list[dict[str, Any]] = []
    cleaning: list[dict[str, Any]] = []
    broker = Serving("-o", "log.cleaner.backoff.ms=200")
    try:
        broker.create("latency")
        run(tools / "rklat", broker.address, "latency", 1000, 3, "1")
        for round_ in range(rounds):
            alone.append(run(tools / "rklat", broker.address, "latency", 1000, 6, "1"))
            topic = f"compacted-{round_}"
            # Filled first, compacted once its policy says so.
            broker.create(topic, segment_bytes=str(100 << 20))
            _fill(broker.address, topic, megabytes)
            before = len(_cleanings(broker))
            _compact(broker.address, topic)
            cleaning.append(run(tools / "rklat", broker.address, "latency", 1000, 6, "1"))
            limit = time.monotonic() + 60
            while len(_cleanings(broker)) == before and time.monotonic() < limit:
                time.sleep(0.1)
            print("   ", _cleanings(broker)[-1:] or "not compacted")
    finally:
        broker.stop()
    return {
        "p50 alone": statistics.median(one["p50"] for one in alone),
        "p99 alone": statistics.median(one["p99"] for one in alone),
        "p50 beside compaction": statistics.median(one["p50"] for one in cleaning),
        "p99 beside compaction": statistics.median(one["p99"] for one in cleaning),
    }


def _fill(address: str, topic: str, megabytes: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    )
    keys = megabytes * 500
    value = bytes(range(256)) * 4
    for at in range(megabytes * 1000):
        producer.produce(topic, value[:980], b"key-%09d" % (at % keys))
        if at % 1000 == 0:
            producer.poll(0)
    producer.flush(60)


def _compact(address: str, topic: str) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entries = [
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry(
            "min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET
        ),
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": address})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def _cleanings(broker: Serving) -> list[str]:
    return re.findall(r"\S+: compacted up to .*", broker.log.read_text())


def verify(megabytes: int) -> dict[str, float]:
    """GB a second of `kwire log verify`, of processor time and of wall time, indexes included."""
    found: dict[str, float] = {}
    for per_batch in (16, 100):
        with tempfile.TemporaryDirectory(prefix="bench-verify-") as folder:
            log = fill(folder, megabytes, per_batch, Codec.NONE)
            size_bytes = log.size_bytes
            log.close(sync=True)
            wall, used = time.perf_counter(), time.process_time()
            if list(verification.verify(folder)):
                raise SystemExit("bench: a fault in a log that has none")
            used, wall = time.process_time() - used, time.perf_counter() - wall
            found[f"verify GB/s CPU, batches of {per_batch}"] = size_bytes / used / 1e9
            found[f"verify GB/s wall, batches of {per_batch}"] = size_bytes / wall / 1e9
    return found


def lock_waits(megabytes: int) -> dict[str, float]:
    """Milliseconds that another thread waits for the interpreter's lock beside the cleaner."""
    found: dict[str, float] = {}
    for per_batch in (16, 100):
        with tempfile.TemporaryDirectory(prefix="bench-lock-") as folder:
            log = fill(folder, megabytes, per_batch, Codec.NONE)
            log.sync_now()
            due = candidate(log, None, log.clock.wall_ms())
            assert due is not None
            job = CleaningJob(make_plan(due, log.clock.wall_ms())[0], CleanerSettings(), bytes(16))
            waits = _waits_beside(job)
            log.close()
        found[f"lock p99 ms, batches of {per_batch}"] = waits[int(len(waits) * 0.99)] * 1000
        found[f"lock max ms, batches of {per_batch}"] = waits[-1] * 1000
    return found


def _waits_beside(job: CleaningJob) -> list[float]:
    def work() -> None:
        for _ in job.index_steps():
            pass
        for group in job.groups():
            for _ in job.copy_steps(group):
                pass

    waits: list[float] = []
    reading, writing = os.pipe()
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        begun = time.perf_counter()
        os.write(writing, b"x")  # gives the lock away and takes it again
        os.read(reading, 1)
        waits.append(time.perf_counter() - begun)
        time.sleep(0.0005)
    for handle in (reading, writing):
        os.close(handle)
    return sorted(waits)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=60_000)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    asked = parser.parse_args()
    tools = build(ROOT / ".cache" / "bench")
    parts: dict[str, list[Callable[[], dict[str, float]]]] = {
        "durable": [
            lambda: durable(tools, asked.rounds, asked.requests),
            lambda: durable(tools, asked.rounds, asked.requests, 12),
        ],
        "beside": [lambda: beside(tools, asked.rounds, asked.megabytes)],
        "start": [lambda: measure(asked.partitions, asked.rounds)],
        "verify": [lambda: verify(asked.megabytes), lambda: lock_waits(asked.megabytes)],
    }
    for name in asked.only:
        for part in parts[name]:
            for what, figure in part().items():
                print(f"{what:40} {figure:12,.3f}", flush=True)


if __name__ == "__main__":
    main()
