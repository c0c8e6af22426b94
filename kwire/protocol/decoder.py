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

from collections.abc import Callable, Iterator
from itertools import repeat, starmap
from struct import Struct as PackStruct
from struct import error as PackError
from struct import unpack_from
from typing import Any

from kwire.protocol import budget, schema
from kwire.protocol.bare_classes import bare_class
from kwire.protocol.errors import MalformedError
from kwire.protocol.records import envelope_kernel
from kwire.protocol.source import FORMATS, Writer, is_flexible, minimum_size_bytes
from kwire.protocol.text import ERRORS
from kwire.protocol.varint import finish_uvarint, read_uvarint

__all__ = ["build_decoder"]


def build_decoder(message: schema.Message, version: int, classes: dict[str, Any]) -> Any:
    """The decoder of `message` at `version`; `classes` by struct name, the root's included."""
    return _DecoderWriter(message, version, classes).build()


def length_table() -> list[int]:
    """What the first two bytes of a compact length say, for `_records`; made when first used."""
    if not _LENGTH_TABLE:
        _LENGTH_TABLE.extend([0] * 32768)
        for first in range(128):
            two = -(first + 1)
            _LENGTH_TABLE.extend(range(two, two - 128 * 128, -128))
            _LENGTH_TABLE.extend(range(first + 2, first + 2 + 128 * 128, 128))
        # A zero (null) spelled with two or three bytes: not a length, so not for the table.
        _LENGTH_TABLE[0x8000] = _LENGTH_TABLE[0x8080] = 0
    return _LENGTH_TABLE


_LENGTH_TABLE: list[int] = []

FEW = 32
LOOPS = tuple((None,) * count for count in range(FEW))
"""What to iterate over for few turns: a tuple that is there is cheaper than a new iterator."""

NO_ARGUMENTS = tuple(((),) * count for count in range(FEW))
"""With `starmap`: few new structs by a loop in C, for two thirds of the price of as many calls."""


def growing(make: Any, items: list[Any], count: int) -> Iterator[Any]:
    """New structs one by one, each in the list first: what a count that lies makes us allocate is
    no more than what was read."""
    for _ in repeat(None, count):
        item = make()
        items.append(item)
        yield item


Run = list[tuple[str, str]]  # struct characters and what they are assigned to

_CONVERT = {
    "bytes": ".tobytes()",
    "records": "",
    "string": f".tobytes().decode('utf-8', '{ERRORS}')",
}
"""What makes the value of a view of its bytes."""


def _is_hot(struct: schema.Struct) -> bool:
    """Whether elements are a run that ends with records, and a tag section without known tags.

    Then the byte of the tag section is not read by itself but with the run of the next element:
    in such a loop `p` stands on the last byte of what was read before.
    """
    return (
        struct.fields[-1].type == "records"
        and not struct.fields[-1].is_array
        and not struct.fields[-1].never_compact
        and all(field.type in FORMATS and not field.is_array for field in struct.fields[:-1])
        and all(field.tag is None for field in struct.fields)
    )


def _plus(size: int) -> str:
    return f" + {size}" if size else ""


def read_unknown_tags(
    view: memoryview, position: int, count: int, left: int, misplaced: tuple[int, ...]
) -> tuple[dict[str, Any], int, int]:
    """(what a struct's `_tagged` holds, position behind the tag section, elements left).

    For a struct without tagged fields of its own, `count` > 0 of them and `position` behind the
    first byte of that count. `misplaced` are the tags of other versions, which Kafka refuses.
    """
    if count > 127:
        count, position = finish_uvarint(view, position, count)
    left -= count
    if count < 0 or left < 0 or count * 2 > len(view) - position:
        raise MalformedError("too many tagged fields")
    unknown = []
    for _ in range(count):
        tag, position = read_uvarint(view, position)
        size, position = read_uvarint(view, position)
        if size < 0 or size > len(view) - position:
            raise MalformedError("a tagged field is too long")
        if tag in misplaced:
            raise MalformedError(f"tag {tag} is not of this version")
        unknown.append((tag, view[position : position + size].tobytes()))
        position += size
    return {"unknown_tags": unknown}, position, left


