"""What an OffsetCommit says again and again, and its numbers; the record's value (ADR 55)."""

from __future__ import annotations

import pytest

from kwire.protocol import messages as m
from kwire.protocol.commit_frames import (
    PARTITIONS_MAX,
    SHAPE_BYTES_MAX,
    CommitShape,
    CommitValue,
    shape_of,
)
from kwire.protocol.coordinator_records import encode_value
from kwire.protocol.frame import encode_request

TOPIC_ID = b"t" * 16
VERSIONS = range(6, 11)


def request(
    version: int, offsets: list[int], metadata: str | None = "", topics: int = 1
) -> m.OffsetCommitRequest:
    shape = m.OffsetCommitRequest
    made = shape(group_id="group", member_id="member", generation_id_or_member_epoch=4)
    for number in range(topics):
        topic = shape.OffsetCommitRequestTopic()
        if version >= 10:
            topic.topic_id = TOPIC_ID[:-1] + bytes([number])
        else:
            topic.name = f"topic-{number}"
        topic.partitions = [
            shape.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=index - 1,
                committed_metadata=metadata,
            )
            for index, offset in enumerate(offsets)
        ]
        made.topics.append(topic)
    return made


def body_of(version: int, made: m.OffsetCommitRequest) -> memoryview:
    return memoryview(b"".join(encode_request(8, version, 77, "client", made)))[4:]


def shape(version: int, made: m.OffsetCommitRequest) -> CommitShape:
    found = shape_of(body_of(version, made))
    assert found is not None
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("metadata", [None, "", "said"])
@pytest.mark.parametrize("topics", [1, 3])
def test_the_numbers_of_other_requests_are_found(
    version: int, metadata: str | None, topics: int
) -> None:
    known = shape(version, request(version, [1, 2], metadata, topics))
    other = body_of(version, request(version, [1 << 50, 0], metadata, topics))
    assert bytes(other[8 : 8 + len(known.head)]) == known.head
    numbers = known.numbers(other)
    assert numbers is not None
    assert list(zip(numbers[::3], numbers[1::3], strict=True)) == [(1 << 50, -1), (0, 0)] * topics


@pytest.mark.parametrize("version", VERSIONS)
def test_the_request_it_was_made_of_is_as_it_was_said(version: int) -> None:
    made = request(version, [5, 6], "said")
    assert shape(version, made).request == made


@pytest.mark.parametrize("version", VERSIONS)
def test_every_changed_byte_behind_the_head_that_is_no_number_is_seen(version: int) -> None:
    whole = body_of(version, request(version, [1, 2], "said", topics=2))
    known = shape(version, request(version, [1, 2], "said", topics=2))
    before = known.numbers(whole)
    assert before is not None
    for at in range(8 + len(known.head), len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        after = known.numbers(memoryview(changed))
        assert after is None or after[2::3] == before[2::3], at
        assert after != before, at
    assert known.numbers(whole[:-1]) is None
    assert known.numbers(memoryview(bytes(whole) + b"\0")) is None


def test_what_is_written_in_an_unusual_way_has_no_shape() -> None:
    body = bytes(body_of(8, request(8, [1])))
    assert shape_of(memoryview(body[:-1] + b"\x80\0")) is None
    assert shape_of(memoryview(body[:-1])) is None
    assert shape_of(memoryview(body[:9])) is None
    assert shape_of(body_of(8, request(8, []))) is None
    assert shape_of(body_of(8, request(8, [0] * (PARTITIONS_MAX + 1)))) is None
    assert shape_of(body_of(5, request(5, [1]))) is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("partitions", [1, PARTITIONS_MAX])
def test_a_shape_has_a_bounded_number_of_bytes(version: int, partitions: int) -> None:
    made = request(version, [0] * partitions)
    made.group_id = "g" * 200
    room = SHAPE_BYTES_MAX + 8 - len(body_of(version, made)) + 12 * partitions
    made.member_id = "m" * (room - 1)  # its size may take a byte more, and its name has six
    assert shape_of(body_of(version, made)) is not None
    made.member_id = "m" * (room + 8)
    assert shape_of(body_of(version, made)) is None


def test_what_is_large_is_not_decoded_and_what_is_of_many_is_not_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both would be done in front of the general way, which does them again."""
    large = request(8, [1], "m" * 20_000)
    many = request(8, [0] * (PARTITIONS_MAX + 1))
    bodies = body_of(8, large), body_of(8, many)
    decode, done = m.OffsetCommitRequest.decode_from, []

    def counted(*args: object) -> object:
        done.append("decoded")
        return decode(*args)

    monkeypatch.setattr(m.OffsetCommitRequest, "decode_from", counted)
    monkeypatch.setattr(m.OffsetCommitRequest, "encode_parts", lambda *args: done.append("encoded"))
    assert shape_of(bodies[0]) is None
    assert done == []
    assert shape_of(bodies[1]) is None
    assert done == ["decoded"]


@pytest.mark.parametrize("metadata", ["", "said", "\u00e9" * 200])
def test_a_value_is_what_its_message_is(metadata: str) -> None:
    value = CommitValue(metadata, TOPIC_ID)
    message = value.message(1 << 40, 7, 1_700_000_000_000)
    assert value.encoded(1 << 40, 7, 1_700_000_000_000) == encode_value(message, 4)
