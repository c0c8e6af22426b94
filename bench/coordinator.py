"""The group coordinator on its own: `python bench/coordinator.py [--json FILE]`.

Requests a second of one shard over a log in memory that commits at once (no network, no files):
OffsetCommit, OffsetFetch and Heartbeat; heartbeats of 2,000 members in 200 groups; and how long a
log of one-record commits takes to load. CPU time of this process; the median of five rounds, the
first one left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kwire.coordinator import batches
from kwire.coordinator.group.offset_records import offset_commit
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.reduction import LogReduction
from kwire.protocol.records import row_kernel
from tests.support.groups import GroupWorld

ROUNDS = 5
REQUESTS = 5000


def rate(action: Callable[[], int]) -> float:
    """What `action` does a second of CPU time; it returns how many it did."""
    rates = []
    for _ in range(ROUNDS + 1):
        before = time.process_time()
        done = action()
        rates.append(done / (time.process_time() - before))
    return statistics.median(rates[1:])


def commits() -> float:
    world = GroupWorld()

    def action() -> int:
        for i in range(REQUESTS):
            world.commit(i, group=f"group-{i % 200}", partition=i % 10, metadata="")
        world.log.batches.clear()
        return REQUESTS

    return rate(action)


def fetches() -> float:
    world = GroupWorld()
    world.commit(1)

    def action() -> int:
        for _ in range(REQUESTS):
            world.fetch({"t": [0]})
        return REQUESTS

    return rate(action)


def heartbeats() -> float:
    """Of 2,000 members in 200 groups, in turn, while time passes."""
    world = GroupWorld()
    members = []
    for number in range(200):
        group = f"group-{number}"
        joins = [world.join(group=group, session_ms=1_800_000) for _ in range(10)]
        answers = [world.now(x) for x in joins]
        leader = answers[0].leader
        world.now(world.sync(leader, 1, {x.member_id: b"" for x in answers}, group=group))
        members += [(group, x.member_id, x.generation_id) for x in answers]

    def action() -> int:
        for group, member_id, generation in members:
            answer = world.heartbeat(member_id, generation, group=group)
            assert answer.error_code == 0, answer
        world.loop.now_ms += 3000
        return len(members)

    return rate(action)


def loading(keys: int, megabytes: int) -> dict[str, float]:
    """Seconds for a log of `megabytes` in which each of `keys` partitions is committed in turn."""
    made = []
    for i in range(keys):
        stored = StoredOffset(i, 3, "", 1_700_000_000_000 + i, None, b"\7" * 16, -1)
        record = offset_commit(f"group-{i // 50:06}", "some-topic", i % 50, stored)
        made.append(bytes(batches.build([batches.encode(record)], 1_700_000_000_000, None)))
    block = b"".join(made)
    repeats = max(1, round(megabytes * 1e6 / len(block)))
    reduction, storage = LogReduction(), GroupStorage()
    start = time.process_time()
    worst = 0.0
    for _ in range(repeats):
        before = time.process_time()
        for _ in reduction.steps(block, 0):
            now = time.process_time()
            worst, before = max(worst, now - before), now
    reduced = time.process_time()
    for _ in reduction.replay_steps(storage, "group-coordinator"):  # type: ignore[arg-type]
        pass
    return {
        "megabytes": round(repeats * len(block) / 1e6, 1),
        "live_keys": keys,
        "reduce_s": round(reduced - start, 2),
        "replay_s": round(time.process_time() - reduced, 2),
        "longest_step_ms": round(worst * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="The group coordinator on its own.")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--mb", type=int, default=300, help="size of the log that is loaded")
    parser.add_argument("--keys", type=int, default=60_000, help="its live keys")
    arguments = parser.parse_args()
    figures = {
        "compiled": row_kernel.COMPILED,
        "offset_commits_per_s": round(commits()),
        "offset_fetches_per_s": round(fetches()),
        "heartbeats_per_s": round(heartbeats()),
        "loading": loading(arguments.keys, arguments.mb),
    }
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.json:
        Path(arguments.json).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
