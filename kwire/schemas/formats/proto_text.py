"""From a `.proto` text to its FileDescriptorProto.

Names stay as they are written: the library of Protocol Buffers resolves and checks them. Comments
are dropped.

Source: Protocol Buffers language specification, proto2, proto3 and editions.
"""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message import Message

from kwire.schemas.formats.parsed import InvalidSchema
from kwire.schemas.formats.proto_tokens import Tokens

NESTED_MAX = 30
NUMBER_MAX = 536_870_911  # 2^29 - 1
ENUM_MAX = 2_147_483_647
FIELD = pb.FieldDescriptorProto
SCALARS = {
    kind.removeprefix("TYPE_").lower(): number
    for kind, number in FIELD.Type.items()
    if kind not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
LABELS = {
    "optional": FIELD.LABEL_OPTIONAL,
    "repeated": FIELD.LABEL_REPEATED,
    "required": FIELD.LABEL_REQUIRED,
}
OF_FIELD = ("default", "json_name")  # written as options, kept in the field itself


def read(text: str) -> pb.FileDescriptorProto:
    """Raises InvalidSchema with the line of the first fault."""
    return _Reader(text).file()


class _Reader:
    def __init__(self, text: str) -> None:
        self.words = Tokens(text)
        self.syntax = "proto2"

    def file(self) -> pb.FileDescriptorProto:
        file = pb.FileDescriptorProto()
        words = self.words
        if words.peek().text in ("syntax", "edition"):
            self._syntax(file, words.take().text)
        while words.peek().kind != "end":
            if words.accept(";"):
                continue
            word = words.name()
            if word == "import":
                self._import(file)
            elif word == "package":
                if file.package:
                    words.refuse("a second package")
                file.package = words.dotted()
                words.expect(";")
            elif word == "option":
                self._option(file.options)
                words.expect(";")
            elif word == "message":
                self._message(file.message_type.add(), 1)
            elif word == "enum":
                self._enum(file.enum_type.add())
            elif word == "extend":
                self._extend(file.extension.add, file.message_type.add, 1)
            elif word == "service":
                self._service(file.service.add())
            else:
                words.refuse(f"unexpected {word!r}")
        return file

    def _syntax(self, file: pb.FileDescriptorProto, word: str) -> None:
        self.words.expect("=")
        told = self.words.text_string()
        self.words.expect(";")
        if word == "syntax":
            if told not in ("proto2", "proto3"):
                self.words.refuse(f"unknown syntax {told!r}")
            self.syntax = told
            if told == "proto3":
                file.syntax = told
        else:
            editions = dict(pb.Edition.items())
            if f"EDITION_{told}" not in editions:
                self.words.refuse(f"unknown edition {told!r}")
            self.syntax = "editions"
            file.syntax, file.edition = "editions", editions[f"EDITION_{told}"]

    def _import(self, file: pb.FileDescriptorProto) -> None:
        at = len(file.dependency)
        if self.words.accept("public"):
            file.public_dependency.append(at)
        elif self.words.accept("weak"):
            file.weak_dependency.append(at)
        file.dependency.append(self.words.text_string())
        self.words.expect(";")

    def _message(self, message: pb.DescriptorProto, depth: int) -> None:
        message.name = self.words.name()
        self._message_body(message, depth)

    def _message_body(self, message: pb.DescriptorProto, depth: int) -> None:
        words = self.words
        if depth > NESTED_MAX:
            words.refuse(f"messages nest deeper than {NESTED_MAX} levels")
        words.expect("{")
        while not words.accept("}"):
            if words.accept(";"):
                continue
            start, word = words.next, words.take().text
            ahead = words.peek().text
            if word == "message" and ahead != "=":
                self._message(message.nested_type.add(), depth + 1)
            elif word == "enum" and ahead != "=":
                self._enum(message.enum_type.add())
            elif word == "option":
                self._option(message.options)
                words.expect(";")
            elif word == "oneof":
                self._oneof(message, depth)
            elif word == "reserved":
                self._reserved(message, NUMBER_MAX, 1)
            elif word == "extensions":
                self._extensions(message)
            elif word == "extend":
                self._extend(message.extension.add, message.nested_type.add, depth)
            elif word == "map" and ahead == "<":
                self._map(message)
            else:
                words.next = start
                self._field(message.field.add(), message.nested_type.add, depth)
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _field(
        self, field: pb.FieldDescriptorProto, nested: Callable[[], pb.DescriptorProto], depth: int
    ) -> None:
        words = self.words
        label = LABELS.get(words.peek().text)
        if label is not None:
            words.take()
            field.proto3_optional = label == FIELD.LABEL_OPTIONAL and self.syntax == "proto3"
            if not field.proto3_optional:
                field.ClearField("proto3_optional")
        elif self.syntax == "proto2" and not field.HasField("oneof_index"):
            words.refuse("a field of proto2 is optional, required or repeated")
        if label == FIELD.LABEL_REQUIRED and self.syntax != "proto2":
            words.refuse("required fields are proto2's")
        field.label = label or FIELD.LABEL_OPTIONAL
        if words.accept("group"):
            return self._group(field, nested(), depth)
        kind = words.dotted()
        if kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type_name = kind
        field.name = words.name()
        self._number(field)
        words.expect(";")
        return None

    def _number(self, field: pb.FieldDescriptorProto) -> None:
        self.words.expect("=")
        field.number = self._bounded(1, NUMBER_MAX)
        if self.words.accept("["):
            self._field_options(field)

    def _bounded(self, low: int, high: int) -> int:
        number = self.words.integer()
        if not low <= number <= high:
            self.words.refuse(f"the number {number} is not in {low} to {high}")
        return number

    def _group(self, field: pb.FieldDescriptorProto, group: pb.DescriptorProto, depth: int) -> None:
        group.name = self.words.name()
        field.name, field.type_name = group.name.lower(), group.name
        field.type = FIELD.TYPE_GROUP
        self._number(field)
        self._message_body(group, depth + 1)

    def _map(self, message: pb.DescriptorProto) -> None:
        words = self.words
        words.expect("<")
        keys = words.name()
        if keys not in SCALARS or keys in ("float", "double", "bytes"):
            words.refuse(f"{keys} is no type of keys of a map")
        words.expect(",")
        values = words.dotted()
        words.expect(">")
        field = message.field.add(name=words.name(), label=FIELD.LABEL_REPEATED)
        self._number(field)
        words.expect(";")
        parts = field.name.split("_")
        entry = message.nested_type.add(
            name="".join(x[:1].upper() + x[1:] for x in parts) + "Entry"
        )
        entry.options.map_entry = True
        field.type, field.type_name = FIELD.TYPE_MESSAGE, entry.name
        one = FIELD.LABEL_OPTIONAL
        entry.field.add(name="key", number=1, label=one, type=SCALARS[keys])
        value = entry.field.add(name="value", number=2, label=one)
        if values in SCALARS:
            value.type = SCALARS[values]
        else:
            value.type_name = values

    def _oneof(self, message: pb.DescriptorProto, depth: int) -> None:
        words = self.words
        at = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=words.name())
        words.expect("{")
        while not words.accept("}"):
            if words.accept(";"):
                continue
            if words.accept("option"):
                self._option(oneof.options)
                words.expect(";")
                continue
            if words.peek().text in LABELS:
                words.refuse("fields of a oneof have no label")
            field = message.field.add(oneof_index=at)
            self._field(field, message.nested_type.add, depth)

    def _reserved(
        self, into: pb.DescriptorProto | pb.EnumDescriptorProto, high: int, end: int
    ) -> None:
        """`end`: 1 where the end of a range is not of it, 0 where it is (an enum's)."""
        words = self.words
        while True:
            if words.peek().kind == "string":
                into.reserved_name.append(words.text_string())
            elif words.peek().kind == "name":
                into.reserved_name.append(words.name())
            else:
                low = self._bounded(-ENUM_MAX - 1 if end == 0 else 1, high)
                last = low
                if words.accept("to"):
                    last = high if words.accept("max") else self._bounded(low, high)
                into.reserved_range.add(start=low, end=last + end)
            if words.accept(";"):
                return
            words.expect(",")

    def _extensions(self, message: pb.DescriptorProto) -> None:
        words = self.words
        while True:
            low = self._bounded(1, NUMBER_MAX)
            last = low
            if words.accept("to"):
                last = NUMBER_MAX if words.accept("max") else self._bounded(low, NUMBER_MAX)
            found = message.extension_range.add(start=low, end=last + 1)
            if words.accept("["):
                self._options_until(found.options)
            if words.accept(";"):
                return
            words.expect(",")

    def _extend(
        self,
        extension: Callable[[], pb.FieldDescriptorProto],
        nested: Callable[[], pb.DescriptorProto],
        depth: int,
    ) -> None:
        extended = self.words.dotted()
        self.words.expect("{")
        while not self.words.accept("}"):
            if self.words.accept(";"):
                continue
            field = extension()
            field.extendee = extended
            self._field(field, nested, depth)

    def _enum(self, enum: pb.EnumDescriptorProto) -> None:
        words = self.words
        enum.name = words.name()
        words.expect("{")
        while not words.accept("}"):
            if words.accept(";"):
                continue
            word = words.name()
            if word == "option" and words.peek().text != "=":
                self._option(enum.options)
                words.expect(";")
            elif word == "reserved" and words.peek().text != "=":
                self._reserved(enum, ENUM_MAX, 0)
            else:
                words.expect("=")
                value = enum.value.add(name=word, number=self._bounded(-ENUM_MAX - 1, ENUM_MAX))
                if words.accept("["):
                    self._options_until(value.options)
                words.expect(";")

    def _service(self, service: pb.ServiceDescriptorProto) -> None:
        words = self.words
        service.name = words.name()
        words.expect("{")
        while not words.accept("}"):
            if words.accept(";"):
                continue
            if words.accept("option"):
                self._option(service.options)
                words.expect(";")
                continue
            words.expect("rpc")
            method = service.method.add(name=words.name())
            method.client_streaming, method.input_type = self._rpc_type()
            words.expect("returns")
            method.server_streaming, method.output_type = self._rpc_type()
            if words.accept("{"):
                while not words.accept("}"):
                    if words.accept(";"):
                        continue
                    words.expect("option")
                    self._option(method.options)
                    words.expect(";")
            else:
                words.expect(";")

    def _rpc_type(self) -> tuple[bool, str]:
        self.words.expect("(")
        is_stream = self.words.accept("stream")
        name = self.words.dotted()
        self.words.expect(")")
        return is_stream, name

    def _options_until(self, options: Message) -> None:
        self._option(options)
        while not self.words.accept("]"):
            self.words.expect(",")
            self._option(options)

    def _field_options(self, field: pb.FieldDescriptorProto) -> None:
        words = self.words
        while True:
            if words.peek().text in OF_FIELD:
                name = words.take().text
                words.expect("=")
                if name == "json_name":
                    field.json_name = words.text_string()
                else:
                    field.default_value = self._default(field)
            else:
                self._option(field.options)
            if words.accept("]"):
                return
            words.expect(",")

    def _default(self, field: pb.FieldDescriptorProto) -> str:
        """As descriptors keep it: bytes with escapes, everything else as it is written."""
        if self.words.peek().kind == "string":
            value = self.words.string()
            if field.type == FIELD.TYPE_BYTES:
                return "".join(
                    chr(x) if 32 <= x < 127 and x not in b"\\\"'" else f"\\{x:03o}" for x in value
                )
            return value.decode(errors="replace")
        sign = "-" if self.words.accept("-") else ""
        if self.words.peek().kind == "int":
            return f"{sign}{self.words.integer()}"
        if self.words.peek().kind not in ("float", "name"):
            self.words.refuse("a value is expected")
        return sign + self.words.take().text

    def _option(self, options: Message) -> None:
        """An option of the language is set, every other kept as it is written.

        Names of extensions are in parentheses.
        """
        words = self.words
        option = pb.UninterpretedOption()
        while True:
            is_extension = words.accept("(")
            name = words.dotted() if is_extension else words.name()
            option.name.add(name_part=name, is_extension=is_extension)
            if is_extension:
                words.expect(")")
            if not words.accept("."):
                break
        words.expect("=")
        token = words.peek()
        if words.accept("{"):
            option.aggregate_value = words.aggregate()
        elif token.kind == "string":
            option.string_value = words.string()
        elif token.kind == "name":
            option.identifier_value = words.take().text
        else:
            self._number_option(option)
        if len(option.name) > 1 or option.name[0].is_extension or not self._is_set(options, option):
            options.uninterpreted_option.append(option)

    def _is_set(self, options: Message, option: pb.UninterpretedOption) -> bool:
        """Sets an option that the language has; False for others, and for those with parts."""
        field = options.DESCRIPTOR.fields_by_name.get(option.name[0].name_part)
        if field is None or field.message_type is not None or field.name == "map_entry":
            return False
        value = next(found for of, found in option.ListFields() if of.name != "name")
        if field.enum_type is not None:
            known = field.enum_type.values_by_name
            value = known[value].number if value in known else value
        elif field.type == field.TYPE_BOOL:
            value = {"true": True, "false": False}.get(value, value)
        elif field.type == field.TYPE_STRING and isinstance(value, bytes):
            value = value.decode(errors="replace")
        try:
            if field.is_repeated:
                getattr(options, field.name).append(value)
            else:
                setattr(options, field.name, value)
        except (TypeError, ValueError):
            self.words.refuse(f"the option {field.name} has no such value")
        return True

    def _number_option(self, option: pb.UninterpretedOption) -> None:
        words = self.words
        is_negative = words.accept("-") or (words.accept("+") and False)
        token = words.peek()
        if token.kind == "int":
            value = words.integer()
            if value >= 1 << (63 if is_negative else 64):
                words.refuse("the integer is too large")
            if is_negative:
                option.negative_int_value = -value
            else:
                option.positive_int_value = value
        elif token.kind == "float":
            option.double_value = float(words.take().text.rstrip("fF")) * (-1 if is_negative else 1)
        elif token.kind == "name" and token.text in ("inf", "nan"):
            option.identifier_value = ("-" if is_negative else "") + words.take().text
        else:
            raise InvalidSchema(f"Unexpected value of an option: {token.text[:50]!r}")
