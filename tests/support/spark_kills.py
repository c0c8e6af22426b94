"""Jobs as processes that are killed: a topic that they work on, conditions, kill -9."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.kafka_client import Sent

WAIT_S = 300
KILL_WITHIN_S = 4.0
RECORDS = 20_000
BASE_MS = 1_760_000_000_000


def fill(bootstrap: str, partitions: int = 2) -> str:
    topic = client.create(bootstrap, partitions=partitions)
    client.send(
        bootstrap,
        topic,
        (
            Sent(i % partitions, b"k%d" % (i % 100), b"%d" % i, (("n", b"%d" % i),), BASE_MS + i)
            for i in range(RECORDS)
        ),
    )
    return topic


def wait_until(
    what: Callable[[], bool], process: subprocess.Popen[str] | None, log: pathlib.Path
) -> None:
    """Wait for a condition, while a job runs if one is given."""
    deadline = time.monotonic() + WAIT_S
    while not what():
        ended = process is not None and process.poll() is not None
        assert not ended, f"the job ended: {log.read_text()[-2000:]}"
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.05)


def ends_of(bootstrap: str, topic: str) -> int:
    """How many records a topic has; 0 as long as it is not there."""
    from kwire.spark.cluster import LATEST, Cluster, partitions_of

    cluster = Cluster(bootstrap)
    return sum(cluster.offsets(partitions_of(cluster.describe([topic])), LATEST).values())


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the driver and its JVM."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _is_on_its_way(
    process: subprocess.Popen[str], progress: Callable[[], int], before: int
) -> bool:
    return progress() != before or process.poll() is not None


def wait_for_end(
    process: subprocess.Popen[str], progress: Callable[[], int], log: pathlib.Path
) -> int:
    """Wait until a job has ended, as long as it gets on: how long all of it takes is a matter of
    the machine. Returns its status."""
    known = progress()
    deadline = time.monotonic() + WAIT_S
    while process.poll() is None:
        if (now := progress()) != known:
            known, deadline = now, time.monotonic() + WAIT_S
        assert time.monotonic() < deadline, f"no progress: {log.read_text()[-3000:]}"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
    assert process.returncode is not None
    return process.returncode


def run_with_random_kills(
    seed: int,
    start: Callable[[], subprocess.Popen[str]],
    progress: Callable[[], int],
    brokers: list[Broker],
    log: pathlib.Path,
) -> None:
    """Two to four runs that are cut off at random moments behind their first progress, by kill -9
    of the driver or of a broker (which comes back); then a run that ends well."""
    rng = random.Random(seed)
    for _ in range(rng.randint(2, 4)):
        with _started(start) as process:
            before = progress()
            wait_until(partial(_is_on_its_way, process, progress, before), None, log)
            while process.poll() is None:
                try:
                    process.wait(rng.uniform(0, KILL_WITHIN_S))
                except subprocess.TimeoutExpired:
                    if rng.random() < 0.6:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
                        break
                    broker = rng.choice(brokers)
                    broker.kill()
                    broker.start()
            assert process.returncode in (0, -signal.SIGKILL), log.read_text()[-3000:]
    with _started(start) as process:
        assert wait_for_end(process, progress, log) == 0, log.read_text()[-3000:]


@contextlib.contextmanager
def _started(start: Callable[[], subprocess.Popen[str]]) -> Iterator[subprocess.Popen[str]]:
    """A job that does not outlive its test."""
    process = start()
    try:
        yield process
    finally:
        if process.poll() is None:
            kill(process)
        elif process.stdout is not None:
            process.stdout.close()
