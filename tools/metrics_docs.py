"""docs/METRICS.md: every metric of Apache Kafka 4.4, and what is shown of it; then kwire's own.

Kafka's are those of `tests/golden/data/kafka_metrics.tsv.gz`: the MBeans and attributes of a
running node. Their names are made as `tests/support/jmx/rules.yml` makes them.
"""

from __future__ import annotations

import gzip
import pathlib
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kwire.metrics.families import QUANTILES, families

ROOT = pathlib.Path(__file__).resolve().parents[1]
FACTS = ROOT / "tests" / "golden" / "data" / "kafka_metrics.tsv.gz"
TEXTS = ROOT / "tools" / "metrics_reasons.tsv"
QUOTAS = ("Produce", "Fetch", "Request", "ControllerMutation")
HISTOGRAM = ("Ms", "Us", "Bytes", "Sizes", "Ns")

HEAD = """\
# Metrics

`/metrics` of the HTTP listener (`kwire serve` names it; `http.listeners`) shows OpenMetrics. Names,
labels and types are those that the JMX exporter gives Apache Kafka's MBeans under
[rules of ours](../tests/support/jmx/rules.yml), which make the names most dashboards are built on:
`kafka_DOMAIN_TYPE_NAME` in lower case, meters as counters named `_total`, histograms as quantiles
beside a `_count`. Names that clients choose are cut where they take more than 384 bytes in JSON,
with a hash that keeps them apart. [ADR 30](adr/0030-metrics.md) says how is counted, and what it
costs. This page is made by `make docs`.

## Kafka's
Of the {count} attributes of Apache Kafka 4.4's MBeans {same} are shown the same and {differs}
with a difference; {left_out} the usual rules leave out, {unbuilt} are of streams groups,
which are not built yet, and {without} have no counterpart here.

{table}

## kwire's own

{own}

## What clients push
Clients of KIP-714 (Java's from 3.7, librdkafka from 2.5) send metrics of their own where a
subscription asks for them:

```
kafka-client-metrics.sh --bootstrap-server HOST:PORT --alter --name all \\
  --metrics org.apache.kafka. --interval 10000
```
Without Java:
```python
import asyncio

from kwire.client.cluster import Cluster
from kwire.client.configs import Configs, Resource
from kwire.client.settings import ConnectionSettings

async def main() -> None:
    async with Cluster(ConnectionSettings("HOST:PORT")) as cluster:
        wanted = {{"metrics": "org.apache.kafka.", "interval.ms": "10000"}}
        await Configs(cluster).alter(Resource.CLIENT_METRICS, "all", wanted)

asyncio.run(main())
```

A broker tells its clients that it takes them where `http.listeners` names a listener that serves
metrics, as in `kwire serve -o http.listeners=http://127.0.0.1:8080`; the one that `kwire serve`
opens by itself does not count. They are shown beside the broker's:
`org.apache.kafka.producer.record.send.total` as
`org_apache_kafka_producer_record_send_total`, with the labels `client_instance_id`, `client_id`,
`client_software_name`, `client_software_version` and those of the client. Other names than
`org.apache.kafka.` begin with `client_`.

Counts are added up over pushes; they begin at 0 with the HTTP process. Histograms (exponential ones
with their buckets' upper bounds) and summaries are shown as Prometheus has them, with up to 200
buckets or quantiles. What cannot be shown is counted in `kwire_client_telemetry_left_out_total`. A
series is shown until its client has not sent it for three of its intervals, five minutes at least:
that of a partition it no longer has, or that it is no longer asked for, goes. Bounds:
1,000 clients, 1,000 series of each, 50,000 series and 1,000 names in all; 2,000 points of a push;
16 MB of pushes that no scrape has read.
"""


class Shown(NamedTuple):
    """What is shown of one attribute: `outcome` is same, differs or not."""

    mbean: str
    attribute: str
    name: str
    outcome: str
    text: str


