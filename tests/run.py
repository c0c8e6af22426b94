"""Run groups of tests, as many at once as the machine has cores for, and print what came of them.

    python -m tests.run test            every group that gates a change (`make test`)
    python -m tests.run gate            the other clients and the longer runs (`make compat-gate`)
    python -m tests.run unit golden     some groups by name

What fails of real clients and processes (the groups marked `real`) is run once more: the second
run decides, and the first failure is told by name. Prints a table with minutes a group, what was
skipped and why, the failures, `N passed, N failed, N skipped`, and as the last line the names of
what failed. Exit status 1 when something failed. Logs and the verdict: `.cache/test-logs`.
With KWIRE_TEST_MINUTES no group starts after that many minutes: what is left is skipped by name.
KWIRE_TEST_CORES is how many cores groups may use together (two): with 1 they run one by one,
beside those that mostly wait.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time

from tests.runner.groups import GATE, TEST, Context, Group
from tests.runner.lanes import cores_of_machine, run_in_lanes
from tests.runner.model import ROOT, Paths, Result, end_all
from tests.runner.served import BrokerDidNotStart, ServedBrokers

#: Of a failure's first line, what the last line of the output repeats.
NAME_WIDTH = 160


def _selected(words: list[str]) -> list[Group]:
    if words in ([], ["test"]):
        return list(TEST)
    if words == ["gate"]:
        return list(GATE)
    by_name = {group.name: group for group in (*TEST, *GATE)}
    unknown = [word for word in words if word not in by_name]
    if unknown:
        raise SystemExit(f"no such group: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[word] for word in words]


def _run(group: Group, paths: Paths, brokers: ServedBrokers, minutes: float) -> Result:
    minutes_max = float(os.environ.get("KWIRE_TEST_MINUTES") or "inf")
    if minutes > minutes_max:
        return Result.skip(f"{group.name}: the {minutes_max:g} minutes of this run are over")
    missing = group.missing()
    if missing is not None:
        return Result.skip(missing)
    try:
        return group.judged(Context(group.name, group.limit_s, paths, brokers))
    except BrokerDidNotStart as error:
        return Result.failure(f"{group.name}: {error}")


def main(words: list[str]) -> int:
    """Run the groups named (or `test`, `gate`); returns the exit status."""
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    logs = ROOT / ".cache" / "test-logs"
    for directory in (cache, logs):
        directory.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    paths = Paths(cache, logs, sys.executable)
    brokers = ServedBrokers(paths.python, logs)
    total = Result()
    table: list[str] = []
    began = time.monotonic()

    def run(group: Group) -> tuple[Result, str]:
        started = time.monotonic()
        _print(f"{group.name} ...")
        result = _run(group, paths, brokers, (started - began) / 60)
        line = _line(group, result, (time.monotonic() - started) / 60)
        notes = [note for note in result.notes if not note.startswith("skipped")]
        _print(*(f"    {text}" for text in (line, *notes)))
        return result, line

    try:
        for result, line in run_in_lanes(_selected(words), cores_of_machine(), run):
            total.add(result)
            table.append(line)
    finally:
        end_all()
        brokers.close()
    print()
    print(f"{'group':28} {'passed':>6} {'failed':>6} {'skipped':>7} {'minutes':>8}")
    print("\n".join(table))
    print(f"{'all':28} {'':6} {'':6} {'':7} {(time.monotonic() - began) / 60:8.1f}")
    verdict = verdict_of(total)
    print(verdict)
    name = "-".join(words).replace(" ", "-") or "test"
    (logs / f"verdict-{name}.txt").write_text(verdict + "\n")
    return 1 if total.failed else 0


def _print(*lines: str) -> None:
    """In one piece: groups that run at once do not break each other's lines."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _line(group: Group, result: Result, minutes: float) -> str:
    counts = f"{result.passed:6} {result.failed:6} {result.skipped:7}"
    return f"{group.name:28} {counts} {minutes:8.1f}"


def verdict_of(total: Result) -> str:
    """What is told in the end. The failures come last: an end of a log is enough to see them."""
    failed = [note for note in total.notes if not note.startswith(("skipped", "again"))]
    lines = _titled("skipped", [note for note in total.notes if note.startswith("skipped")])
    lines += _titled(
        "failed once, run again", [note for note in total.notes if note.startswith("again")]
    )
    lines += _titled("failed", failed)
    lines.append(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    if total.failed:
        names = [note.splitlines()[0][:NAME_WIDTH] for note in failed]
        lines.append(f"failed: {'; '.join(names)}")
    return "\n".join(lines)


def _titled(title: str, notes: list[str]) -> list[str]:
    return [f"{title}:", *(f"  {note}" for note in notes), ""] if notes else []


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
