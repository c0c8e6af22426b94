"""Schemas parsed, with all that they refer to; those that were parsed last are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kwire.schemas.formats import InvalidSchema, Parsed, parse
from kwire.schemas.registry.errors import Code, RegistryError, invalid_schema
from kwire.schemas.registry.names import beside
from kwire.schemas.registry.state import State
from kwire.schemas.registry.version import LATEST, Reference, Version

KEPT_MAX = 500
KEPT_CHARACTERS_MAX = 64 * 1024
"""Of a text; what is longer is parsed each time."""
REFERENCES_DEPTH_MAX = 50

_Key: TypeAlias = "tuple[str, str, tuple[tuple[str, _Key], ...]]"


class Schemas:
    """See the module."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: dict[_Key, Parsed] = {}

    def of_version(self, version: Version) -> Parsed:
        """The schema of a version; RegistryError 42201 where it cannot be read (any more)."""
        return self.parsed(version.subject, version.schema_type, version.schema, version.references)

    def parsed(
        self, subject: str, schema_type: str, text: str, references: Sequence[Reference]
    ) -> Parsed:
        """A schema of a subject, in whose context its references are; RegistryError 42201."""
        return self._parsed(subject, schema_type, text, references, 0)[0]

    def _parsed(
        self,
        subject: str,
        schema_type: str,
        text: str,
        references: Sequence[Reference],
        depth: int,
    ) -> tuple[Parsed, _Key]:
        if depth > REFERENCES_DEPTH_MAX:
            raise invalid_schema(f"References are more than {REFERENCES_DEPTH_MAX} deep")
        found: dict[str, Parsed] = {}
        keys: list[tuple[str, _Key]] = []
        for reference in references:
            target = self.target(subject, reference)
            found[reference.name], key = self._parsed(
                target.subject, target.schema_type, target.schema, target.references, depth + 1
            )
            keys.append((reference.name, key))
        key = (schema_type, text, tuple(keys))
        kept = self._kept.pop(key, None)
        if kept is None:
            kept = _parse(schema_type, text, found)
        if len(text) <= KEPT_CHARACTERS_MAX:
            self._kept[key] = kept
            if len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return kept, key

    def target(self, subject: str, reference: Reference) -> Version:
        """The version that a schema of a subject refers to; RegistryError 42201."""
        target = beside(subject, reference.subject)
        version = (
            self._state.latest(target)
            if reference.version == LATEST
            else self._state.version(target, reference.version)
        )
        if version is None:
            shown = "latest" if reference.version == LATEST else reference.version
            raise invalid_schema(
                f'No schema reference found for subject "{reference.subject}" and version {shown}'
            )
        return version

    def settled(self, subject: str, references: Sequence[Reference]) -> tuple[Reference, ...]:
        """With the number in the place of the latest version; RegistryError 42201."""
        return tuple(
            reference
            if reference.version != LATEST
            else reference._replace(version=self.target(subject, reference).version)
            for reference in references
        )


def _parse(schema_type: str, text: str, references: dict[str, Parsed]) -> Parsed:
    try:
        parsed = parse(schema_type, text, references)
        parsed.canonical.encode()
        parsed.normalized.encode()
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {schema_type}: {error}") from None
    except ImportError as error:
        raise RegistryError(
            Code.NOT_INSTALLED,
            f"Schemas of type {schema_type} need packages that are not installed ({error.name}): "
            "pip install 'kwire[schemas]'",
        ) from None
    except UnicodeEncodeError:
        raise invalid_schema("The schema has half of a surrogate pair") from None
    return parsed
