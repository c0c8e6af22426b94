"""The recorded answers about transactions and groups are still Kafka's: a live one runs the same
scripts (needs a JVM). All of them take a quarter of an hour: by default a few are drawn. KWIRE_SETS
names some of the sets of tests/golden/coordinator, with KWIRE_EFFORT above 1 all sets run.
"""

from __future__ import annotations

import os
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.coordinator.record_sets import BY_TOPIC_ID, ask_kafka, counted, load
from tests.golden.coordinator.sets import SETS
from tests.support.coordinator_scripts import ordered
from tests.support.effort import seeds

DRAWN_FROM = ("transactions", "consumer-groups", "share-groups")
DRAWN = 6
ATTEMPTS = 3
"""At a script, on a machine that may be busy. What Kafka says otherwise it says each time."""
SLOW = ("exhausted", "times-out", "expires", "timeout")


def wanted() -> list[tuple[str, list[str]]]:
    """(set, scripts of it; none for all of them)."""
    named = [x for x in os.environ.get("KWIRE_SETS", "").split(",") if x]
    if named or len(seeds(2)) > 2:
        return [(set_name, []) for set_name in named or SETS]
    chance = random.Random(seeds(1)[0])
    return [
        (set_name, chance.sample([x for x in scripts if not any(y in x for y in SLOW)], DRAWN))
        for set_name, (_, scripts) in SETS.items()
        if set_name in DRAWN_FROM
    ]


@pytest.mark.parametrize(("set_name", "names"), wanted())
def test_recorded_answers_are_what_kafka_says(
    set_name: str, names: list[str], tmp_path: pathlib.Path
) -> None:
    recorded = {x: run for x, run in load()[set_name].items() if not names or x in names}

    def differences(name: str, run: dict[str, Any]) -> list[Any]:
        pair = _comparable(run), _comparable(recorded[name])
        if name in BY_TOPIC_ID:
            pair = counted(pair[0]), counted(pair[1])
        return list(different(*pair))

    found = ask_kafka(
        set_name,
        names,
        tmp_path,
        print,
        lambda name, run: not differences(name, run),
        ATTEMPTS,
    )
    assert sorted(set(recorded) - set(found)) == [], "Kafka has not answered"
    assert [(x, differences(x, found[x])[:5]) for x in found if differences(x, found[x])] == []


def different(found: Any, expected: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, found, expected) of what is not the same in two trees."""
    if isinstance(found, dict) and isinstance(expected, dict) and set(found) == set(expected):
        for name in found:
            yield from different(found[name], expected[name], f"{path}.{name}")
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for i, pair in enumerate(zip(found, expected, strict=True)):
            yield from different(*pair, f"{path}.{i}")
    elif found != expected:
        yield path, found, expected


def _comparable(run: dict[str, Any]) -> Any:
    records = {owner: ordered(rows) for owner, rows in run["records"].items()}
    return {"answers": run["answers"], "records": records}
