"""Dead letters of share groups over kills: what was rejected is in the topic, at least once."""

from __future__ import annotations

import pathlib
from functools import partial

from kwire.protocol.records import read_records
from kwire.testing.cluster import Broker, wait_for
from tests.support.share.member import REJECT, Member, produce, set_group_config
from tests.support.wire import WireClient, fetch_request

SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
SOURCE, LETTERS, GROUP = "work", "dlq.work", "workers"
KILLS, RECORDS = 2, 40


def buried(client: WireClient) -> list[int]:
    """The origin offsets of what is in the topic."""
    if LETTERS not in client.topics():
        return []
    found: list[int] = []
    offset = 0
    while True:
        answer = client.call(fetch_request(LETTERS, {0: offset}), 12).responses[0].partitions[0]
        records = list(read_records(bytes(answer.records or b"")))
        if not records:
            return found
        for record in records:
            headers = {str(name): value for name, value in record.headers}
            found.append(int(headers["__dlq.errors.offset"] or b""))
        offset = records[-1].offset + 1


def _are_buried(client: WireClient, offsets: list[int]) -> bool:
    return set(buried(client)) >= set(offsets)


def test_what_was_rejected_is_a_dead_letter_whenever_the_broker_is_killed(
    tmp_path: pathlib.Path,
) -> None:
    rejected: list[int] = []
    for life in range(KILLS + 1):
        with Broker(data_dir=tmp_path / "data", options=SETTINGS) as broker:
            client = WireClient(broker.bootstrap)
            if life == 0:
                client.create_topic(SOURCE)
                set_group_config(
                    client,
                    GROUP,
                    share_auto_offset_reset="earliest",
                    errors_deadletterqueue_topic_name=LETTERS,
                )
            key = (client.topic_id(SOURCE), 0)
            produce(client, SOURCE, RECORDS)
            member = Member(broker.bootstrap, GROUP, [SOURCE], name=life)
            member.join(1)
            answer = member.acquire([key], records_max=RECORDS)
            acquired = answer.responses[0].partitions[0].acquired_records
            first, last = acquired[0].first_offset, acquired[-1].last_offset
            said = member.acknowledge({key: [(first, last, [REJECT])]})
            assert said.responses[0].partitions[0].error_code == 0
            rejected += range(first, last + 1)
            if life < KILLS:
                broker.kill()
            else:
                wait_for(partial(_are_buried, client, rejected), "all dead letters")
            member.close()
            client.close()
    assert rejected == list(range((KILLS + 1) * RECORDS))
