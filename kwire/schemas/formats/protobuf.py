"""Protobuf schemas: a `.proto` text, or a FileDescriptorProto in base64 as Python's clients send.

The text is read by `proto_text`, names are resolved and checked by the library of Protocol Buffers.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError

from kwire.schemas.formats.json_text import check_size
from kwire.schemas.formats.parsed import InvalidSchema, Parsed, all_references
from kwire.schemas.formats.proto_bundled import bundled
from kwire.schemas.formats.proto_meta import to_extensions, to_text
from kwire.schemas.formats.proto_print import render
from kwire.schemas.formats.proto_text import read

FILE_NAME = "schema.proto"
DESCRIPTOR_NAME = "default"  # of the file that clients are told
FIELDS_MAX = 20_000


@dataclass(frozen=True, kw_only=True)
class ProtobufSchema(Parsed):
    file: descriptor_pb2.FileDescriptorProto
    descriptor: FileDescriptor


def parse(text: str, references: Mapping[str, Parsed]) -> ProtobufSchema:
    """Raises InvalidSchema for every text that is no Protobuf schema with these references."""
    check_size(text)
    try:
        file = _decoded(text) or read(text)
        if not (file.message_type or file.enum_type or file.extension or file.service):
            raise InvalidSchema("The schema has no message")
        canonical, normalized = render(file), render(file, is_normalized=True)
        # What is printed is what is kept: a descriptor in base64 comes to the same.
        file = read(canonical)
        descriptor = _described(file, references)
        check_numbers(file)
    except InvalidSchema:
        raise
    except RecursionError:
        raise InvalidSchema("The schema nests too deep") from None
    except Exception as error:
        # The library raises what it meets: TypeError of its pool, ValueError of its fields.
        raise InvalidSchema(str(error) or type(error).__name__) from None
    check_size(canonical)
    first = next(iter(file.message_type), None)
    space = f"{file.package}." if file.package else ""
    return ProtobufSchema(
        schema_type="PROTOBUF",
        canonical=canonical,
        normalized=normalized,
        record_name=space + first.name if first is not None else None,
        references=references,
        file=file,
        descriptor=descriptor,
    )


def _decoded(text: str) -> descriptor_pb2.FileDescriptorProto | None:
    """The file of a descriptor in base64; None for everything else."""
    try:
        raw = base64.b64decode(text, validate=True)
        file = descriptor_pb2.FileDescriptorProto.FromString(raw)
    except (binascii.Error, ValueError, DecodeError):
        return None
    if not (file.message_type or file.enum_type):
        return None
    to_text(file)
    return file


def as_base64(file: descriptor_pb2.FileDescriptorProto) -> str:
    """The descriptor of a schema, as Python's clients read and send it."""
    copy = descriptor_pb2.FileDescriptorProto()
    copy.CopyFrom(file)
    copy.name = DESCRIPTOR_NAME
    to_extensions(copy)
    return base64.b64encode(copy.SerializeToString()).decode()


def _described(
    file: descriptor_pb2.FileDescriptorProto, references: Mapping[str, Parsed]
) -> FileDescriptor:
    pool = descriptor_pool.DescriptorPool()
    added: dict[str, None] = {}
    known = all_references(references)
    for name, reference in known.items():
        if not isinstance(reference, ProtobufSchema):
            raise InvalidSchema(f"The reference {name} is no Protobuf schema")
        _add(pool, added, reference.file, name)
    own = FILE_NAME
    while own in known or own in file.dependency:
        own = f"_{own}"
    _add(pool, added, file, own)
    return pool.FindFileByName(own)


def _add(
    pool: descriptor_pool.DescriptorPool,
    added: dict[str, None],
    file: descriptor_pb2.FileDescriptorProto,
    name: str,
) -> None:
    for needed in file.dependency:
        if needed in added:
            continue
        found = bundled(needed)
        if found is None:
            raise InvalidSchema(f"The import {needed} is no reference of the schema")
        _add(pool, added, found, needed)
    copy = descriptor_pb2.FileDescriptorProto()
    copy.CopyFrom(file)
    copy.name = name
    try:
        pool.AddSerializedFile(copy.SerializeToString())
    except TypeError as error:
        raise InvalidSchema(str(error).partition(": ")[2] or str(error)) from None
    added[name] = None


def check_numbers(file: descriptor_pb2.FileDescriptorProto) -> None:
    """What the pool leaves to compilers: reserved numbers and names, and how many fields."""
    ahead, count = list(file.message_type), 0
    while ahead:
        message = ahead.pop()
        ahead += message.nested_type
        count += len(message.field) + 1
        if count > FIELDS_MAX:
            raise InvalidSchema(f"The schema has more than {FIELDS_MAX} fields")
        for field in message.field:
            is_taken = any(x.start <= field.number < x.end for x in message.reserved_range)
            if is_taken or field.name in message.reserved_name or 19000 <= field.number < 20000:
                raise InvalidSchema(
                    f"The field {message.name}.{field.name} = {field.number} is reserved"
                )
