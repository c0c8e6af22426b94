"""Keys and values by schemas of a registry: JSON in and out, framed bytes in the records.

    00 | id, int32 | encoded        Protobuf: [0], which message of the schema it is, in front

Avro is JSON as in its specification, Protobuf as protobuf's own, JSON is itself. What is sent is
checked by its schema first; what is read may be of any schema that the registry has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from kwire.cli.output import Json
from kwire.cli.records import Consumed, Header, Outgoing
from kwire.cli.registry import Registry
from kwire.client.errors import ClientError
from kwire.schemas.formats import InvalidSchema, Parsed, json_text, parse
from kwire.schemas.validation.allowance import Allowance, AllowanceSpentError, of_record
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.message_indexes import read_indexes
from kwire.schemas.validation.prepared import Prepared, prepared
from kwire.schemas.validation.schema_ids import guid_of, id_of, shown, told

TYPES = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
REFERENCES_DEPTH_MAX = 50
FIRST_MESSAGE = b"\0"
LEAST_STEPS = 1_000_000
"""Of a check: here nobody else waits for it."""

Encode = Callable[[bytes], bytes]


class Schema:
    """A schema of the registry, ready."""

    def __init__(self, parsed: Parsed, check: Prepared) -> None:
        self.parsed = parsed
        self._check = check

    def encoded(self, text: bytes) -> bytes:
        """The bytes of a JSON text. ClientError where it is none, or not by the schema."""
        try:
            data = self._encoded(text)
            self.checked(data, 0)
        except (UndecodableError, RecursionError) as error:
            raise ClientError(f"not by its schema: {error}") from None
        return data

    def _encoded(self, text: bytes) -> bytes:
        kind = self.parsed.schema_type
        if kind == "JSON":
            return text
        if kind == "PROTOBUF":
            return FIRST_MESSAGE + self._message(text)
        from kwire.schemas.formats.avro import AvroSchema
        from kwire.schemas.formats.avro_json import NoDatumError, encoded

        assert isinstance(self.parsed, AvroSchema)
        try:
            return encoded(self.parsed.root, _json(text))
        except NoDatumError as error:
            raise ClientError(f"not by its schema: {error}") from None

    def _message(self, text: bytes) -> bytes:
        from google.protobuf.json_format import Parse, ParseError
        from google.protobuf.message_factory import GetMessageClass

        from kwire.schemas.formats.protobuf import ProtobufSchema

        assert isinstance(self.parsed, ProtobufSchema)
        first = next(iter(self.parsed.descriptor.message_types_by_name.values()))
        try:
            message = Parse(text, GetMessageClass(first)())
        except (ParseError, UnicodeDecodeError) as error:
            raise ClientError(f"not by its schema: {error}") from None
        return bytes(message.SerializeToString(deterministic=True))

    def checked(self, data: bytes, start: int) -> None:
        """Raises UndecodableError where bytes are not of the schema."""
        steps = LEAST_STEPS + of_record(len(data))
        allowance = Allowance(steps, read_bytes_max=len(data))
        try:
            self._check.decode(data, start, allowance)
        except AllowanceSpentError:
            raise UndecodableError("it takes too long to check") from None

    def decoded(self, data: bytes, start: int) -> bytes:
        """The JSON text of encoded bytes. Raises UndecodableError."""
        self.checked(data, start)
        kind = self.parsed.schema_type
        if kind == "JSON":
            return data[start:]
        if kind == "PROTOBUF":
            return self._shown(data, start)
        from kwire.schemas.formats.avro import AvroSchema
        from kwire.schemas.formats.avro_json import decoded

        assert isinstance(self.parsed, AvroSchema)
        value = decoded(self.parsed.root, data, start)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def _shown(self, data: bytes, start: int) -> bytes:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message_factory import GetMessageClass

        from kwire.schemas.formats.protobuf import ProtobufSchema

        assert isinstance(self.parsed, ProtobufSchema)
        found = read_indexes(data, start)
        messages = list(self.parsed.descriptor.message_types_by_name.values())
        message = GetMessageClass(found.message(messages)).FromString(data[found.end :])
        value = MessageToDict(message, preserving_proto_field_name=True)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Schemas:
    """What a registry has, read once each. ClientError where it does not answer or know."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[bytes, Schema] = {}

    def encoder(self, subject: str, given: str) -> Encode:
        """For `given`: a file, which is registered under the subject, or one of its versions."""
        at = ("subjects", subject, "versions")
        if given == "latest" or given.isdecimal():
            found = self._registry.get(*at, given)
        else:
            found = self._registry.post(*at, body=_body(Path(given)))
        schema_id = found.get("id") if isinstance(found, dict) else None
        if not isinstance(schema_id, int):
            raise ClientError(f"{self._registry.shown}: no answer of a schema registry")
        head = b"\0" + schema_id.to_bytes(4, "big")
        schema = self._of(head)
        return lambda text: head + schema.encoded(text)

    def text_of(self, data: bytes, headers: Sequence[Header], side: str) -> bytes:
        """The JSON text of a key or value; itself where it names no schema."""
        named = [(_bytes(name), value) for name, value in headers]
        found = told(data, named, f"__{side}_schema_id".encode())
        if found is None:
            return data
        try:
            return self._of(found.head).decoded(data, found.start)
        except UndecodableError as error:
            raise ClientError(f"it is not by {shown(found.head)}: {error}") from None

    def _of(self, head: bytes) -> Schema:
        if head not in self._known:
            number = id_of(head)
            where = ("ids", str(number)) if number is not None else ("guids", guid_of(head))
            try:
                parsed = self._parsed(self._registry.get("schemas", *where), 0)
                self._known[head] = Schema(parsed, prepared(parsed))
            except InvalidSchema as error:
                raise ClientError(f"{shown(head)}: {error}") from None
            except ImportError as error:
                needed = "pip install 'kwire[schemas]'"
                raise ClientError(f"{shown(head)}: {error.name} is missing: {needed}") from None
        return self._known[head]

    def _parsed(self, found: Json, depth: int) -> Parsed:
        if not isinstance(found, dict) or depth > REFERENCES_DEPTH_MAX:
            raise ClientError(f"{self._registry.shown}: no answer of a schema registry")
        references: dict[str, Parsed] = {}
        listed = found.get("references")
        for one in listed if isinstance(listed, list) else []:
            if isinstance(one, dict):
                path = ("subjects", str(one.get("subject")), "versions", str(one.get("version")))
                target = self._registry.get(*path)
                references[str(one.get("name"))] = self._parsed(target, depth + 1)
        kind = str(found.get("schemaType") or "AVRO")
        return parse(kind, str(found.get("schema", "")), references)


