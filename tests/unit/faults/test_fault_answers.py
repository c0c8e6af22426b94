"""Error answers of any API: in the response's shape, an entry for each that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.faults.answers import error_response, merge, without
from kwire.faults.asked import Entry
from kwire.faults.places import ERROR_FIELDS, Place, codes_of, places, places_of
from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.errors import ErrorCode
from kwire.protocol.frame import encode_response
from kwire.protocol.structs import Struct
from kwire.server.response import error_counts

EVERY_PLACE = [
    (place, code) for found in places().values() for place in found for code in (min(place.codes),)
]


def nobody(_: bytes) -> None:
    return None


def everything(_: Entry) -> bool:
    return True


def asked_for(place: Place) -> Struct:
    """A request with two entries at each level of the place."""
    request = m.request_class(place.api_key)()
    _fill(request, request.SCHEMA.root, request.STRUCTS, place.asked)
    return request


def _fill(
    struct: Struct, shape: schema.Struct, structs: dict[str, type[Struct]], path: tuple[str, ...]
) -> None:
    if not path:
        return
    field = next(one for one in shape.fields if one.name == path[0])
    items: list[Any] = ["a", "b"] if field.type == "string" else [3, 4]
    if field.struct is not None:
        items = [structs[field.struct.name](), structs[field.struct.name]()]
        for at, item in enumerate(items):
            for name in ("name", "topic", "topic_name", "user", "resource_name", "group_id"):
                if name in item.FIELDS:
                    setattr(item, name, f"{name}-{at}")
            for name in ("index", "partition_index", "partition"):
                if name in item.FIELDS:
                    setattr(item, name, at)
            _fill(item, field.struct, structs, path[1:])
    setattr(struct, path[0], items)


def versions(place: Place, code: ErrorCode) -> list[int]:
    info = API_KEYS[m.request_class(place.api_key).API_KEY]  # type: ignore[index]
    return [v for v in range(info.min, info.max + 1) if place in places_of(info.key, code, v)]


@pytest.mark.parametrize(
    ("place", "code"), EVERY_PLACE, ids=lambda one: str(getattr(one, "api_key", one))
)
def test_every_place_is_answered_at_every_version(place: Place, code: ErrorCode) -> None:
    request = asked_for(place)
    entries = 2 ** len(place.answered)
    if len(place.asked) > len(place.answered):  # a level of the request the response lacks
        entries *= 2
    found = versions(place, code)
    assert found, "a row that no version has"
    for version in found:
        response = error_response(place, request, version, code, everything, nobody)
        assert encode_response(place.api_key, version, 1, response)
        if "partition_error_code" not in repr(response):
            assert error_counts(response).get(int(code)) == entries


def test_each_api_has_a_code_and_each_place_an_error_field() -> None:
    for key, found in places().items():
        assert codes_of(key)
        for place in found:
            shape = m.response_class(key).SCHEMA.root
            for name in place.answered:
                inner = next(field for field in shape.fields if field.name == name).struct
                assert inner is not None
                shape = inner
            assert any(field.name in ERROR_FIELDS for field in shape.fields), place


def test_of_a_produce_to_two_partitions_one_is_refused() -> None:
    shape = m.ProduceRequest
    data = [shape.PartitionProduceData(index=at, records=b"r") for at in (0, 1)]
    request = shape(acks=-1, topic_data=[shape.TopicProduceData(name="t", partition_data=data)])
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    place = places_of(0, code, 9)[0]

    def second(entry: Entry) -> bool:
        return entry == Entry("t", 1)

    left = without(place, request, second, nobody)
    assert isinstance(left, m.ProduceRequest)
    assert [one.index for one in left.topic_data[0].partition_data] == [0]
    assert len(request.topic_data[0].partition_data) == 2, "the request stays as it came"
    refused = error_response(place, request, 9, code, second, nobody)
    result = m.ProduceResponse.PartitionProduceResponse(index=0, base_offset=7)
    topic = m.ProduceResponse.TopicProduceResponse(name="t", partition_responses=[result])
    response = m.ProduceResponse(responses=[topic])
    merge(place, response, refused)
    answered = response.responses[0].partition_responses
    assert [(one.index, one.error_code, one.base_offset) for one in answered] == [
        (0, 0, 7),
        (1, 6, -1),
    ]
    assert without(place, request, everything, nobody) is None


def test_an_error_of_an_executed_request_takes_the_place_of_its_answer() -> None:
    code = ErrorCode.REQUEST_TIMED_OUT
    place = places_of(0, code, 9)[0]
    request = asked_for(place)
    done = error_response(place, request, 9, ErrorCode.NONE, everything, nobody)
    merge(place, done, error_response(place, request, 9, code, everything, nobody))
    assert error_counts(done) == {7: 4}


def test_a_fetch_is_refused_as_kafka_refuses_it() -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    place = places_of(1, code, 12)[0]
    shape = m.FetchRequest
    topic = shape.FetchTopic(topic="t", partitions=[shape.FetchPartition(partition=5)])
    answer = error_response(place, shape(topics=[topic]), 12, code, everything, nobody)
    assert answer == m.FetchResponse(
        responses=[
            m.FetchResponse.FetchableTopicResponse(
                topic="t",
                partitions=[
                    m.FetchResponse.PartitionData(
                        partition_index=5,
                        error_code=6,
                        high_watermark=-1,
                        aborted_transactions=None,
                        records=b"",
                    )
                ],
            )
        ]
    )
