"""Brokers side by side on the same clients, in alternating rounds.

`measure` gives, for every kind of run and broker, the figures of each round; `summarise` their
medians and the ratios to the first broker. Quote ratios and CPU per GB, never an absolute
throughput: clients and broker share the machine. Its memory is kept in use by the page
cache, because a cold page costs more than the work that is measured (WarmMemory).
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import time
from collections.abc import Sequence

from bench.brokers import Broker
from bench.frames import one_record_request

RUN_TIMEOUT_S = 400
IDLE_S = 1.5
READ_BLOCK_BYTES = 1 << 22
WARM_RECORDS = 300_000
BATCH_BYTES = 1_000_000
LINGER_MS = 5
CONNECTIONS = 100
ONE_RECORD_BYTES = 100
SMALL_BYTES = 500
SMALL_SHARE = 0.3
LATENCY_RATE = 1000

Figures = dict[str, float]
Rows = dict[str, dict[str, list[Figures]]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is run: sizes in bytes, acks, data a run in GB, requests of the one-record run."""

    sizes: Sequence[int] = (100, 1024, 10240)
    acks: Sequence[str] = ("1", "all")
    gigabytes: float = 1.0
    one_record_requests: int = 200_000
    latency_s: int = 10
    rounds: int = 3
    warm_gb: float = 64.0
    seconds_max: float = math.inf


class WarmMemory:
    """The machine's free memory, kept in use by the page cache: by clean pages of an empty file.

    A virtual machine's host takes free pages back within seconds, and giving one again costs more
    than the work that is measured: 2 s for each GB that is written to files, 0.3 s where a page of
    the cache is used again, as on any machine that has been up for a while.
    """

    def __init__(self, folder: str, gigabytes_max: float) -> None:
        self._path = pathlib.Path(folder) / "memory"
        self._size_bytes = min(int(gigabytes_max * 1e9), _available_bytes())
        with self._path.open("wb") as file:
            file.truncate(self._size_bytes)

    def fill(self) -> None:
        """Read the file: what of it is no longer in memory comes back."""
        block = bytearray(READ_BLOCK_BYTES)
        with self._path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass


def _available_bytes() -> int:
    """What could be used without swapping; 0 where the system does not tell."""
    try:
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvail")), 0)


def run(*command: object) -> Figures:
    """Run a load generator; its last line is JSON."""
    finished = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    if finished.returncode or not finished.stdout.strip():
        raise SystemExit(f"bench: {command[0]} {command[1]} failed: {finished.stderr[-500:]}")
    figures: Figures = json.loads(finished.stdout.strip().splitlines()[-1])
    return figures


def measure(
    plan: Plan,
    commands: dict[str, str],
    tools: pathlib.Path,
    logs: pathlib.Path,
    scratch: str,
) -> Rows:
    """Every round of every broker; the order of the brokers turns from round to round.
    `scratch`: a folder on a disk, for as long as it takes."""
    started = time.monotonic()
    memory = WarmMemory(scratch, plan.warm_gb)
    rows: Rows = {}
    names = list(commands)
    longest_s = 0.0
    for round_number in range(plan.rounds):
        begun = time.monotonic()
        if begun - started + longest_s > plan.seconds_max:
            break
        for name in names if round_number % 2 == 0 else reversed(names):
            memory.fill()
            broker = Broker(name, commands[name], logs / f"{name}.log")
            try:
                for kind, figures in _round(plan, broker, tools):
                    rows.setdefault(kind, {}).setdefault(name, []).append(figures)
                    print(f"round {round_number + 1} {name:8} {kind:24} {figures}", flush=True)
            finally:
                broker.stop()
        longest_s = max(longest_s, time.monotonic() - begun)
    return rows


