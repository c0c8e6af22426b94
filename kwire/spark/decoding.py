"""Decoding while records are archived: what the options say, and each record looked at.

A value begins with the five bytes of a schema registry: 0, then the schema's id (int32). Schemas
come from a registry (registry.py) or a folder. Here each value is checked in Python, strictly and
within bounds: what cannot be decoded is not dropped, it goes to the dead-letter table, unchanged,
with the reason. What has passed becomes columns in Spark (decoded_columns.py). The original value
is kept in either table.

JSON may come without schemas: then it is only looked at, and stays text (`valueJson`).
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import pathlib
import re
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kwire.spark import json_values
from kwire.spark.avro import AvroError, compile_schema, decode
from kwire.spark.column_types import MisfitError
from kwire.spark.registry import (
    ANSWERED,
    AVRO,
    JSON,
    PROTOBUF,
    Registry,
    Schema,
    SchemaUnavailable,
    UnknownSchema,
    wait_for,
)
from kwire.spark.usage import UsageError
from kwire.urls import refused_url, without_userinfo

HEADER_BYTES = 5
ID_MAX = 0x7FFFFFFF
# What a folder's schemas end with, and what a registry calls them, by the option.
SUFFIXES = {"avro": ".avsc", "json": ".json", "protobuf": ".proto"}
KINDS = {"avro": AVRO, "json": JSON, "protobuf": PROTOBUF}
# Files that are asked for: others, as 07.avsc, never are.
_SCHEMA_FILES = {
    form: re.compile(rf"(0|[1-9][0-9]{{0,9}}){re.escape(suffix)}\Z")
    for form, suffix in SUFFIXES.items()
}
# What a text that is no schema of its format raises.
UNUSABLE = (AvroError, ValueError, TypeError, RecursionError)
# What the check adds to a batch, for the value and for the key: id of the schema, name of the
# message (Protobuf), JSON text (all but Avro).
ID, MESSAGE, TEXT = "SchemaId", "Message", "Text"
# Subjects that are asked for before any work, at most.
SUBJECTS_MAX = 100


def add_decoding_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("decoding of values and keys")
    formats = tuple(SUFFIXES)
    group.add_argument("--decode", choices=formats, help="values, into the column valueDecoded")
    group.add_argument("--decode-key", choices=formats, help="keys, into the column keyDecoded")
    group.add_argument("--registry", metavar="URL", help="where the schemas are")
    group.add_argument(
        "--schemas", metavar="FOLDER", help="or here, as ID.avsc, ID.json or ID.proto"
    )
    group.add_argument(
        "--flatten",
        action="store_true",
        help="a column for each field of a value (value_NAME) and key (key_NAME)",
    )


def check_decoding(options: argparse.Namespace) -> None:
    wanted = {options.decode, options.decode_key} - {None}
    has_schemas = bool(options.registry or options.schemas)
    if options.registry and options.schemas:
        raise UsageError("--registry and --schemas: give one of them")
    if has_schemas and not wanted:
        raise UsageError("--registry and --schemas are for --decode and --decode-key")
    if not has_schemas:
        for option, form in (("--decode", options.decode), ("--decode-key", options.decode_key)):
            if form is not None and (form != "json" or option == "--decode-key"):
                raise UsageError(f"{option} {form} needs --registry or --schemas")
    if options.flatten and not has_schemas:
        raise UsageError("--flatten needs --decode with --registry or --schemas")
    if "protobuf" in wanted and importlib.util.find_spec("google.protobuf") is None:
        raise UsageError('protobuf is not installed: pip install "kwire[spark,schemas]"')
    if options.schemas:
        _check_schemas(options.schemas, wanted)
    if options.registry:
        _check_url(options.registry)


def _check_schemas(folder: str, forms: Collection[str]) -> None:
    """UsageError for a folder without any schema of a form, and for one that is none: all of its
    values would be dead letters."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"--schemas {folder}: no such folder") from None
    except OSError as error:
        raise UsageError(f"--schemas {folder}: {error.strerror}") from None
    for form in sorted(forms):
        found = sorted(int(name[1]) for text in names if (name := _SCHEMA_FILES[form].match(text)))
        if not found:
            raise UsageError(f"--schemas {folder}: no schema there is called ID{SUFFIXES[form]}")
        for schema_id in found:
            _check_schema(pathlib.Path(folder) / f"{schema_id}{SUFFIXES[form]}", schema_id, form)


