"""Golden vectors of the wire format: reading them, and their JSON values as messages and back.

The vectors were written by Apache Kafka 4.4's own code. In their values `bytes` and `records` are
base64, a uuid is Kafka's text form, and `_tags` lists the unknown tagged fields of a struct.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import pathlib
from typing import Any

from kwire.protocol import messages, uuids

DATA = pathlib.Path(__file__).parent.parent / "golden" / "data"


@functools.cache
def rows(name: str) -> list[dict[str, Any]]:
    """The lines of `tests/golden/data/<name>.jsonl.gz`."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@functools.cache
def by_message(name: str) -> dict[str, list[dict[str, Any]]]:
    """The same by the name of the message."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows(name):
        found.setdefault(row["message"], []).append(row)
    return found


def key_of(field_name: str) -> str:
    """A field's name in either spelling, for comparison: `topic_id` and `topicId` are one."""
    return field_name.replace("_", "").lower()


def message_of(row: dict[str, Any]) -> Any:
    """The message that a vector's `value` describes."""
    cls = messages.by_name(row["message"])
    return _struct(cls, cls.SCHEMA.root, row["value"])


def _struct(root: Any, struct: Any, value: dict[str, Any]) -> Any:
    fields = {key_of(field.name): field for field in struct.fields}
    arguments: dict[str, Any] = {}
    for name, given in value.items():
        if name == "_tags":
            arguments["unknown_tags"] = [(tag, base64.b64decode(data)) for tag, data in given]
            continue
        field = fields[key_of(name)]
        if field.is_array and given is not None:
            arguments[field.name] = [_one(root, field, item) for item in given]
        else:
            arguments[field.name] = _one(root, field, given)
    return root.STRUCTS[struct.name](**arguments)


def _one(root: Any, field: Any, value: Any) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        return _struct(root, field.struct, value)
    if field.type == "uuid":
        return uuids.from_text(value)
    if field.type in ("bytes", "records"):
        return base64.b64decode(value)
    return float(value) if field.type == "float64" else value


def check_described(message: Any, value: dict[str, Any], version: int) -> None:
    """Assert, field by field and without the codec, that a decoded message says what `value` says.

    Independent of `message_of` and of `==`: it walks the JSON, not the message.
    """
    names = {key_of(name): name for name in message.FIELDS}
    for name, expected in value.items():
        if name == "_tags":
            tags = [[tag, base64.b64encode(data).decode()] for tag, data in message.unknown_tags]
            assert tags == expected
            continue
        _check_value(getattr(message, names[key_of(name)]), expected, version)


def _check_value(got: Any, expected: Any, version: int) -> None:
    if isinstance(expected, dict):
        check_described(got, expected, version)
    elif isinstance(expected, list):
        assert isinstance(got, list)
        assert len(got) == len(expected)
        for left, right in zip(got, expected, strict=True):
            _check_value(left, right, version)
    elif isinstance(expected, str) and not isinstance(got, str):
        data = bytes(got)
        text = base64.b64encode(data).decode()
        assert expected in (text, text.rstrip("=").translate(str.maketrans("+/", "-_")))
    else:
        assert got == expected
        assert (got is None) == (expected is None)