class _DecoderWriter(Writer):
    def __init__(self, message: schema.Message, version: int, classes: dict[str, Any]) -> None:
        super().__init__()
        self._message = message
        self._version = version
        self._flexible = is_flexible(message, version)
        self._classes = classes
        self._run: Run = []
        self._nesting = 0
        self._before_records: Callable[[Run], None] | None = None
        self._after_run: Callable[[Run, int], None] | None = None
        self._label = f"{message.name} v{version}"

    def build(self) -> Any:
        label = self._label
        self.constants.update(
            Malformed=MalformedError,
            PackError=PackError,
            finish=finish_uvarint,
            LOOPS=LOOPS,
            NO_ARGUMENTS=NO_ARGUMENTS,
            growing=growing,
            new=object.__new__,
            plain=envelope_kernel.read_elements,
            repeat=repeat,
            starmap=starmap,
            tags=read_unknown_tags,
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

    def _flush(self, advance: bool = True) -> int:
        """Write the run that is pending; its size."""
        run, self._run = self._run, []
        if not run:
            return 0
        characters = "".join(item[0] for item in run)
        if characters == "B":
            self.line(f"{run[0][1]} = v[p]")
            if advance:
                self.line("p += 1")
            return 1
        size = self._unpack(run)
        if advance:
            self.line(f"p += {size}")
        if self._after_run is not None:
            after, self._after_run = self._after_run, None
            after(run, size)
        return size

    def _unpack(self, run: Run) -> int:
        characters = "".join(item[0] for item in run)
        targets = ", ".join(item[1] for item in run)
        layout = PackStruct(">" + characters)
        unpack = self.constant("U_" + characters.replace("?", "t"), layout.unpack_from)
        self.line(f"{targets}{',' if len(run) == 1 else ''} = {unpack}(v, p)")
        return layout.size

    def _length(
        self, characters: str, compact: bool, field: schema.Field, count: bool, behind: int = 1
    ) -> str:
        """Read a length; the variable that holds it: -1 (or less) is null, in both encodings.

        With `behind` 0 `p` stays on its last byte.
        """
        name = self.fresh("n")
        self._read("B" if compact else characters, name)
        size = self._flush(advance=behind == 1)
        if not behind and size > 1:
            self.line(f"p += {size - 1}")
        if compact:
            with self.block(f"if {name} > 127:"):
                self.line(f"{name}, p = finish(v, p{_plus(1 - behind)}, {name})")
                if not behind:
                    self.line("p -= 1")
                if field.type == "string" and not count:
                    longest = budget.STRING_SIZE_BYTES_MAX + 1
                    self._fail(f"{name} > {longest}", f"{field.name} is too long")
            self.line(f"{name} -= 1")
        return name

    def _fail(self, condition: str, what: str) -> None:
        with self.block(f"if {condition}:"):
            self.line(f"raise Malformed('{self._label}: {what}')")

    # Structs

    def _struct(self, struct: schema.Struct) -> str:
        name = self.fresh("o")
        cls = self._classes[struct.name]
        if struct is self._message.root:
            self.line(f"{name} = new({self.constant('C', cls)})")
        else:
            self.line(f"{name} = {self.constant('B_' + struct.name, bare_class(cls))}()")
        tagged, misplaced = self._inline_fields(struct, name)
        if self._flexible:
            self._tags(name, tagged, misplaced)
        return name

    def _inline_fields(
        self, struct: schema.Struct, name: str
    ) -> tuple[list[schema.Field], list[int]]:
        """Read what stands in front of the tag section of the new object `name`.

        Returns the tagged fields of this version, and the tags of others.
        """
        self._nesting += 1
        tagged, misplaced = [], []
        for field in struct.fields:
            target = f"{name}.{field.name}"
            if field.tag is not None and not schema.within(self._version, field.tagged):
                misplaced.append(field.tag)
            if field.tag is not None:
                if self._flexible and schema.within(self._version, field.tagged):
                    tagged.append(field)
            elif not schema.within(self._version, field.versions):
                self._default(field, target)
            else:
                self._field(field, target, in_tag=False)
        self.line(f"{name}._tagged = None")
        self._nesting -= 1
        return tagged, misplaced

    def _default(self, field: schema.Field, target: str) -> None:
        if field.default is not ...:
            self.line(f"{target} = {field.default!r}")
        elif field.is_array:
            self.line(f"{target} = []")
        else:
            cls = self.constant("C_" + field.type, self._classes[field.type])
            self.line(f"{target} = {cls}()")

    def _tags(self, owner: str, fields: list[schema.Field], misplaced: list[int]) -> None:
        if not fields:
            self._unknown_tags(owner, misplaced)
            return
        count, tag, size = self.fresh("n"), self.fresh("t"), self.fresh("z")
        self._read("B", count)
        self._flush()
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, p = finish(v, p, {count})")
            self.line(f"left -= {count}")
            self._fail(f"{count} < 0 or left < 0 or {count} * 2 > e - p", "too many tagged fields")
            found, unknown = self.fresh("d"), self.fresh("x")
            self.line(f"{found} = {{}}")
            self.line(f"{unknown} = []")
            with self.block(f"for _ in range({count}):"):
                self.line(f"{tag}, {size} = v[p], v[p + 1]")
                self.line("p += 2")
                with self.block(f"if {tag} > 127 or {size} > 127:"):
                    self.line(f"{tag}, p = uvarint(v, p - 2)")
                    self.line(f"{size}, p = uvarint(v, p)")
                for field in fields:
                    with self.block(f"if {tag} == {field.tag}:"):
                        self._field(field, f"{found}['{field.name}']", in_tag=True)
                        self._flush()
                        self.line("continue")
                for number in misplaced:
                    self._fail(f"{tag} == {number}", f"tag {number} is not of this version")
                self._fail(f"{size} < 0 or {size} > e - p", "a tagged field is too long")
                self.line(f"{unknown}.append(({tag}, v[p:p + {size}].tobytes()))")
                self.line(f"p += {size}")
            with self.block(f"if {unknown}:"):
                self.line(f"{found}['unknown_tags'] = {unknown}")
            with self.block(f"if {found}:"):
                self.line(f"{owner}._tagged = {found}")

    def _unknown_tags(self, owner: str, misplaced: list[int]) -> None:
        count = self.fresh("n")
        self._read("B", count)
        self._flush()
        with self.block(f"if {count}:"):
            self.line(f"{owner}._tagged, p, left = tags(v, p, {count}, left, {tuple(misplaced)})")

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
            self._sized(field, target, nullable, compact, in_tag)

    def _nullable_struct(self, struct: schema.Struct, target: str, in_tag: bool) -> None:
        present = self.fresh("n")
        self._read("b", present)
        self._flush()
        with self.block(f"if {present} {'<= 0' if in_tag else '< 0'}:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.line(f"{target} = {self._struct(struct)}")
            self._flush()

    def _sized(
        self, field: schema.Field, target: str, nullable: bool, compact: bool, checked: bool
    ) -> None:
        """A string, bytes or records: a length, then that many bytes.

        `checked`: the end is compared with the end of the view. It need not be where the tag
        section of the struct around it must follow: reading that fails.
        """
        if field.type == "records" and compact and not checked and self._nesting >= 2:
            self._records(field, target, nullable)
            return
        if compact and not checked:
            self._compact(field, target, nullable)
            return
        length = self._length("h" if field.type == "string" else "i", compact, field, False)
        end = self.fresh("q")
        with self.block(f"if {length} >= 0:"):
            self.line(f"{end} = p + {length}")
            if checked or not self._flexible:
                self._fail(f"{end} > e", f"{field.name} is too long")
            self.line(f"{target} = v[p:{end}]{_CONVERT[field.type]}")
            self.line(f"p = {end}")
        self._null(target, nullable, field.name)

    def _compact(self, field: schema.Field, target: str, nullable: bool) -> None:
        """The same in compact encoding and unchecked; short values, the usual case, come first."""
        length = self.fresh("n")
        self._read("B", length)
        if nullable and field is self._message.root.fields[0] and self._is_before_run():
            self._after_run = lambda run, size: self._not_null(field, target, length, run, size)
            self.line(f"{target} = None")
            return
        self._text(field, target, nullable, length)

    def _is_before_run(self) -> bool:
        """Whether the message's first field stands before fixed ones and then an array."""
        for field in self._message.root.fields[1:]:
            if field.is_array:
                return not (field.struct is not None and _is_hot(field.struct))
            is_there = schema.within(self._version, field.versions) and field.tag is None
            if not is_there or field.type not in FORMATS:
                return False
        return False

    def _not_null(self, field: schema.Field, target: str, length: str, run: Run, size: int) -> None:
        """The first field, taken for null and read with the run behind it, is not."""
        with self.block(f"if {length}:"):
            self.line(f"p -= {size}")
            self._run = run[:1]
            self._text(field, target, True, length)
            self._run = run[1:]
            self._flush()

    def _text(self, field: schema.Field, target: str, nullable: bool, length: str) -> None:
        end = self.fresh("q")
        size = self._flush(advance=False)
        convert = _CONVERT[field.type]
        with self.block(f"if 0 < {length} < 128:"):
            self.line(f"{end} = p + {length}{_plus(size - 1)}")
            self.line(f"{target} = v[p + {size}:{end}]{convert}")
            self.line(f"p = {end}")
        with self.block(f"elif {length}:"):
            self.line(f"{length}, p = uvarint(v, p{_plus(size - 1)})")
            if field.type == "string":
                longest = budget.STRING_SIZE_BYTES_MAX + 1
                self._fail(f"{length} > {longest}", f"{field.name} is too long")
            with self.block(f"if {length} > 0:"):
                self.line(f"{end} = p + {length} - 1")
                self.line(f"{target} = v[p:{end}]{convert}")
                self.line(f"p = {end}")
            self._null(target, nullable, field.name)
        with self.block("else:"):
            if nullable:
                self.line(f"p += {size}")
            self.line(self._null_line(target, nullable, field.name))

    def _records(self, field: schema.Field, target: str, nullable: bool) -> None:
        """Records with a compact length, the hot path: run, length and end in one go.

        The first three bytes of the length come out of one `unpack_from` with the fields before
        them. The second and the third may belong to what follows: two tag sections at least do.
        A table has what the first two say: positive, the offset of the end but for the third
        byte; negative, the offset of the end; 0, a length of one byte or null.
        """
        first, third, end = self.fresh("n"), self.fresh("n"), self.fresh("q")
        known = self.fresh("t")
        table = self.constant("T", length_table())
        run, self._run = [*self._run, ("H", first), ("B", third)], []
        size = self._unpack(run) - 3
        before, self._before_records = self._before_records, None
        if before is not None:
            before(run)
        self.line(f"{known} = {table}[{first}]")
        with self.block(f"if {known} > 0 and {third} < 128:"):
            thirds = self.constant(f"H{size}", [(byte << 14) + size for byte in range(128)])
            self.line(f"{target} = v[p + {size + 3}:({end} := p + {known} + {thirds}[{third}])]")
        with self.block(f"elif {known} < 0:"):
            self.line(f"{end} = p - {known}{_plus(size)}")
            self.line(f"{target} = v[p + {size + 2}:{end}]")
        with self.block("else:"):
            self.line(f"{first}, p = uvarint(v, p + {size})")
            self.line(f"{end} = p + {first} - 1")
            with self.block(f"if {first} > 0:"):
                self.line(f"{target} = v[p:{end}]")
            with self.block("else:"):
                self.line(f"{end} = p")
                self.line(self._null_line(target, nullable, field.name))
        self.line(f"p = {end}")

    def _null(self, target: str, nullable: bool, name: str) -> None:
        with self.block("else:"):
            self.line(self._null_line(target, nullable, name))

    def _null_line(self, target: str, nullable: bool, name: str) -> str:
        if nullable:
            return f"{target} = None"
        return f"raise Malformed('{self._label}: {name} is null')"

    def _array(self, field: schema.Field, target: str, nullable: bool) -> None:
        is_hot = field.struct is not None and self._flexible and _is_hot(field.struct)
        count = self._length("i", self._flexible, field, True, behind=0 if is_hot else 1)
        size = minimum_size_bytes(field.struct, field.type, self._version, self._flexible)
        with self.block(f"if {count} >= 0:"):
            self.line(f"left -= {count}")
            scaled = count if size == 1 else f"{count} * {size}"
            self._fail(f"{scaled} > e - p or left < 0", f"{field.name} has too many elements")
            if field.type in FORMATS:
                self._fixed_array(field, target, count, size)
            else:
                items = self.fresh("a")
                if field.struct is not None and is_hot:
                    self._hot_elements(field.struct, target, items, count)
                else:
                    self._elements(field, target, items, count)
        self._null(target, nullable, field.name)

    def _elements(self, field: schema.Field, target: str, items: str, count: str) -> None:
        self.line(f"{target} = {items} = []")
        turns = f"LOOPS[{count}] if {count} < {FEW} else repeat(None, {count})"
        with self.block(f"for _ in {turns}:"):
            if field.struct is not None:
                item = self._struct(field.struct)
            else:
                item = self.fresh("s")
                self._sized(field, item, False, self._flexible, True)
            self._flush()
            self.line(f"{items}.append({item})")

    def _hot_elements(self, struct: schema.Struct, target: str, items: str, count: str) -> None:
        """See `_is_hot`: the first byte of an element's run is the tag count of the one before,
        and that of the first element something that was read already."""
        item, last, tags = self.fresh("o"), self.fresh("o"), self.fresh("n")
        make = self.constant("B_" + struct.name, bare_class(self._classes[struct.name]))
        few = f"{count} < {FEW}"
        self.line(f"{items} = [*starmap({make}, NO_ARGUMENTS[{count}])] if {few} else []")
        self.line(f"{target} = {items}")
        self.line(f"{last} = None")
        rest = items
        index, records = struct.fields[0], struct.fields[-1]
        if envelope_kernel.COMPILED and len(struct.fields) == 2 and index.type == "int32":
            rest, done = self.fresh("a"), self.fresh("n")
            names = f"'{index.name}', '{records.name}'"
            self.line(f"{done}, p = plain({items}, v, p, {names})")
            self.line(f"{rest} = {items}[{done}:] if {done} else {items}")
        with self.block(f"for {item} in {rest} if {few} else growing({make}, {items}, {count}):"):
            self._read("B", tags)
            self._before_records = lambda run: self._tags_before(last, tags, run)
            self._inline_fields(struct, item)
            assert self._before_records is None, f"{struct.name} has no records"
            self.line(f"{last} = {item}")
        with self.block(f"if {last} is not None:"):
            self.line(f"{tags} = v[p]")
            with self.block(f"if {tags}:"):
                self._tags_of(last, tags)
        self.line("p += 1")

    def _tags_before(self, last: str, tags: str, run: Run) -> None:
        with self.block(f"if {tags} and {last} is not None:"):
            self._tags_of(last, tags)
            self._unpack(run)

    def _tags_of(self, last: str, tags: str) -> None:
        self.line(f"{last}._tagged, p, left = tags(v, p + 1, {tags}, left, ())")
        self.line("p -= 1")

    def _fixed_array(self, field: schema.Field, target: str, count: str, size: int) -> None:
        if field.type == "uuid":
            self.line(f"{target} = [v[i:i + 16].tobytes() for i in range(p, p + 16 * {count}, 16)]")
        else:
            form = "f'>{" + count + "}" + FORMATS[field.type] + "'"
            self.line(f"{target} = list(unpack_from({form}, v, p)) if {count} else []")
        self.line(f"p += {count}" + ("" if size == 1 else f" * {size}"))