def _round(plan: Plan, broker: Broker, tools: pathlib.Path) -> list[tuple[str, Figures]]:
    results: list[tuple[str, Figures]] = [("start", {"s": round(broker.start_s, 3)})]
    time.sleep(IDLE_S)
    results.append(("idle memory", {"mb": round(broker.rss_mb(), 1)}))
    perf, at = tools / "rkperf", broker.address
    settings = ("none", BATCH_BYTES, LINGER_MS)
    run(perf, "produce", at, "warm", 1, 1024, WARM_RECORDS, "1", *settings)
    run(perf, "consume", at, "warm", 1, 1024, WARM_RECORDS)
    for size in plan.sizes:
        share = SMALL_SHARE if size < SMALL_BYTES else 1.0
        count = int(plan.gigabytes * 1e9 * share / size)
        gigabytes = count * size / 1e9
        for acks in plan.acks:
            topic = f"t{size}-{acks}"
            before = broker.cpu_s()
            sent = run(perf, "produce", at, topic, 1, size, count, acks, *settings)
            cpu = (broker.cpu_s() - before) / gigabytes
            if sent["err"]:
                raise SystemExit(f"bench: {broker.name} refused {sent['err']} records")
            results.append((f"produce {size} acks={acks}", _rate(sent, cpu, gigabytes)))
        before = broker.cpu_s()
        got = run(perf, "consume", at, f"t{size}-{plan.acks[0]}", 1, size, count)
        cpu = (broker.cpu_s() - before) / gigabytes
        if got["ok"] < count:
            raise SystemExit(f"bench: {broker.name} gave {got['ok']} of {count} records")
        results.append((f"consume {size}", _rate(got, cpu, gigabytes)))
    results.append(("one record, 100 connections", _one_record(plan, broker, tools)))
    latency = run(tools / "rklat", at, "lat", LATENCY_RATE, plan.latency_s, "1")
    results.append(("latency at 1000/s", {k: latency[k] for k in ("p50", "p99", "p999")}))
    results.append(("memory after load", {"mb": round(broker.rss_mb(), 1)}))
    return results


def _rate(figures: Figures, cpu_s_per_gb: float, gigabytes: float) -> Figures:
    return {
        "MBps": figures["MBps"],
        "cpu_s_per_GB": round(cpu_s_per_gb, 3),
        "client_cpu_s_per_GB": round(figures["clientcpu"] / gigabytes, 3),
    }


def _one_record(plan: Plan, broker: Broker, tools: pathlib.Path) -> Figures:
    """Requests of one record over 100 connections, one in flight on each."""
    run(tools / "rkperf", "produce", broker.address, "one", 1, 100, 10, "1", "none", 1000, 0)
    frame = one_record_request(
        pathlib.Path(broker.directory + ".frame"), "one", 1, ONE_RECORD_BYTES
    )
    try:
        before = broker.cpu_s()
        figures = run(
            tools / "blast",
            "produce",
            broker.port,
            CONNECTIONS,
            1,
            plan.one_record_requests,
            frame,
        )
        if figures["err"]:
            raise SystemExit(f"bench: {broker.name} refused {figures['err']} requests")
        cpu_us = (broker.cpu_s() - before) / max(1.0, figures["done"]) * 1e6
    finally:
        frame.unlink()
    return {"requests_per_s": figures["reqps"], "cpu_us": round(cpu_us, 1)}


def summarise(rows: Rows, reference: str) -> dict[str, dict[str, Figures]]:
    """Kind -> broker -> medians, with `NAME ratio` to the reference (median of the rounds')."""
    summary: dict[str, dict[str, Figures]] = {}
    for kind, by_broker in rows.items():
        for name, rounds in by_broker.items():
            figures = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
            if name != reference:
                for key in rounds[0]:
                    pairs = zip(rounds, by_broker[reference], strict=False)
                    ratios = [own[key] / other[key] for own, other in pairs if other[key]]
                    if ratios:
                        figures[f"{key} ratio"] = round(statistics.median(ratios), 3)
            summary.setdefault(kind, {})[name] = figures
    return summary
