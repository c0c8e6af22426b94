"""A registered schema with all that it refers to, taken out of the state to be parsed elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from kwire.schemas.formats import InvalidSchema, Parsed, parse
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.schemas import REFERENCES_DEPTH_MAX, Schemas
from kwire.schemas.registry.version import Version
from kwire.schemas.validation.prepared import Prepared, prepared

VERSIONS_MAX = 500


class Part(NamedTuple):
    schema_type: str
    text: str
    references: tuple[tuple[str, tuple[str, int]], ...]
    """Name, and the part it stands for."""


class Closure(NamedTuple):
    """`parts` by subject and version, those of references first; `root` is the last one."""

    parts: dict[tuple[str, int], Part]
    root: tuple[str, int]


def closure_of(schemas: Schemas, version: Version) -> Closure:
    """Raises InvalidSchema where a reference leads nowhere."""
    parts: dict[tuple[str, int], Part] = {}
    _collect(schemas, version, parts, 0)
    return Closure(parts, version.key)


def _collect(
    schemas: Schemas, version: Version, parts: dict[tuple[str, int], Part], depth: int
) -> None:
    if depth > REFERENCES_DEPTH_MAX or len(parts) > VERSIONS_MAX:
        raise InvalidSchema("too many schemas are referenced")
    references = []
    for reference in version.references:
        try:
            target = schemas.target(version.subject, reference)
        except RegistryError as error:
            raise InvalidSchema(str(error)) from None
        if target.key not in parts:
            _collect(schemas, target, parts, depth + 1)
        references.append((reference.name, target.key))
    parts[version.key] = Part(version.schema_type, version.schema, tuple(references))


def prepare(closure: Closure) -> Prepared | str:
    """Parsed and ready; why not, where it cannot be. It may take long: beside the loop."""
    parsed: dict[tuple[str, int], Parsed] = {}
    try:
        for key, part in closure.parts.items():
            references = {name: parsed[target] for name, target in part.references}
            parsed[key] = parse(part.schema_type, part.text, references)
        return prepared(parsed[closure.root])
    except InvalidSchema as error:
        return f"its schema cannot be read: {error}"
    except ImportError as error:
        return f"its format needs the package {error.name}: pip install 'kwire[schemas]'"
    except KeyError:
        return "its references lead in a circle"
