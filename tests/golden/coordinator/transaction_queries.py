"""Request scripts about looking at transactions: DescribeTransactions, ListTransactions,
DescribeProducers, FindCoordinator."""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator.transaction_steps import (
    OTHER,
    TOPIC,
    add,
    begin,
    describe,
    described_as,
    end,
    listed,
    produce,
    producers,
)

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


script(
    "describe",
    TOPIC,
    OTHER,
    begin(),
    add(topics={"@b": [0], "@a": [1, 0]}),
    describe("@t", "@unknown"),
    describe("", "@t"),
    ["send", "a", "DescribeTransactions", 0, {"transactional_ids": []}],
    end(),
    described_as("CompleteCommit"),
)
script(
    "list",
    TOPIC,
    begin(),
    begin("q", transactional_id="@u"),
    add(),
    *[listed(v) for v in range(3)],
    *[listed(0, state_filters=[s]) for s in ("Ongoing", "ongoing", "Empty", "Bogus", "")],
    listed(0, state_filters=["Empty", "Ongoing", "Bogus"]),
    listed(0, producer_id_filters=["$p"]),
    listed(0, producer_id_filters=["$p", "$q"], state_filters=["Ongoing"]),
    listed(0, producer_id_filters=[{"plus": ["p", 1000]}]),
    listed(1, duration_filter=0),
    listed(1, duration_filter=100_000),
    listed(1, duration_filter=-1),
    listed(1, duration_filter=-5),
    *[
        listed(2, transactional_id_pattern={"pattern": p})
        for p in ("~t", "~[tu]", "~", ".*", "", "[", "(?=x)")
    ],
    listed(2, transactional_id_pattern=None),
    end(),
)
script(
    "describe-producers",
    TOPIC,
    producers("@a", 0, 1, 9),
    producers("@none"),
    begin(),
    add(),
    produce(),
    producers("@a", 0, 1),
    end(),
    described_as("CompleteCommit"),
    producers(),
    ["send", "a", "DescribeProducers", 0, {"topics": []}],
)
script(
    "find-coordinator",
    *[
        ["send", "a", "FindCoordinator", v, {"key": "@t", "key_type": kind}]
        for v in (1, 3)
        for kind in (1, 7)
    ],
    ["send", "a", "FindCoordinator", 4, {"key_type": 1, "coordinator_keys": ["@t", ""]}],
)
