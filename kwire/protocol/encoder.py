"""Writes the encoder of one message at one version: straight-line Python that packs runs.

The function takes the message and a list, and appends buffers to the list. Two more encoders serve
messages with a long array: one of its elements, and one of all but these. Fields of fixed size
that follow one another, and the length that ends such a run, are one `Struct.pack`. Small pieces
are joined; `records` are appended as they are, never copied. In the generated code:

    parts     the list of buffers that the caller gets
    w         pieces to be joined (wN inside a tagged field)
    oN, nN    objects and lengths
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from struct import Struct as PackStruct
from struct import error as PackError
from struct import pack
from typing import Any, TypeAlias

from kwire.protocol import budget, schema
from kwire.protocol.errors import EncodeError, UnsupportedVersionError
from kwire.protocol.source import FORMATS, Writer, is_flexible
from kwire.protocol.varint import ONE_BYTE, encode_uvarint, read_uvarint

__all__ = ["EncoderWriter", "build_element_encoder", "build_encoder", "build_frame_encoder"]

Classes: TypeAlias = dict[str, Any]
"""The classes of a message's structs by name, the root's included."""
Function: TypeAlias = Any
"""What was written: its parameters are those of the code."""

_TAG_OF = itemgetter(0)


def build_encoder(message: schema.Message, version: int, classes: Classes) -> Function:
    """The encoder of `message` at `version`."""
    return EncoderWriter(message, version, classes).build()


def tag_head(tag: int, size_bytes: int) -> bytes:
    """What stands before the value of a tagged field."""
    return encode_uvarint(tag) + encode_uvarint(size_bytes)


def write_tags(append: Any, known: list[bytes], unknown: list[tuple[int, bytes]]) -> None:
    """The tag section of a struct, in ascending order; EncodeError for a tag twice.

    `known` are the tagged fields that the schema knows, each with its head.
    """
    tags = [(read_uvarint(field, 0)[0], field) for field in known]
    tags += [(tag, tag_head(tag, len(data)) + data if tag >= 0 else b"") for tag, data in unknown]
    tags.sort(key=_TAG_OF)
    append(encode_uvarint(len(tags)))
    last = -1
    for tag, field in tags:
        if tag <= last:
            raise EncodeError(f"tag {tag} is negative or twice in one struct")
        last = tag
        append(field)


def explain(message: Any, version: int, error: Exception) -> str:
    """What to say of a message whose encoding failed with `error`."""
    from kwire.protocol.fault import describe_fault

    return f"{message.NAME} v{version}: {describe_fault(message, version) or error}"


def records_size_bytes(records: Any) -> int:
    """Size of a `records` value: one buffer or a list of buffers."""
    if type(records) is list:
        return sum([len(buffer) for buffer in records])
    return len(records)


def length_table() -> list[int]:
    """The first two bytes of a three-byte varint as one number, by its low 14 bits."""
    if not _LENGTH_TABLE:
        _LENGTH_TABLE.extend(
            (low | 128) << 8 | high | 128 for high in range(128) for low in range(128)
        )
    return _LENGTH_TABLE


_LENGTH_TABLE: list[int] = []


def build_element_encoder(
    message: schema.Message, version: int, classes: Classes, array: str
) -> Function:
    """The function (elements, parts) for elements of an array of the message. An array of structs
    within an array is named by both: `groups.topics`."""
    return EncoderWriter(message, version, classes).build_elements(array)


def build_frame_encoder(
    message: schema.Message, version: int, classes: Classes, array: str
) -> Function:
    """The function (struct, parts, count, elements) that takes the elements of an array as bytes.
    `struct` is what has the array: the message, or an element of the array that is named first."""
    holder, _, name = array.rpartition(".")
    return EncoderWriter(message, version, classes, encoded=name).build(holder)


class EncoderWriter(Writer):
    """Writes one encoder; who asks more of the fields on the way overrides the three hooks."""

    def __init__(
        self, message: schema.Message, version: int, classes: Classes, encoded: str = ""
    ) -> None:
        super().__init__()
        self._encoded = encoded
        self._message = message
        self._version = version
        self._flexible = is_flexible(message, version)
        self._classes = classes
        self._run: list[tuple[str, str]] = []
        self._append = "w.append"
        self.label = f"{message.name} v{version}"

    def build(self, holder: str = "") -> Function:
        """Of the message, or of an element of the array `holder`."""
        arguments = "o, parts, count, elements" if self._encoded else "o, parts"
        explained = f"explain(o, {self._version}, error)"
        struct = self._message.root
        if holder:
            struct, explained = self._element(holder), f"f'{self.label}: {{error}}'"
        return self._build(arguments, lambda: self._struct(struct, "o"), explained)

    def build_elements(self, array: str) -> Function:
        struct = self._element(array)

        def write() -> None:
            with self.block("for o in elements:"):
                self._struct(struct, "o")
                self._flush()

        return self._build("elements, parts", write, f"f'{self.label}: {{error}}'")

    def _element(self, array: str) -> schema.Struct:
        """What an array is of, by its name or names."""
        struct = self._message.root
        for name in array.split("."):
            (inner,) = [field.struct for field in struct.fields if field.name == name]
            assert inner is not None
            struct = inner
        return struct

    def _build(self, arguments: str, write: Callable[[], None], explained: str) -> Function:
        self.constants.update(
            BYTES=ONE_BYTE,
            EncodeError=EncodeError,
            PackError=PackError,
            explain=explain,
            Unsupported=UnsupportedVersionError,
            pack=pack,
            size_of=records_size_bytes,
            uvarint=encode_uvarint,
            write_tags=write_tags,
        )
        self.line("w = []")
        self._begin()
        with self.block("try:"):
            write()
            self._flush()
        with self.block("except (PackError, TypeError, AttributeError, UnicodeError) as error:"):
            self.line(f"raise EncodeError({explained}) from error")
        with self.block("if w:"):
            self.line("parts.append(b''.join(w))")
        self._end()
        return self.function("encode", arguments, f"encoder of {self.label}")

    def _begin(self) -> None:
        """In front of everything."""

    def _end(self) -> None:
        """Behind everything."""

    def _counted(self, field: schema.Field, count: str, usual: int) -> None:
        """`count` of an array is known; of one element it is `usual`."""

    # Runs of fields of fixed size

    def _put(self, characters: str, expression: str) -> None:
        self._run.append((characters, expression))

    def _flush(self) -> None:
        run, self._run = self._run, []
        self._emit(run)

    def _emit(self, run: list[tuple[str, str]]) -> None:
        if not run:
            return
        characters = "".join(item[0] for item in run)
        if characters == "B" and run[0][1].isdigit():
            self.line(f"{self._append}({bytes([int(run[0][1])])!r})")
            return
        if characters == "B":
            self.line(f"{self._append}(BYTES[{run[0][1]}])")
            return
        packer = PackStruct(">" + characters).pack
        name = self.constant("P_" + characters.replace("?", "t"), packer)
        self.line(f"{self._append}({name}({', '.join(item[1] for item in run)}))")

    def _length(self, characters: str, length: str) -> None:
        """End the run with a length; in compact encoding `length` already has its one more."""
        if characters != "B":
            self._put(characters, length)
            self._flush()
            return
        run, self._run = self._run, []
        with self.block(f"if {length} < 128:"):
            self._emit([*run, ("B", length)])
        with self.block("else:"):
            self._emit(run)
            self.line(f"{self._append}(uvarint({length}))")

    # Structs

    def _struct(self, struct: schema.Struct, name: str) -> None:
        tagged = []
        for field in struct.fields:
            if not schema.within(self._version, field.versions):
                if not field.ignorable:
                    self._refuse(field, name)
            elif field.tag is not None:
                tagged.append(field)
            else:
                self._field(field, f"{name}.{field.name}", in_tag=False)
        if self._flexible:
            self._tags(name, tagged)
        else:
            with self.block(f"if {name}._tagged and {name}.unknown_tags:"):
                self.line(f"raise Unsupported('{self.label}: no tagged fields in this version')")

    def _refuse(self, field: schema.Field, owner: str) -> None:
        condition = self._differs(field, f"{owner}.{field.name}")
        if field.tag is not None:
            condition = f"{owner}._tagged and {condition}"
        with self.block(f"if {condition}:"):
            self.line(
                f"raise Unsupported('{self.label}: {field.name} is set, and this version lacks it')"
            )

    def _differs(self, field: schema.Field, value: str) -> str:
        """The condition that a field does not have its default."""
        if field.default is None:
            return f"{value} is not None"
        if field.is_array:
            return f"({value} is None or len({value}))"
        if field.default is ...:
            struct = self._message.structs[field.type]
            if all(inner.type in FORMATS and not inner.is_array for inner in struct.fields):
                differing = [
                    self._differs(inner, f"{value}.{inner.name}") for inner in struct.fields
                ]
                return f"({value} is None or {value}._tagged or {' or '.join(differing)})"
            cls = self.constant("C_" + field.type, self._classes[field.type])
            return f"{value} != {cls}()"
        if field.default == 0 and field.type not in ("string", "bytes", "uuid", "records"):
            return value
        return f"{value} != {field.default!r}"

    def _tags(self, owner: str, fields: list[schema.Field]) -> None:
        run, self._run = self._run, []
        with self.block(f"if {owner}._tagged:"):
            self._emit(run)
            found, tags = self.fresh("d"), self.fresh("t")
            self.line(f"{found} = {owner}._tagged")
            self.line(f"{tags} = []")
            outer = self._append
            for field in sorted(fields, key=lambda field: field.tag or 0):
                value, pieces = self.fresh("v"), self.fresh("w")
                self._append = f"{pieces}.append"
                with self.block(f"if '{field.name}' in {found}:"):
                    self.line(f"{value} = {found}['{field.name}']")
                    with self.block(f"if {self._differs(field, value)}:"):
                        if field.type in FORMATS and not field.is_array:
                            self._fixed_tag(field, tags, value)
                            continue
                        self.line(f"{pieces} = []")
                        self._field(field, value, in_tag=True)
                        self._flush()
                        self.line(f"{value} = b''.join({pieces})")
                        self._sized_tag(field, tags, value)
            self._append = outer
            with self.block(f"if 'unknown_tags' in {found}:"):
                self.line(f"write_tags({outer}, {tags}, {found}['unknown_tags'])")
            with self.block("else:"):
                self.line(f"{outer}(BYTES[len({tags})])")
                self.line(f"{outer}(b''.join({tags}))")
        with self.block("else:"):
            self._emit([*run, ("B", "0")])

    def _fixed_tag(self, field: schema.Field, tags: str, value: str) -> None:
        """Append a tagged field of fixed size with its head."""
        if field.type == "uuid":
            self._check_uuid(field, value)
        layout = PackStruct(">" + FORMATS[field.type])
        head = tag_head(field.tag or 0, layout.size)
        characters = f"{len(head)}s{FORMATS[field.type]}"
        name = self.constant(f"P_{characters}".replace("?", "t"), PackStruct(">" + characters).pack)
        self.line(f"{tags}.append({name}({head!r}, {value}))")

    def _sized_tag(self, field: schema.Field, tags: str, value: str) -> None:
        """Append a tagged field whose value has been encoded, with its head."""
        tag = encode_uvarint(field.tag or 0)
        with self.block(f"if len({value}) < 128:"):
            self.line(f"{tags}.append({tag!r} + BYTES[len({value})] + {value})")
        with self.block("else:"):
            self.line(f"{tags}.append({tag!r} + uvarint(len({value})) + {value})")

    # Fields

    def _check_uuid(self, field: schema.Field, name: str) -> None:
        with self.block(f"if len({name}) != 16:"):
            self.line(f"raise EncodeError('{self.label}: {field.name} is not 16 bytes')")

    def _field(self, field: schema.Field, value: str, *, in_tag: bool) -> None:
        nullable = schema.within(self._version, field.nullable)
        if field.is_array:
            self._array(field, value, nullable)
        elif field.struct is not None:
            name = self.fresh("o")
            self.line(f"{name} = {value}")
            if nullable:
                self._nullable_struct(field.struct, name, in_tag)
            else:
                self._check_present(name, field)
                self._struct(field.struct, name)
        elif field.type in FORMATS:
            if field.type == "uuid":
                name = self.fresh("u")
                self.line(f"{name} = {value}")
                self._check_uuid(field, name)
                value = name
            self._put(FORMATS[field.type], value)
        else:
            compact = self._flexible and not field.never_compact
            name = self.fresh("s")
            self.line(f"{name} = {value}")
            self._sized(field, name, nullable, compact)

    def _check_present(self, name: str, field: schema.Field) -> None:
        with self.block(f"if {name} is None:"):
            self.line(f"raise EncodeError('{self.label}: {field.name} must not be null')")

    def _nullable_struct(self, struct: schema.Struct, name: str, in_tag: bool) -> None:
        run, self._run = self._run, []
        with self.block(f"if {name} is None:"):
            self._emit([*run, ("b", "0" if in_tag else "-1")])
        with self.block("else:"):
            self._run = [*run, ("b", "1")]
            self._struct(struct, name)
            self._flush()

    def _sized(self, field: schema.Field, name: str, nullable: bool, compact: bool) -> None:
        """A string, bytes or records: a length, then that many bytes."""
        length = self.fresh("n")
        more = " + 1" if compact else ""
        size = f"size_of({name})" if field.type == "records" else f"len({name})"
        if nullable:
            with self.block(f"if {name} is None:"):
                self.line(f"{length} = {0 if compact else -1}")
                if field.type != "records":
                    self.line(f"{name} = b''")
            with self.block("else:"):
                if field.type == "string":
                    self.line(f"{name} = {name}.encode()")
                self.line(f"{length} = {size}{more}")
        else:
            self._check_present(name, field)
            if field.type == "string":
                self.line(f"{name} = {name}.encode()")
            self.line(f"{length} = {size}{more}")
        if field.type == "string":
            with self.block(f"if {length} > {budget.STRING_SIZE_BYTES_MAX + compact}:"):
                self.line(f"raise EncodeError('{self.label}: {field.name} is too long')")
        self._length("B" if compact else "h" if field.type == "string" else "i", length)
        if field.type != "records":
            self.line(f"{self._append}({name})")
            return
        with self.block(f"if {length} > {int(compact)}:"):
            self.line("parts.append(b''.join(w))")
            self.line("w.clear()")
            with self.block(f"if type({name}) is list:"):
                self.line(f"parts.extend({name})")
            with self.block("else:"):
                self.line(f"parts.append({name})")

    def _array(self, field: schema.Field, value: str, nullable: bool) -> None:
        if field.name == self._encoded and value == f"o.{field.name}":
            self._length("B" if self._flexible else "i", "count + 1" if self._flexible else "count")
            # By itself, not joined with the rest: whoever has many pieces puts them in its place.
            self.line("parts.append(b''.join(w))")
            self.line("w.clear()")
            self.line("parts.append(elements)")
            return
        name, count = self.fresh("a"), self.fresh("n")
        self.line(f"{name} = {value}")
        more = " + 1" if self._flexible else ""
        if nullable:
            with self.block(f"if {name} is None:"):
                self.line(f"{count} = {0 if self._flexible else -1}")
                self.line(f"{name} = ()")
            with self.block("else:"):
                self.line(f"{count} = len({name}){more}")
        else:
            self._check_present(name, field)
            self.line(f"{count} = len({name}){more}")
        self._counted(field, count, 2 if self._flexible else 1)
        self._length("B" if self._flexible else "i", count)
        if field.type in FORMATS and field.type != "uuid":
            with self.block(f"if {name}:"):
                form = "f'>{len(" + name + ")}" + FORMATS[field.type] + "'"
                self.line(f"{self._append}(pack({form}, *{name}))")
            return
        item = self.fresh("o")
        if field.struct is not None and self._is_hot(field.struct):
            self._hot_elements(field.struct, name, item)
            return
        with self.block(f"for {item} in {name}:"):
            if field.struct is not None:
                self._struct(field.struct, item)
            elif field.type == "uuid":
                self._put("16s", item)
            else:
                self._sized(field, item, False, self._flexible)
            self._flush()

    # The hot path: structs of fields of fixed size and arrays that end with records

    def _inline(self, struct: schema.Struct) -> list[schema.Field]:
        """The fields of a struct that this version has outside of the tag section, in order."""
        fields = [field for field in struct.fields if field.tag is None]
        return [field for field in fields if schema.within(self._version, field.versions)]

    def _is_hot(self, struct: schema.Struct) -> bool:
        fields = self._inline(struct)
        return (
            self._flexible
            and bool(fields)
            and fields[-1].type == "records"
            and all(field.is_array or field.type in FORMATS for field in fields[:-1])
            and not any(field.type == "uuid" for field in fields)
        )

    def _hot_elements(self, struct: schema.Struct, array: str, item: str) -> None:
        """Elements with their records in one buffer, empty arrays and no tags: one `pack` each.

        The empty tag section behind the records of one element is a pad byte in front of the
        next: while `owed` is true, that byte is still to be written and `w` is empty.
        """
        records, owed = self.fresh("r"), self.fresh("z")
        slow = [f"type({records}) is not list", f"len({records}) != 1", f"{item}._tagged"]
        values: list[tuple[str, str]] = []
        prologue: list[str] = []
        for field in self._inline(struct)[:-1]:
            value = f"{item}.{field.name}"
            if not field.is_array:
                values.append((FORMATS[field.type], value))
                continue
            name = self.fresh("a")
            prologue.append(f"{name} = {value}")
            if schema.within(self._version, field.nullable):
                slow.append(name)
                values.append(("B", f"0 if {name} is None else 1"))
            else:
                slow.append(f"{name} is None or {name}")
                values.append(("B", "1"))
        for field in struct.fields:
            lacking = not schema.within(self._version, field.versions)
            if lacking and not field.ignorable and field.tag is None:
                slow.append(self._differs(field, f"{item}.{field.name}"))

        self.line(f"{owed} = False")
        with self.block(f"for {item} in {array}:"):
            self.line(f"{records} = {item}.{self._inline(struct)[-1].name}")
            for line in prologue:
                self.line(line)
            with self.block(f"if {' or '.join(slow)}:"):
                with self.block(f"if {owed}:"):
                    self.line("w.append(b'\\0')")
                    self.line(f"{owed} = False")
                self._struct(struct, item)
                self._flush()
            with self.block("else:"):
                self._hot_element(values, records, owed)
        with self.block(f"if {owed}:"):
            self.line("w.append(b'\\0')")

    def _hot_element(self, values: list[tuple[str, str]], records: str, owed: str) -> None:
        length, piece = self.fresh("n"), self.fresh("x")
        formats = "x" + "".join(characters for characters, _ in values)
        arguments = ", ".join(value for _, value in values)

        def packed(more: str, *sizes: str) -> str:
            characters = formats + more
            packer = PackStruct(">" + characters).pack
            name = self.constant("P_" + characters.replace("?", "t"), packer)
            return f"{name}({', '.join([arguments, *sizes])})"

        low = self.constant("L", length_table())
        self.line(f"{records} = {records}[0]")
        self.line(f"{length} = len({records}) + 1")
        with self.block(f"if 16383 < {length} < 2097152:"):
            sizes = (f"{low}[{length} & 16383]", f"{length} >> 14")
            self.line(f"{piece} = {packed('HB', *sizes)}")
        with self.block(f"elif {length} < 128:"):
            self.line(f"{piece} = {packed('B', length)}")
        with self.block(f"elif {length} < 16384:"):
            self.line(f"{piece} = {packed('H', f'{low}[{length}] - 128')}")
        with self.block("else:"):
            self.line(f"{piece} = {packed('')} + uvarint({length})")
        with self.block(f"if {owed}:"):
            self.line(f"parts.append({piece})")
        with self.block("else:"):
            self.line(f"w.append({piece}[1:])")
            self.line("parts.append(b''.join(w))")
            self.line("w.clear()")
            self.line(f"{owed} = True")
        self.line(f"parts.append({records})")