def exported_name(mbean: str, attribute: str) -> str:
    """The name by the rules; empty where they leave an attribute out."""
    domain, _, keys = mbean.partition(":")
    pairs = dict(pair.partition("=")[::2] for pair in keys.split(","))
    kind, name = pairs["type"], pairs.get("name", "")
    found = ""
    if not name:
        found = f"quota_{attribute}" if kind in QUOTAS else f"{kind}_{attribute}"
    elif attribute == "Count" and name.endswith("PerSec"):
        found = f"{kind}_{name.removesuffix('PerSec')}_total"
    elif attribute == "Count" and name.endswith(HISTOGRAM):
        found = f"{kind}_{name}_count"
    elif attribute == "Count" and name.endswith("Rate"):
        found = f"{kind}_{name}_total"
    elif attribute == "MeanRate" and name.endswith("Percent"):
        found = f"{kind}_{name.removesuffix('Percent')}_percent"
    elif attribute == "Value" or attribute.endswith("thPercentile"):
        found = f"{kind}_{name}"
    return re.sub(r"\W", "_", f"{domain}_{found}").lower() if found else ""


def reasons() -> list[tuple[re.Pattern[str], str]]:
    """(pattern of `mbean attribute`, why it is not shown), the first that fits counts."""
    lines = TEXTS.read_text().splitlines()[1:]
    return [(re.compile(pattern), text) for pattern, _, text in (x.partition("\t") for x in lines)]


def all_shown() -> list[Shown]:
    """Every attribute of Kafka's. KeyError names one that neither is shown nor has a reason."""
    known = families()
    by_name = {**known, **{f"{n}_count": x for n, x in known.items() if x.kind == QUANTILES}}
    why_not = reasons()
    found = []
    for line in gzip.decompress(FACTS.read_bytes()).decode().splitlines()[1:]:
        mbean, attribute, _ = line.split("\t")
        name = exported_name(mbean, attribute)
        if name == "kafka_server_raft_metrics_current_state":
            name = "kafka_server_raftmetrics_current_state"
        family = by_name.get(name)
        if family is not None:
            outcome = "differs" if family.differs else "same"
            found.append(Shown(mbean, attribute, name, outcome, family.differs))
            continue
        texts = [text for pattern, text in why_not if pattern.search(f"{mbean} {attribute}")]
        if not texts:
            raise KeyError(f"{mbean} {attribute}: tools/metrics_reasons.tsv has no reason")
        found.append(Shown(mbean, attribute, name, "not", texts[0]))
    return found


def _rows(shown: Iterable[Shown]) -> list[tuple[object, ...]]:
    """One row for the attributes of an MBean that have the same to be said."""
    together: dict[tuple[str, str, str, str], list[str]] = {}
    for each in shown:
        name = each.name if each.outcome != "not" else ""
        together.setdefault((each.mbean, each.outcome, each.text, name), []).append(each.attribute)
    return [
        (f"`{mbean}`", ", ".join(attributes), outcome, f"`{name}`" if name else "", text)
        for (mbean, outcome, text, name), attributes in together.items()
    ]


def page(markdown: Callable[[tuple[str, ...], list[tuple[object, ...]]], str]) -> str:
    """The whole page; `markdown(columns, rows)` makes a table."""
    shown = all_shown()
    taken = {each.name.removesuffix("_count") for each in shown} | {each.name for each in shown}
    own: list[tuple[object, ...]] = [
        (f"`{family.name}`", family.kind, family.help)
        for family in families().values()
        if family.name not in taken
    ]
    counts = {kind: sum(x.outcome == kind for x in shown) for kind in ("same", "differs", "not")}
    left_out = sum(x.outcome == "not" and "usual rules" in x.text for x in shown)
    unbuilt = sum(x.outcome == "not" and "groups are not built" in x.text for x in shown)
    columns = ("MBean", "attributes", "shown", "as", "difference, or why not")
    return HEAD.format(
        count=f"{len(shown):,}",
        same=counts["same"],
        differs=counts["differs"],
        left_out=left_out,
        unbuilt=unbuilt,
        without=counts["not"] - left_out - unbuilt,
        table=markdown(columns, _rows(shown)),
        own=markdown(("name", "type", "what it says"), own),
    )
