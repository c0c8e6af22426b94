"""A request to the registry as its handlers see it: names and flags, checked and with types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from kwire.client.cluster import Cluster
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.names import EVERY, check_context, context_prefix, normalized

PARAMETERS_MAX = 100
NUMBER_DIGITS_MAX = 10
CONTEXTS = "contexts"


class Call(NamedTuple):
    """`names` are the parts of the path that a template names; `context` is what stands before
    subjects that name no context of their own, empty for the default one."""

    cluster: Cluster
    names: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    context: str
    body: Json

    def subject(self) -> str:
        """The subject of the path as records have it."""
        return self.qualified(self.names["subject"])

    def scope(self) -> str:
        """The subject of the path, or the context, or "" for all."""
        return normalized(self.qualified(self.names.get("subject", "")))

    def qualified(self, subject: str) -> str:
        """A subject in the context of the path, unless it names one itself."""
        if subject.startswith((":.", EVERY)):
            return subject if subject.startswith(EVERY) else normalized(subject)
        return self.context + subject

    def text(self, name: str, default: str = "") -> str:
        values = self.query.get(name, ())
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """RegistryError 400."""
        value = self.text(name, "false").lower()
        if value not in ("true", "false", ""):
            raise _wrong(name, value, "true or false")
        return value == "true"

    def number(self, name: str, default: int) -> int:
        """RegistryError 400."""
        value = self.text(name, str(default))
        digits = value.removeprefix("-")
        if not (digits.isdecimal() and digits.isascii() and len(digits) <= NUMBER_DIGITS_MAX):
            raise _wrong(name, value, "a number")
        return int(value)

    def page(self, found: Sequence[Json]) -> list[Json]:
        """From `offset` on, at most `limit`; RegistryError 400."""
        offset, limit = self.number("offset", 0), self.number("limit", -1)
        if offset < 0:
            raise _wrong("offset", str(offset), "a number from 0 on")
        return list(found[offset:] if limit < 0 else found[offset : offset + limit])


class Place(NamedTuple):
    """Where a path leads: its parts without what names a context, and that."""

    parts: tuple[str, ...]
    context: str


def place_of(raw_path: bytes) -> Place:
    """Of the path as it was sent: a subject may have a slash in it, as %2F. `/contexts/NAME/` may
    stand before any path, a slash behind it. An empty name is none: without it the path would lead
    to something else. RegistryError 400, 404, 42208."""
    try:
        text = raw_path.decode("ascii").removeprefix("/").removesuffix("/")
        parts = [unquote(part, errors="strict") for part in text.split("/")] if text else []
    except UnicodeDecodeError:
        raise RegistryError(Code.BAD_REQUEST, "the path is no UTF-8") from None
    if "" in parts:
        raise RegistryError(Code.NOT_FOUND, "a name in the path is empty")
    if len(parts) > 2 and parts[0] == CONTEXTS:
        return Place(tuple(parts[2:]), context_prefix(check_context(parts[1])))
    return Place(tuple(parts), "")


def query_of(query_string: bytes) -> dict[str, list[str]]:
    """RegistryError 400."""
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=PARAMETERS_MAX,
        )
    except UnicodeDecodeError:
        raise RegistryError(Code.BAD_REQUEST, "the query is no UTF-8") from None
    except ValueError:
        raise RegistryError(
            Code.BAD_REQUEST, f"the query has more than {PARAMETERS_MAX} parameters"
        ) from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _wrong(name: str, value: str, expected: str) -> RegistryError:
    return RegistryError(
        Code.BAD_REQUEST, f"Invalid value {value[:100]!r} for parameter {name}: expected {expected}"
    )
