"""Where plain roads think that things lie in a request, and where the decoder finds them (ADR 55).

A plain road reads a request by its bytes where it begins like one that was decoded before. So for
any other bytes behind, or in it, what it reads has to be what the decoder reads, or nothing.
"""

from __future__ import annotations

import random

import pytest

from kwire.protocol import messages as m
from kwire.protocol.commit_frames import VERSION_MIN, shape_of
from kwire.protocol.errors import MalformedError
from kwire.protocol.fetch_frames import SESSIONS_FROM, QuietFetches
from kwire.protocol.frame import encode_request, parse_request_header
from kwire.protocol.produce_frames import TOPIC_IDS_FROM, ProduceHead, head_of
from kwire.protocol.records import Record, build_batch
from kwire.protocol.request_frames import CORRELATION_ID, SAID_START
from kwire.protocol.structs import Message, Request
from tests.support.effort import seeds
from tests.support.mutating import mutated

REQUESTS_A_SEED, MUTANTS = 25, 25
CLIENTS = (None, "", "x", "client-7", "c" * 200)
TOPIC_ID = bytes(range(16))


def body_of(request: Request[Message], version: int, client_id: str | None) -> bytes:
    """A request without its size."""
    return b"".join(encode_request(request.API_KEY, version, 5, client_id, request))[4:]


def decoded(
    kind: type[Request[Message]], body: bytes
) -> tuple[str | None, Request[Message]] | None:
    """(client id, request) by the general way; None for what it refuses."""
    try:
        _, version, _, client_id, position = parse_request_header(memoryview(body))
        request, end = kind.decode_from(memoryview(body), position, version)
    except MalformedError:
        return None
    return (client_id, request) if end == len(body) else None


def others(draw: random.Random, body: bytes) -> list[bytes]:
    """Requests of the same API and version, changed here and there."""
    ends = (SAID_START, len(body) // 2, max(4, len(body) - 12))
    return [body, *(mutated(draw, body, draw.choice(ends)) for _ in range(MUTANTS))]


def drawn_produce(draw: random.Random, version: int) -> bytes:
    shape = m.ProduceRequest
    size_bytes = draw.choice((0, 1, 30, 60, 200, 16_000))
    batch = bytes(build_batch([Record(0, 1000, None, draw.randbytes(size_bytes))]))
    topic = shape.TopicProduceData()
    if version >= TOPIC_IDS_FROM:
        topic.topic_id = TOPIC_ID
    else:
        topic.name = "t" * draw.choice((1, 5, 126, 127, 249))
    topic.partition_data = [shape.PartitionProduceData(index=draw.randrange(9), records=batch)]
    acks = draw.choice((-1, 0, 1))
    request = shape(acks=acks, timeout_ms=draw.randrange(100_000), topic_data=[topic])
    return body_of(request, version, draw.choice(CLIENTS))


def check_produce(head: ProduceHead, body: bytes) -> bool:
    """Whether a request that begins with `head` was read as usual; if so the decoder agrees."""
    place = None
    if len(body) >= head.size_bytes + 8:
        place = head.batch_place(memoryview(body))
    if place is None:
        return False
    index, start, end = place
    found = decoded(m.ProduceRequest, body)
    assert found is not None, body
    client_id, request = found
    assert isinstance(request, m.ProduceRequest)
    (topic,) = request.topic_data
    (data,) = topic.partition_data
    assert data.records is not None
    assert (data.index, bytes(data.records)) == (index, body[start:end])
    assert (request.acks, request.timeout_ms) == (head.acks, head.timeout_ms)
    assert (topic.name, topic.topic_id) == (head.topic, head.topic_id)
    assert request.transactional_id is None
    assert client_id == head.client_id
    return True


@pytest.mark.parametrize("seed", seeds(3))
def test_a_batch_lies_where_the_decoder_finds_it(seed: int) -> None:
    draw, read = random.Random(seed), 0
    for _ in range(REQUESTS_A_SEED):
        version = draw.randrange(3, 14)
        bodies = others(draw, drawn_produce(draw, version))
        head = head_of(memoryview(bodies[0]))
        assert head is not None
        for body in bodies:
            if body[SAID_START : head.size_bytes] == bodies[0][SAID_START : head.size_bytes]:
                read += check_produce(head, body)
            own = head_of(memoryview(body))
            if own is not None:
                check_produce(own, body)
    assert read > REQUESTS_A_SEED


def drawn_commit(draw: random.Random, version: int) -> bytes:
    shape = m.OffsetCommitRequest
    made = shape(group_id="group", member_id="member", generation_id_or_member_epoch=4)
    for number in range(1 + draw.randrange(3)):
        topic = shape.OffsetCommitRequestTopic()
        if version >= 10:
            topic.topic_id = TOPIC_ID[:-1] + bytes([number])
        else:
            topic.name = f"topic-{number}"
        topic.partitions = [
            shape.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=draw.choice((0, 7, 2**40, -1)),
                committed_leader_epoch=draw.choice((-1, 0, 5)),
                committed_metadata=draw.choice((None, "", "said")),
            )
            for index in range(1 + draw.randrange(3))
        ]
        made.topics.append(topic)
    return body_of(made, version, draw.choice(CLIENTS))


