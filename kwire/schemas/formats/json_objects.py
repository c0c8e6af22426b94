"""Whether the objects of one JSON Schema are accepted by another: properties and content models.

A content model is what a schema says of properties it does not name: open (anything), closed
(nothing), or partially open (`patternProperties`, or `additionalProperties` with a schema).
"""

from __future__ import annotations

from kwire.schemas.formats.json_parts import named, one, plain, strings
from kwire.schemas.formats.json_patterns import matches
from kwire.schemas.formats.json_schema import Place
from kwire.schemas.formats.json_walk import Compares, Reason

_NOT_OPEN = "NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"


def model(walk: Compares, place: Place, name: str) -> tuple[list[Place], bool]:
    """(the schemas of a property that is not named, whether it is certain which those are)."""
    found, is_certain = [], True
    for pattern, schema in named(place, "patternProperties").items():
        walk.pattern(pattern)
        answer = matches(pattern, name)
        if answer is None:
            is_certain = False
        elif answer:
            found.append(schema)
    return (found or [rest(place)]), is_certain


def rest(place: Place) -> Place:
    keyword = "additionalProperties"
    if keyword not in place.keywords and "unevaluatedProperties" in place.keywords:
        keyword = "unevaluatedProperties"
    return one(place, keyword)


def object_reasons(walk: Compares, reader: Place, writer: Place, path: str) -> list[Reason]:
    """Why objects of the writer's schema may not be accepted by the reader's."""
    return [
        *_properties(walk, reader, writer, path),
        *_required(reader, writer, path),
        *_rest(walk, reader, writer, path),
        *_patterns(walk, reader, writer, path),
        *_names(walk, reader, writer, path),
        *_dependencies(walk, reader, writer, path),
    ]


def _properties(walk: Compares, reader: Place, writer: Place, path: str) -> list[Reason]:
    found: list[Reason] = []
    new, old = named(reader, "properties"), named(writer, "properties")
    for name, schema in new.items():
        at = f"{path}/properties/{name}"
        if name in old:
            found += walk.reasons(schema, (old[name],), at)
            continue
        described, is_certain = model(walk, writer, name)
        if walk.reasons(schema, tuple(described), at) or not (is_certain or plain(schema)):
            is_open = all(plain(place) for place in described)
            kind = "TO_OPEN_CONTENT_MODEL" if is_open else _NOT_OPEN
            found.append(Reason(f"PROPERTY_ADDED_{kind}", at))
    for name, schema in old.items():
        if name in new or schema.schema is False:
            continue
        accepted, is_certain = model(walk, reader, name)
        at = f"{path}/properties/{name}"
        if any(walk.reasons(place, (schema,), at) for place in accepted) or not is_certain:
            is_closed = any(place.schema is False for place in accepted)
            kind = "FROM_CLOSED_CONTENT_MODEL" if is_closed else _NOT_OPEN
            found.append(Reason(f"PROPERTY_REMOVED_{kind}", at))
    return found


def _required(reader: Place, writer: Place, path: str) -> list[Reason]:
    """A property that has a default may become required, as registries have it."""
    found = []
    before = strings(writer.keywords.get("required"))
    properties, known = named(reader, "properties"), named(writer, "properties")
    for name in strings(reader.keywords.get("required")):
        if name in before or (name in properties and "default" in properties[name].keywords):
            continue
        if name in known:
            found.append(Reason("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}"))
        else:
            kind = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
            kind = "REQUIRED_ATTRIBUTE_ADDED" if plain(rest(writer)) else kind
            found.append(Reason(kind, f"{path}/properties/{name}"))
    return found


def _rest(walk: Compares, reader: Place, writer: Place, path: str) -> list[Reason]:
    new, old = rest(reader), rest(writer)
    at = f"{path}/additionalProperties"
    if not walk.reasons(new, (old,), at):
        return []
    kind = "REMOVED" if new.schema is False else "NARROWED"
    return [Reason(f"ADDITIONAL_PROPERTIES_{kind}", at)]


def _patterns(walk: Compares, reader: Place, writer: Place, path: str) -> list[Reason]:
    found: list[Reason] = []
    new, old = named(reader, "patternProperties"), named(writer, "patternProperties")
    for pattern, schema in new.items():
        at = f"{path}/patternProperties/{pattern}"
        if pattern in old:
            found += walk.reasons(schema, (old[pattern],), at)
        elif any(walk.reasons(schema, (place,), at) for place in (rest(writer), *old.values())):
            found.append(Reason("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", at))
        for name, property_ in named(writer, "properties").items():
            walk.pattern(pattern)
            if matches(pattern, name) is not False and walk.reasons(schema, (property_,), at):
                found.append(Reason(f"PROPERTY_REMOVED_{_NOT_OPEN}", f"{path}/properties/{name}"))
    for pattern, schema in old.items():
        at = f"{path}/patternProperties/{pattern}"
        if pattern not in new and walk.reasons(rest(reader), (schema,), at):
            is_closed = rest(reader).schema is False
            kind = "FROM_CLOSED_CONTENT_MODEL" if is_closed else _NOT_OPEN
            found.append(Reason(f"PROPERTY_REMOVED_{kind}", at))
    return found


def _names(walk: Compares, reader: Place, writer: Place, path: str) -> list[Reason]:
    if "propertyNames" not in reader.keywords:
        return []
    at = f"{path}/propertyNames"
    if walk.reasons(one(reader, "propertyNames"), (one(writer, "propertyNames"),), at):
        return [Reason("PROPERTY_NAMES_ADDED", at)]
    return []


def _dependencies(walk: Compares, reader: Place, writer: Place, path: str) -> list[Reason]:
    found: list[Reason] = []
    keywords = ("dependencies", "dependentRequired", "dependentSchemas")
    before = {
        name: schema for keyword in keywords for name, schema in named(writer, keyword).items()
    }
    for keyword in keywords:
        for name, wanted in named(reader, keyword).items():
            at = f"{path}/{keyword}/{name}"
            known = before.get(name)
            if isinstance(wanted.schema, list):
                had = strings(known.schema) if known is not None else ()
                if any(other not in had for other in strings(wanted.schema)):
                    kind = "EXTENDED" if had else "ADDED"
                    found.append(Reason(f"DEPENDENCY_ARRAY_{kind}", at))
            elif known is None or isinstance(known.schema, list):
                if not plain(wanted):
                    found.append(Reason("DEPENDENCY_SCHEMA_ADDED", at))
            else:
                found += walk.reasons(wanted, (known,), at)
    return found
