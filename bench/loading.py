"""Loading a large `__consumer_offsets` by a broker that starts: `python bench/loading.py`.

    bench/loading.py [--mb 1000] [--keys 200000] [--keep DIRECTORY]

Writes the log of one partition (batches of one commit, all keys in turn, as committing consumers
leave it), starts `kwire serve` on it and asks for a committed offset until it is answered. Told are
the seconds from the broker's first answer until then, the broker's CPU seconds, and how long others
had to wait meanwhile: the longest of requests for ApiVersions, one every 5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.groups import Connection, cpu_s
from kwire.clock import SystemClock
from kwire.coordinator import batches
from kwire.coordinator.group.offset_records import offset_commit
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.log.partition.config import LogConfig
from kwire.log.recovery.opening import open_log
from kwire.log.types import Origin
from kwire.protocol import messages as m

TOPIC = "__consumer_offsets"
GROUP_KEYS = 50
SEED_BATCHES = 20_000
LOAD_IN_PROGRESS = 14


def serve(directory: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "kwire", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(directory), "-o", "offsets.topic.num.partitions=1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        for word in line.replace(",", " ").split():
            if word.startswith("127.0.0.1:"):
                return process, word
    raise SystemExit("bench: the broker did not start")


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(60)


async def make_topic(address: str) -> None:
    connection = await Connection.open(address)
    asked = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["group-0"])
    await connection.until(asked, 4, lambda x: int(x.coordinators[0].error_code))
    connection._writer.close()


def fill(directory: Path, megabytes: int, keys: int) -> float:
    """Append to the partition's log; megabytes written."""
    (folder,) = directory.rglob(f"{TOPIC}-0")
    topic_id = next(
        line.split(": ")[1] for line in (folder / "partition.metadata").read_text().splitlines()
        if line.startswith("topic_id")
    )  # fmt: skip
    from kwire.protocol import uuids

    log = open_log(folder, TOPIC, 0, uuids.from_text(topic_id), LogConfig(), SystemClock())
    size, number = 0, 0
    while size < megabytes * 1_000_000:
        made = []
        for _ in range(500):
            key = number % keys
            stored = StoredOffset(number, 3, "", 1_700_000_000_000 + number, None, b"\7" * 16, -1)
            record = offset_commit(
                f"group-{key // GROUP_KEYS:06}", "some-topic", key % GROUP_KEYS, stored
            )
            made.append(batches.build([batches.encode(record)], 1_700_000_000_000, None))
            number += 1
        log.append_as_leader(made, leader_epoch=0, origin=Origin.RAFT, wall_ms=1_700_000_000_000)
        size += sum(len(x) for x in made)
    log.close()
    return size / 1e6


async def watch(address: str, pid: int) -> dict[str, float]:
    """Until the offset of a group is told."""
    started, cpu = time.monotonic(), cpu_s(pid)
    connection, other = await Connection.open(address), await Connection.open(address)
    longest, refused = 0.0, 0
    shape = m.OffsetFetchRequest
    asked = shape(groups=[shape.OffsetFetchRequestGroup(group_id="group-000001", topics=None)])
    while True:
        before = time.monotonic()
        await other.ask(m.ApiVersionsRequest(), 0)
        longest = max(longest, time.monotonic() - before)
        answer = (await connection.ask(asked, 9)).groups[0]
        if answer.error_code == 0 and answer.topics:
            break
        refused += answer.error_code == LOAD_IN_PROGRESS
        await asyncio.sleep(0.005)
    assert len(answer.topics[0].partitions) == GROUP_KEYS, answer
    return {
        "seconds": round(time.monotonic() - started, 2),
        "cpu_s": round(cpu_s(pid) - cpu, 2),
        "longest_other_ms": round(longest * 1000, 1),
        "refused_meanwhile": refused,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--keep", type=Path, help="make the data here, or use what is there")
    given = parser.parse_args()
    directory = given.keep or Path(tempfile.mkdtemp(prefix="bench-loading-"))
    try:
        if not directory.exists() or not any(directory.iterdir()):
            process, address = serve(directory)
            asyncio.run(make_topic(address))
            stop(process)
            print(f"wrote {fill(directory, given.mb, given.keys):.0f} MB", file=sys.stderr)
        process, address = serve(directory)
        try:
            print(json.dumps(asyncio.run(watch(address, process.pid))))
        finally:
            stop(process)
    finally:
        if given.keep is None:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
