"""The metrics by name: what kind each is, what it says, and where it differs from Apache Kafka's.

    name kind help differs     `data/families.tsv`, a line a metric

Kind is gauge, counter (the name ends with _total), quantiles: a gauge by quantile, and beside it
how many there were, NAME_count; or rate: a gauge that the exposition makes of what NAME_total or
NAME_count has grown by between two scrapes.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

GAUGE, COUNTER, QUANTILES, RATE = "gauge", "counter", "quantiles", "rate"

RATE_OF = {
    "kafka_server_raft_metrics_append_records_rate": "kwire_raft_appended_records_total",
    "kafka_server_raft_metrics_fetch_records_rate": "kwire_raft_fetched_records_total",
}
"""Where Apache Kafka has a rate alone: of which counter of ours it is."""


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


@cache
def rates() -> dict[str, str]:
    """The name of a count -> that of its rate."""
    found = {}
    for name, family in families().items():
        if family.kind == RATE:
            start = name.removesuffix("_rate")
            counts = (f"{start}_total", f"{start}_count", RATE_OF.get(name, ""))
            found.update({count: name for count in counts if count in families()})
    return found
