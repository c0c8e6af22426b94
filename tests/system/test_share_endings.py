"""Sessions and groups that end: what share partitions knew is kept or forgotten, as it must be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, wait_for
from tests.support.share.dialogue import PROPERTIES
from tests.support.share.member import ACCEPT, REJECT, Key, Member, produce, set_group_config
from tests.support.wire import WireClient, fetch_values

LETTERS = "dlq.endings"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    options = {**PROPERTIES, "errors.deadletterqueue.auto.create.topics.enable": "true"}
    with Broker(options=options) as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as made:
        yield made


def queue(client: WireClient, topic: str, partitions: int = 1, **configs: str) -> bytes:
    """A topic, read by a group of the same name from its beginning; the topic's id."""
    client.create_topic(topic, partitions)
    set_group_config(client, topic, share_auto_offset_reset="earliest", **configs)
    return client.topic_id(topic)


def acquired(answer: m.ShareFetchResponse) -> list[tuple[int, int, int, int]]:
    """(partition, first offset, last offset, delivery count)."""
    return [
        (partition.partition_index, found.first_offset, found.last_offset, found.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for found in partition.acquired_records
    ]


def test_a_closed_connection_counts_as_a_delivery_in_every_partition(
    broker: Broker, client: WireClient
) -> None:
    """A record that kills the only consumer of a group is not delivered for the first time for
    ever, when the consumer had another partition without records."""
    topic_id = queue(client, "poison", 2)
    keys = [(topic_id, 0), (topic_id, 1)]
    produce(client, "poison", 1, partition=1)
    for count in range(1, 4):
        member = Member(broker.bootstrap, "poison", ["poison"])
        member.join(2)
        assert acquired(member.acquire(keys)) == [(1, 0, 0, count)]
        member.close()


def test_a_partition_that_a_session_forgot_is_released_with_it(
    broker: Broker, client: WireClient
) -> None:
    key = (queue(client, "forgotten"), 0)
    produce(client, "forgotten", 1)
    for count in range(1, 4):
        member = Member(broker.bootstrap, "forgotten", ["forgotten"])
        member.join(1)
        assert acquired(member.acquire([key])) == [(0, 0, 0, count)]
        member.fetch(forgotten=[key])
        member.close()


def accepted(broker: Broker, key: Key, group: str) -> Member:
    """A member that left the group after it accepted its record, and keeps its session."""
    member = Member(broker.bootstrap, group, [group])
    member.join(1)
    assert acquired(member.acquire([key])) == [(0, 0, 0, 1)]
    said = member.acknowledge({key: [(0, 0, [ACCEPT])]})
    assert said.responses[0].partitions[0].error_code == 0
    member.leave()
    return member


def test_a_group_made_anew_begins_anew_whoever_kept_a_session(
    broker: Broker, client: WireClient
) -> None:
    key = (queue(client, "anew"), 0)
    produce(client, "anew", 1)
    kept = accepted(broker, key, "anew")
    deleted = client.call(m.DeleteGroupsRequest(groups_names=["anew"]), 2)
    assert [result.error_code for result in deleted.results] == [0]
    member = Member(broker.bootstrap, "anew", ["anew"], name=1)
    member.join(1)
    assert acquired(member.acquire([key])) == [(0, 0, 0, 1)]
    member.close()
    kept.close()


def test_offsets_that_are_altered_hold_whoever_kept_a_session(
    broker: Broker, client: WireClient
) -> None:
    key = (queue(client, "altered"), 0)
    produce(client, "altered", 1)
    kept = accepted(broker, key, "altered")
    shape = m.AlterShareGroupOffsetsRequest
    topic = shape.AlterShareGroupOffsetsRequestTopic(
        topic_name="altered",
        partitions=[
            shape.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
        ],
    )
    altered = client.call(shape(group_id="altered", topics=[topic]), 0)
    assert altered.responses[0].partitions[0].error_code == 0
    member = Member(broker.bootstrap, "altered", ["altered"], name=1)
    member.join(1)
    assert acquired(member.acquire([key])) == [(0, 0, 0, 1)]
    member.close()
    kept.close()


def test_what_the_last_request_of_a_session_rejects_is_a_dead_letter_once(
    broker: Broker, client: WireClient
) -> None:
    key = (queue(client, "letters", errors_deadletterqueue_topic_name=LETTERS), 0)
    produce(client, "letters", 3)

    def letters() -> int:
        return len(fetch_values(client, LETTERS, 0)) if LETTERS in client.topics() else 0

    def are_there(count: int) -> bool:
        return letters() >= count

    for life in range(2):
        member = Member(broker.bootstrap, "letters", ["letters"], name=life)
        member.join(1)
        assert acquired(member.acquire([key])) == [(0, 3 * life, 3 * life + 2, 1)]
        last = (3 * life, 3 * life + 2, [REJECT])
        said = member.acknowledge({key: [last]}, epoch=-1)
        assert said.responses[0].partitions[0].error_code == 0
        member.leave()
        member.close()
        wait_for(partial(are_there, 3 * (life + 1)), "all dead letters")
        produce(client, "letters", 3)
    assert letters() == 6
