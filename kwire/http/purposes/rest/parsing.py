"""What comes in, made what a route asks for, or refused with the name of what is wrong.

Strict: unknown fields and parameters, wrong types, parameters given twice, bytes that are no base64
and whatever is no JSON are refused. The types bound how deep JSON goes; what they leave open is
bounded by the decoder's own recursion limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct, inspect
from starlette.types import Scope

from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.route import JSON, AnyRoute, Documents
from kwire.http.purposes.rest.shapes import WORDS

PARAMETERS_MAX = 64
_AT = re.compile(r" - at `\$\.?(.*)`$")
_INDEX = re.compile(r"\w+\[(\d+)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`")
_MISSING = re.compile(r"Object missing required field `(.*?)`")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_BOOLEANS = {"true": True, "false": False}


class BodyParser:
    """Bodies of one type."""

    def __init__(self, kind: type[Struct]) -> None:
        self._is_raw = kind is Documents
        self._decoder = msgspec.json.Decoder(kind)

    def parse(self, raw: bytes | bytearray) -> Struct:
        """The body; Problem."""
        if self._is_raw:
            return Documents(bytes(raw))
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise _wrong_body(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Problem(400, "invalid_json", f"the body is no JSON: {error}") from None
        except RecursionError:
            raise Problem(400, "invalid_json", "the JSON is nested too deeply") from None


def _wrong_body(text: str) -> Problem:
    what, path = _split(text)
    unknown = _UNKNOWN.match(what) or _MISSING.match(what)
    if unknown is not None:
        path = ".".join(filter(None, (path, unknown.group(1))))
    index = _INDEX.match(path)
    return Problem(
        400,
        "invalid_body",
        f"{path or 'the body'}: {what[:1].lower()}{what[1:]}",
        field=path or None,
        index=int(index.group(1)) if index is not None else None,
    )


def _split(text: str) -> tuple[str, str]:
    """What is wrong, and where."""
    at = _AT.search(text)
    what, where = (text, "") if at is None else (text[: at.start()], at.group(1))
    for pattern, words in WORDS.items():
        if what.endswith(f" matching regex {pattern!r}"):
            return f"it is to be {words}", where
    return what, where


class ParameterParser:
    """The parameters of one route."""

    def __init__(self, route: AnyRoute) -> None:
        told = inspect.type_info(route.parameters)
        assert isinstance(told, inspect.StructType), route.path
        self._kind = route.parameters
        self._in_path = route.in_path
        self._in_header = {field: name.lower().encode() for field, name in route.headers.items()}
        self._header_names = route.headers
        names = {field.encode_name: field.type for field in told.fields}
        self._numbers = {name for name, kind in names.items() if _is(kind, inspect.IntType)}
        self._flags = {name for name, kind in names.items() if _is(kind, inspect.BoolType)}
        self._is_empty = not names

    def parse(self, scope: Scope) -> Struct:
        """The parameters of a request; Problem."""
        query: bytes = scope["query_string"]
        if self._is_empty and not query:
            return self._kind()
        found: dict[str, str] = dict(scope["path_params"])
        for name, value in _pairs(query):
            if name in self._in_path or name in self._in_header:
                raise Problem(400, "invalid_parameter", f"unknown parameter {name}", parameter=name)
            if name in found:
                raise Problem(400, "invalid_parameter", f"{name} is given twice", parameter=name)
            found[name] = value
        if self._in_header:
            self._take_headers(found, scope["headers"])
        given = {name: self._value(name, text) for name, text in found.items()}
        try:
            return msgspec.convert(given, self._kind)
        except msgspec.ValidationError as error:
            raise self._wrong(str(error), found) from None

    def _take_headers(self, found: dict[str, str], headers: Sequence[tuple[bytes, bytes]]) -> None:
        for field, raw in self._in_header.items():
            values = [value for name, value in headers if name == raw]
            if len(values) > 1:
                header = self._header_names[field]
                raise Problem(400, "invalid_header", f"{header} is given twice", header=header)
            if values:
                found[field] = values[0].decode("latin-1")

    def _value(self, name: str, text: str) -> str | int | bool:
        if name in self._numbers and _NUMBER.fullmatch(text):
            return int(text)
        if name in self._flags and text in _BOOLEANS:
            return _BOOLEANS[text]
        return text

    def _wrong(self, text: str, found: Mapping[str, str]) -> Problem:
        what, path = _split(text)
        missing, unknown = _MISSING.match(what), _UNKNOWN.match(what)
        if missing is not None:
            path, what = missing.group(1), "it is needed"
        elif unknown is not None:
            path, what = unknown.group(1), "no such parameter"
        if path in found and path in self._numbers:
            what = f"{what.replace(', got `str`', '')}, got {found[path][:100]!r}"
        header = self._header_names.get(path)
        if header is not None:
            return Problem(400, "invalid_header", f"{header}: {what}", header=header)
        return Problem(400, "invalid_parameter", f"{path}: {what}", parameter=path)


def _is(kind: inspect.Type, wanted: type[inspect.Type]) -> bool:
    if isinstance(kind, inspect.Metadata):  # it has a description
        kind = kind.type
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return any(isinstance(one, wanted) for one in kinds)


def _pairs(query: bytes) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=PARAMETERS_MAX,
        )
    except ValueError as error:
        raise Problem(400, "invalid_parameter", f"the query cannot be read: {error}") from None


def check_media_type(scope: Scope) -> None:
    """Whether the body is JSON by its header; Problem 415."""
    values = [value for name, value in scope["headers"] if name == b"content-type"]
    given = values[0].decode("latin-1") if len(values) == 1 else ""
    if given.partition(";")[0].strip().lower() != JSON:
        shown = f"not {given[:100]!r}" if given else "which is missing"
        message = f"Content-Type is to be {JSON}, {shown}"
        raise Problem(415, "unsupported_media_type", message, header="Content-Type")
