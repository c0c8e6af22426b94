"""A message as JSON, by its schema, and a message of such JSON.

Fields have their names in snake case; those that the version lacks and tagged ones that are not set
are left out. uuids are in Kafka's text form, bytes are {"base64": ...}, records are summed up
(`record_summaries.py`), and what is secret is `[hidden]` (`secrets.py`).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from kwire.protocol import schema, uuids
from kwire.protocol.structs import Message, Struct
from kwire.trace.json_values import Json, JsonObject
from kwire.trace.record_summaries import content_of, rebuilt, summary
from kwire.trace.secrets import CONFIG_MESSAGES, HIDDEN, HIDDEN_FIELDS, hide_config


class Unsendable(ValueError):
    """A message that a trace does not hold whole."""


def as_json(message: Message, version: int, kept_bytes: int = 0) -> JsonObject:
    """What is written of a message; `kept_bytes` of each key and value of records."""
    has_configs = message.NAME in CONFIG_MESSAGES
    return _struct(message, message.SCHEMA.root, version, kept_bytes, has_configs)


def _struct(
    held: Struct, definition: schema.Struct, version: int, kept_bytes: int, has_configs: bool
) -> JsonObject:
    shown: JsonObject = {}
    for field in definition.fields:
        if not schema.within(version, field.versions):
            continue
        if _is_tagged(field, version) and not held.is_set(field.name):
            continue
        value = getattr(held, field.name)
        if value is not None and field.name in HIDDEN_FIELDS and not field.is_array:
            shown[field.name] = HIDDEN
        elif field.is_array and value is not None:
            shown[field.name] = [
                _value(item, field, version, kept_bytes, has_configs) for item in value
            ]
        else:
            shown[field.name] = _value(value, field, version, kept_bytes, has_configs)
    if has_configs and "name" in shown and "value" in shown:
        hide_config(shown)
    if held.unknown_tags:
        shown["unknown_tags"] = [
            {"tag": tag, "bytes": len(content)} for tag, content in held.unknown_tags
        ]
    return shown


def _is_tagged(field: schema.Field, version: int) -> bool:
    return field.tag is not None and schema.within(version, field.tagged)


def _value(
    value: Any, field: schema.Field, version: int, kept_bytes: int, has_configs: bool
) -> Json:
    if value is None:
        return None
    if field.struct is not None:
        return _struct(value, field.struct, version, kept_bytes, has_configs)
    if field.type == "uuid":
        return uuids.to_text(value)
    if field.type == "records":
        return summary(value, kept_bytes)
    if field.type == "bytes":
        return {"base64": b64encode(value).decode()}
    if field.type == "bool":
        return bool(value)
    plain: Json = value
    return plain


# -- and back


def from_json(kind: type[Message], version: int, shown: JsonObject) -> Message:
    """The message that `as_json` showed, with unknown tags left out. Unsendable says why there
    is none: something is hidden, or does not fit."""
    made = _read_struct(kind, kind, kind.SCHEMA.root, version, shown)
    assert isinstance(made, Message)
    return made


def _read_struct(
    message: type[Message],
    kind: type[Struct],
    definition: schema.Struct,
    version: int,
    shown: JsonObject,
) -> Struct:
    made = kind()
    for field in definition.fields:
        if field.name not in shown or not schema.within(version, field.versions):
            continue
        value = shown[field.name]
        if value == HIDDEN:
            raise Unsendable(f"{field.name} is not in the trace, as it is secret")
        try:
            setattr(made, field.name, _read(message, field, version, value))
        except Unsendable:
            raise
        except (ValueError, TypeError) as error:
            raise Unsendable(f"{field.name}: {error}") from None
    return made


def _read(message: type[Message], field: schema.Field, version: int, value: Json) -> Any:
    if value is None:
        return None
    if field.is_array:
        if not isinstance(value, list):
            raise Unsendable(f"{field.name} is no list")
        return [_read_one(message, field, version, item) for item in value]
    return _read_one(message, field, version, value)


def _read_one(message: type[Message], field: schema.Field, version: int, value: Json) -> Any:
    if field.struct is not None:
        if not isinstance(value, dict):
            raise Unsendable(f"{field.name} is no object")
        kind = message.STRUCTS[field.struct.name]
        return _read_struct(message, kind, field.struct, version, value)
    if field.type == "records":
        if not isinstance(value, dict):
            raise Unsendable(f"{field.name} is no object")
        return rebuilt(value)
    if field.type == "bytes":
        return content_of(value)
    if field.type == "uuid":
        return uuids.from_text(str(value))
    return value
