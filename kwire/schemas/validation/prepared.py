"""What is asked of a registered schema at publish: the names of its records, how bytes decode.

Making one parses the schema: beside the loop, once for each. Decoding takes steps, and a pattern
of a JSON Schema is matched by RE2, never by an engine that may take exponential time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kwire.schemas.formats import InvalidSchema, Parsed
from kwire.schemas.formats.parsed import all_references
from kwire.schemas.validation.allowance import Allowance
from kwire.schemas.validation.avro_bytes import UndecodableError, check
from kwire.schemas.validation.message_indexes import read_indexes

BYTES_PER_STEP = 64
NAMED_BYTES_MAX, NAMED_MAX = 2048, 10  # where required fields are missing
Decode = Callable[[bytes, int, Allowance], None]
"""`decode(data, start, allowance)` raises UndecodableError, and AllowanceSpentError."""


@dataclass(frozen=True)
class Prepared:
    """`name(data, start)` is what RecordNameStrategy calls a record: the same for all records, or
    for Protobuf that of the message that the bytes say they are."""

    name: Callable[[bytes, int], str | None]
    decode: Decode
    has_one_name: bool = True


def prepared(schema: Parsed) -> Prepared:
    """Raises InvalidSchema where the format is unknown, or its patterns take too long."""
    if schema.schema_type == "AVRO":
        return _avro(schema)
    if schema.schema_type == "JSON":
        return _json(schema)
    if schema.schema_type == "PROTOBUF":
        return _protobuf(schema)
    raise InvalidSchema(f"Schemas of type {schema.schema_type} are not validated")


def _take_size(size_bytes: int, allowance: Allowance) -> None:
    """Of what a library reads at once."""
    if size_bytes > allowance.read_bytes_max:
        raise UndecodableError(
            f"it has {size_bytes} bytes, of at most {allowance.read_bytes_max} "
            "that are checked by a schema of JSON or Protobuf"
        )
    allowance.take(size_bytes // BYTES_PER_STEP)


def _avro(schema: Parsed) -> Prepared:
    from kwire.schemas.formats.avro import AvroSchema

    assert isinstance(schema, AvroSchema)
    root = schema.root
    return Prepared(
        lambda data, start: schema.record_name,
        lambda data, start, allowance: check(root, data, start, allowance),
    )


def _json(schema: Parsed) -> Prepared:
    from kwire.schemas.formats.json_schema import JsonSchema
    from kwire.schemas.validation.json_documents import (
        check_document,
        check_patterns,
        checker_of,
        document_of,
    )

    assert isinstance(schema, JsonSchema)
    texts = [schema, *all_references(schema.references).values()]
    check_patterns([one.root.schema for one in texts if isinstance(one, JsonSchema)])
    checker = checker_of(schema.root)

    def decode(data: bytes, start: int, allowance: Allowance) -> None:
        _take_size(len(data) - start, allowance)
        check_document(checker, document_of(data[start:]), allowance)

    return Prepared(lambda data, start: schema.record_name, decode)


def _protobuf(schema: Parsed) -> Prepared:
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    from kwire.schemas.formats.protobuf import ProtobufSchema

    assert isinstance(schema, ProtobufSchema)
    first = list(schema.descriptor.message_types_by_name.values())

    def name(data: bytes, start: int) -> str | None:
        try:
            return str(read_indexes(data, start).message(first).full_name)
        except UndecodableError:
            return None

    def decode(data: bytes, start: int, allowance: Allowance) -> None:
        found = read_indexes(data, start)
        _take_size(len(data) - found.end, allowance)
        try:
            message = GetMessageClass(found.message(first)).FromString(bytes(data[found.end :]))
        except DecodeError:
            raise UndecodableError("it is no message of the schema") from None
        if not message.IsInitialized():
            # All of them are found at once, which takes long where there are many.
            is_short = len(data) - found.end <= NAMED_BYTES_MAX
            names = ", ".join(message.FindInitializationErrors()[:NAMED_MAX]) if is_short else ""
            raise UndecodableError(f"required fields are missing: {names}".removesuffix(": "))

    return Prepared(name, decode, has_one_name=False)
