"""The metrics by name: what kind each is, what it says, and where it differs from Apache Kafka's.

    name kind help differs     `data/families.tsv`, a line a metric

Kind is gauge, counter (the name ends with _total) or quantiles: a gauge by quantile, and beside it
how many there were, NAME_count.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

GAUGE, COUNTER, QUANTILES = "gauge", "counter", "quantiles"


class Family(NamedTuple):
    """One metric. `differs` is empty where it is as in Apache Kafka, or kwire's own."""

    name: str
    kind: str
    help: str
    differs: str


@cache
def families() -> dict[str, Family]:
    """By name, in the order in which they are shown."""
    text = (files("kwire.metrics") / "data" / "families.tsv").read_text()
    found = [Family(*line.split("\t")) for line in text.splitlines()[1:]]
    return {family.name: family for family in found}
