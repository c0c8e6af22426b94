"""What share groups change at `/metrics`: one conversation, for any broker with the exporter."""

from __future__ import annotations

import math

from kwire.testing.cluster import wait_for
from tests.support.metrics import Comparable, Scrape, changes, scrape
from tests.support.share.dialogue import World
from tests.support.share.member import ACCEPT, GAP, REJECT, RELEASE, RENEW

PREFIXES = (
    "kafka_server_brokertopicmetrics_failedshare",
    "kafka_server_brokertopicmetrics_totalshare",
    "kafka_server_delayedsharefetchmetrics_",
    "kafka_server_group_coordinator_metrics_group_count",
    "kafka_server_group_coordinator_metrics_share_",
    "kafka_server_share_coordinator_",
    "kafka_server_sharegroupmetrics_",
    "kafka_server_sharepartitionmetrics_",
    "kafka_server_sharesessioncache_",
)
"""What metrics of share groups begin with."""
BY_TIME = ("_rate", "_avg", "_max", "timems_count")
"""What changes with the time alone, and how often Kafka looks for records within one fetch."""
LATER = ("_group_count",)
"""Kafka counts groups once a minute."""


def measured_shares(bootstrap: str, url: str) -> Comparable:
    """What acknowledgements, fetches and sessions change, from the first acquired record on."""
    world = World(bootstrap, "metered")
    member, other, key = world.joined(), world.member(), world.key
    before = quiet(url)
    member.fetch()
    member.fetch(wait_ms=10, bytes_min=1)
    member.acknowledge({key: [(0, 4, [ACCEPT])]})
    member.acknowledge({key: [(0, 4, [ACCEPT])]})
    member.acknowledge({key: [(5, 5, [RELEASE])]})
    member.acknowledge({key: [(6, 7, [REJECT, REJECT])]})
    member.acknowledge({key: [(8, 9, [RENEW])]}, is_renewal=True)
    member.acknowledge({key: [(10, 10, [GAP])]})
    member.acknowledge({key: [(11, 11, [ACCEPT]), (100, 110, [ACCEPT])]})
    member.acknowledge({(b"1" * 16, 0): [(6, 6, [ACCEPT])]})
    member.acknowledge({(key[0], 7): [(6, 6, [ACCEPT])]})
    member.fetch(acknowledge={key: [(12, 12, [ACCEPT])]})
    member.fetch(acknowledge={key: [(12, 12, [ACCEPT])]})
    member.fetch([(b"1" * 16, 3)])
    member.fetch(forgotten=[(b"1" * 16, 3)])
    member.fetch(epoch=1000)
    other.fetch(epoch=3)
    other.fetch([key])
    member.close()
    found = quiet(url)
    other.fetch(epoch=-1)
    world.close()
    return comparable(before, found)


def quiet(url: str) -> Scrape:
    """A scrape between two that show the same of share groups."""
    seen: list[Scrape] = [_of_shares(url)]

    def is_quiet() -> bool:
        seen.append(_of_shares(url))
        return not _changed(seen[-2], seen[-1])

    wait_for(is_quiet, "two scrapes show the same")
    return seen[-1]


def _of_shares(url: str) -> Scrape:
    types, values = scrape(url, as_openmetrics=False)
    wanted = {key: value for key, value in values.items() if key[0].startswith(PREFIXES)}
    return Scrape({name: types[name] for name, _ in wanted}, wanted)


def _changed(before: Scrape, after: Scrape) -> list[tuple[str, list[tuple[str, str]], float]]:
    """By how much; what has no value yet has not changed."""
    return sorted(
        (name, sorted(labels), value)
        for (name, labels), value in changes(before, after, _steady(after)).items()
        if not math.isnan(value)
    )


def _steady(found: Scrape) -> set[str]:
    """The names of the metrics that only change when something is asked."""
    return {
        name
        for name, labels in found.values
        if not name.endswith((*BY_TIME, *LATER))
        and "_time_ms_" not in name
        and "quantile" not in dict(labels)
    }


def comparable(before: Scrape, after: Scrape) -> Comparable:
    """Types and label sets of all, and what the conversation has changed."""
    labels = {
        name: sorted({tuple(sorted(dict(key[1]))) for key in after.values if key[0] == name})
        for name in sorted(after.types)
    }
    return Comparable(
        {name: after.types[name] for name in labels},
        {name: [list(each) for each in sets] for name, sets in labels.items()},
        _changed(before, after),
    )
