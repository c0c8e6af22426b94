"""Whether messages that were written with one Protobuf schema are read by another.

Fields are known by their numbers, messages by their names below the package. Source: Protocol
Buffers language guide, "Updating a message type", and Confluent's documentation of Protobuf
compatibility; the names of the kinds of change are those of registries' replies.
"""

from __future__ import annotations

from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    FileDescriptor,
    OneofDescriptor,
)

from kwire.schemas.formats.parsed import REASONS_MAX, STEPS_MAX, InvalidSchema, Sides

_F = FieldDescriptor
# Types of one group are read for each other; an enum is written as an integer.
GROUPS = {
    **dict.fromkeys(
        (_F.TYPE_INT32, _F.TYPE_UINT32, _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM),
        "varint",
    ),
    **dict.fromkeys((_F.TYPE_SINT32, _F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32), "32 bits"),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64), "64 bits"),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES), "bytes"),
}
MESSAGES = (_F.TYPE_MESSAGE, _F.TYPE_GROUP)
TOLD = {
    "PACKAGE_CHANGED": "the package of both schemas differs",
    "MESSAGE_REMOVED": "the {reader} schema lacks a message of the {writer} schema",
    "FIELD_KIND_CHANGED": "a field is of another kind in the {reader} schema",
    "FIELD_SCALAR_KIND_CHANGED": "the type of a field is not read by that of the {reader} schema",
    "FIELD_NAMED_TYPE_CHANGED": "a field has a type of another name in the {reader} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "a field of numbers is repeated in one of both schemas only",
    "REQUIRED_FIELD_ADDED": "a field is required in the {reader} schema only",
    "REQUIRED_FIELD_REMOVED": "the {reader} schema lacks a required field of the {writer} schema",
    "ONEOF_FIELD_REMOVED": "the {reader} schema lacks a field of a oneof of the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "several fields of the {writer} schema are in one oneof",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "a field has moved to a oneof that has other fields",
}


def incompatibilities(reader: FileDescriptor, writer: FileDescriptor, sides: Sides) -> list[str]:
    """The reasons, none when compatible: `{errorType:'', description:''}`."""
    walk = _Walk(sides)
    if reader.package != writer.package:
        walk.say("PACKAGE_CHANGED", "#/")
    walk.messages(
        list(reader.message_types_by_name.values()),
        list(writer.message_types_by_name.values()),
        "#",
    )
    return walk.reasons


def short_name(message: Descriptor) -> str:
    """Below the package of its file."""
    package, name = message.file.package, str(message.full_name)
    return name.removeprefix(f"{package}.") if package else name


class _Walk:
    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.reasons: list[str] = []
        self.entered: dict[tuple[str, str], None] = {}
        self.steps = 0

    def say(self, kind: str, path: str) -> None:
        if len(self.reasons) < REASONS_MAX:
            told = TOLD[kind].format(reader=self.sides.reader, writer=self.sides.writer)
            self.reasons.append(f"{{errorType:'{kind}', description:'At path '{path}' {told}'}}")

    def messages(self, reader: list[Descriptor], writer: list[Descriptor], path: str) -> None:
        known = {message.name: message for message in reader}
        for message in writer:
            if message.GetOptions().map_entry:
                continue
            at = f"{path}/{message.name}"
            if message.name in known:
                self.message(known[message.name], message, at)
            else:
                self.say("MESSAGE_REMOVED", at)

    def message(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        if (reader.full_name, writer.full_name) in self.entered:
            return
        self.entered[reader.full_name, writer.full_name] = None
        for number, field in writer.fields_by_number.items():
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise InvalidSchema("The schemas are too large to compare")
            new = reader.fields_by_number.get(number)
            if new is not None:
                self.field(new, field, f"{path}/{number}")
            elif field.is_required:
                self.say("REQUIRED_FIELD_REMOVED", f"{path}/{number}")
        for number, field in reader.fields_by_number.items():
            old = writer.fields_by_number.get(number)
            if field.is_required and (old is None or not old.is_required):
                self.say("REQUIRED_FIELD_ADDED", f"{path}/{number}")
        self.oneofs(reader, writer, path)
        self.messages(list(reader.nested_types), list(writer.nested_types), path)

    def field(self, reader: FieldDescriptor, writer: FieldDescriptor, path: str) -> None:
        if reader.type in MESSAGES or writer.type in MESSAGES:
            return self.of_messages(reader, writer, path)
        group = GROUPS.get(writer.type)
        if reader.type != writer.type and (group is None or GROUPS.get(reader.type) != group):
            self.say("FIELD_SCALAR_KIND_CHANGED", path)
        elif reader.is_repeated != writer.is_repeated and group != "bytes":
            self.say("FIELD_NUMERIC_LABEL_CHANGED", path)
        return None

    def of_messages(self, reader: FieldDescriptor, writer: FieldDescriptor, path: str) -> None:
        new, old = reader.message_type, writer.message_type
        is_map = [x is not None and x.GetOptions().map_entry for x in (new, old)]
        if reader.type != writer.type or new is None or old is None or is_map[0] != is_map[1]:
            self.say("FIELD_KIND_CHANGED", path)
        elif is_map[0]:
            for number in (1, 2):
                self.field(new.fields_by_number[number], old.fields_by_number[number], path)
        elif short_name(new) != short_name(old):
            self.say("FIELD_NAMED_TYPE_CHANGED", path)
        else:
            self.message(new, old, path)

    def oneofs(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        """Fields of one oneof exclude each other: only those may come into one that were in one."""
        home = {field.number: oneof.name for oneof in real_oneofs(writer) for field in oneof.fields}
        for oneof in real_oneofs(reader):
            known = [x.number for x in oneof.fields if x.number in writer.fields_by_number]
            origins = dict.fromkeys(home.get(number, f"#{number}") for number in known)
            if len(origins) > 1:
                is_new = all(number not in home for number in known)
                kind = (
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if is_new else "FIELD_MOVED_TO_EXISTING_ONEOF"
                )
                self.say(kind, f"{path}/{oneof.name}")
        for oneof in real_oneofs(writer):
            kept = [x.number for x in oneof.fields if x.number in reader.fields_by_number]
            for field in oneof.fields:
                if kept and field.number not in reader.fields_by_number:
                    self.say("ONEOF_FIELD_REMOVED", f"{path}/{oneof.name}/{field.number}")


def real_oneofs(message: Descriptor) -> list[OneofDescriptor]:
    """Without those that stand for an `optional` field of proto3."""
    return [
        oneof
        for oneof in message.oneofs
        if not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}")
    ]
