"""CPU of a running broker per operation, of one checkout or of several in turn.

    bench/cpu.py [--tree DIR ...] [--rounds N] [--only KIND,...] [--python PYTHON]

A tree is a checkout of kwire (this one by default); with several the rounds alternate, so that both
see the same load of the machine. Kinds: `start` (CPU of a start on a new directory, ms, and the
wall time until ready), `restart` (the same on a formatted one), `one` (requests of one record, 100
connections, one in flight each: us of CPU a request, of it in the kernel), `p100`, `p1024`,
`p10240` (librdkafka produces records of that size: CPU seconds a GB), `c1024` (and consumes them),
`latency` (p50 and p99 in ms at 1,000 records a second).
User and system time of the broker's process count; wall time says more of the machine.
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
sys.path.insert(0, str(ROOT))

from bench.brokers import TICKS_PER_S, with_bytecode  # noqa: E402
from bench.build import build  # noqa: E402
from bench.frames import one_record_request  # noqa: E402
from bench.side_by_side import run  # noqa: E402
from kwire.testing.cluster import free_adjacent_ports  # noqa: E402

KINDS = ("start", "restart", "one", "p100", "p1024", "c1024", "p10240", "latency")
ONE_RECORD_REQUESTS = 100_000
CONNECTIONS = 100
PRODUCED_BYTES = {100: 100_000_000, 1024: 1_000_000_000, 10240: 1_000_000_000}
STOP_TIMEOUT_S = 30

Figures = dict[str, float]


class Serving:
    """One `kwire serve` of a tree, on a directory."""

    def __init__(self, tree: pathlib.Path, python: str, directory: str) -> None:
        self.port = free_adjacent_ports()
        started = time.monotonic()
        self._process = subprocess.Popen(
            [python, "-m", "kwire", "serve", "--listen", f"127.0.0.1:{self.port}"]
            + ["--data-dir", directory],
            cwd=tree,
            env=with_bytecode(os.environ | {"PYTHONPATH": str(tree)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise SystemExit(f"bench: {tree} does not start")
        self.ready_s = time.monotonic() - started

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> tuple[float, float]:
        """(user, system) so far."""
        stat = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return int(fields[11]) / TICKS_PER_S, int(fields[12]) / TICKS_PER_S

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(STOP_TIMEOUT_S)


def measure(tree: pathlib.Path, python: str, kinds: list[str], tools: pathlib.Path) -> Figures:
    """One round of one tree."""
    figures: Figures = {}
    directory = tempfile.mkdtemp(prefix="bench-cpu-")
    try:
        broker = Serving(tree, python, directory)
        if "start" in kinds:
            figures["start ms"] = sum(broker.cpu_s()) * 1000
            figures["start wall ms"] = broker.ready_s * 1000
        if "restart" in kinds:
            broker.stop()
            broker = Serving(tree, python, directory)
            figures["restart ms"] = sum(broker.cpu_s()) * 1000
            figures["restart wall ms"] = broker.ready_s * 1000
        try:
            for kind in kinds:
                if kind not in ("start", "restart"):
                    figures |= _run(kind, broker, tools, pathlib.Path(directory + ".frame"))
        finally:
            broker.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return figures


def _run(kind: str, broker: Serving, tools: pathlib.Path, frame: pathlib.Path) -> Figures:
    perf, at = tools / "rkperf", broker.address
    if kind == "latency":
        found = run(tools / "rklat", at, "latency", 1000, 8, "1")
        return {"latency p50 ms": found["p50"], "latency p99 ms": found["p99"]}
    if kind == "one":
        run(perf, "produce", at, "one", 1, 100, 1000, "1", "none", 1000, 0)
        one_record_request(frame, "one", 1, 100)
        try:
            before = broker.cpu_s()
            run(tools / "blast", "produce", broker.port, CONNECTIONS, 1, ONE_RECORD_REQUESTS, frame)
            return _per("one us", before, broker.cpu_s(), ONE_RECORD_REQUESTS / 1e6)
        finally:
            frame.unlink()
    size = int(kind[1:])
    count = PRODUCED_BYTES[size] // size
    before = broker.cpu_s()
    if kind[0] == "p":
        run(perf, "produce", at, f"t{size}", 1, size, count, "1", "none", 1_000_000, 5)
    else:
        run(perf, "consume", at, f"t{size}", 1, size, count)
    return _per(f"{kind} s/GB", before, broker.cpu_s(), count * size / 1e9)


def _per(
    name: str, before: tuple[float, float], after: tuple[float, float], operations: float
) -> Figures:
    user, system = after[0] - before[0], after[1] - before[1]
    return {
        name: (user + system) / operations,
        f"{name} in kernel": system / operations,
    }


def main() -> int:
    """Measure the trees in turn, print each round and the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", action="append", type=pathlib.Path, default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.tree] or [ROOT]
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    tools = build(cache / "bench")
    rounds: dict[pathlib.Path, list[Figures]] = {tree: [] for tree in trees}
    for number in range(options.rounds):
        for tree in trees if number % 2 == 0 else reversed(trees):
            figures = measure(tree, options.python, options.only.split(","), tools)
            rounds[tree].append(figures)
            shown = {name: round(value, 2) for name, value in figures.items()}
            print(f"round {number + 1} {tree.name:8} {shown}", flush=True)
    for name in rounds[trees[0]][0]:
        medians = [statistics.median(one[name] for one in rounds[tree]) for tree in trees]
        print(f"{name:24}" + "".join(f"{value:12.2f}" for value in medians))
    return 0


if __name__ == "__main__":
    sys.exit(main())
