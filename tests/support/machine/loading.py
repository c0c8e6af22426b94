"""Coordinators that load their partitions, asked all that groups and transactions ask.

`python -m tests.support.machine.record` records Apache Kafka's answers.
"""

from __future__ import annotations

from kwire.protocol import messages as m
from tests.support.cluster_fault_answers import (
    GROUP,
    HERE,
    MEMBER_ID,
    TRANSACTIONAL_ID,
    Failing,
    to_groups,
    to_transactions,
    with_topic_ids,
)
from tests.support.fault_answers import shown
from tests.support.machine.kafka_machine import KafkaMachine
from tests.support.machine.scenes import (
    GROUP_KEY,
    TRANSACTION_KEY,
    commit,
    create,
    find,
    producer_of,
)
from tests.support.machine.shim import READS
from tests.support.wire import WireClient

COORDINATORS = 2
SPARED = "offsets of a share group, by topic"
"""They are asked of the share coordinator, whether or not that of the group loads."""
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
        *_of_share_groups(GROUP),
        Failing("list of groups", m.ListGroupsRequest(), (0, 5)),
        Failing("list of transactions", m.ListTransactionsRequest(), (0, 1)),
    ]


def _of_share_groups(group: str) -> list[Failing]:
    describe, alter = m.DescribeShareGroupOffsetsRequest, m.AlterShareGroupOffsetsRequest
    delete = m.DeleteShareGroupOffsetsRequest
    described = describe.DescribeShareGroupOffsetsRequestTopic(topic_name=HERE, partitions=[0])
    of_group = describe.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[described])
    altered = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    of_topic = alter.AlterShareGroupOffsetsRequestTopic(topic_name=HERE, partitions=[altered])
    deleted = delete.DeleteShareGroupOffsetsRequestTopic(topic_name=HERE)
    heartbeat = m.ShareGroupHeartbeatRequest(
        group_id=group, member_id=MEMBER_ID, member_epoch=0, subscribed_topic_names=[HERE]
    )
    return [
        Failing("share heartbeat", heartbeat, (1,)),
        Failing(SPARED, describe(groups=[of_group]), (0, 1)),
        Failing("offsets of a share group", describe(groups=[of_group.copy(topics=None)]), (0, 1)),
        Failing("offsets set", alter(group_id=group, topics=[of_topic]), (0,)),
        Failing("offsets deleted", delete(group_id=group, topics=[deleted]), (0,)),
    ]


def loading_answers(machine: KafkaMachine) -> dict[str, str]:
    """Label -> the response in hex. Stops the node that runs, and starts it again."""
    with WireClient(machine.bootstrap) as client:
        create(client, HERE)
        topic_id = client.topic_id(HERE)
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
                    with_topic_ids(answer, {topic_id: bytes(16)})
                    label = f"{failing.label} v{version}"
                    found[label] = shown(failing.request, answer, version)
    return found