def _check_schema(path: pathlib.Path, schema_id: int, form: str) -> None:
    """UsageError for a file that is no schema of the form."""
    try:
        _COMPILERS[form](schema_id, Schema(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"--schemas {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"--schemas {path}: no UTF-8 at byte {error.start}") from None
    except UNUSABLE as error:
        raise UsageError(f"--schemas {path}: {' '.join(str(error).split())[:300]}") from None


def _check_url(url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(f"--registry {refused_url(url)}: expected http:// or https:// with a host")


class Undecodable(Exception):
    """Why a value goes to the dead letters."""


class Checked(NamedTuple):
    """What a value is: of which schema, which message of it (Protobuf), as JSON (all but Avro)."""

    schema_id: int | None = None
    message: str | None = None
    text: str | None = None


def split_header(value: bytes) -> tuple[int | None, bytes]:
    """(schema id, rest) of a value with the registry's five bytes, else (None, value)."""
    if len(value) >= HEADER_BYTES and value[0] == 0:
        return int.from_bytes(value[1:HEADER_BYTES], "big"), value[HEADER_BYTES:]
    return None, value


def check_json(value: bytes) -> Checked:
    """JSON without a schema of it; raises Undecodable."""
    schema_id, body = split_header(value)
    text = _text_of(body)
    _parsed(text)
    return Checked(schema_id, None, text)


def _text_of(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"no UTF-8 at byte {error.start}") from None


def _parsed(text: str) -> Any:
    try:
        return json_values.parse(text)
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"no JSON: {str(error)[:200]}") from None


class Schemas:
    """Schemas by id, from a folder or a registry. `form` is one of SUFFIXES."""

    def __init__(self, form: str, registry: str | None, folder: str | None) -> None:
        self._suffix = SUFFIXES[form]
        self._registry = None if registry is None else Registry(registry, kind=KINDS[form])
        self._folder = folder

    def get(self, schema_id: int) -> Schema:
        """Raises UnknownSchema and SchemaUnavailable."""
        if schema_id > ID_MAX:
            raise UnknownSchema(f"schema {schema_id} is not known")
        if self._registry is not None:
            return self._registry.schema(schema_id)
        path = pathlib.Path(self._folder or "") / f"{schema_id}{self._suffix}"
        try:
            return Schema(path.read_text(encoding="utf-8", errors="replace"))
        except (FileNotFoundError, IsADirectoryError):
            raise UnknownSchema(f"schema {schema_id} is not known") from None
        except OSError as error:
            raise SchemaUnavailable(f"{path}: {error.strerror}") from None


# What a schema makes of a value that begins with the five bytes; raises Undecodable.
Check = Callable[[bytes], Checked]


class Checker:
    """Values by their schemas; each is got once a process."""

    def __init__(self, form: str, registry: str | None, folder: str | None) -> None:
        self._schemas = Schemas(form, registry, folder)
        self._compile = _COMPILERS[form]
        self._checks: dict[int, Check | str] = {}

    def check(self, value: bytes) -> Checked:
        """What a value is; raises Undecodable and SchemaUnavailable."""
        schema_id, _ = split_header(value)
        if schema_id is None:
            raise Undecodable("no schema id: the value does not begin with a registry's five bytes")
        check = self._checks.get(schema_id)
        if check is None:
            check = self._checks[schema_id] = self._load(schema_id)
        if isinstance(check, str):
            raise Undecodable(check)
        return check(value)

    def _load(self, schema_id: int) -> Check | str:
        """The check, or why there is none."""
        try:
            return self._compile(schema_id, self._schemas.get(schema_id))
        except UnknownSchema as error:
            return str(error)
        except UNUSABLE as error:
            return f"schema {schema_id}: {error}"


def _avro(schema_id: int, schema: Schema) -> Check:
    reader = compile_schema(schema.text, schema.references)

    def check(value: bytes) -> Checked:
        try:
            decode(reader, value, HEADER_BYTES)
        except AvroError as error:
            raise Undecodable(f"no Avro of schema {schema_id}: {error}") from None
        return Checked(schema_id)

    return check


def _json(schema_id: int, schema: Schema) -> Check:
    type_ = json_values.type_of(schema.text, schema.named)

    def check(value: bytes) -> Checked:
        text = _text_of(value[HEADER_BYTES:])
        try:
            json_values.check(_parsed(text), type_)
        except MisfitError as error:
            raise Undecodable(f"not of schema {schema_id}: {error}") from None
        return Checked(schema_id, None, text)

    return check


def _protobuf(schema_id: int, schema: Schema) -> Check:
    from kwire.spark.proto_values import Messages

    messages = Messages(schema.text, schema.named)

    def check(value: bytes) -> Checked:
        try:
            return Checked(schema_id, *messages.read(value, HEADER_BYTES))
        except MisfitError as error:
            raise Undecodable(f"no Protobuf of schema {schema_id}: {error}") from None

    return check


_COMPILERS: dict[str, Callable[[int, Schema], Check]] = {
    "avro": _avro,
    "json": _json,
    "protobuf": _protobuf,
}


class Decoding(NamedTuple):
    """What is decoded of a record, and by what: `value` and `key` are one of SUFFIXES or None."""

    value: str | None
    key: str | None
    registry: str | None
    folder: str | None
    flatten: bool = False

    @classmethod
    def of(cls, options: argparse.Namespace) -> Decoding | None:
        """By the options; None where nothing is decoded."""
        if options.decode is None and options.decode_key is None:
            return None
        found = (options.decode, options.decode_key, options.registry, options.schemas)
        return cls(*found, flatten=options.flatten)

    @property
    def has_columns(self) -> bool:
        """Whether there are schemas, so that values become columns."""
        return bool(self.registry or self.folder)

    @property
    def sides(self) -> dict[str, str]:
        """The format of `value` and of `key`, those that are decoded."""
        return {
            side: form
            for side, form in (("value", self.value), ("key", self.key))
            if form is not None
        }

    def schemas(self, side: str) -> Schemas:
        """Where the schemas of one side are."""
        return Schemas(self.sides[side], self.registry, self.folder)

    def checker(self, side: str) -> Check:
        """What checks the values of one side."""
        if not self.has_columns:
            return check_json
        return Checker(self.sides[side], self.registry, self.folder).check

    def check_batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        """For `mapInArrow`: adds CHECKED_SCHEMA of each side, and `reason`."""
        checks = {side: self.checker(side) for side in self.sides}
        for batch in batches:
            yield checked_batch(batch, checks)

    @property
    def checked_schema(self) -> str:
        """The columns that `check_batches` adds, as DDL."""
        names = ((ID, "int"), (MESSAGE, "string"), (TEXT, "string"))
        columns = [f"{side}{name} {type_}" for side in self.sides for name, type_ in names]
        return ", ".join([*columns, "reason string"])


def check_registry(
    decoding: Decoding,
    topics: Iterable[str],
    patience_s: float,
    say: Callable[[str], None],
    wait: Callable[[float], None],
) -> None:
    """Look, before any work, whether there is a registry that answers, and what it has as the
    newest schemas of the topics. Raises UsageError for something else and for a schema that is
    none, JobError where there is no answer within the patience."""
    url = decoding.registry
    assert url is not None
    registry = Registry(url)
    wait_for(registry.unreached, patience_s, say, wait)
    subjects = ((topic, side) for topic in sorted(topics) for side in decoding.sides)
    for topic, side in itertools.islice(subjects, SUBJECTS_MAX):
        trouble_of = partial(_subject_trouble, url, f"{topic}-{side}", decoding.sides[side])
        wait_for(trouble_of, patience_s, say, wait)


def _subject_trouble(url: str, subject: str, form: str) -> str | None:
    """Why there is no answer about a subject; None for one, also that it is not known: producers
    may name subjects otherwise. Raises UsageError for a newest schema that is none."""
    registry = Registry(url, kind=KINDS[form])
    where = without_userinfo(f"--registry {url}: subject {subject}")
    try:
        schema = registry.latest(subject)
    except UnknownSchema:
        return None
    except SchemaUnavailable as error:
        if error.is_momentary:
            return f"--registry: {error}"
        if error.status == ANSWERED:
            raise UsageError(f"--registry: {error}") from None
        return None
    try:
        _COMPILERS[form](0, schema)
    except UNUSABLE as error:
        raise UsageError(f"{where}: {' '.join(str(error).split())[:300]}") from None
    return None


def checked_batch(batch: Any, checks: dict[str, Check]) -> Any:
    """The Arrow batch with the columns; a null value is of no schema."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    reasons: list[str | None] = [None] * batch.num_rows
    for side, check in checks.items():
        found: list[Checked] = []
        for at, value in enumerate(batch.column(side).to_pylist()):
            one = Checked()
            if value is not None:
                try:
                    one = check(value)
                except Undecodable as error:
                    one = Checked(split_header(value)[0])
                    reasons[at] = reasons[at] or (f"key: {error}" if side == "key" else str(error))
            found.append(one)
        # A registry's id is an unsigned number in four bytes; the column is an int.
        ids = [None if (one.schema_id or 0) > ID_MAX else one.schema_id for one in found]
        columns[side + ID] = pa.array(ids, pa.int32())
        columns[side + MESSAGE] = pa.array([one.message for one in found], pa.string())
        columns[side + TEXT] = pa.array([one.text for one in found], pa.string())
    columns["reason"] = pa.array(reasons, pa.string())
    arrays, names = [*batch.columns, *columns.values()], [*batch.schema.names, *columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)
