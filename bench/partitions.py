"""A node with 10,000 partitions of one small segment each: how long it needs to stop and to start.

    python -m bench.partitions [--partitions 10000] [--rounds 3] [--keep DIR]

A start is timed from the command to the ready line, processor time is that of the whole process
until then; the stop that is told is the one after all partitions were written to.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOPIC_PARTITIONS = 1000


class Started:
    """kwire on a directory; `seconds` and `cpu_seconds` are those until it was ready."""

    def __init__(self, directory: pathlib.Path, *options: str) -> None:
        command = [sys.executable, "-m", "kwire", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data-dir", str(directory), *options]
        self.log = directory.with_suffix(".log")
        began = time.perf_counter()
        with self.log.open("ab") as stderr:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().decode()
        self.seconds = time.perf_counter() - began
        self.cpu_seconds = cpu_seconds(self.process.pid)
        if ":" not in ready:
            raise SystemExit(f"bench: kwire does not start: {self.log.read_text()[-500:]}")
        self.address = f"127.0.0.1:{int(ready.rsplit(':', 1)[1])}"

    def stop(self) -> None:
        self.process.terminate()
        if self.process.wait(120):
            raise SystemExit(f"bench: kwire did not stop in order: {self.log.read_text()[-500:]}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fill(node: Started, partitions: int) -> None:
    """Topics of 1,000 partitions, with one small batch in each."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": node.address})
    producer = Producer({"bootstrap.servers": node.address, "linger.ms": 50})
    for first in range(0, partitions, TOPIC_PARTITIONS):
        topic, count = f"many-{first}", min(TOPIC_PARTITIONS, partitions - first)
        for done in admin.create_topics([NewTopic(topic, count, 1)]).values():
            done.result(120)
        for partition in range(count):
            for _ in range(10):
                producer.produce(topic, bytes(100), partition=partition)
        if producer.flush(120):
            raise SystemExit("bench: not everything could be produced")


def measure(partitions: int, rounds: int, keep: str | None = None) -> dict[str, float]:
    """Seconds and processor seconds of a start, the medians of the rounds; seconds of the stop."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-partitions-"))
    directory = pathlib.Path(keep) if keep else folder / "data"
    found: list[Started] = []
    stops: dict[str, float] = {}
    try:
        if not directory.exists():
            node = Started(directory)
            fill(node, partitions)
            began = time.perf_counter()
            node.stop()
            stops["stop seconds, all partitions written to"] = time.perf_counter() - began
        for _ in range(rounds):
            node = Started(directory)
            node.stop()
            found.append(node)
    finally:
        shutil.rmtree(folder)
    return {
        **stops,
        "start seconds": statistics.median(node.seconds for node in found),
        "start CPU seconds": statistics.median(node.cpu_seconds for node in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="a directory to make, or to use again")
    arguments = parser.parse_args()
    for name, value in measure(arguments.partitions, arguments.rounds, arguments.keep).items():
        print(f"{name:32} {value:12,.2f}")


if __name__ == "__main__":
    main()
