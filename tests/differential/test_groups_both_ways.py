"""Groups with members of every kind and transactions in every state go over: what kwire shows of
them is what Apache Kafka shows, started on kwire's data directory, and the other way round.

The broker is killed in between, and sessions begin anew with the next one (needs a JVM). No session
ends meanwhile, however slow the machine: a JVM may take longer to show a group than the 8 seconds
that the scripts give its members.
"""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

from kwire.testing.cluster import Broker
from tests.golden.coordinator import consumer_scripts as consumers
from tests.golden.coordinator import migration_scripts as migration
from tests.golden.coordinator import transaction_steps as transactions
from tests.golden.coordinator.transaction_scripts import SETTINGS as TRANSACTION_SETTINGS
from tests.support.coordinator_scripts import CoordinatorRun, wait_until_ready
from tests.support.group_scripts import OverTcp
from tests.support.kafka import kafka_libs, running_kafka

SETTINGS = {
    **TRANSACTION_SETTINGS,
    **consumers.SETTINGS,
    "group.consumer.session.timeout.ms": 600_000,
    "group.consumer.max.session.timeout.ms": 600_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 600_000,
    "transactional.id.expiration.ms": 600_000_000,
}
BEGUN = [
    ["topic", "@a", 2],
    transactions.begin(),
    transactions.produce(12, values=["1", "2"]),
    transactions.commit(5, offset=3),
]
GROUP = [
    consumers.describe(),
    migration.classic_describe(),
    migration.LISTED,
    consumers.fetch(),
]
TRANSACTION = [
    transactions.describe(),
    transactions.listed(),
    transactions.producers(),
    transactions.fetch(1),
    transactions.offsets(),
    transactions.offsets(stable=True),
]
#: What is done, and what is looked at before and after.
WORK: dict[str, tuple[list[Any], list[Any]]] = {
    "consumer-group": ([*consumers.two(), consumers.commit("m1", 3, 7)], GROUP),
    "consumer-group-reconciling": (
        [*consumers.STABLE, consumers.beat("m1", 2, **consumers.ALL_ROOM), consumers.join("m2")],
        GROUP,
    ),
    "consumer-group-with-a-pattern": (
        [
            ["topic", "~x", 2],
            consumers.join(
                "m1", subscribed_topic_names=[], subscribed_topic_regex={"pattern": "~x.*"}
            ),
            consumers.beat("m1", 1, wanted={"assignment": "any"}),
        ],
        GROUP,
    ),
    "static-member-that-left": (
        [
            consumers.TOPIC,
            consumers.join("m1", instance_id="@i"),
            consumers.beat("m1", -2, instance_id="@i"),
        ],
        GROUP,
    ),
    "classic-group": ([*migration.TWO_CLASSIC, migration.commit("$c", 2, 8)], GROUP),
    "mixed-group": ([*migration.ONE_CLASSIC, consumers.join("m1")], GROUP),
    "group-that-went-down": (
        [*migration.ONE_CLASSIC, migration.commit("$c", 1, 5), migration.leave("c", "$c")],
        GROUP,
    ),
    "committed": (
        [*BEGUN, transactions.end5(), transactions.described_as("CompleteCommit")],
        TRANSACTION,
    ),
    "aborted": (
        [*BEGUN, transactions.end5(committed=False), transactions.described_as("CompleteAbort")],
        TRANSACTION,
    ),
    "open": (BEGUN, TRANSACTION),
    "begun-anew": ([transactions.begin(), transactions.begin()], [transactions.describe()]),
}
Shown = dict[str, list[Any]]
PATIENCE_MS = 600_000


def patient(steps: Any) -> Any:
    """The steps with sessions and rebalances that do not end by themselves."""
    if isinstance(steps, dict):
        return {
            name: PATIENCE_MS
            if name in ("session_timeout_ms", "rebalance_timeout_ms") and value != -1
            else patient(value)
            for name, value in steps.items()
        }
    return [patient(x) for x in steps] if isinstance(steps, (list, tuple)) else steps


def work(address: str) -> tuple[dict[str, CoordinatorRun], Shown]:
    """Do all of it; the runs, and what they look at."""
    target = OverTcp(address, probes=True)
    wait_until_ready(target)
    runs: dict[str, CoordinatorRun] = {}
    for name, (steps, _) in WORK.items():
        runs[name] = CoordinatorRun(target, name)
        runs[name].run(patient(steps))
    return runs, look(runs, target)


def look(runs: dict[str, CoordinatorRun], target: OverTcp) -> Shown:
    shown = {}
    for name, run in runs.items():
        run._target = target
        shown[name] = run.run(WORK[name][1])
    target.close()
    return shown


def look_again(runs: dict[str, CoordinatorRun], address: str) -> Shown:
    target = OverTcp(address, probes=True)
    wait_until_ready(target)
    return look(runs, target)


def differences(found: Shown, expected: Shown) -> list[Any]:
    """(name, number of the look, found, expected) of what is not the same."""
    assert list(found) == list(expected)
    return [
        (name, i, *pair)
        for name in expected
        for i, pair in enumerate(zip(found[name], expected[name], strict=True))
        if pair[0] != pair[1]
    ]


def test_kafka_shows_what_kwire_showed(tmp_path: pathlib.Path) -> None:
    kafka_libs()
    data = tmp_path / "kwire"
    with Broker(data_dir=data, options=SETTINGS) as broker:
        runs, shown = work(broker.bootstrap)
        broker.kill()
    copy = tmp_path / "kafka" / "node-1" / "data"
    shutil.copytree(data, copy)
    (copy / ".lock").unlink(missing_ok=True)
    properties = {name: str(value) for name, value in SETTINGS.items()}
    with running_kafka(tmp_path / "kafka", properties) as address:
        assert differences(look_again(runs, address), shown) == []


def test_kwire_shows_what_kafka_showed(tmp_path: pathlib.Path) -> None:
    kafka_libs()
    properties = {name: str(value) for name, value in SETTINGS.items()}
    with running_kafka(tmp_path / "kafka", properties) as address:
        runs, shown = work(address)
    data = tmp_path / "kafka" / "node-1" / "data"
    with Broker(data_dir=data, options=SETTINGS) as broker:
        assert differences(look_again(runs, broker.bootstrap), shown) == []
