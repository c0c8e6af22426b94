"""Whether what was written with one Avro schema can be read with another.

The Apache Avro library decides (Avro specification, schema resolution); this walks down the pairs
it refuses, to say where and why. Imported with the library, so only where schemas are compared.
"""

from __future__ import annotations

import avro.schema
from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
    lookup_writer_field,
    schema_name_equals,
)

from kwire.schemas.formats.parsed import REASONS_MAX, STEPS_MAX, InvalidSchema, Sides


def incompatibilities(
    reader: avro.schema.Schema, writer: avro.schema.Schema, sides: Sides
) -> list[str]:
    """The reasons, none when compatible: `{errorType:'', description:'', additionalInfo:''}`."""
    walk = _Walk(sides)
    if walk.fits(reader, writer):
        return []
    walk.pair(reader, writer, "")
    if not walk.reasons:  # of a type that contains itself, only the whole is refused
        walk.mismatch(reader, writer, "")
    return walk.reasons


class _Checker(ReaderWriterCompatibilityChecker):  # type: ignore[misc]
    """The library's, which says of a record all that it says of its fields: where records have two
    fields of the next one's type, twice as much at each level. Here the first fault is enough."""

    def get_compatibility(
        self,
        reader: avro.schema.Schema,
        writer: avro.schema.Schema,
        reference_token: str = ReaderWriterCompatibilityChecker.ROOT_REFERENCE_TOKEN,
        location: list[str] | None = None,
    ) -> SchemaCompatibilityResult:
        found = super().get_compatibility(reader, writer, reference_token, location)
        if found.compatibility is SchemaCompatibilityType.incompatible:
            found.incompatibilities = found.incompatibilities[:1]
            found.messages, found.locations = set(), set()
        return found


class _Walk:
    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.checker = _Checker()
        self.reasons: list[str] = []
        self.entered: dict[tuple[str, str], None] = {}
        self.steps = 0

    def fits(self, reader: avro.schema.Schema, writer: avro.schema.Schema) -> bool:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise InvalidSchema("The schemas are too large to compare")
        result = self.checker.get_compatibility(reader, writer)
        return result.compatibility is not SchemaCompatibilityType.incompatible

    def say(self, kind: str, path: str, told: str, info: str) -> None:
        if len(self.reasons) < REASONS_MAX:
            self.reasons.append(
                f"{{errorType:'{kind}', description:'At path '{path or '/'}' {told}', "
                f"additionalInfo:'{info}'}}"
            )

    def pair(self, reader: avro.schema.Schema, writer: avro.schema.Schema, path: str) -> None:
        if self.fits(reader, writer):
            return
        if writer.type == "union":
            for at, branch in enumerate(writer.schemas):
                if reader.type != "union":
                    self.pair(reader, branch, path)
                elif not self.fits(reader, branch):
                    self.missing_branch(branch, f"{path}/{at}")
        elif reader.type == "union":
            self.missing_branch(writer, path)
        elif reader.type != writer.type:
            self.mismatch(reader, writer, path)
        elif reader.type == "array":
            self.pair(reader.items, writer.items, f"{path}/items")
        elif reader.type == "map":
            self.pair(reader.values, writer.values, f"{path}/values")
        else:
            self.named(reader, writer, path)

    def mismatch(self, reader: avro.schema.Schema, writer: avro.schema.Schema, path: str) -> None:
        self.say(
            "TYPE_MISMATCH",
            path,
            f"the type of the {self.sides.reader} schema does not read that of the "
            f"{self.sides.writer} schema",
            f"reader type: {reader.type.upper()} not compatible with writer type: "
            f"{writer.type.upper()}",
        )

    def missing_branch(self, writer: avro.schema.Schema, path: str) -> None:
        self.say(
            "MISSING_UNION_BRANCH",
            path,
            f"the union of the {self.sides.reader} schema has no branch that reads what the "
            f"{self.sides.writer} schema writes",
            f"reader union lacking writer type: {writer.type.upper()}",
        )

    def named(self, reader: avro.schema.Schema, writer: avro.schema.Schema, path: str) -> None:
        if (reader.fullname, writer.fullname) in self.entered:
            return
        self.entered[reader.fullname, writer.fullname] = None
        if not schema_name_equals(reader, writer):
            self.say(
                "NAME_MISMATCH",
                f"{path}/name",
                f"the name of the {self.sides.reader} schema is not that of the "
                f"{self.sides.writer} schema",
                f"expected: {writer.fullname}",
            )
        if reader.type == "fixed" and reader.size != writer.size:
            self.say(
                "FIXED_SIZE_MISMATCH",
                f"{path}/size",
                f"the size of the {self.sides.reader} schema is not that of the "
                f"{self.sides.writer} schema",
                f"expected: {writer.size}, found: {reader.size}",
            )
        elif reader.type == "enum":
            missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
            if missing and reader.props.get("default") not in reader.symbols:
                self.say(
                    "MISSING_ENUM_SYMBOLS",
                    f"{path}/symbols",
                    f"the enum of the {self.sides.reader} schema lacks symbols of the "
                    f"{self.sides.writer} schema and has no default",
                    f"[{', '.join(missing)}]",
                )
        elif reader.type in ("record", "error"):
            self.fields(reader, writer, path)

    def fields(self, reader: avro.schema.Schema, writer: avro.schema.Schema, path: str) -> None:
        for at, field in enumerate(reader.fields):
            written = lookup_writer_field(writer_schema=writer, reader_field=field)
            if written is not None:
                self.pair(field.type, written.type, f"{path}/fields/{at}/type")
            elif not field.has_default:
                self.say(
                    "READER_FIELD_MISSING_DEFAULT_VALUE",
                    f"{path}/fields/{at}",
                    f"the field '{field.name}' of the {self.sides.reader} schema has no default "
                    f"value and is missing in the {self.sides.writer} schema",
                    field.name,
                )
