"""Writes the decoder of one message at one version: straight-line Python over a memoryview.

The function takes (memoryview, position) and returns (object, position after it). Fields of
fixed size that follow one another, and the length that ends such a run, are one
`Struct.unpack_from`; one-byte varints, the usual case, need no call. In the generated code:

    v, p, e   the view, the position in it, the view's end
    left      array elements and tags that the message may still have (budget.py)
    oN, nN    objects and lengths

Reads beyond the end raise by themselves (struct.error, IndexError) and are turned into
MalformedError at the function's edge; only what slices, which never raises, is checked by hand.
What is accepted is what Kafka's own readers accept, tags out of order or twice included.
"""

from __future__ import annotations

from struct import Struct as PackStruct
from struct import error as PackError
from struct import unpack_from
from typing import Any

from kwire.protocol import budget, schema
from kwire.protocol.errors import MalformedError
from kwire.protocol.source import FORMATS, Writer, is_flexible, minimum_size_bytes
from kwire.protocol.text import ERRORS
from kwire.protocol.varint import finish_uvarint, read_uvarint

__all__ = ["build_decoder"]


def build_decoder(message: schema.Message, version: int, classes: dict[str, Any]) -> Any:
    """The decoder of `message` at `version`; `classes` by struct name, the root's included."""
    return _DecoderWriter(message, version, classes).build()


