"""A registered schema with all that it refers to, taken out of the state to be parsed elsewhere."""

from __future__ import annotations

from kwire.schemas.formats import InvalidSchema
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.schemas import Schemas
from kwire.schemas.registry.version import Version
from kwire.schemas.registry.work import SchemaWork, parsed_parts
from kwire.schemas.validation.prepared import Prepared, prepared

CHARACTERS_MAX = 4 * 1024 * 1024
"""Of a schema with all that it refers to. Parsed, a character takes up to 60 bytes."""


def closure_of(schemas: Schemas, version: Version) -> SchemaWork:
    """Raises InvalidSchema where a reference leads nowhere, or in a circle."""
    try:
        return schemas.work_of(version)
    except RegistryError as error:
        raise InvalidSchema(str(error)) from None


def refusal(why: str, package: str = "") -> str:
    """Why records are refused whose schema is; `package` is what its format needs."""
    if package:
        return f"its format needs the package {package}: pip install 'kwire[schemas]'"
    return f"its schema cannot be read: {why}"


def prepare(closure: SchemaWork) -> Prepared | str:
    """Parsed and ready; why not, where it cannot be. It may take long: beside the loop."""
    try:
        return prepared(parsed_parts(closure.parts)[-1])
    except InvalidSchema as error:
        return refusal(str(error))
    except ImportError as error:
        return refusal(str(error), error.name or "")
