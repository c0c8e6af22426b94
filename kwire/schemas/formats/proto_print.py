"""The canonical text of a FileDescriptorProto, in the order and the form of Square's Wire.

syntax, package, imports, options, messages, enums, extensions, services; inside of a message
options, reserved, fields, oneofs, extensions, nested types. Two spaces a level, a statement a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message import Message

from kwire.schemas.formats.proto_text import ENUM_MAX, FIELD, LABELS, NUMBER_MAX, SCALARS

SCALAR_NAMES = {number: name for name, number in SCALARS.items()}
LABEL_NAMES = {number: name for name, number in LABELS.items()}


def render(file: pb.FileDescriptorProto, is_normalized: bool = False) -> str:
    """The text; normalized, imports and options stand in alphabetical order."""
    return _Printer(file, is_normalized).text()


def quoted(value: bytes | str) -> str:
    raw = value.encode() if isinstance(value, str) else value
    try:
        text, is_text = raw.decode(), True
    except UnicodeDecodeError:
        text, is_text = raw.decode("latin-1"), False
    return '"' + "".join(_escaped(rune, is_text) for rune in text) + '"'


def _escaped(rune: str, is_text: bool) -> str:
    if rune in '"\\':
        return "\\" + rune
    if rune == "\n":
        return "\\n"
    code = ord(rune)
    if code < 32 or code == 127 or (not is_text and code > 127):
        return f"\\{code:03o}"
    return rune


class _Printer:
    def __init__(self, file: pb.FileDescriptorProto, is_normalized: bool) -> None:
        self.file = file
        self.is_normalized = is_normalized
        self.is_proto2 = file.syntax in ("", "proto2")
        self.lines: list[str] = []

    def text(self) -> str:
        file = self.file
        if file.syntax == "editions":
            edition = pb.Edition.Name(file.edition).removeprefix("EDITION_")
            self.lines.append(f'edition = "{edition}";')
        else:
            self.lines.append(f'syntax = "{file.syntax or "proto2"}";')
        if file.package:
            self.lines.append(f"package {file.package};")
        self._block(self._imports())
        self._block(f"option {option};" for option in self._options(file.options))
        for message in file.message_type:
            self.lines.append("")
            self._message(message, "")
        for enum in file.enum_type:
            self.lines.append("")
            self._enum(enum, "")
        self._extensions(file.extension, "")
        for service in file.service:
            self.lines.append("")
            self._service(service)
        return "\n".join(self.lines) + "\n"

    def _block(self, lines: Iterable[str]) -> None:
        found = list(lines)
        if found:
            self.lines += ["", *found]

    def _imports(self) -> list[str]:
        file = self.file
        kinds = dict.fromkeys(file.public_dependency, "public ")
        kinds |= dict.fromkeys(file.weak_dependency, "weak ")
        found = [f"import {kinds.get(at, '')}{quoted(x)};" for at, x in enumerate(file.dependency)]
        return sorted(found) if self.is_normalized else found

    def _options(self, options: Message) -> list[str]:
        found = []
        for field, value in options.ListFields():
            if field.name == "uninterpreted_option":
                found += [self._uninterpreted(each) for each in value]
            elif field.name != "map_entry" and field.type != field.TYPE_MESSAGE:
                for each in value if field.is_repeated else [value]:
                    if field.enum_type is not None:
                        told = field.enum_type.values_by_number[each].name
                    elif isinstance(each, bool):
                        told = str(each).lower()
                    else:
                        told = quoted(each) if isinstance(each, (str, bytes)) else str(each)
                    found.append(f"{field.name} = {told}")
        return sorted(found) if self.is_normalized else found

    def _uninterpreted(self, option: pb.UninterpretedOption) -> str:
        parts = (f"({x.name_part})" if x.is_extension else x.name_part for x in option.name)
        name = ".".join(parts)
        field, value = next(
            (found for found in option.ListFields() if found[0].name != "name"), (None, "")
        )
        if field is None:
            return f"{name} = {value}"
        if field.name == "aggregate_value":
            return f"{name} = {{ {value} }}"
        return f"{name} = {quoted(value) if field.name == 'string_value' else value}"

    def _message(self, message: pb.DescriptorProto, indent: str, head: str = "") -> None:
        inner = indent + "  "
        self.lines.append(f"{indent}{head or f'message {message.name}'} {{")
        start = len(self.lines)
        self.lines += [f"{inner}option {option};" for option in self._options(message.options)]
        self._reserved(message, inner, NUMBER_MAX, 1)
        synthetic = {x.oneof_index for x in message.field if x.proto3_optional}
        groups = {
            x.type_name.rpartition(".")[2]: x for x in message.field if x.type == FIELD.TYPE_GROUP
        }
        entries = {x.name: x for x in message.nested_type if x.options.map_entry}
        for field in message.field:
            if not field.HasField("oneof_index") or field.oneof_index in synthetic:
                self._field(field, inner, entries, message)
        for at, oneof in enumerate(message.oneof_decl):
            if at not in synthetic:
                self.lines += ["", f"{inner}oneof {oneof.name} {{"]
                self.lines += [f"{inner}  option {x};" for x in self._options(oneof.options)]
                for field in message.field:
                    if field.HasField("oneof_index") and field.oneof_index == at:
                        self._field(field, inner + "  ", entries, message)
                self.lines.append(f"{inner}}}")
        for found in message.extension_range:
            self.lines.append(
                f"{inner}extensions {_range(found.start, found.end - 1, NUMBER_MAX)};"
            )
        self._extensions(message.extension, inner)
        for nested in message.nested_type:
            if nested.name not in entries and nested.name not in groups:
                self.lines.append("")
                self._message(nested, inner)
        for enum in message.enum_type:
            self.lines.append("")
            self._enum(enum, inner)
        if self.lines[start : start + 1] == [""]:
            del self.lines[start]
        if len(self.lines) == start:
            self.lines[-1] += "}"
        else:
            self.lines.append(f"{indent}}}")

    def _reserved(
        self, of: pb.DescriptorProto | pb.EnumDescriptorProto, indent: str, high: int, end: int
    ) -> None:
        ranges = [_range(found.start, found.end - end, high) for found in of.reserved_range]
        if ranges:
            self.lines.append(f"{indent}reserved {', '.join(ranges)};")
        if of.reserved_name:
            self.lines.append(f"{indent}reserved {', '.join(map(quoted, of.reserved_name))};")

    def _field(
        self,
        field: pb.FieldDescriptorProto,
        indent: str,
        entries: dict[str, pb.DescriptorProto],
        message: pb.DescriptorProto | None,
    ) -> None:
        entry = entries.get(field.type_name.rpartition(".")[2])
        is_group = field.type == FIELD.TYPE_GROUP
        if entry is not None:
            keys, values = (_type_name(x) for x in entry.field)
            kind = f"map<{keys}, {values}>"
        else:
            kind = self._label(field) + ("group" if is_group else _type_name(field))
        name = field.type_name.rpartition(".")[2] if is_group else field.name
        options = [*self._own_options(field), *self._options(field.options)]
        told = f" [{', '.join(options)}]" if options else ""
        head = f"{kind} {name} = {field.number}{told}"
        group = next((x for x in message.nested_type if x.name == name), None) if message else None
        if is_group and group is not None:
            self._message(group, indent, head)
        else:
            self.lines.append(f"{indent}{head};")

    def _own_options(self, field: pb.FieldDescriptorProto) -> Iterator[str]:
        if field.HasField("default_value"):
            is_text = field.type in (FIELD.TYPE_STRING, FIELD.TYPE_BYTES)
            value = field.default_value
            if field.type == FIELD.TYPE_BYTES:
                yield f'default = "{value}"'
            else:
                yield f"default = {quoted(value) if is_text else value}"
        parts = field.name.split("_")
        usual = parts[0] + "".join(part[:1].upper() + part[1:] for part in parts[1:])
        if field.HasField("json_name") and field.json_name != usual:
            yield f"json_name = {quoted(field.json_name)}"

    def _label(self, field: pb.FieldDescriptorProto) -> str:
        is_in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        if field.label == FIELD.LABEL_OPTIONAL and not field.proto3_optional:
            return "optional " if self.is_proto2 and not is_in_oneof else ""
        return f"{LABEL_NAMES[field.label]} "

    def _enum(self, enum: pb.EnumDescriptorProto, indent: str) -> None:
        inner = indent + "  "
        self.lines.append(f"{indent}enum {enum.name} {{")
        self.lines += [f"{inner}option {option};" for option in self._options(enum.options)]
        self._reserved(enum, inner, ENUM_MAX, 0)
        for value in enum.value:
            options = self._options(value.options)
            told = f" [{', '.join(options)}]" if options else ""
            self.lines.append(f"{inner}{value.name} = {value.number}{told};")
        self.lines.append(f"{indent}}}")

    def _extensions(self, fields: Iterable[pb.FieldDescriptorProto], indent: str) -> None:
        before = ""
        for field in fields:
            if field.extendee != before:
                if before:
                    self.lines.append(f"{indent}}}")
                before = field.extendee
                self.lines += ["", f"{indent}extend {before} {{"]
            self._field(field, indent + "  ", {}, None)
        if before:
            self.lines.append(f"{indent}}}")

    def _service(self, service: pb.ServiceDescriptorProto) -> None:
        self.lines.append(f"service {service.name} {{")
        self.lines += [f"  option {option};" for option in self._options(service.options)]
        for method in service.method:
            asked = ("stream " if method.client_streaming else "") + method.input_type
            answer = ("stream " if method.server_streaming else "") + method.output_type
            head = f"  rpc {method.name} ({asked}) returns ({answer})"
            options = self._options(method.options)
            if options:
                self.lines.append(head + " {")
                self.lines += [*(f"    option {option};" for option in options), "  }"]
            else:
                self.lines.append(head + ";")
        self.lines.append("}")


def _type_name(field: pb.FieldDescriptorProto) -> str:
    return str(field.type_name) or SCALAR_NAMES.get(field.type, "bytes")


def _range(start: int, last: int, high: int) -> str:
    if start == last:
        return str(start)
    return f"{start} to {'max' if last == high else last}"
