"""Options that Confluent's serializers read in a descriptor, `(confluent.field_meta)` and its like:
in a `.proto` they are text, in a descriptor an extension of its options.

Rules act on fields by the tags that stand there. Any other custom option is kept as the text of a
schema has it: what it is is known to whoever has its file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kwire.schemas.formats.proto_bundled import bundled
from kwire.schemas.formats.proto_tokens import Tokens

_FILES = ("google/protobuf/descriptor.proto", "confluent/meta.proto")
_NAMES = {
    "FileOptions": "confluent.file_meta",
    "MessageOptions": "confluent.message_meta",
    "FieldOptions": "confluent.field_meta",
    "EnumOptions": "confluent.enum_meta",
    "EnumValueOptions": "confluent.enum_value_meta",
}


def to_text(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Of a descriptor that came: its extensions become options as a text has them."""
    for options in _all_options(file):
        extension = _extension(options.DESCRIPTOR.name)
        known = _class(options.DESCRIPTOR.name).FromString(options.SerializeToString())
        if not known.HasExtension(extension):
            continue
        told = text_format.MessageToString(
            known.Extensions[extension], as_one_line=True, as_utf8=True
        )
        known.ClearExtension(extension)
        words = Tokens(told + "}").aggregate()  # as a text is read
        option = known.uninterpreted_option.add(aggregate_value=words)
        option.name.add(name_part=_NAMES[options.DESCRIPTOR.name], is_extension=True)
        options.ParseFromString(known.SerializeToString())


def to_extensions(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Of a descriptor that goes: the other way round."""
    for options in _all_options(file):
        name = _NAMES[options.DESCRIPTOR.name]
        known = _class(options.DESCRIPTOR.name).FromString(options.SerializeToString())
        others = []
        for option in known.uninterpreted_option:
            extension = known.Extensions[_extension(options.DESCRIPTOR.name)]
            if option.name[0].name_part.lstrip(".") != name or not _is_read(option, extension):
                others.append(option)
        if len(others) < len(known.uninterpreted_option):
            kept = [type(one).FromString(one.SerializeToString()) for one in others]
            known.ClearField("uninterpreted_option")
            known.uninterpreted_option.extend(kept)
            options.ParseFromString(known.SerializeToString())


def _is_read(option: Message, into: Message) -> bool:
    """Whether an option is one of this kind, which is set then."""
    told = next((found for found in option.ListFields() if found[0].name != "name"), None)
    if told is None:
        return False
    field, value = told
    if field.name == "aggregate_value":
        text = f"{{ {value} }}"
    elif field.name == "string_value":
        text = f': "{text_format.text_encoding.CEscape(value, as_utf8=False)}"'
    else:
        text = f": {value}"
    parts = [part.name_part for part in option.name][1:]
    for part in reversed(parts):
        text = f"{{ {part} {text} }}"
    try:
        found = text_format.Merge(text.removeprefix("{").removesuffix("}"), type(into)())
    except text_format.ParseError:
        return False
    into.MergeFrom(found)
    return True


def _all_options(file: descriptor_pb2.FileDescriptorProto) -> Iterator[Message]:
    """Those that are set."""
    ahead: list[Message] = [file]
    while ahead:
        one = ahead.pop()
        if one.HasField("options") and one.options.DESCRIPTOR.name in _NAMES:
            yield one.options
        for part in ("message_type", "nested_type", "field", "extension", "enum_type", "value"):
            if part in one.DESCRIPTOR.fields_by_name:
                ahead += getattr(one, part)


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    """One of its own: whoever has loaded these files has them in the pool of the process."""
    pool = descriptor_pool.DescriptorPool()
    for name in _FILES:
        file = descriptor_pb2.FileDescriptorProto()
        file.CopyFrom(bundled(name) or file)
        file.name = name
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _class(name: str) -> type[Message]:
    found: type[Message] = message_factory.GetMessageClass(
        _pool().FindMessageTypeByName(f"google.protobuf.{name}")
    )
    return found


def _extension(name: str) -> FieldDescriptor:
    _class(name)
    return _pool().FindExtensionByName(_NAMES[name])
