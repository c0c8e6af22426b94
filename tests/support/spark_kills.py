"""Jobs as processes that are killed: a topic that they work on, conditions, kill -9."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable

from tests.support import kafka_client as client
from tests.support.kafka_client import Sent

WAIT_S = 300
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
