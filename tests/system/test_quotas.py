"""Quotas over TCP: what a consumer gets, what becomes of its session, and who is left alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch, read_records
from kwire.testing.cluster import Broker
from tests.support.wire import WireClient

TOPIC = "quotas"
RECORD_BYTES = 2_000
RECORDS = 20


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started, WireClient(started.bootstrap) as client:
        client.create_topic(TOPIC)
        client.topic(TOPIC)
        for _ in range(RECORDS):
            produce(client)
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as connected:
        yield connected
    with WireClient(broker.bootstrap) as other:
        for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage"):
            set_quota(other, key, None)


def produce(client: WireClient) -> int:
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"x" * RECORD_BYTES, [])])
    data = m.ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    answer = client.call(m.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return int(answer.throttle_time_ms)


def set_quota(client: WireClient, key: str, value: float | None) -> None:
    """For the client id of WireClient; returns when the broker shows it."""
    alter, describe = m.AlterClientQuotasRequest, m.DescribeClientQuotasRequest
    entity = [alter.EntityData(entity_type="client-id", entity_name="test")]
    op = alter.OpData(key=key, value=value or 0.0, remove=value is None)
    client.call(alter(entries=[alter.EntryData(entity=entity, ops=[op])]), 1)
    component = describe.ComponentData(entity_type="client-id", match_type=0, match="test")
    for _ in range(1000):
        entries = client.call(describe(components=[component], strict=True), 1).entries
        shown = {x.key: x.value for entry in entries for x in entry.values}
        if shown.get(key) == value:
            return
    raise AssertionError(f"{key} is still {shown}")


def fetch(
    client: WireClient, offset: int, session: tuple[int, int] = (0, -1), size: int = 1 << 20
) -> m.FetchResponse:
    partition = m.FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=size
    )
    topic = m.FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])
    request = m.FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_id=session[0],
        session_epoch=session[1], topics=[topic],
    )  # fmt: skip
    answer: m.FetchResponse = client.call(request, 11)
    assert answer.error_code == 0
    return answer


def offsets(answer: m.FetchResponse) -> list[int]:
    return [
        record.offset
        for topic in answer.responses
        for partition in topic.partitions
        for record in read_records(partition.records or b"")
    ]


def test_no_answer_is_larger_than_what_the_windows_allow(client: WireClient) -> None:
    assert len(offsets(fetch(client, 0))) >= RECORDS
    set_quota(client, "consumer_byte_rate", RECORD_BYTES * 0.55)
    assert len(offsets(fetch(client, 0))) in (5, 6)


def test_a_session_goes_on_behind_a_throttled_fetch_as_if_it_had_not_been(
    client: WireClient,
) -> None:
    set_quota(client, "consumer_byte_rate", RECORD_BYTES * 0.55)
    first = fetch(client, 0, (0, 0), RECORD_BYTES * 5)
    assert offsets(first)
    assert first.throttle_time_ms == 0
    session = first.session_id
    assert session > 0
    behind = offsets(first)[-1] + 1
    throttled = fetch(client, behind, (session, 1), RECORD_BYTES * 3)
    assert throttled.throttle_time_ms > 0
    assert (throttled.session_id, throttled.responses) == (session, [])
    set_quota(client, "consumer_byte_rate", 10.0**9)
    again = fetch(client, behind, (session, 2), RECORD_BYTES * 3)
    assert again.session_id == session
    assert offsets(again)[0] == behind


def test_a_session_is_not_opened_by_a_throttled_fetch(client: WireClient) -> None:
    set_quota(client, "consumer_byte_rate", RECORD_BYTES * 0.55)
    assert offsets(fetch(client, 0, size=RECORD_BYTES * 5))
    throttled = fetch(client, 0, (0, 0), RECORD_BYTES * 3)
    assert throttled.throttle_time_ms > 0
    assert (throttled.session_id, throttled.responses) == (0, [])


def test_a_consumer_that_takes_too_much_time_gets_nothing_either(client: WireClient) -> None:
    set_quota(client, "request_percentage", 0.0001)
    answers = [fetch(client, 0) for _ in range(3)]
    assert any(answer.throttle_time_ms and not answer.responses for answer in answers)
    assert max(answer.throttle_time_ms for answer in answers) <= 1000


def test_requests_that_were_sent_ahead_run_when_the_time_is_over(client: WireClient) -> None:
    set_quota(client, "producer_byte_rate", RECORD_BYTES * 0.2)
    first, second = produce(client), produce(client)
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"x" * 300, [])])
    data = m.ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    request = m.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    answers = client.pipeline([(request, 9)] * 3)
    assert first == 0
    assert second > 0 or answers[0].throttle_time_ms > 0
    assert all(answer.responses[0].partition_responses[0].error_code == 0 for answer in answers)
