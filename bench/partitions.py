"""A node with many partitions: what it needs to create them, to hold them, to stop and to start.

    python -m bench.partitions [--partitions 10000] [--topic-partitions 1000] [--rounds 3]
                               [--records 10] [--idle-seconds 20] [--keep DIR]

A start is timed from the command to the ready line. The stop that is told is the one after all
partitions were written to; so is the kill. Processor time is that of the whole process, memory what
is resident.
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
CREATED_AT_ONCE = 1000
"""Partitions that one request creates, if a topic has no more."""
TIMEOUT_S = 600


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
        if self.process.wait(TIMEOUT_S):
            raise SystemExit(f"bench: kwire did not stop in order: {self.log.read_text()[-500:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def resident_mb(self) -> float:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:", 1)[1].split()[0]) / 1024


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def create(node: Started, partitions: int, topic_partitions: int) -> None:
    """The topics; all partitions are led when this returns."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": node.address, "socket.timeout.ms": 300_000})
    topics = [
        NewTopic(f"many-{first}", min(topic_partitions, partitions - first), 1)
        for first in range(0, partitions, topic_partitions)
    ]
    at_once = max(1, CREATED_AT_ONCE // topic_partitions)
    for first in range(0, len(topics), at_once):
        for done in admin.create_topics(
            topics[first : first + at_once], request_timeout=TIMEOUT_S
        ).values():
            done.result(TIMEOUT_S)


def write(node: Started, partitions: int, topic_partitions: int, records: int) -> None:
    """One small batch in each partition."""
    from confluent_kafka import Producer

    for first in range(0, partitions, TOPIC_PARTITIONS):
        # A client of its own: none should have to know all topics.
        producer = Producer(
            {
                "bootstrap.servers": node.address,
                "linger.ms": 50,
                "message.timeout.ms": TIMEOUT_S * 1000,
            }
        )
        for number in range(first, min(partitions, first + TOPIC_PARTITIONS)):
            partition = number % topic_partitions
            for _ in range(records):
                producer.produce(f"many-{number - partition}", bytes(100), partition=partition)
        if producer.flush(TIMEOUT_S):
            raise SystemExit("bench: not everything could be produced")


class Bench:
    """The figures by name, told as they come if `is_told`."""

    def __init__(self, is_told: bool) -> None:
        self.found: dict[str, float] = {}
        self._is_told = is_told

    def add(self, name: str, value: float) -> None:
        self.found[name] = value
        if self._is_told:
            print(f"{name:48} {value:12,.2f}", flush=True)

    def timed(self, name: str, began: tuple[float, float], node: Started) -> None:
        self.add(f"{name}, seconds", time.perf_counter() - began[0])
        self.add(f"{name}, CPU seconds", node.cpu() - began[1])


def began(node: Started) -> tuple[float, float]:
    return time.perf_counter(), node.cpu()


def measure(
    partitions: int,
    rounds: int,
    keep: str | None = None,
    *,
    topic_partitions: int = TOPIC_PARTITIONS,
    records: int = 10,
    idle_s: float = 20.0,
    is_told: bool = False,
) -> dict[str, float]:
    """Figures by name; those of starts are the medians of the rounds."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-partitions-"))
    directory = pathlib.Path(keep) if keep else folder / "data"
    bench = Bench(is_told)
    node: Started | None = None
    try:
        if not directory.exists():
            node = Started(directory)
            before = began(node)
            create(node, partitions, topic_partitions)
            bench.timed("create", before, node)
            bench.add("memory of what is created, MB", node.resident_mb())
            before = began(node)
            write(node, partitions, topic_partitions, records)
            bench.timed("one batch to each", before, node)
            bench.add("memory, MB", node.resident_mb())
            before = began(node)
            time.sleep(idle_s)
            bench.add("idle, % of a core", 100 * (node.cpu() - before[1]) / idle_s)
            bench.add("memory when idle, MB", node.resident_mb())
            before = began(node)
            node.stop()
            bench.add("stop seconds, all partitions written to", time.perf_counter() - before[0])
        found: list[Started] = []
        for _ in range(rounds):
            node = Started(directory)
            found.append(node)
            node.stop()
        bench.add("start seconds", statistics.median(node.seconds for node in found))
        bench.add("start CPU seconds", statistics.median(node.cpu_seconds for node in found))
        node = Started(directory)
        write(node, partitions, topic_partitions, 1)
        node.kill()
        node = Started(directory)
        bench.add("start seconds after a kill", node.seconds)
        bench.add("start CPU seconds after a kill", node.cpu_seconds)
        bench.add("memory after that start, MB", node.resident_mb())
        node.stop()
    finally:
        if node is not None and node.process.poll() is None:
            node.kill()
        shutil.rmtree(folder)
    return bench.found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--topic-partitions", type=int, default=TOPIC_PARTITIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=10, help="of the batch that each gets")
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument("--keep", help="a directory to make, or to use again")
    options = parser.parse_args()
    measure(
        options.partitions,
        options.rounds,
        options.keep,
        topic_partitions=options.topic_partitions,
        records=options.records,
        idle_s=options.idle_seconds,
        is_told=True,
    )


if __name__ == "__main__":
    main()
