"""Coordinators that load their partitions, asked all that groups and transactions ask.

`python -m tests.support.machine.record` records Apache Kafka's answers.
"""

from __future__ import annotations

from kwire.protocol import messages as m
from tests.support.cluster_fault_answers import (
    GROUP,
    HERE,
    TRANSACTIONAL_ID,
    Failing,
    to_groups,
    to_transactions,
)
from tests.support.fault_answers import shown
from tests.support.machine.kafka_machine import KafkaMachine
from tests.support.machine.scenes import (
    GROUP_KEY,
    TRANSACTION_KEY,
    commit,
    find,
    producer_of,
)
from tests.support.machine.shim import READS
from tests.support.wire import WireClient

COORDINATORS = 2
VERSIONED = "offsets of a transaction"
"""Old versions are answered by another code."""
LOGS = [
    f"/{topic}-0/00000000000000000000.log"
    for topic in ("__consumer_offsets", "__transaction_state")
]


def requests() -> list[Failing]:
    """At the versions whose answers differ."""
    return [
        *to_groups(GROUP),
        *(
            one._replace(versions=(0, 1, 2, 3)) if one.label == VERSIONED else one
            for one in to_transactions(GROUP, TRANSACTIONAL_ID)
        ),
        Failing("list of groups", m.ListGroupsRequest(), (0, 5)),
        Failing("list of transactions", m.ListTransactionsRequest(), (0, 1)),
    ]


def loading_answers(machine: KafkaMachine) -> dict[str, str]:
    """Label -> the response in hex. Stops the node that runs, and starts it again."""
    with WireClient(machine.bootstrap) as client:
        client.create_topic(HERE)
        find(client, GROUP, GROUP_KEY)
        commit(client, GROUP, HERE, 1)
        find(client, TRANSACTIONAL_ID, TRANSACTION_KEY)
        producer_of(client, TRANSACTIONAL_ID)
    machine.stop()
    found: dict[str, str] = {}
    with machine.shim.held(READS):
        machine.start(*LOGS)
        machine.shim.wait_held(READS, COORDINATORS)
        with WireClient(machine.bootstrap) as client:
            for failing in requests():
                for version in failing.versions:
                    answer = client.call(failing.request, version)
                    label = f"{failing.label} v{version}"
                    found[label] = shown(failing.request, answer, version)
    return found
