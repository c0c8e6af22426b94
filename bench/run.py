"""`make bench`: kwire beside Apache Kafka, on the same clients, in one run.

    bench/run.py [--quick] [--rounds N] [--minutes N] [--only SIZE,...] [--write-docs]
                 [--json FILE] [--broker NAME=COMMAND ...]

A COMMAND serves on {port} with its data in {dir}; without --broker they are Kafka (needs Java, its
jars come by `make peers`) and kwire. Prints each round and the ratios, writes JSON to
.cache/bench.json, and with --write-docs the table of docs/PERFORMANCE.md. With --minutes no round
is begun that would end later, by the time the longest one took.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import report  # noqa: E402
from bench.build import build  # noqa: E402
from bench.side_by_side import Plan, measure, summarise  # noqa: E402

REFERENCE = "kafka"
OURS = "kwire"


def commands(cache: pathlib.Path, scratch: pathlib.Path) -> dict[str, str]:
    """The two brokers' command lines; Kafka only where it can run."""
    found: dict[str, str] = {}
    libs = cache / "kafka" / "libs"
    if shutil.which("java") and libs.is_dir():
        found[REFERENCE] = f"{ROOT}/bench/kafka.sh {libs} {{dir}} {{port}}"
    else:
        print("bench: no Java or no jars of Kafka (make peers): measuring kwire alone")
    found[OURS] = f"{sys.executable} -m kwire serve --listen 127.0.0.1:{{port}} --data-dir {{dir}}"
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round with little data")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--only", help="record sizes in bytes, comma-separated")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / ".cache" / "bench.json")
    parser.add_argument("--broker", action="append", default=[], metavar="NAME=COMMAND")
    return parser.parse_args()


def main() -> int:
    """Measure and report; the exit status is 0 also when a goal was missed."""
    options = arguments()
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    plan = Plan()
    if options.quick:
        plan = Plan(gigabytes=0.2, one_record_requests=20_000, latency_s=4, rounds=1, warm_gb=0)
    changes: dict[str, object] = {}
    if options.rounds:
        changes["rounds"] = options.rounds
    if options.minutes:
        changes["seconds_max"] = options.minutes * 60
    if options.only:
        changes["sizes"] = tuple(int(size) for size in options.only.split(","))
    plan = Plan(**{**vars(plan), **changes})  # type: ignore[arg-type]
    load = os.getloadavg()[0]
    tools = build(cache / "bench")
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        brokers = dict(text.split("=", 1) for text in options.broker)
        brokers = brokers or commands(cache, pathlib.Path(scratch))
        logs = ROOT / ".cache" / "bench-logs"
        logs.mkdir(parents=True, exist_ok=True)
        rows = measure(plan, brokers, tools, logs, scratch)
    reference = next(iter(brokers))
    rounds = len(rows["start"][reference])
    note = report.conditions(rounds, plan.gigabytes, load)
    summary = summarise(rows, reference)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1) + "\n")
    ours = OURS if OURS in brokers else list(brokers)[-1]
    made = report.table(summary, ours)
    print(f"\n{note}\n\n{made}\n")
    for line in report.missed(summary, ours):
        print(f"goal missed: {line}")
    if options.write_docs:
        page = ROOT / "docs" / "PERFORMANCE.md"
        page.write_text(report.with_table(page.read_text(), f"{note}\n\n{made}"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
