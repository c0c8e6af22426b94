"""Where an error stands in the response of an API, and which codes may: `data/errors.tsv`.

A row is a place: `asked` is the path of lists in the request whose entries are answered one by one
at `answered` in the response; `.` is the message itself. Names of codes are those that Apache Kafka
documents for the API or gives there (`org.apache.kafka.common.requests`, measured on 4.4). Versions
are those of the API where the codes stand at this place only; `.` are all.
"""

from __future__ import annotations

import functools
import pkgutil
from typing import NamedTuple

from kwire.faults.errors import FaultError, shown
from kwire.faults.kinds import Given
from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.errors import ErrorCode

DATA = "data/errors.tsv"
ERROR_FIELDS = ("error_code", "partition_error_code")
ALL_VERSIONS = (0, 32_767)
API_BY_NAME = {info.name: int(key) for key, info in API_KEYS.items()}


class Place(NamedTuple):
    """`asked` and `answered` are the names of lists from the message inwards, none for itself."""

    api_key: int
    asked: tuple[str, ...]
    answered: tuple[str, ...]
    codes: frozenset[ErrorCode]
    versions: tuple[int, int] = ALL_VERSIONS


@functools.cache
def places() -> dict[int, tuple[Place, ...]]:
    """By API key."""
    found: dict[int, tuple[Place, ...]] = {}
    data = pkgutil.get_data(__package__ or "", DATA)
    assert data is not None, DATA
    for line in data.decode().splitlines()[1:]:
        api, asked, answered, codes, versions = line.split("\t")
        key = API_BY_NAME[api]
        place = Place(
            key,
            _path(asked),
            _path(answered),
            frozenset(ErrorCode[one] for one in codes.split()),
            _versions(versions),
        )
        found[key] = (*found.get(key, ()), place)
    return found


def _path(text: str) -> tuple[str, ...]:
    return () if text == "." else tuple(text.split("."))


def _versions(text: str) -> tuple[int, int]:
    if text == ".":
        return ALL_VERSIONS
    first, _, last = text.partition("-")
    return int(first), int(last)


def codes_of(api_key: int) -> list[ErrorCode]:
    """What an API may carry, in the order of the codes."""
    return sorted({code for place in places().get(api_key, ()) for code in place.codes})


@functools.cache
def apis_with(code: ErrorCode) -> frozenset[int]:
    """The APIs that may carry a code."""
    return frozenset(
        key for key, found in places().items() if any(code in place.codes for place in found)
    )


def places_of(api_key: int, code: ErrorCode, version: int) -> list[Place]:
    """Where a code may stand at a version of an API."""
    found = places().get(api_key, ())
    return [place for place in found if code in place.codes and _has(place, version)]


def _has(place: Place, version: int) -> bool:
    request = m.request_class(place.api_key).SCHEMA.root
    response = m.response_class(place.api_key).SCHEMA.root
    at = _inner(response, place.answered, version)
    return (
        schema.within(version, place.versions)
        and at is not None
        and _reaches(request, place.asked, version)
        and any(
            field.name in ERROR_FIELDS and schema.within(version, field.versions)
            for field in at.fields
        )
    )


def _field(struct: schema.Struct, name: str, version: int) -> schema.Field | None:
    for field in struct.fields:
        if field.name == name and schema.within(version, field.versions):
            return field
    return None


def _reaches(struct: schema.Struct, path: tuple[str, ...], version: int) -> bool:
    at: schema.Struct | None = struct
    for name in path:
        field = None if at is None else _field(at, name, version)
        if field is None:
            return False
        at = field.struct
    return True


def _inner(struct: schema.Struct, path: tuple[str, ...], version: int) -> schema.Struct | None:
    at: schema.Struct | None = struct
    for name in path:
        field = None if at is None else _field(at, name, version)
        at = None if field is None else field.struct
    return at


def code_named(name: Given, api_key: int | None) -> ErrorCode:
    """The code of this name; FaultError names those that the API may carry."""
    text = str(name).upper()
    code = ErrorCode.__members__.get(text)
    accepted = None if api_key is None else codes_of(api_key)
    if accepted is not None and (code is None or code not in accepted):
        api = API_KEYS[m.request_class(api_key or 0).API_KEY or 0].name
        names = ", ".join(one.name for one in accepted) or "none, its response has no error code"
        raise FaultError(f"{api} cannot carry code={shown(name)}; accepted: {names}")
    if code is None or not apis_with(code):
        names = ", ".join(sorted({one.name for key in places() for one in codes_of(key)}))
        raise FaultError(f"code={shown(name)} is no error code of an API; accepted: {names}")
    return code
