"""What all calls have in common, and the documents that are made of them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("msgspec")

import msgspec
from msgspec import inspect

from kwire.http.purposes.rest import parsing
from kwire.http.purposes.rest.calls import ROUTES
from kwire.http.purposes.rest.instances import InstanceId
from kwire.http.purposes.rest.once import IdempotencyKey
from kwire.http.purposes.rest.openapi import described, document, operation_id, page
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.records import (
    Binary,
    Message,
    from_record,
    to_records,
)
from kwire.http.purposes.rest.route import AnyRoute
from kwire.http.purposes.rest.shapes import Group, Topic
from kwire.http.purposes.rest.transactions import TransactionalId
from kwire.http.purposes.rest.v3 import records as v3_records
from kwire.protocol.records import Record


@pytest.fixture(params=ROUTES, ids=operation_id)
def route(request: pytest.FixtureRequest) -> AnyRoute:
    found = request.param
    assert isinstance(found, AnyRoute)
    return found


def test_what_a_path_names_is_a_parameter(route: AnyRoute) -> None:
    told = inspect.type_info(route.parameters)
    assert isinstance(told, inspect.StructType)
    fields = {field.encode_name: field for field in told.fields}
    assert route.in_path <= set(fields)
    assert all(fields[name].required for name in route.in_path)
    assert set(route.headers) <= set(fields)
    assert told.forbid_unknown_fields


def test_what_is_unknown_of_a_body_is_refused(route: AnyRoute) -> None:
    told = inspect.type_info(route.document)
    assert isinstance(told, inspect.StructType)
    assert told.forbid_unknown_fields


def test_what_it_answers_is_described(route: AnyRoute) -> None:
    assert route.summary
    assert route.answers
    assert all(200 <= status < 300 for status in route.answers)
    assert not set(route.answers) & set(route.refusals)


def test_operations_have_names_of_their_own() -> None:
    names = [operation_id(route) for route in ROUTES]
    assert len(set(names)) == len(names)
    assert len({(route.method, route.path) for route in ROUTES}) == len(names)


def test_types_of_one_name_are_one_type() -> None:
    """The document knows them by name."""
    kinds = {route.body for route in ROUTES}
    kinds |= {told.body for route in ROUTES for told in route.answers.values() if told.body}
    assert len({kind.__name__ for kind in kinds}) == len(kinds)


def test_references_of_the_document_lead_somewhere() -> None:
    told = json.loads(document(ROUTES, ["basic"]))
    schemas = told["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(told)):
        assert name in schemas
    assert told["components"]["securitySchemes"]["basic"]["scheme"] == "basic"
    assert told["security"] == [{"basic": []}]


def test_a_parameter_that_may_be_left_out_is_not_null() -> None:
    for path in described(ROUTES)["paths"].values():  # type: ignore[union-attr]
        for operation in path.values():  # type: ignore[union-attr]
            for one in operation.get("parameters", []):  # type: ignore[union-attr]
                assert "null" not in json.dumps(one)


def test_the_page_shows_every_call() -> None:
    text = page(ROUTES).decode()
    for route in ROUTES:
        assert f"<code>{route.path}</code>" in text
    assert "src=" not in text


# -- messages and records


def test_records_are_placed_by_partition_then_key_then_together() -> None:
    messages = [
        Message(value=b"0", key="a"),
        Message(value=b"1"),
        Message(value=b"2", key="a", partition=1),
        Message(key_base64=b"\xff", timestamp=5),
    ]
    records, placed = to_records(messages, 3, 2, 1000)
    assert placed[1:3] == [2, 1]
    assert records[1][-1] == Record(0, 1000, b"a", b"2", ())
    assert [one.timestamp for one in records[placed[3]] if one.key == b"\xff"] == [5]
    assert sum(map(len, records.values())) == 4


def test_a_partition_that_is_not_there_is_named() -> None:
    with pytest.raises(Problem) as caught:
        to_records([Message(), Message(partition=3)], 3, 0, 0)
    assert caught.value.told.field == "messages[1].partition"
    assert caught.value.told.index == 1


def test_headers_go_and_come_back() -> None:
    headers = {"text": "a", "none": None, "raw": Binary(b"\xff"), "many": ["a", None]}
    records, _ = to_records([Message(headers=headers)], 1, 0, 0)
    record = records[0][0]
    assert list(record.headers) == [
        ("text", b"a"),
        ("none", None),
        ("raw", b"\xff"),
        ("many", b"a"),
        ("many", None),
    ]
    assert from_record(record).headers == headers


def test_a_key_that_is_no_text_is_shown_apart() -> None:
    shown = from_record(Record(7, 1, b"\xff", None, [(b"\xff", b"v")]))
    assert (shown.key, shown.key_base64, shown.value) == (None, b"\xff", None)
    assert shown.headers == {"\ufffd": "v"}


@pytest.mark.parametrize("kind", [Topic, Group, InstanceId, TransactionalId])
def test_a_line_feed_behind_a_name_is_no_part_of_it(kind: type[str]) -> None:
    longest = "a" * (64 if kind is InstanceId else 249)
    assert msgspec.convert(longest, kind) == longest
    for text in (f"{longest}\n", "", "a/b"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(text, kind)


def test_a_record_of_v3_has_the_millisecond_of_its_timestamp() -> None:
    for milliseconds in range(1_700_000_000_000, 1_700_000_000_100):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
        placed = v3_records._placed(json.dumps({"timestamp": moment.isoformat()}), 1, 0, 0)
        assert placed.record.timestamp == milliseconds
        assert v3_records._placed("{}", 1, 0, milliseconds).record.timestamp == milliseconds


@pytest.mark.parametrize("kind", [Topic, Group, InstanceId, TransactionalId, IdempotencyKey])
def test_a_name_that_is_refused_is_told_in_words(kind: type[str]) -> None:
    for text in ("a\n", "a/b", "a b", ""):
        try:
            msgspec.convert(text, kind)
        except msgspec.ValidationError as error:
            what, _ = parsing._split(f"{error} - at `$.name`")
            assert "regex" not in what, what
            assert what.startswith(("it is to be ", "Expected `str` of length")), what