@pytest.mark.parametrize("seed", seeds(3))
def test_the_numbers_of_a_commit_are_those_that_the_decoder_finds(seed: int) -> None:
    draw, read = random.Random(seed), 0
    for _ in range(REQUESTS_A_SEED):
        bodies = others(draw, drawn_commit(draw, draw.randrange(VERSION_MIN, 11)))
        first = shape_of(memoryview(bodies[0]))
        assert first is not None
        for body in bodies:
            for shape in (first, shape_of(memoryview(body))):
                if shape is None or not body[SAID_START:].startswith(shape.head):
                    continue
                numbers = shape.numbers(memoryview(body))
                if numbers is None:
                    continue
                read += shape is first
                found = decoded(m.OffsetCommitRequest, body)
                assert found is not None, body
                request = found[1]
                assert isinstance(request, m.OffsetCommitRequest)
                partitions = [x for topic in request.topics for x in topic.partitions]
                pairs = [(x.committed_offset, x.committed_leader_epoch) for x in partitions]
                assert [*zip(numbers[::3], numbers[1::3], strict=True)] == pairs
                own = [x for topic in shape.request.topics for x in topic.partitions]
                for told, known in zip(partitions, own, strict=True):
                    told.committed_offset = known.committed_offset
                    told.committed_leader_epoch = known.committed_leader_epoch
                assert request == shape.request
    assert read > REQUESTS_A_SEED


def drawn_fetch(draw: random.Random, version: int) -> bytes:
    shape = m.FetchRequest
    request = shape(
        max_wait_ms=draw.choice((0, 500)),
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=draw.randrange(2),
        session_id=draw.randrange(1, 2**31),
        session_epoch=draw.randrange(1, 2**31),
        rack_id=draw.choice(("", "a", "r" * 130)) if version >= 11 else "",
    )
    if draw.randrange(4) == 0:
        topic = shape.FetchTopic(partitions=[shape.FetchPartition(partition=1)])
        if version >= 13:
            topic.topic_id = TOPIC_ID
        else:
            topic.topic = "topic"
        request.topics = [topic]
    return body_of(request, version, draw.choice(CLIENTS))


@pytest.mark.parametrize("seed", seeds(3))
def test_a_session_s_id_and_epoch_lie_where_the_decoder_finds_them(seed: int) -> None:
    """And a request that differs in its epoch alone says the same but for that."""
    draw, read = random.Random(seed), 0
    for _ in range(REQUESTS_A_SEED):
        version = draw.randrange(SESSIONS_FROM, 19)
        frames = QuietFetches(version)
        for body in others(draw, drawn_fetch(draw, version)):
            start = frames.epoch_start(memoryview(body))
            if start is None or (found := frames.decoded(memoryview(body))) is None:
                continue
            client_id, request = found
            read += 1
            assert int.from_bytes(body[start - 4 : start], "big", signed=True) == request.session_id
            epoch = int.from_bytes(body[start : start + 4], "big", signed=True)
            assert epoch == request.session_epoch
            assert not request.topics
            assert not request.forgotten_topics_data
            other = bytearray(body)
            other[start : start + 4] = draw.randbytes(4)
            other[CORRELATION_ID] = draw.randbytes(4)
            told = frames.decoded(memoryview(bytes(other)))
            assert told is not None
            told[1].session_epoch = request.session_epoch
            assert told == (client_id, request)
    assert read > REQUESTS_A_SEED
