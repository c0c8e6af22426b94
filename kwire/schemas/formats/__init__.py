"""Schemas of every format: parse, and compare what was written with what reads.

Pure and bounded: no network, no files, and no exception but InvalidSchema whatever the text is.
The libraries of a format are imported by its first schema.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.schemas.formats.parsed import InvalidSchema, Parsed, Sides, all_references

__all__ = ["SCHEMA_TYPES", "InvalidSchema", "Parsed", "Sides", "incompatibilities", "parse"]

SCHEMA_TYPES = ("AVRO", "JSON", "PROTOBUF")


def parse(schema_type: str, text: str, references: Mapping[str, Parsed]) -> Parsed:
    """The schema of a text.

    `schema_type` is one of SCHEMA_TYPES, `references` the schemas it names, by the name it gives
    them (for Avro a full name, for JSON Schema a `$ref`, for Protobuf the path of an import), each
    parsed with references of its own. Raises InvalidSchema.
    """
    if schema_type == "AVRO":
        from kwire.schemas.formats import avro

        return avro.parse(text, references)
    if schema_type == "JSON":
        from kwire.schemas.formats import json_schema

        return json_schema.parse(text, references)
    if schema_type == "PROTOBUF":
        from kwire.schemas.formats import protobuf

        return protobuf.parse(text, references)
    raise InvalidSchema(f"Invalid schema type {schema_type}: use one of {', '.join(SCHEMA_TYPES)}")


def incompatibilities(reader: Parsed, writer: Parsed, sides: Sides = Sides()) -> list[str]:  # noqa: B008
    """Why `reader` cannot read what `writer` wrote; empty when it can.

    Each reason is `{errorType:'...', description:'...', additionalInfo:'...'}`, as in the `verbose`
    replies of Confluent's Schema Registry; JSON Schema and Protobuf have no additionalInfo there.
    Raises InvalidSchema where the two are too large to compare.
    """
    if reader.schema_type != writer.schema_type:
        return [
            f"{{errorType:'SCHEMA_TYPE_MISMATCH', description:'The {sides.reader} schema is "
            f"{reader.schema_type}, the {sides.writer} schema is {writer.schema_type}'}}"
        ]
    if reader.canonical == writer.canonical and is_same(reader.references, writer.references):
        return []
    try:
        return _compared(reader, writer, sides)
    except RecursionError:
        raise InvalidSchema("The schemas nest too deep to be compared") from None


def is_same(one: Mapping[str, Parsed], other: Mapping[str, Parsed]) -> bool:
    """Whether both name the same schemas by the same names."""
    texts, others = (
        {name: parsed.canonical for name, parsed in all_references(references).items()}
        for references in (one, other)
    )
    return texts == others


def _compared(reader: Parsed, writer: Parsed, sides: Sides) -> list[str]:
    if reader.schema_type == "AVRO":
        from kwire.schemas.formats import avro, avro_compatibility

        assert isinstance(reader, avro.AvroSchema)
        assert isinstance(writer, avro.AvroSchema)
        return avro_compatibility.incompatibilities(reader.root, writer.root, sides)
    if reader.schema_type == "JSON":
        from kwire.schemas.formats import json_compatibility, json_schema

        assert isinstance(reader, json_schema.JsonSchema)
        assert isinstance(writer, json_schema.JsonSchema)
        return json_compatibility.incompatibilities(reader.root, writer.root, sides)
    if reader.schema_type == "PROTOBUF":
        from kwire.schemas.formats import proto_compatibility, protobuf

        assert isinstance(reader, protobuf.ProtobufSchema)
        assert isinstance(writer, protobuf.ProtobufSchema)
        return proto_compatibility.incompatibilities(reader.descriptor, writer.descriptor, sides)
    raise InvalidSchema(f"Invalid schema type {reader.schema_type}")
