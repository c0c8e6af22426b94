"""Documents of JSON Schemas are checked within bounds, whatever the schema and the document are."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("jsonschema")

from kwire.schemas.formats import parse
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.prepared import prepared


def check(schema: Json, document: Json) -> None:
    prepared(parse("JSON", json.dumps(schema), {})).decode(json.dumps(document).encode(), 0)


TREE: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$ref": "#/$defs/t",
    "$defs": {
        "t": {
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/t"}},
            "patternProperties": {"^x-": {"type": "string"}},
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "document", "why"),
    [
        (True, [], None),
        (False, [], "False schema"),
        ({"type": "integer"}, 1, None),
        ({"type": "integer"}, "x", "is not of type 'integer'"),
        ({"pattern": "^(a+)+$"}, "a" * 5000 + "b", "does not match"),
        ({"pattern": "^(a+)+$"}, "a" * 5000, None),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], None),
        ({"uniqueItems": True}, [{"a": 1}, {"b": 2}, {"a": 1.0}], "there twice"),
        ({"uniqueItems": True}, [{"a": at} for at in range(5_000)], None),
        (TREE, {"v": 1, "next": {"v": 2, "next": {}}}, None),
        (TREE, {"v": 1, "next": {"v": 2, "next": {"v": "x"}}}, "is not of type 'integer'"),
        (TREE, {"next": {"x-a": 1}}, "is not of type 'string'"),
    ],
)
def test_document(schema: Json, document: Json, why: str | None) -> None:
    if why is None:
        check(schema, document)
    else:
        with pytest.raises(UndecodableError, match=why):
            check(schema, document)


def test_references_that_double_come_to_an_end() -> None:
    """2^40 ways lead through these definitions to the last one."""
    names: dict[str, Json] = {
        str(at): {"allOf": [{"$ref": f"#/definitions/{at + 1}"}] * 2} for at in range(40)
    }
    schema: Json = {"$ref": "#/definitions/0", "definitions": {**names, "40": {}}}
    with pytest.raises(UndecodableError, match="more references than"):
        check(schema, 1)


def test_a_document_deeper_than_its_checker_can_go() -> None:
    document: Json = {}
    for _ in range(400):
        document = {"next": document}
    with pytest.raises(UndecodableError, match=r"too deep|references"):
        check(TREE, document)
