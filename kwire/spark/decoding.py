"""Decoding of values while they are archived: JSON, or Avro by a registry's schemas.

A value may begin with the five bytes of a schema registry: 0, then the schema's id (int32). JSON
may have them, Avro must. Schemas come from a registry (registry.py) or a folder. What cannot be
decoded is not dropped: it goes to the dead-letter table, unchanged, with the reason. The original
value is kept in either table.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from kwire.spark.avro import AvroError, Reader, compile_schema, decode
from kwire.spark.registry import Registry, Schema, SchemaUnavailable, UnknownSchema
from kwire.spark.usage import UsageError

HEADER_BYTES = 5


def add_decoding_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("decoding of values")
    group.add_argument("--decode", choices=("json", "avro"), help="into the column valueJson")
    group.add_argument("--registry", metavar="URL", help="where Avro schemas are")
    group.add_argument("--schemas", metavar="FOLDER", help="or here, as ID.avsc")


def check_decoding(options: argparse.Namespace) -> None:
    if options.decode == "avro" and bool(options.registry) == bool(options.schemas):
        raise UsageError("--decode avro needs --registry or --schemas")
    if options.decode != "avro" and (options.registry or options.schemas):
        raise UsageError("--registry and --schemas are for --decode avro")
    if options.schemas and not os.path.isdir(options.schemas):
        raise UsageError(f"--schemas {options.schemas}: no such folder")
    if options.registry and not options.registry.startswith(("http://", "https://")):
        raise UsageError(f"--registry {options.registry}: expected http:// or https://")


class Undecodable(Exception):
    """Why a value goes to the dead letters."""


def split_header(value: bytes) -> tuple[int | None, bytes]:
    """(schema id, rest) of a value with the registry's five bytes, else (None, value)."""
    if len(value) >= HEADER_BYTES and value[0] == 0:
        return int.from_bytes(value[1:HEADER_BYTES], "big"), value[HEADER_BYTES:]
    return None, value


def decode_json(value: bytes) -> tuple[int | None, str]:
    """(schema id, the JSON text); raises Undecodable."""
    schema_id, body = split_header(value)
    try:
        text = body.decode()
        # Numbers are only looked at: Python would refuse those of more than some thousand digits.
        json.loads(text, parse_constant=_refuse, parse_int=_pass, parse_float=_pass)
    except UnicodeDecodeError as error:
        raise Undecodable(f"no UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"no JSON: {str(error)[:200]}") from None
    return schema_id, text


def _pass(digits: str) -> int:
    return 0


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


class AvroSchemas:
    """Readers by schema id, from a folder or a registry; each is got once a process."""

    def __init__(self, registry: str | None, folder: str | None) -> None:
        self._registry = None if registry is None else Registry(registry)
        self._folder = folder
        self._readers: dict[int, Reader | str] = {}

    def decode(self, value: bytes) -> tuple[int | None, str]:
        """(schema id, the value as JSON); raises Undecodable and SchemaUnavailable."""
        schema_id, body = split_header(value)
        if schema_id is None:
            raise Undecodable("no schema id: the value does not begin with a registry's five bytes")
        reader = self._readers.get(schema_id)
        if reader is None:
            reader = self._readers[schema_id] = self._load(schema_id)
        if isinstance(reader, str):
            raise Undecodable(reader)
        try:
            return schema_id, json.dumps(decode(reader, body), ensure_ascii=False)
        except AvroError as error:
            raise Undecodable(f"no Avro of schema {schema_id}: {error}") from None

    def _load(self, schema_id: int) -> Reader | str:
        """The reader, or why there is none."""
        try:
            schema = self._schema(schema_id)
            return compile_schema(schema.text, schema.references)
        except UnknownSchema as error:
            return str(error)
        except (AvroError, ValueError, TypeError, RecursionError) as error:
            return f"schema {schema_id}: {error}"

    def _schema(self, schema_id: int) -> Schema:
        if self._registry is not None:
            return self._registry.schema(schema_id)
        path = pathlib.Path(self._folder or "") / f"{schema_id}.avsc"
        try:
            return Schema(path.read_text(encoding="utf-8", errors="replace"))
        except (FileNotFoundError, IsADirectoryError):
            raise UnknownSchema(f"schema {schema_id} is not known") from None
        except OSError as error:
            raise SchemaUnavailable(f"{path}: {error.strerror}") from None


def decoder_of(options: argparse.Namespace) -> Callable[[Iterator[Any]], Iterator[Any]] | None:
    """A function for `mapInArrow` that adds valueSchemaId, valueJson and reason; None without."""
    if options.decode is None:
        return None
    is_avro, registry, folder = options.decode == "avro", options.registry, options.schemas

    def decode_batches(batches: Iterator[Any]) -> Iterator[Any]:
        one = AvroSchemas(registry, folder).decode if is_avro else decode_json
        for batch in batches:
            yield decode_batch(batch, one)

    return decode_batches


def decode_batch(batch: Any, one: Callable[[bytes], tuple[int | None, str]]) -> Any:
    """The Arrow batch with the three columns; a null value decodes to nothing."""
    import pyarrow as pa

    ids: list[int | None] = []
    texts: list[str | None] = []
    reasons: list[str | None] = []
    for value in batch.column("value").to_pylist():
        schema_id, text, reason = None, None, None
        if value is not None:
            try:
                schema_id, text = one(value)
            except Undecodable as error:
                schema_id, reason = split_header(value)[0], str(error)
        # A registry's id is an unsigned number in four bytes; the column is an int.
        ids.append(None if schema_id is None or schema_id > 0x7FFFFFFF else schema_id)
        texts.append(text)
        reasons.append(reason)
    arrays = [
        *batch.columns,
        pa.array(ids, pa.int32()),
        pa.array(texts, pa.string()),
        pa.array(reasons, pa.string()),
    ]
    names = [*batch.schema.names, "valueSchemaId", "valueJson", "reason"]
    return pa.RecordBatch.from_arrays(arrays, names=names)