class _DecoderWriter(Writer):
    def __init__(self, message: schema.Message, version: int, classes: dict[str, Any]) -> None:
        super().__init__()
        self._message = message
        self._version = version
        self._flexible = is_flexible(message, version)
        self._classes = classes
        self._run: list[tuple[str, str]] = []

    def build(self) -> Any:
        label = f"{self._message.name} v{self._version}"
        self.constants.update(
            Malformed=MalformedError,
            PackError=PackError,
            finish=finish_uvarint,
            new=object.__new__,
            unpack_from=unpack_from,
            uvarint=read_uvarint,
        )
        self.line("e = len(v)")
        self.line(f"left = {budget.elements_max(self._message.kind)}")
        with self.block("try:"):
            root = self._struct(self._message.root)
            self._flush()
        with self.block("except (IndexError, PackError):"):
            self.line(f"raise Malformed('{label}: ends too early') from None")
        self.line(f"return {root}, p")
        return self.function("decode", "v, p", f"decoder of {label}")

    # Runs of fields of fixed size

    def _read(self, characters: str, target: str) -> None:
        self._run.append((characters, target))

    def _flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        characters = "".join(item[0] for item in run)
        targets = ", ".join(item[1] for item in run)
        if characters == "B":
            self.line(f"{targets} = v[p]")
            self.line("p += 1")
            return
        layout = PackStruct(">" + characters)
        unpack = self.constant("U_" + characters.replace("?", "t"), layout.unpack_from)
        self.line(f"{targets}{',' if len(run) == 1 else ''} = {unpack}(v, p)")
        self.line(f"p += {layout.size}")

    def _length(self, characters: str, compact: bool) -> str:
        """Read a length; the variable that holds it: -1 (or less) is null, in both encodings."""
        name = self.fresh("n")
        self._read("B" if compact else characters, name)
        self._flush()
        if compact:
            with self.block(f"if {name} > 127:"):
                self.line(f"{name}, p = finish(v, p, {name})")
            self.line(f"{name} -= 1")
        return name

    def _fail(self, condition: str, what: str) -> None:
        with self.block(f"if {condition}:"):
            self.line(f"raise Malformed('{self._message.name} v{self._version}: {what}')")

    # Structs

    def _struct(self, struct: schema.Struct) -> str:
        cls = self.constant(f"C_{struct.name}", self._classes[struct.name])
        name = self.fresh("o")
        self.line(f"{name} = new({cls})")
        tagged, misplaced = [], []
        for field in struct.fields:
            target = f"{name}.{field.name}"
            if field.tag is not None and not schema.within(self._version, field.tagged):
                misplaced.append(field.tag)
            if not schema.within(self._version, field.versions):
                self._default(field, target)
            elif self._flexible and schema.within(self._version, field.tagged):
                self._default(field, target)
                tagged.append(field)
            else:
                self._field(field, target, in_tag=False)
        self.line(f"{name}.unknown_tags = ()")
        if self._flexible:
            self._tags(name, tagged, misplaced)
        return name

    def _default(self, field: schema.Field, target: str) -> None:
        if field.default is not ...:
            self.line(f"{target} = {field.default!r}")
        elif field.is_array:
            self.line(f"{target} = []")
        else:
            cls = self._classes[field.type]
            if cls.FROZEN is None:
                self.line(f"{target} = {self.constant('C_' + field.type, cls)}()")
            else:
                self.line(f"{target} = {self.constant('F_' + field.type, cls.FROZEN)}")

    def _tags(self, owner: str, fields: list[schema.Field], misplaced: list[int]) -> None:
        count, tag, size = self.fresh("n"), self.fresh("t"), self.fresh("z")
        self._read("B", count)
        self._flush()
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, p = finish(v, p, {count})")
            self.line(f"left -= {count}")
            self._fail(f"{count} < 0 or left < 0 or {count} * 2 > e - p", "too many tagged fields")
            unknown = self.fresh("x")
            self.line(f"{unknown} = []")
            with self.block(f"for _ in range({count}):"):
                self.line(f"{tag}, p = uvarint(v, p)")
                self.line(f"{size}, p = uvarint(v, p)")
                for field in fields:
                    with self.block(f"if {tag} == {field.tag}:"):
                        self._field(field, f"{owner}.{field.name}", in_tag=True)
                        self._flush()
                        self.line("continue")
                for number in misplaced:
                    self._fail(f"{tag} == {number}", f"tag {number} is not of this version")
                self._fail(f"{size} < 0 or {size} > e - p", "a tagged field is too long")
                self.line(f"{unknown}.append(({tag}, v[p:p + {size}].tobytes()))")
                self.line(f"p += {size}")
            with self.block(f"if {unknown}:"):
                self.line(f"{owner}.unknown_tags = {unknown}")

    # Fields

    def _field(self, field: schema.Field, target: str, *, in_tag: bool) -> None:
        nullable = schema.within(self._version, field.nullable)
        if field.is_array:
            self._array(field, target, nullable)
        elif field.struct is not None:
            if nullable:
                self._nullable_struct(field.struct, target, in_tag)
            else:
                self.line(f"{target} = {self._struct(field.struct)}")
        elif field.type in FORMATS:
            self._read(FORMATS[field.type], target)
        else:
            compact = self._flexible and not field.never_compact
            self._sized(field.type, target, nullable, compact, field.name)

    def _nullable_struct(self, struct: schema.Struct, target: str, in_tag: bool) -> None:
        present = self.fresh("n")
        self._read("b", present)
        self._flush()
        with self.block(f"if {present} {'<= 0' if in_tag else '< 0'}:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.line(f"{target} = {self._struct(struct)}")
            self._flush()

    def _sized(self, kind: str, target: str, nullable: bool, compact: bool, name: str) -> None:
        """A string, bytes or records: a length, then that many bytes."""
        length = self._length("h" if kind == "string" else "i", compact)
        end = self.fresh("q")
        with self.block(f"if {length} < 0:"):
            if nullable:
                self.line(f"{target} = None")
            else:
                self.line(f"raise Malformed('{self._message.name}: {name} is null')")
        with self.block("else:"):
            self.line(f"{end} = p + {length}")
            too_long = f"{end} > e"
            if kind == "string" and compact:
                too_long += f" or {length} > {budget.STRING_SIZE_BYTES_MAX}"
            self._fail(too_long, f"{name} is too long")
            value = f"v[p:{end}]"
            if kind == "string":
                value = f"str({value}, 'utf-8', '{ERRORS}')"
            elif kind == "bytes":
                value += ".tobytes()"
            self.line(f"{target} = {value}")
            self.line(f"p = {end}")

    def _array(self, field: schema.Field, target: str, nullable: bool) -> None:
        count = self._length("i", self._flexible)
        size = minimum_size_bytes(field.struct, field.type, self._version, self._flexible)
        with self.block(f"if {count} < 0:"):
            if nullable:
                self.line(f"{target} = None")
            else:
                self.line(f"raise Malformed('{self._message.name}: {field.name} is null')")
        with self.block("else:"):
            self.line(f"left -= {count}")
            scaled = count if size == 1 else f"{count} * {size}"
            self._fail(f"{scaled} > e - p or left < 0", f"{field.name} has too many elements")
            if field.type in FORMATS:
                self._fixed_array(field, target, count, size)
            else:
                items = self.fresh("a")
                self.line(f"{target} = {items} = []")
                with self.block(f"for _ in range({count}):"):
                    if field.struct is not None:
                        item = self._struct(field.struct)
                    else:
                        item = self.fresh("s")
                        self._sized(field.type, item, False, self._flexible, field.name)
                    self._flush()
                    self.line(f"{items}.append({item})")

    def _fixed_array(self, field: schema.Field, target: str, count: str, size: int) -> None:
        if field.type == "uuid":
            self.line(f"{target} = [v[i:i + 16].tobytes() for i in range(p, p + 16 * {count}, 16)]")
        else:
            form = "f'>{" + count + "}" + FORMATS[field.type] + "'"
            self.line(f"{target} = list(unpack_from({form}, v, p)) if {count} else []")
        self.line(f"p += {count}" + ("" if size == 1 else f" * {size}"))
