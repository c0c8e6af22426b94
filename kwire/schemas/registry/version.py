"""One version of a subject as the topic has it, and its GUID.

The GUID is the MD5 of the schema, its references, metadata and rule set: equal ones have one GUID
in every context and cluster. Its bytes, as serializers of the usual kind expect them:

    schema | references: name, subject, version (int32) each
           | metadata: 01, tags (path, tags), properties (name, value), sensitive
           | ruleSet: 01, migrationRules, domainRules, encodingRules, enableAt
    rule   | name, doc, kind, mode, type, tags, params (name, value), expr, onSuccess, onFailure,
           | 01 where it is disabled
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.metadata import RULES

AVRO = "AVRO"
LATEST = -1


class Reference(NamedTuple):
    """A schema that another one names: `name` is what that one calls it."""

    name: str
    subject: str
    version: int

    def as_json(self) -> JsonObject:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class Version(NamedTuple):
    """See the module. `subject` is qualified; `timestamp` in ms, of its record; `rest` are fields
    of the record that nobody here knows, kept for those who do."""

    subject: str
    version: int
    id: int
    schema_type: str
    schema: str
    references: tuple[Reference, ...]
    metadata: JsonObject | None
    rule_set: JsonObject | None
    is_deleted: bool
    guid: str
    timestamp: int
    rest: JsonObject

    @property
    def key(self) -> tuple[str, int]:
        return self.subject, self.version


def guid_of(
    schema: str,
    references: Sequence[Reference],
    metadata: JsonObject | None,
    rule_set: JsonObject | None,
) -> str:
    """See the module."""
    digest = hashlib.md5(schema.encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference.name.encode() + reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        digest.update(b"\x01")
        for part in ("tags", "properties", "sensitive"):
            for text in _flat(metadata.get(part)):
                digest.update(text.encode())
    if rule_set is not None:
        digest.update(b"\x01")
        for kind in RULES:
            rules = rule_set.get(kind)
            for rule in rules if isinstance(rules, list) else []:
                if isinstance(rule, dict):
                    _add_rule(digest, rule)
        digest.update("".join(_flat(rule_set.get("enableAt"))).encode())
    return str(uuid.UUID(bytes=digest.digest()))


def guid_of_digest(md5: str) -> str | None:
    """The GUID of a record that tells its MD5 in base64; None where that is none."""
    try:
        return str(uuid.UUID(bytes=base64.b64decode(md5, validate=True)))
    except (binascii.Error, ValueError):
        return None


def _add_rule(digest: hashlib._Hash, rule: JsonObject) -> None:
    for field in ("name", "doc", "kind", "mode", "type", "tags", "params", "expr"):
        for text in _flat(rule.get(field)):
            digest.update(text.encode())
    for field in ("onSuccess", "onFailure"):
        for text in _flat(rule.get(field)):
            digest.update(text.encode())
    if rule.get("disabled"):
        digest.update(b"\x01")


def _flat(value: Json) -> Iterator[str]:
    """The texts in a value, in order: names before their values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _flat(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from _flat(one)
