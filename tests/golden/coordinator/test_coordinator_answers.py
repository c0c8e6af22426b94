"""Transactions and consumer groups answer what Apache Kafka 4.4 answered to the same scripts, and
leave the same records in `__consumer_offsets` and `__transaction_state` (see record_sets.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.coordinator.record_sets import BY_TOPIC_ID, counted, load
from tests.golden.coordinator.sets import DIFFERENCES, FEATURE, SETS
from tests.support.coordinator_scripts import (
    CoordinatorRun,
    SimulatedBroker,
    ordered,
    wait_until_ready,
)

RECORDED = load()
CASES = [(set_name, name) for set_name, (_, scripts) in SETS.items() for name in scripts]


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[str, SimulatedBroker]]:
    """One broker a set, started when it is first needed."""
    started: dict[str, SimulatedBroker] = {}
    yield started
    for broker in started.values():
        broker.stop()


SHARE_GROUPS, TRANSACTIONS = "share-groups", "transactions"


def broker_of(set_name: str, started: dict[str, SimulatedBroker]) -> SimulatedBroker:
    if set_name not in started:
        settings = {name: value for name, value in SETS[set_name][0].items() if name != FEATURE}
        broker = started[set_name] = SimulatedBroker(settings)
        if FEATURE in SETS[set_name][0]:
            broker.set_feature(FEATURE, SETS[set_name][0][FEATURE])
        wait_until_ready(broker)
        if set_name == TRANSACTIONS:  # its scripts were recorded behind others
            broker.take_producer_id()
        if set_name == SHARE_GROUPS:  # the first of them wait for the share coordinator to load
            warm_up = CoordinatorRun(broker, "warm-up")
            warm_up.run(SETS[set_name][1]["share-join"])
            warm_up.records()
    return started[set_name]


@pytest.mark.parametrize(("set_name", "name"), CASES, ids=[f"{a}-{b}" for a, b in CASES])
def test_script(set_name: str, name: str, brokers: dict[str, SimulatedBroker]) -> None:
    recorded = RECORDED[set_name][name]
    steps = SETS[set_name][1][name]
    target = broker_of(set_name, brokers)
    run = CoordinatorRun(target, name)
    answers = json.loads(json.dumps(run.run(steps)))
    if name in BY_TOPIC_ID:
        answers, recorded = counted(answers), counted(recorded)
    asked = [x for x in steps if x[0] in ("send", "recv", "quiet", "settled", "until")]
    assert len(answers) == len(recorded["answers"]) == len(asked)
    different = DIFFERENCES.get(name, ((), ""))[0]
    for i, (step, ours, kafkas) in enumerate(zip(asked, answers, recorded["answers"], strict=True)):
        assert (ours != kafkas) if i in different else (ours == kafkas), (i, step)
    records: dict[str, Any] = json.loads(json.dumps(run.records()))
    if name in BY_TOPIC_ID:
        records = counted(records)
    target.close()
    if different:
        return
    assert set(records) == set(recorded["records"])
    for owner, ours in records.items():
        assert ordered(ours) == ordered(recorded["records"][owner]), owner
