"""Columns of one type as columns of a wider one (`column_types.merged`), by Spark's expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.spark.column_types import Array, Field, Map, Struct, Type, from_json, to_json


def fitted(column: Any, have: Type, want: Type) -> Any:
    """A column of one type as one of another, which `merged` made of it and others."""
    from pyspark.sql import functions as f

    if have == want:
        return column
    if isinstance(have, Struct) and isinstance(want, Struct):
        parts = []
        for field in want.fields:
            known = have.field(field.name)
            if known is None:
                part = f.lit(None).cast(spark_type(field.type))
            else:
                part = fitted(column[known.name], known.type, field.type)
            parts.append(part.alias(field.name))
        return f.when(column.isNotNull(), f.struct(*parts))
    if isinstance(have, Array) and isinstance(want, Array):
        inside, wanted = have.element, want.element
        return f.transform(column, lambda item: fitted(item, inside, wanted))
    if isinstance(have, Map) and isinstance(want, Map):
        inside, wanted = have.value, want.value
        return f.transform_values(column, lambda _, item: fitted(item, inside, wanted))
    return column.cast(spark_type(want))


def spark_type(type_: Type) -> Any:
    """PySpark's own."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(to_json(Struct((Field("found", type_),))))["found"].dataType


def shaped(frame: Any, wanted: Mapping[str, Type]) -> Any:
    """A frame with the wanted columns: those that it has not are null."""
    from pyspark.sql import functions as f

    have = {field.name: from_json(field.dataType.jsonValue()) for field in frame.schema}
    columns = []
    for name, type_ in wanted.items():
        found = f.lit(None).cast(spark_type(type_))
        if name in have:
            found = fitted(f.col(f"`{name}`"), have[name], type_)
        columns.append(found.alias(name))
    return frame.select(*columns)
