"""Schemas read, with all that they refer to; those that were read last are kept.

What is small is read here. What is not is work for another process (`work.py`): `WorkNeeded` is
raised until somebody has told what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.schemas.compatibility import Compatibility
from kwire.schemas.formats import InvalidSchema, Parsed
from kwire.schemas.registry.errors import Code, RegistryError, invalid_schema
from kwire.schemas.registry.names import beside
from kwire.schemas.registry.state import State
from kwire.schemas.registry.version import LATEST, Reference, Version
from kwire.schemas.registry.work import (
    CHARACTERS_MAX,
    PARTS_MAX,
    Compared,
    Descriptor,
    Kind,
    Part,
    ReadSchema,
    Refused,
    SchemaWork,
    WorkDone,
    WorkNeeded,
    compared,
    described,
    parsed_parts,
)

KEPT_MAX = 500
TOLD_CHARACTERS_MAX = 32 * 1024 * 1024
TOLD_MAX = 2000
REFERENCES_DEPTH_MAX = 50


class Schemas:
    """See the module."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: dict[SchemaWork, Parsed] = {}
        self._told: dict[SchemaWork, WorkDone] = {}
        self._told_characters = 0

    # -- asked

    def read(
        self, subject: str, schema_type: str, text: str, references: Sequence[Reference]
    ) -> ReadSchema:
        """A schema of a subject, in whose context its references are; RegistryError 42201,
        WorkNeeded."""
        work = self._work(Kind.READ, subject, schema_type, text, references)
        if work.is_inline:
            one = self._parsed(work)
            return ReadSchema(one.canonical, one.normalized, one.record_name)
        found = self._done(work)
        assert isinstance(found, ReadSchema), "what was asked"
        return found

    def read_version(self, version: Version) -> ReadSchema:
        """The schema of a version; RegistryError 42201 where it cannot be read (any more),
        WorkNeeded."""
        return self.read(version.subject, version.schema_type, version.schema, version.references)

    def described(self, version: Version) -> str:
        """The descriptor of a Protobuf schema in base64; RegistryError 42201, WorkNeeded."""
        schema = version.subject, version.schema_type, version.schema, version.references
        work = self._work(Kind.DESCRIBE, *schema)
        if work.is_inline:
            return described(self._parsed(work._replace(kind=Kind.READ))).base64
        found = self._done(work)
        assert isinstance(found, Descriptor), "what was asked"
        return found.base64

    def compared(
        self,
        level: Compatibility,
        schema: tuple[str, str, str, Sequence[Reference]],
        earlier: Sequence[Version],
    ) -> Compared:
        """Whether a schema, as `read` takes it, may follow versions; RegistryError 42201,
        WorkNeeded."""
        collected = _Collected(self)
        versions = [(one.subject, one.schema_type, one.schema, one.references) for one in earlier]
        roots = tuple(collected.add(*one) for one in (schema, *versions))
        work = SchemaWork(Kind.COMPARE, tuple(collected.parts), roots, level)
        if not work.is_inline:
            found = self._done(work)
            assert isinstance(found, Compared), "what was asked"
            return found
        parsed = [self._parsed(self._work(Kind.READ, *one)) for one in (schema, *versions)]
        try:
            return compared(level, parsed[0], parsed[1:])
        except InvalidSchema as error:
            raise invalid_schema(str(error)) from None

    # -- told

    def tell(self, work: SchemaWork, found: WorkDone) -> None:
        """What came of work that was needed."""
        self._told[work] = found
        self._told_characters += _characters(work, found)
        while self._told_characters > TOLD_CHARACTERS_MAX or len(self._told) > TOLD_MAX:
            self.forget(next(iter(self._told)))

    def forget(self, work: SchemaWork) -> None:
        """It is to be done anew where it is needed again."""
        found = self._told.pop(work, None)
        if found is not None:
            self._told_characters -= _characters(work, found)

    def _done(self, work: SchemaWork) -> WorkDone:
        if work.characters > CHARACTERS_MAX:
            raise invalid_schema(
                f"The schemas to be read have {work.characters} characters in all: at most "
                f"{CHARACTERS_MAX} are read for one request"
            )
        found = self._told.get(work)
        if found is None:
            raise WorkNeeded(work)
        if isinstance(found, Refused):
            raise _refused(work, found)
        return found

    def _parsed(self, work: SchemaWork) -> Parsed:
        kept = self._kept.pop(work, None)
        if kept is None:
            try:
                kept = parsed_parts(work.parts)[-1]
            except InvalidSchema as error:
                raise _refused(work, Refused(str(error))) from None
            except ImportError as error:
                raise _refused(work, Refused("", error.name or "")) from None
        self._kept[work] = kept
        if len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return kept

    # -- what a schema refers to

    def _work(
        self,
        kind: Kind,
        subject: str,
        schema_type: str,
        text: str,
        references: Sequence[Reference],
    ) -> SchemaWork:
        collected = _Collected(self)
        root = collected.add(subject, schema_type, text, references)
        return SchemaWork(kind, tuple(collected.parts), (root,))

    def work_of(self, version: Version) -> SchemaWork:
        """To read a version, wherever that is done; RegistryError 42201."""
        schema = version.subject, version.schema_type, version.schema, version.references
        return self._work(Kind.READ, *schema)

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


class _Collected:
    """Texts, each version once, those of references first."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._known: dict[tuple[str, int], int | None] = {}
        self.parts: list[Part] = []

    def add(
        self,
        subject: str,
        schema_type: str,
        text: str,
        references: Sequence[Reference],
        depth: int = 0,
    ) -> int:
        if depth > REFERENCES_DEPTH_MAX:
            raise invalid_schema(f"References are more than {REFERENCES_DEPTH_MAX} deep")
        found = tuple(
            (one.name, self._target(self._schemas.target(subject, one), depth + 1))
            for one in references
        )
        if len(self.parts) >= PARTS_MAX:
            raise invalid_schema(f"More than {PARTS_MAX} schemas are to be read")
        self.parts.append(Part(schema_type, text, found))
        return len(self.parts) - 1

    def _target(self, version: Version, depth: int) -> int:
        if version.key not in self._known:
            self._known[version.key] = None
            schema = version.subject, version.schema_type, version.schema, version.references
            self._known[version.key] = self.add(*schema, depth)
        at = self._known[version.key]
        if at is None:
            raise invalid_schema(
                f'The references of subject "{version.subject}", version {version.version} lead '
                "in a circle"
            )
        return at


def _characters(work: SchemaWork, found: WorkDone) -> int:
    """Kept beside the texts of versions, which are there anyway."""
    told = sum(len(text) for text in found if isinstance(text, str))
    return work.characters + told


def _refused(work: SchemaWork, refused: Refused) -> RegistryError:
    schema_type = work.parts[work.roots[0]].schema_type
    if refused.package:
        return RegistryError(
            Code.NOT_INSTALLED,
            f"Schemas of type {schema_type} need packages that are not installed "
            f"({refused.package}): pip install 'kwire[schemas]'",
        )
    if work.kind is Kind.COMPARE:
        return invalid_schema(refused.why)
    return invalid_schema(f"Invalid schema of type {schema_type}: {refused.why}")