def encoding(key: Encode | None, value: Encode | None) -> Callable[[Outgoing], Outgoing]:
    """Records with their keys and values encoded; nulls stay."""

    def encode(record: Outgoing) -> Outgoing:
        if key is not None and record.key is not None:
            record = record._replace(key=key(record.key))
        if value is not None and record.value is not None:
            record = record._replace(value=value(record.value))
        return record

    return encode


def decoding(schemas: Schemas, values: bool, keys: bool) -> Callable[[Consumed], Consumed]:
    """Records with their values, or keys, as JSON. ClientError names the record at fault."""

    def decode(consumed: Consumed) -> Consumed:
        record = consumed.record
        try:
            if values and record.value is not None:
                text = schemas.text_of(record.value, record.headers, "value")
                record = record._replace(value=text)
            if keys and record.key is not None:
                record = record._replace(key=schemas.text_of(record.key, record.headers, "key"))
        except ClientError as error:
            where = f"{consumed.topic}-{consumed.partition} offset {record.offset}"
            raise ClientError(f"{where}: {error}") from None
        return consumed._replace(record=record)

    return decode


def _body(file: Path) -> dict[str, Json]:
    kind = TYPES.get(file.suffix.lower())
    if kind is None:
        expected = f"a file ({', '.join(TYPES)}), a version or latest"
        raise ClientError(f"{file}: a schema is {expected}")
    try:
        return {"schema": file.read_text(), "schemaType": kind}
    except UnicodeDecodeError:
        raise ClientError(f"{file} is no text in UTF-8") from None
    except OSError as error:
        raise ClientError(f"{file}: {error.strerror}") from None


def _json(text: bytes) -> json_text.Json:
    try:
        value: json_text.Json = json.loads(text)
    except (ValueError, RecursionError):
        raise ClientError("it is no JSON") from None
    return value


def _bytes(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name
