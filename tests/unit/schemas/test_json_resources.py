"""JSON Schemas that hold others with an `$id` of their own: addresses are relative to the nearest.

Cases of the JSON Schema test suite ("refs with relative uris and defs", "$id inside an enum").
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("jsonschema")

from kwire.schemas.formats import InvalidSchema, incompatibilities, parse
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.allowance import Allowance
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.prepared import prepared

LATEST = "https://json-schema.org/draft/2020-12/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def bundle(draft: str, identifier: str, kind: str = "string") -> Json:
    inner = {
        identifier: "schema-relative-uri-defs2.json",
        "definitions": {"inner": {"properties": {"bar": {"type": kind}}}},
        "allOf": [{"$ref": "#/definitions/inner"}],
    }
    return {
        "$schema": draft,
        identifier: "http://example.com/schema-relative-uri-defs1.json",
        "properties": {"foo": inner},
        "allOf": [{"$ref": "schema-relative-uri-defs2.json"}],
    }


DRAFTS = [(LATEST, "$id"), (DRAFT_7, "$id"), (DRAFT_4, "id")]


@pytest.mark.parametrize(("draft", "identifier"), DRAFTS)
@pytest.mark.parametrize(
    ("document", "is_valid"),
    [
        ({"foo": {"bar": 1}, "bar": "a"}, False),
        ({"foo": {"bar": "a"}, "bar": 1}, False),
        ({"foo": {"bar": "a"}, "bar": "a"}, True),
    ],
)
def test_addresses_are_relative_to_the_nearest_id(
    draft: str, identifier: str, document: Json, is_valid: bool
) -> None:
    one = prepared(parse("JSON", json.dumps(bundle(draft, identifier)), {}))
    data = json.dumps(document).encode()
    if is_valid:
        one.decode(data, 0, Allowance(20_000))
    else:
        with pytest.raises(UndecodableError, match="is not of type 'string'"):
            one.decode(data, 0, Allowance(20_000))


@pytest.mark.parametrize(("draft", "identifier"), DRAFTS)
def test_what_is_relative_to_another_id_is_not_found(draft: str, identifier: str) -> None:
    schema: Json = {
        "$schema": draft,
        "definitions": {"a": {}},
        "properties": {
            "foo": {identifier: "http://example.com/x", "items": {"$ref": "#/definitions/a"}}
        },
    }
    with pytest.raises(InvalidSchema, match="Nothing is found at"):
        parse("JSON", json.dumps(schema), {})


@pytest.mark.parametrize(("draft", "identifier"), DRAFTS)
def test_schemas_with_others_in_them_are_compared(draft: str, identifier: str) -> None:
    one, same, other = (
        parse("JSON", json.dumps(bundle(draft, identifier, kind)), {})
        for kind in ("string", "string", "integer")
    )
    assert incompatibilities(one, same) == []
    assert "'#/properties/bar'" in str(incompatibilities(one, other))


def test_an_id_in_a_value_is_no_address() -> None:
    schema = {"enum": [{"$id": "http://example.com/x", "$ref": "#/nowhere"}]}
    parse("JSON", json.dumps({"$schema": LATEST, "properties": {"a": schema}}), {})
