"""Confluent's REST v3: our answers have the fields and types that its public description requires.

`tests/golden/data/rest_v3.json` has the calls of Confluent's OpenAPI document of version 3 that are
served here: status, and what is required of the answer, a type where a value stands. That answers
are as our own document says is tested where they are given (`tests/system/test_rest_v3.py`).
"""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

pytest.importorskip("msgspec")

from kwire.http.purposes.rest.calls import ROUTES
from kwire.http.purposes.rest.openapi import described

DATA = pathlib.Path(__file__).parents[3] / "golden" / "data" / "rest_v3.json"
EXPECTED: dict[str, list[Any]] = json.loads(DATA.read_text())
OURS = described(ROUTES)
PREFIX = "/v3"
OWN = {"PATCH /clusters/{}/topics/{}", "POST /clusters/{}/acls:batch"}
"""Calls of Confluent's servers that its document of 3.0 does not have."""

OF_SOME_KINDS = {
    "config_type": "broker-configs",
    "broker_id": "/brokers/{}/configs",
    "topic_name": "/topics/{}/configs",
}
"""Fields that one type of ours, of configs, has for resources of one kind alone."""
OF_WHAT_WAS_SENT = {"cluster_id", "offset", "partition_id", "topic_name"}
"""Fields of the report of a record, which one that was refused does not have."""


def calls() -> dict[str, Any]:
    """Ours by method and path."""
    return {
        f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path.removeprefix(PREFIX))}": call
        for path, methods in OURS["paths"].items()  # type: ignore[union-attr]
        if path.startswith(PREFIX)
        for method, call in methods.items()  # type: ignore[union-attr]
    }


def resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = OURS["components"]["schemas"][schema["$ref"].rpartition("/")[2]]  # type: ignore[index,call-overload]
    return schema


def differences(call: str, where: str, expected: Any, schema: Any) -> list[str]:
    """What is required and not so in a schema of ours."""
    schema = resolved(schema)
    if "anyOf" in schema:
        found = [differences(call, where, expected, each) for each in schema["anyOf"]]
        return min(found, key=len)
    if isinstance(expected, list):
        if schema.get("type") != "array":
            return [f"{where} is no array"]
        return differences(call, f"{where}[]", expected[0], schema["items"])
    if not isinstance(expected, dict):
        found_type = schema.get("type")
        return [] if found_type == expected else [f"{where}: {found_type}, not {expected}"]
    if schema.get("type") != "object":
        return [f"{where} is no object"]
    wrong = []
    for name, each in expected.items():
        if name not in schema["properties"]:
            wrong.append(f"{where}.{name} is missing")
            continue
        wrong += differences(call, f"{where}.{name}", each, schema["properties"][name])
        if name in schema.get("required", ()):
            continue
        is_of_kind = OF_SOME_KINDS.get(name, "nowhere") in call
        if not is_of_kind and not (call.endswith("/records") and name in OF_WHAT_WAS_SENT):
            wrong.append(f"{where}.{name} may be missing")
    return wrong


def test_the_calls_of_the_document_are_those_that_are_served() -> None:
    assert set(calls()) - OWN == set(EXPECTED)


@pytest.mark.parametrize("call", EXPECTED)
def test_an_answer_has_what_is_required(call: str) -> None:
    status, expected = EXPECTED[call]
    response = calls()[call]["responses"][status]
    if expected is None:
        assert "content" not in response
        return
    schema = response["content"]["application/json"]["schema"]
    assert differences(call, "", expected, schema) == []


def test_a_field_of_another_type_is_found() -> None:
    call = "GET /clusters/{}/topics/{}"
    schema = calls()[call]["responses"]["200"]["content"]["application/json"]["schema"]
    assert differences(call, "", {"partitions_count": "string"}, schema)
    assert differences(call, "", {"colour": "string"}, schema) == [".colour is missing"]
    assert differences(call, "", {"metadata": ["string"]}, schema) == [".metadata is no array"]
