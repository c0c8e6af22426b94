"""Messages whose long array is encoded by itself are the same bytes, of every API and version."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.errors import EncodeError

RANGES = {"int8": 7, "int16": 15, "uint16": 15, "int32": 31, "int64": 63, "uint32": 31}


def value(field: schema.Field, classes: dict[str, Any], version: int, source: Any) -> Any:
    if field.struct is not None:
        return struct(field.struct, classes, version, source)
    if field.type in RANGES:
        return source.getrandbits(RANGES[field.type])
    simple = {
        "bool": lambda: source.random() < 0.5,
        "float64": source.random,
        "string": lambda: "s" * source.choice([0, 5, 200]),
        "uuid": lambda: source.randbytes(16),
        "bytes": lambda: source.randbytes(9),
        "records": lambda: source.randbytes(9),
    }
    return simple[field.type]()


def struct(definition: schema.Struct, classes: dict[str, Any], version: int, source: Any) -> Any:
    made = classes[definition.name]()
    for field in definition.fields:
        if not schema.within(version, field.versions):
            continue
        if field.is_array:
            count = source.choice([0, 1, 3])
            held: Any = [value(field, classes, version, source) for _ in range(count)]
        else:
            held = value(field, classes, version, source)
        setattr(made, field.name, held)
    return made


def arrays(message: Any, version: int) -> list[str]:
    return [
        field.name
        for field in message.SCHEMA.root.fields
        if field.is_array
        and field.struct is not None
        and field.tag is None
        and schema.within(version, field.versions)
    ]


@pytest.mark.parametrize("api_key", sorted(API_KEYS))
def test_an_array_that_is_encoded_by_itself(api_key: int) -> None:
    cls: Any = m.response_class(api_key)
    source = random.Random(api_key)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for array in arrays(cls, version):
            message = struct(cls.SCHEMA.root, cls.STRUCTS, version, source)
            elements = getattr(message, array)
            middle = len(elements) // 2
            encoded = cls.encode_elements(array, elements[:middle], version)
            encoded += cls.encode_elements(array, elements[middle:], version)
            rest = message.copy(**{array: []})
            assert rest.encode_around(array, (len(elements), encoded), version) == message.encode(
                version
            ), (cls.NAME, version, array)
            pieces = [encoded[:7], encoded[7:]]
            parts = rest.encode_parts_around(array, len(elements), pieces, version)
            assert b"".join(parts) == message.encode(version), (cls.NAME, version, array)
            assert any(part is pieces[1] for part in parts), "they are not copied"


def _nested(cls: Any, version: int) -> list[tuple[str, str]]:
    """Arrays of structs, and those within their elements."""
    found = []
    for outer in cls.SCHEMA.root.fields:
        if outer.name not in arrays(cls, version):
            continue
        for inner in outer.struct.fields:
            is_there = schema.within(version, inner.versions) and inner.tag is None
            if is_there and inner.is_array and inner.struct is not None:
                found.append((outer.name, inner.name))
    return found


@pytest.mark.parametrize("api_key", sorted(API_KEYS))
def test_an_array_within_an_array_that_is_encoded_by_itself(api_key: int) -> None:
    cls: Any = m.response_class(api_key)
    source = random.Random(api_key)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for outer, inner in _nested(cls, version):
            definition = next(x.struct for x in cls.SCHEMA.root.fields if x.name == outer)
            elements = [struct(definition, cls.STRUCTS, version, source) for _ in range(3)]
            for element in elements:
                held = getattr(element, inner)
                encoded = cls.encode_elements(f"{outer}.{inner}", held[:1], version)
                encoded += cls.encode_elements(f"{outer}.{inner}", held[1:], version)
                rest = element.copy(**{inner: []})
                whole = cls.encode_elements(outer, [element], version)
                pieces = [encoded[:7], encoded[7:]]
                parts = cls.encode_element_parts_around(
                    f"{outer}.{inner}", rest, len(held), pieces, version
                )
                assert b"".join(parts) == whole, (cls.NAME, version, outer, inner)
                assert any(part is pieces[1] for part in parts), "they are not copied"


def test_an_array_of_many_elements_has_a_longer_count() -> None:
    shape = m.MetadataResponse.MetadataResponseTopic
    topics = [shape(name=f"t{n}") for n in range(300)]
    for version in (8, 9, 13):
        whole = m.MetadataResponse(topics=topics)
        encoded = m.MetadataResponse.encode_elements("topics", topics, version)
        frame = m.MetadataResponse().encode_around("topics", (300, encoded), version)
        assert frame == whole.encode(version)


def test_an_element_that_does_not_fit_is_refused() -> None:
    wrong: Any = m.MetadataResponse.MetadataResponseTopic(error_code=70_000)
    with pytest.raises(EncodeError, match="MetadataResponse v12"):
        m.MetadataResponse.encode_elements("topics", [wrong], 12)
