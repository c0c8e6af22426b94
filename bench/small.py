"""Small requests beside Apache Kafka: `bench/small.py [--only NAME] [--rounds N] [--seconds S]`.

    [--broker kafka|kwire|NAME=COMMAND ...] [--write-docs] [--json FILE]

The brokers run beside each other, and get the same load in turns: ready-made frames on 100
connections with one on its way on each, where nothing else is said (`blast.c`). Who has no load
takes next to nothing. The order of the brokers turns from round to round. Before the first one each
of them has the load until its rate rises no more (at most WARM_UPS_MAX runs, and a line says which
rates they had): a JVM compiles bit by bit, and may end three times as fast as it began. `--only` is
part of a name. A COMMAND serves on {port} with its data in {dir}, and answers HTTP on
{controller_port} if the share is to be told: of a second checkout, say.

Told are medians of the rounds: requests a second, broker CPU us a request, the ratios to the first
broker, the goals, and the share of requests that took a plain road (ADR 55), by `/metrics`. An
answer with an error ends the run. The client shares the cores with the broker: a rate says more of
the machine than of the broker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import report  # noqa: E402
from bench.brokers import Broker  # noqa: E402
from bench.build import build  # noqa: E402
from bench.run import OURS, REFERENCE, commands  # noqa: E402
from bench.side_by_side import Figures, Rows, run, summarise  # noqa: E402
from bench.small_loads import LOADS, Frames, Load, SmallRequests  # noqa: E402

RATE_GOAL, CPU_GOAL, PLAIN_GOAL = 1.2, 0.5, 0.95
PROBE, WARM_UP_S = 20_000, 4.0
WARM_UPS_MAX = 10
RISE, FLAT_RUNS = 1.05, 2
"""A broker is warm when so many runs in a row have not been faster than the best one before by
this."""
SETTINGS = (
    "group.initial.rebalance.delay.ms=1000",  # the members of a group come into one generation
    "group.consumer.session.timeout.ms=60000",  # members wait while the other broker has its turn
)
SCRAPE_TIMEOUT_S = 30
SECTION = "small requests"
"""Of docs/PERFORMANCE.md."""
Shares = dict[str, dict[str, list[float]]]


class Answered(NamedTuple):
    """How many requests of an API were answered, and how many of them from their bytes."""

    all: int
    plain: int


class Served:
    """One broker, and what is sent to it."""

    def __init__(self, broker: Broker, tools: pathlib.Path, scratch: pathlib.Path) -> None:
        self.broker = broker
        self._blast = tools / "blast"
        self._scratch = scratch
        self._requests = SmallRequests(broker.address)
        self._frames: dict[str, Frames] = {}

    def open(self) -> None:
        asyncio.run(self._requests.open())

    def warm_up(self, name: str, load: Load) -> float:
        """How many a second it answers in the end; a short run tells how many are to be sent."""
        rates = [self._run(name, load, PROBE)["reqps"]]
        while not is_warm(rates[1:]) and len(rates) <= WARM_UPS_MAX:
            rates.append(self._run(name, load, max(PROBE, int(rates[-1] * WARM_UP_S)))["reqps"])
        told = ", ".join(f"{rate:,.0f}" for rate in rates[1:])
        state = "warm" if is_warm(rates[1:]) else "still faster from run to run"
        print(f"warm-up {self.broker.name:8} {name:44} {state}, a second: {told}", flush=True)
        return rates[-1]

    def measured(
        self, name: str, load: Load, per_s: float, seconds: float
    ) -> tuple[Figures, float | None]:
        """Of a run of about `seconds`, and the share of plain roads where it is known."""
        files, frames = self._prepared(name, load)
        before, cpu_s = self._answered(load.api), self.broker.cpu_s()
        told = self._blasted(load, max(PROBE, int(per_s * seconds)), files, frames)
        cpu_us = (self.broker.cpu_s() - cpu_s) / told["done"] * 1e6
        after, share = self._answered(load.api), None
        if before is not None and after is not None:
            share = (after.plain - before.plain) / (after.all - before.all)
        figures = {
            "per_s": round(told["reqps"]),
            "cpu_us": round(cpu_us, 1),
            "p50_ms": round(told["p50us"] / 1000, 2),
            "p99_ms": round(told["p99us"] / 1000, 2),
        }
        return figures, share

    def _run(self, name: str, load: Load, count: int) -> Figures:
        files, frames = self._prepared(name, load)
        return self._blasted(load, count, files, frames)

    def _prepared(self, name: str, load: Load) -> tuple[list[pathlib.Path], Frames]:
        frames = None if load.is_anew else self._frames.get(name)
        if frames is None:
            frames = self._frames[name] = asyncio.run(load.make(self._requests, load.connections))
        files = []
        for i, frame in enumerate(frames.frames):
            files.append(self._scratch / f"{self.broker.name}-{i}")
            files[-1].write_bytes(frame)
        return files, frames

    def _blasted(
        self, load: Load, count: int, files: list[pathlib.Path], frames: Frames
    ) -> Figures:
        told = run(
            self._blast, *frames.options, load.kind, self.broker.port, load.connections, load.depth,
            count, *files,
        )  # fmt: skip
        if told["err"]:
            raise SystemExit(
                f"bench: {self.broker.name} refused {told['err']} of {told['done']} {load.kind}s"
            )
        return told

    def _answered(self, api: str) -> Answered | None:
        """None where nothing is told of plain roads."""
        url = f"http://127.0.0.1:{self.broker.port + 1}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=SCRAPE_TIMEOUT_S) as response:
                text = response.read().decode()
        except OSError:
            return None
        return answered(text, api)


def is_warm(rates: list[float]) -> bool:
    """Whether the last runs were no faster than the best one before them."""
    before, last = rates[:-FLAT_RUNS], rates[-FLAT_RUNS:]
    return bool(before) and max(last) <= RISE * max(before)


def answered(metrics: str, api: str) -> Answered | None:
    """What `/metrics` tells of an API; None where it tells nothing of plain roads."""
    plain = re.search(rf'^kwire_requests_plain_total{{request="{api}"}} (\d+)', metrics, re.M)
    versions = re.findall(
        rf'^kafka_network_requestmetrics_requests_total{{request="{api}",.*}} (\d+)', metrics, re.M
    )
    if plain is None:  # an API that nobody has asked is not shown
        return Answered(0, 0) if "kwire_requests_plain_total" in metrics else None
    return Answered(sum(map(int, versions)), int(plain[1]))


def measure(
    served: Mapping[str, Served], loads: Mapping[str, Load], rounds: int, seconds: float
) -> tuple[Rows, Shares]:
    """Every round of every load; the brokers take turns."""
    rows: Rows = {}
    shares: Shares = {}
    for name, load in loads.items():
        per_s = {broker: each.warm_up(name, load) for broker, each in served.items()}
        for number in range(rounds):
            for broker in served if number % 2 == 0 else reversed(list(served)):
                figures, share = served[broker].measured(name, load, per_s[broker], seconds)
                per_s[broker] = figures["per_s"]
                rows.setdefault(name, {}).setdefault(broker, []).append(figures)
                if share is not None:
                    shares.setdefault(name, {}).setdefault(broker, []).append(share)
                told = "" if share is None else f" plain {share:.1%}"
                print(f"round {number + 1} {broker:8} {name:44} {figures}{told}", flush=True)
    return rows, shares


def table(rows: Rows, shares: Shares, reference: str) -> str:
    """Of each broker but the first its figures beside those of the first, and the goals."""
    lines = [
        f"| 100 connections, one on its way on each | broker | a second | {reference} | ratio, "
        f"goal {RATE_GOAL} | CPU us | goal | {reference} | ratio, goal {CPU_GOAL} | p99 ms | "
        f"{reference} | plain road, goal {PLAIN_GOAL:.0%} |",
        "|---|---|---:|---:|---|---:|---|---:|---|---:|---:|---|",
    ]
    for name, by_broker in summarise(rows, reference).items():
        theirs = by_broker[reference]
        for broker, own in by_broker.items():
            if broker == reference and len(by_broker) > 1:
                continue
            share = shares.get(name, {}).get(broker)
            cells = [
                name,
                broker,
                f"{own['per_s']:,.0f}",
                f"{theirs['per_s']:,.0f}",
                _verdict(own.get("per_s ratio"), RATE_GOAL, at_least=True),
                f"{own['cpu_us']:.1f}",
                _goal(own["cpu_us"], LOADS[name].goal_us),
                f"{theirs['cpu_us']:.1f}",
                _verdict(own.get("cpu_us ratio"), CPU_GOAL, at_least=False),
                f"{own['p99_ms']:.2f}",
                f"{theirs['p99_ms']:.2f}",
                "" if share is None else _share(statistics.median(share)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _verdict(ratio: float | None, goal: float, *, at_least: bool) -> str:
    if ratio is None:
        return ""
    met = ratio >= goal if at_least else ratio <= goal
    return f"{ratio:.2f} ({'met' if met else 'missed'})"


def _goal(cpu_us: float, goal_us: float | None) -> str:
    return "" if goal_us is None else f"{goal_us:g} ({'met' if cpu_us <= goal_us else 'missed'})"


def _share(share: float) -> str:
    return f"{share:.1%} ({'met' if share >= PLAIN_GOAL else 'missed'})"


def started(cache: pathlib.Path, scratch: pathlib.Path, given: list[str]) -> dict[str, str]:
    """Name -> command of the brokers that are asked for."""
    known = commands(cache, scratch)
    if REFERENCE in known:
        known[REFERENCE] += "".join(f" {x}" for x in SETTINGS)
    known[OURS] += "".join(f" -o {x}" for x in SETTINGS)
    known[OURS] += " -o http.listeners=http://127.0.0.1:{controller_port}"
    found = {}
    for text in given or known:
        name, _, command = text.partition("=")
        if not command and name not in known:
            raise SystemExit(f"bench: no broker {name}: {', '.join(known)}, or NAME=COMMAND")
        found[name] = command or known[name]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="a name, or a part of several")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load in a round")
    parser.add_argument("--broker", action="append", default=[])
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / ".cache" / "small.json")
    options = parser.parse_args()
    only = options.only or [""]
    loads = {name: load for name, load in LOADS.items() if any(part in name for part in only)}
    if not loads:
        raise SystemExit(f"bench: none of {', '.join(LOADS)}")
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    tools = build(cache / "bench", ("blast",))
    load_average = os.getloadavg()[0]
    served: dict[str, Served] = {}
    with tempfile.TemporaryDirectory(prefix="bench-small-") as folder:
        scratch = pathlib.Path(folder)
        try:
            for name, command in started(cache, scratch, options.broker).items():
                broker = Broker(name, command, scratch / f"{name}.log")
                served[name] = Served(broker, tools, scratch)
            for each in served.values():
                each.open()
            rows, shares = measure(served, loads, options.rounds, options.seconds)
        finally:
            for each in served.values():
                each.broker.stop()
    reference = next(iter(served))
    made = table(rows, shares, reference)
    note = (
        f"Medians of {options.rounds} alternating rounds of {options.seconds:g} s a load; the load "
        f"average before was {load_average:.1f}."
    )
    print(f"\n{note}\n\n{made}\n")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"rows": rows, "shares": shares}, indent=1) + "\n")
    if options.write_docs:
        page = ROOT / "docs" / "PERFORMANCE.md"
        page.write_text(report.with_table(page.read_text(), f"{note}\n\n{made}", SECTION))


if __name__ == "__main__":
    main()
