"""The table of docs/PERFORMANCE.md: ratios to Apache Kafka beside the goals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Summary = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclasses.dataclass(frozen=True)
class Goal:
    """A ratio of kwire to Kafka in one run that is to be reached: `at_least` or at most."""

    kind: str
    figure: str
    limit: float
    at_least: bool

    def met(self, ratio: float) -> bool:
        return ratio >= self.limit if self.at_least else ratio <= self.limit


GOALS: tuple[Goal, ...] = (
    Goal("produce 100 acks=1", "MBps", 1.8, True),
    Goal("produce 100 acks=1", "cpu_s_per_GB", 0.2, False),
    Goal("consume 100", "cpu_s_per_GB", 0.3, False),
    Goal("produce 1024 acks=1", "MBps", 2.5, True),
    Goal("produce 1024 acks=1", "cpu_s_per_GB", 0.25, False),
    Goal("consume 1024", "MBps", 2.0, True),
    Goal("consume 1024", "cpu_s_per_GB", 0.3, False),
    Goal("produce 10240 acks=1", "MBps", 3.0, True),
    Goal("produce 10240 acks=1", "cpu_s_per_GB", 0.2, False),
    Goal("latency at 1000/s", "p99", 1 / 3, False),
    Goal("cluster produce 1024 acks=all", "MBps", 2.0, True),
    Goal("cluster produce 1024 acks=all", "cpu_s_per_GB", 0.4, False),
    Goal("cluster latency at 1000/s", "p99", 0.2, False),
)
UNITS = {
    "MBps": "throughput",
    "cpu_s_per_GB": "broker CPU seconds per GB",
    "client_cpu_s_per_GB": "client CPU seconds per GB",
    "s": "seconds",
    "mb": "MB",
    "p50": "p50 ms",
    "p99": "p99 ms",
    "p999": "p99.9 ms",
    "requests_per_s": "requests per second",
    "cpu_us": "broker CPU us per request",
}
BEGIN, END = "<!-- measured -->", "<!-- end: measured -->"


def table(summary: Summary, name: str) -> str:
    """Rows of (what, figure, kwire, ratio to Kafka, goal)."""
    goals = {(goal.kind, goal.figure): goal for goal in GOALS}
    lines = ["| run | figure | kwire | ratio to Kafka | goal |", "|---|---|---|---|---|"]
    for kind, by_broker in summary.items():
        figures = by_broker.get(name, {})
        for key, unit in UNITS.items():
            if key not in figures:
                continue
            ratio = figures.get(f"{key} ratio")
            goal = goals.get((kind, key))
            told = ""
            if goal is not None:
                word = "at least" if goal.at_least else "at most"
                verdict = "" if ratio is None else (" (met)" if goal.met(ratio) else " (missed)")
                told = f"{word} {goal.limit:.2f}{verdict}"
            # Throughput as such says more of the machine than of the broker.
            value = "" if key == "MBps" else f"{figures[key]:g}"
            shown = "" if ratio is None else f"{ratio:.2f}"
            lines.append(f"| {kind} | {unit} | {value} | {shown} | {told} |")
    return "\n".join(lines)


def conditions(rounds: int, gigabytes: float, load: float) -> str:
    """What the table stands on, in a sentence."""
    return (
        f"Medians of {rounds} round{'s' if rounds > 1 else ''} of {gigabytes:g} GB each (100-byte "
        f"records: 0.3 of it); the load average before was {load:.1f}."
    )


def missed(summary: Summary, name: str) -> list[str]:
    """The goals that this run did not reach, in words."""
    found: list[str] = []
    for goal in GOALS:
        ratio = summary.get(goal.kind, {}).get(name, {}).get(f"{goal.figure} ratio")
        if ratio is not None and not goal.met(ratio):
            word = "at least" if goal.at_least else "at most"
            found.append(f"{goal.kind}, {UNITS[goal.figure]}: {ratio:.2f}, {word} {goal.limit:.2f}")
    return found


def with_table(page: str, made: str, section: str = "") -> str:
    """The page with its table replaced, or that of a section which is marked."""
    begin, end = BEGIN, END
    if section:
        begin, end = (mark.replace("measured", f"measured: {section}") for mark in (BEGIN, END))
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n{made}\n{end}{tail}"
