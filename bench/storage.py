"""What durable acknowledgements and compaction cost a running broker, measured in turns.

    python -m bench.storage [--rounds 3] [--requests 60000]

1. Requests of one record over 100 connections: a topic with `flush.messages=1` beside one without.
2. The p99 of 1,000 messages a second, alone and while the cleaner goes over 1 GB of another topic.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.build import build
from bench.frames import one_record_request
from bench.side_by_side import run

ROOT = pathlib.Path(__file__).resolve().parents[1]
CONNECTIONS = 100
RECORD_BYTES = 100


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

    def create(self, topic: str, **config: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        named = {name.replace("_", "."): value for name, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.address})
        for done in admin.create_topics([NewTopic(topic, 1, 1, config=named)]).values():
            done.result(30)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(self.directory)
        self.log.unlink()


def durable(tools: pathlib.Path, rounds: int, requests: int) -> dict[str, float]:
    """Requests a second of either topic, and the ratio."""
    broker = Serving()
    rates: dict[str, list[float]] = {"plain": [], "flushed": []}
    try:
        broker.create("plain")
        broker.create("flushed", flush_messages="1")
        for round_ in range(rounds + 1):
            for topic, found in rates.items():
                frame = pathlib.Path(broker.directory) / "frame"
                one_record_request(frame, topic, 1, RECORD_BYTES)
                figures = run(
                    tools / "blast", "produce", broker.port, CONNECTIONS, 1, requests, frame
                )
                if figures["err"]:
                    raise SystemExit(f"bench: {figures['err']} requests were refused")
                if round_:
                    found.append(figures["reqps"])
    finally:
        broker.stop()
    ratios = [b / a for a, b in zip(rates["plain"], rates["flushed"], strict=True)]
    return {
        "plain requests/s": statistics.median(rates["plain"]),
        "flush.messages=1 requests/s": statistics.median(rates["flushed"]),
        "ratio": statistics.median(ratios),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=60_000)
    parser.add_argument("--megabytes", type=int, default=1000)
    arguments = parser.parse_args()
    tools = build(ROOT / ".cache" / "bench")
    for name, figure in durable(tools, arguments.rounds, arguments.requests).items():
        print(f"{name:32} {figure:12,.3f}")
    for name, figure in beside(tools, arguments.rounds, arguments.megabytes).items():
        print(f"{name:32} {figure:12,.3f}")


if __name__ == "__main__":
    main()
