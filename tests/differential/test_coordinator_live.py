"""The recorded answers about transactions and groups are still Kafka's: a live one runs the same
scripts (needs a JVM, and minutes). KWIRE_SETS names some of the sets of tests/golden/coordinator.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from tests.golden.coordinator.record_sets import ask_kafka, load
from tests.golden.coordinator.sets import SETS
from tests.support.coordinator_scripts import ordered

WANTED = [x for x in os.environ.get("KWIRE_SETS", "").split(",") if x] or list(SETS)
# Which of two classic members gets what depends on their random ids.
BY_CHANCE = ("upgrade-while-rebalancing",)


@pytest.mark.parametrize("set_name", WANTED)
def test_recorded_answers_are_what_kafka_says(set_name: str, tmp_path: pathlib.Path) -> None:
    recorded = load()[set_name]
    found = ask_kafka(set_name, [], tmp_path, print)
    assert set(found) == set(recorded)
    different = [
        x for x in found if x not in BY_CHANCE and _comparable(found[x]) != _comparable(recorded[x])
    ]
    shown = [(x, _first_difference(found[x], recorded[x])) for x in different]
    assert shown == []


def _first_difference(found: dict[str, Any], recorded: dict[str, Any]) -> Any:
    for i, pair in enumerate(zip(found["answers"], recorded["answers"], strict=False)):
        if pair[0] != pair[1]:
            return i, pair
    return "records"


def _comparable(run: dict[str, Any]) -> Any:
    return run["answers"], {owner: ordered(rows) for owner, rows in run["records"].items()}
