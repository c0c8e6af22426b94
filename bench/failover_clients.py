"""Producers of three client libraries, with their defaults, as bench/failover.py watches them.

Each writes a record to one partition every 20 ms, and tells of every acknowledged record when it
was handed over and when its answer came, in seconds of the wall clock.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

PAUSE_S = 0.02
JAVA = pathlib.Path(__file__).with_name("FailoverProducer.java")


class Client:
    """Writes from `write_to` on until `close`. Subclasses write one record in `_write`."""

    def __init__(self) -> None:
        self._partition = -1
        self._acknowledged: list[tuple[float, float]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def write_to(self, partition: int) -> None:
        """Write to this partition from now on."""
        self._partition = partition
        if not self._thread.is_alive():
            self._thread.start()

    def first_after(self, wall_s: float, timeout_s: float) -> float:
        """When the first record was acknowledged that was handed over after `wall_s`."""
        end = time.time() + timeout_s
        while time.time() < end:
            for sent, answered in list(self._acknowledged):
                if sent >= wall_s:
                    return answered
            time.sleep(0.01)
        return float("inf")

    def count(self) -> int:
        """Records acknowledged so far."""
        return len(self._acknowledged)

    def _run(self) -> None:
        while not self._closed:
            try:
                self._write(self._partition, self._told(time.time()))
            except Exception:  # a full buffer or an ended wait: the next record shows what counts
                pass
            time.sleep(PAUSE_S)

    def _told(self, sent: float) -> Callable[..., None]:
        return lambda *_: self._acknowledged.append((sent, time.time()))

    def _write(self, partition: int, acknowledged: Callable[..., None]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._closed = True
        self._thread.join()


class Librdkafka(Client):
    """confluent-kafka."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Producer

        super().__init__()
        self._topic = topic
        self._producer: Any = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def _write(self, partition: int, acknowledged: Callable[..., None]) -> None:
        def told(error: Any, _: Any) -> None:
            if error is None:
                acknowledged()

        self._producer.produce(self._topic, b"x", partition=partition, on_delivery=told)
        self._producer.poll(0)


class KafkaPython(Client):
    """kafka-python."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from kafka import KafkaProducer

        super().__init__()
        self._topic = topic
        self._producer: Any = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks="all")

    def _write(self, partition: int, acknowledged: Callable[..., None]) -> None:
        self._producer.send(self._topic, b"x", partition=partition).add_callback(acknowledged)

    def close(self) -> None:
        super().close()
        self._producer.close(timeout=5)


class Java(Client):
    """Apache Kafka's own, from the jars that `make peers` fetches."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache/kwire")
        libs = cache / "kafka" / "libs"
        if not libs.is_dir():
            raise SystemExit("failover: --client java needs Kafka's jars (make peers)")
        self._process = subprocess.Popen(
            ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", str(JAVA), bootstrap, topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def write_to(self, partition: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{partition}\n")
        super().write_to(partition)

    def _run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            sent, _, answered = line.partition(" ")
            if sent.isdecimal():
                self._acknowledged.append((int(sent) / 1000, int(answered) / 1000))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join()


CLIENTS: dict[str, Callable[[str, str], Client]] = {
    "librdkafka": Librdkafka,
    "kafka-python": KafkaPython,
    "java": Java,
}
