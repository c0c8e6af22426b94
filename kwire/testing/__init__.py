"""For tests against Kafka: brokers in a millisecond's reach, and what tests ask of them.

    from kwire.testing import Broker, until

    with Broker() as broker:                         # `async with` too
        client = SomeClient(broker.bootstrap)
        broker.topic("orders").assert_records("first", ("key", "second"))
        broker.kill(); broker.start()

With pytest the fixture `kafka` is such a broker, new for each test, and `kafka_cluster` three of
them (docs/TESTING.md).

cluster/ and simulation/ are what kwire's own tests run on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.faults.errors import FaultError as FaultError
    from kwire.testing.broker import Broker as Broker
    from kwire.testing.broker_cluster import Cluster as Cluster
    from kwire.testing.brokers.runner import BrokerFailed as BrokerFailed
    from kwire.testing.container import KafkaContainer as KafkaContainer
    from kwire.testing.groups import Group as Group
    from kwire.testing.records import Record as Record
    from kwire.testing.records import assert_records as assert_records
    from kwire.testing.simulation import ExactlyOnce as ExactlyOnce
    from kwire.testing.simulation import KeyOrder as KeyOrder
    from kwire.testing.simulation import NothingDoubled as NothingDoubled
    from kwire.testing.simulation import NothingLost as NothingLost
    from kwire.testing.simulation import OffsetsForward as OffsetsForward
    from kwire.testing.simulation import simulate as simulate
    from kwire.testing.simulation import simulated_cluster as simulated_cluster
    from kwire.testing.simulation import watch as watch
    from kwire.testing.snapshots import ClusterSnapshot as ClusterSnapshot
    from kwire.testing.snapshots import Snapshot as Snapshot
    from kwire.testing.topics import Topic as Topic
    from kwire.testing.waiting import NotInTime as NotInTime
    from kwire.testing.waiting import until as until
    from kwire.testing.waiting import wait_until as wait_until

# Imported at their first use: the pytest plugin is loaded by every run of pytest.
_HOMES = {
    "Broker": "broker",
    "BrokerFailed": "brokers.runner",
    "Cluster": "broker_cluster",
    "ClusterSnapshot": "snapshots",
    "FaultError": "faults",
    "Group": "groups",
    "KafkaContainer": "container",
    "NotInTime": "waiting",
    "Record": "records",
    "Snapshot": "snapshots",
    "Topic": "topics",
    "assert_records": "records",
    "until": "waiting",
    "wait_until": "waiting",
    **dict.fromkeys(
        (
            *("simulate", "simulated_cluster", "watch"),
            *("NothingLost", "NothingDoubled", "KeyOrder", "ExactlyOnce", "OffsetsForward"),
        ),
        "simulation",
    ),
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
