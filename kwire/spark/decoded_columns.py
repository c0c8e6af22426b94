"""Columns of decoded values: what each schema of a batch becomes in the table's struct.

A batch comes checked (decoding.py): each value has its schema's id and is of that schema. Which
schemas there are is asked once, their types are put together with the table's, and Spark makes the
values: Avro by spark-avro, JSON and what Protobuf's messages are as JSON by `from_json`. Delta's
schema evolution adds to the table what is new in them, with the commit of the rows.

    table has          a newer schema has        then
    {a: long}          {a: long, b: string}      {a: long, b: string}; rows before have null
    {a: long, b: ...}  {a: long}                 as it is; new rows have null
    {a: long}          {a: int}                  as it is: a long holds an int
    {a: int}           {a: string}               as it is; such records are dead letters

A column's type never changes otherwise. Of schemas that come at a time the lower id counts first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from kwire.spark import json_values
from kwire.spark.avro_envelope import END, envelope
from kwire.spark.column_types import (
    VOID,
    Field,
    MisfitError,
    Struct,
    Type,
    from_json,
    merged,
    usable,
)
from kwire.spark.decoding import HEADER_BYTES, ID, MESSAGE, TEXT, Decoding, Schemas
from kwire.spark.java_errors import java_message
from kwire.spark.registry import Schema, UnknownSchema
from kwire.spark.session import lost_jvm
from kwire.spark.shaping import fitted, spark_type

DECODED = "Decoded"
SCHEMAS_MAX = 200
# Records that Python took and Spark does not: a time beyond its years, a number of Avro's int that
# needs more bits.
UNREADABLE = "is nothing that a column can hold"
AVRO_OPTIONS = {"mode": "PERMISSIVE", "enableStableIdentifiersForUnionType": "true"}
_END, _CORRUPT, _ENVELOPE = "end", "_corrupt", "_envelope"


class Which(NamedTuple):
    """What a value is of: a schema, and for Protobuf a message of it."""

    schema_id: int
    message: str | None


@dataclasses.dataclass(frozen=True)
class Reading:
    """How Spark reads values of one kind: `made` is the type that comes out of it, `type` what a
    table keeps of that. `text`: what `from_avro` is given; None for JSON."""

    made: Type
    type: Type
    text: str | None


class ColumnMaker:
    """Makes the columns of batches, for one archive; schemas are got once."""

    def __init__(self, spark: Any, decoding: Decoding) -> None:
        self.spark = spark
        self.decoding = decoding
        self._schemas: dict[str, Schemas] = {s: decoding.schemas(s) for s in decoding.sides}
        self._known: dict[tuple[str, Which], Reading | str] = {}

    def decoded(self, checked: Any, columns: Mapping[str, Type]) -> Any:
        """A checked batch with the decoded columns of a table that has `columns` (by name), which
        may get more; `reason` says why a record is a dead letter. Raises SchemaUnavailable."""
        names = [name for name in checked.columns if not name.endswith((MESSAGE, TEXT))]
        frame = checked
        for side in self.decoding.sides:
            frame = self._side(frame, side, columns)
            added = [name for name in frame.columns if name.startswith(f"{side}_")]
            names += added or [f"{side}{DECODED}"]
        # Where nothing was decodable yet there is no column for it.
        return frame.select(*[name for name in names if name in frame.columns])

    def _side(self, frame: Any, side: str, columns: Mapping[str, Type]) -> Any:
        from pyspark.sql import functions as f

        have = self._table_type(side, columns)
        found = self._found(frame, side)
        type_, readings, refused = self._accepted(side, found, have)
        base = frame.columns
        parts = {which: f"{_ENVELOPE}{at}" for at, which in enumerate(readings)}
        made = [
            f.when(_is_of(side, which), _read(side, readings[which])).alias(name)
            for which, name in parts.items()
        ]
        reason, value = f.col("reason"), f.lit(None)
        for which, why in refused.items():
            reason = f.when(_is_of(side, which), f.coalesce(reason, f.lit(why))).otherwise(reason)
        for which, name in parts.items():
            is_made = f.col(name)[_END].isNotNull()
            told = self._told(side, f"schema {which.schema_id}: the value {UNREADABLE}")
            unread = _is_of(side, which) & ~is_made
            reason = f.when(unread, f.coalesce(reason, f.lit(told))).otherwise(reason)
            fits = fitted(f.col(name)["value"], readings[which].made, type_)
            value = f.when(_is_of(side, which) & is_made, fits).otherwise(value)
        rest = [f.col(name) for name in base if name != "reason"]
        return frame.select(*base, *made).select(
            *rest, reason.alias("reason"), *self._columns(side, value, type_)
        )

    def _columns(self, side: str, value: Any, type_: Type) -> list[Any]:
        if type_ == VOID:
            return []
        value = value.cast(spark_type(type_))
        if self.decoding.flatten and isinstance(type_, Struct):
            names = [field.name for field in type_.fields]
            return [value[name].alias(f"{side}_{name}") for name in names]
        return [value.alias(f"{side}{DECODED}")]

    def _table_type(self, side: str, columns: Mapping[str, Type]) -> Type:
        """What the table has of one side; VOID for nothing."""
        if self.decoding.flatten:
            start = f"{side}_"
            fields = [
                Field(name.removeprefix(start), type_)
                for name, type_ in columns.items()
                if name.startswith(start)
            ]
            if fields:
                return Struct(tuple(fields))
        return columns.get(f"{side}{DECODED}", VOID)

    def _found(self, frame: Any, side: str) -> list[Which]:
        """Of which schemas the batch has values, those with most values first."""
        from pyspark.sql import functions as f

        good = frame.where(f.col("reason").isNull() & f.col(side + ID).isNotNull())
        rows = good.groupBy(side + ID, side + MESSAGE).count().orderBy(f.desc("count"))
        return [Which(row[0], row[1]) for row in rows.collect()]

    def _accepted(
        self, side: str, found: list[Which], have: Type
    ) -> tuple[Type, dict[Which, Reading], dict[Which, str]]:
        """(the type of the table behind this batch, what is read, what is refused and why)."""
        readings: dict[Which, Reading] = {}
        refused: dict[Which, str] = {}
        for at, which in enumerate(found):
            reading = self._reading(side, which)
            if at >= SCHEMAS_MAX:
                reading = f"a batch has values of more than {SCHEMAS_MAX} schemas"
            if isinstance(reading, str):
                refused[which] = self._told(side, f"schema {which.schema_id}: {reading}")
            else:
                readings[which] = reading
        type_ = have
        for which in sorted(readings, key=lambda which: (which.schema_id, which.message or "")):
            new = readings[which].type
            try:
                if self.decoding.flatten and not isinstance(new, Struct):
                    raise MisfitError(f"the {side} has no fields")
                type_ = new if type_ == VOID else merged(type_, new, side)
            except MisfitError as error:
                refused[which] = self._told(side, f"schema {which.schema_id}: {error}")
                del readings[which]
        return type_, readings, refused

    def _told(self, side: str, reason: str) -> str:
        return f"key: {reason}" if side == "key" else reason

    def _reading(self, side: str, which: Which) -> Reading | str:
        """How values are read, or why they are not."""
        known = self._known.get((side, which))
        if known is None:
            try:
                known = self._load(side, which)
            except (UnknownSchema, MisfitError) as error:
                known = str(error)
            self._known[side, which] = known
        return known

    def _load(self, side: str, which: Which) -> Reading:
        schema, form = self._schemas[side].get(which.schema_id), self.decoding.sides[side]
        if form == "avro":
            return self._avro(schema, side)
        if form == "json":
            found = json_values.type_of(schema.text, schema.named)
        else:
            from kwire.spark.proto_values import Messages

            found = Messages(schema.text, schema.named).type_of(which.message or "")
        kept = _with_values(usable(found, side))
        return Reading(kept, kept, None)

    def _avro(self, schema: Schema, side: str) -> Reading:
        """By what spark-avro says of the schema."""
        from pyspark.sql import functions as f
        from pyspark.sql.avro.functions import from_avro

        text = envelope(schema.text, schema.references)
        try:
            nothing = f.lit(None).cast("binary")
            column = from_avro(nothing, text, AVRO_OPTIONS).alias("found")
            found = self.spark.range(0).select(column).schema["found"].dataType
        except Exception as error:  # Java's own exceptions among them: what Avro's parser raises
            if lost_jvm() is not None:
                raise
            raise MisfitError(f"Spark does not take it: {java_message(error)[:200]}") from None
        whole = from_json(found.jsonValue())
        assert isinstance(whole, Struct)
        value = whole.field("value")
        made = value.type if value is not None else VOID
        return Reading(made, _with_values(usable(made, side)), text)


def _with_values(type_: Type) -> Type:
    if type_ == VOID:
        raise MisfitError("it has no fields")
    return type_


def _is_of(side: str, which: Which) -> Any:
    from pyspark.sql import functions as f

    is_one = f.col("reason").isNull() & (f.col(side + ID) == which.schema_id)
    if which.message is not None:
        is_one = is_one & (f.col(side + MESSAGE) == which.message)
    return f.coalesce(is_one, f.lit(False))


def _read(side: str, reading: Reading) -> Any:
    """The envelope of a value: `value`, and `end`, which is null where reading failed."""
    from pyspark.sql import functions as f

    if reading.text is not None:
        from pyspark.sql.avro.functions import from_avro

        body = f.substring(side, HEADER_BYTES + 1, 0x7FFFFFFF)
        data = f.concat(body, f.lit(bytearray(END)))
        return from_avro(data, reading.text, AVRO_OPTIONS)
    whole = Struct((Field("value", reading.type), Field(_CORRUPT, "string")))
    text = f.concat(f.lit('{"value":'), f.col(side + TEXT), f.lit("}"))
    options = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    found = f.from_json(text, spark_type(whole), options)
    is_made = f.when(found[_CORRUPT].isNull(), f.lit(True))
    return f.struct(found["value"].alias("value"), is_made.alias(_END))
