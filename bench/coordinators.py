"""Groups and transactions beside Apache Kafka: `python -m bench.coordinators [--seconds N]`.

    commits, 100 connections    OffsetCommit of one partition, one on its way on each connection
    commits, 8 connections      the same, 16 on their way on each
    heartbeats                  classic members, 2,000 in 200 groups, a connection each
    transactions                InitProducerId once; then Produce 12 of one record (which adds the
                                partition), EndTxn 5; 64 producers beside each other

A commit is one request, answered, of one partition; 200 groups. What is counted is told by the
broker's answers without an error. The brokers run one after the other, each on the same load; the
client takes processor time of the same machine (`blast.c` for ready-made frames, Python for
transactions), so broker CPU per request says more than the rate. Prints JSON and a table; about two
minutes a broker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.brokers import Broker  # noqa: E402
from bench.build import build  # noqa: E402
from bench.groups import (  # noqa: E402
    GROUPS,
    MEMBERS_OF_A_GROUP,
    Connection,
    commit,
    encoded,
    prepare,
    transactions,
)
from bench.run import OURS, REFERENCE, commands  # noqa: E402
from kwire.protocol import messages as m  # noqa: E402

WARM_UP_S = 3.0
ATTEMPTS = 5
# The members of a group come into one generation.
DELAY = "group.initial.rebalance.delay.ms=3000"


async def stable_group(address: str, group: str) -> list[bytes]:
    """A Stable group of MEMBERS_OF_A_GROUP members; the frames of their heartbeats."""
    for attempt in range(ATTEMPTS):
        connections = [await Connection.open(address) for _ in range(MEMBERS_OF_A_GROUP)]
        try:
            found = await join_and_sync(connections, f"{group}-{attempt}")
        finally:
            for connection in connections:
                connection.close()
        if found is not None:
            return found
    raise SystemExit(f"bench: {group} does not come together")


async def join_and_sync(connections: list[Connection], group: str) -> list[bytes] | None:
    """None for members that did not come into one generation."""
    shape, sync = m.JoinGroupRequest, m.SyncGroupRequest
    request = shape(
        group_id=group, session_timeout_ms=300_000, rebalance_timeout_ms=300_000,
        protocol_type="bench",
        protocols=[shape.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )  # fmt: skip
    asked = [x.until(request, 3, lambda answer: int(answer.error_code)) for x in connections]
    joined = await asyncio.gather(*asked)
    if len({x.generation_id for x in joined}) > 1 or any(x.error_code for x in joined):
        return None
    plan = [sync.SyncGroupRequestAssignment(member_id=x.member_id, assignment=b"") for x in joined]
    requests = [
        sync(
            group_id=group,
            generation_id=x.generation_id,
            member_id=x.member_id,
            assignments=plan if x.member_id == x.leader else [],
        )
        for x in joined
    ]
    synced = await asyncio.gather(
        *[c.ask(x, 3) for c, x in zip(connections, requests, strict=True)]
    )
    if any(x.error_code for x in synced):
        return None
    beats = [
        m.HeartbeatRequest(group_id=group, generation_id=x.generation_id, member_id=x.member_id)
        for x in joined
    ]
    return [encoded(x, 4) for x in beats]


async def heartbeat_frames(address: str) -> list[bytes]:
    found: list[bytes] = []
    for start in range(0, GROUPS, 20):
        made = [stable_group(address, f"beat-{i}") for i in range(start, start + 20)]
        for frames in await asyncio.gather(*made):
            found += frames
    return found


async def commit_frames(address: str) -> list[bytes]:
    """And each group has committed once."""
    first = await Connection.open(address)
    for i in range(GROUPS):
        await first.until(
            commit(f"bench-{i}", 1), 8, lambda x: int(x.topics[0].partitions[0].error_code)
        )
    first.close()
    return [encoded(commit(f"bench-{i}", i), 8) for i in range(GROUPS)]


class Run:
    """One broker under load."""

    def __init__(self, broker: Broker, tools: Path, scratch: Path, seconds: float) -> None:
        self.broker = broker
        self.blast_program = tools / "blast"
        self.scratch = scratch
        self.seconds = seconds

    def blast(self, kind: str, connections: int, depth: int, frames: list[bytes]) -> dict[str, Any]:
        """Until it has lasted about `seconds`; a short run before tells how many that are."""
        files = []
        for i, frame in enumerate(frames):
            files.append(self.scratch / f"{kind}-{i}")
            files[-1].write_bytes(frame)
        told = self._blast(kind, connections, depth, 20_000, files)
        count = max(20_000, int(told["reqps"] * WARM_UP_S))
        told = self._blast(kind, connections, depth, count, files)
        count = max(20_000, int(told["reqps"] * self.seconds))
        before = self.broker.cpu_s()
        told = self._blast(kind, connections, depth, count, files)
        if told["err"]:
            raise SystemExit(f"bench: {told['err']} of {told['done']} {kind}s were refused")
        cpu_us = (self.broker.cpu_s() - before) / told["done"] * 1e6
        return {
            "per_s": round(told["reqps"]),
            "cpu_us": round(cpu_us, 1),
            "p50_ms": round(told["p50us"] / 1000, 2),
            "p99_ms": round(told["p99us"] / 1000, 2),
        }

    def _blast(
        self, kind: str, connections: int, depth: int, count: int, files: list[Path]
    ) -> dict[str, Any]:
        command = [self.blast_program, kind, self.broker.port, connections, depth, count, *files]
        told = subprocess.run([str(x) for x in command], check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(told.stdout)
        return found

    def transactions(self) -> dict[str, Any]:
        asyncio.run(transactions(self.broker.address, WARM_UP_S))
        before = self.broker.cpu_s()
        done = asyncio.run(transactions(self.broker.address, self.seconds))
        cpu_us = (self.broker.cpu_s() - before) / done * 1e6
        return {"per_s": round(done / self.seconds), "cpu_us": round(cpu_us, 1)}

    def all(self, only: list[str]) -> dict[str, Any]:
        address = self.broker.address
        asyncio.run(prepare(address))
        commits = asyncio.run(commit_frames(address))
        found: dict[str, Any] = {}
        if "commits" in only:
            found["commits, 100 connections"] = self.blast("commit", 100, 1, commits)
            found["commits, 8 connections"] = self.blast("commit", 8, 16, commits)
        if "heartbeats" in only:
            beats = asyncio.run(heartbeat_frames(address))
            found["heartbeats"] = self.blast("heartbeat", len(beats), 1, beats)
        if "transactions" in only:
            found["transactions"] = self.transactions()
        return found


def table(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| | broker | a second | broker CPU us | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|",
    ]
    for name in next(iter(results.values())):
        for broker, found in results.items():
            told = found[name]
            shown = [f"{told[x]:,}" if x in told else "" for x in ("per_s", "cpu_us")]
            shown += [str(told.get(x, "")) for x in ("p50_ms", "p99_ms")]
            lines.append(f"| {name} | {broker} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load")
    names = ("commits", "heartbeats", "transactions")
    parser.add_argument("--only", choices=names, action="append")
    parser.add_argument("--broker", choices=(REFERENCE, OURS), action="append")
    parser.add_argument("--json", type=Path, default=ROOT / ".cache" / "coordinators.json")
    given = parser.parse_args()
    cache = Path(os.environ.get("KWIRE_CACHE") or Path.home() / ".cache" / "kwire")
    tools = build(cache / "bench")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="bench-coordinators-") as folder:
        scratch = Path(folder)
        for name, command in commands(cache, scratch).items():
            if given.broker and name not in given.broker:
                continue
            command += f" {DELAY}" if name == REFERENCE else f" -o {DELAY}"
            broker = Broker(name, command, scratch / f"{name}.log")
            try:
                run = Run(broker, tools, scratch, given.seconds)
                results[name] = run.all(given.only or list(names))
            finally:
                broker.stop()
            print(json.dumps({name: results[name]}), flush=True)
    print(table(results))
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
