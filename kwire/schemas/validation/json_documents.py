"""Whether a document is one of a JSON Schema: by jsonschema, with patterns matched by RE2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.schemas.formats.json_objects import matches
from kwire.schemas.formats.json_schema import Place
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.avro_bytes import UndecodableError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


def checker_of(place: Place) -> Validator:
    from jsonschema import Draft7Validator
    from jsonschema.validators import extend, validator_for

    chosen = validator_for(place.schema, default=Draft7Validator)
    kind = extend(chosen, {"pattern": _pattern, "patternProperties": _pattern_properties})
    return kind(place.schema, _resolver=place.resolver)


def check_document(checker: Validator, document: Json) -> None:
    """Raises UndecodableError with the first fault."""
    try:
        error = next(checker.iter_errors(document), None)
    except RecursionError:
        raise UndecodableError("it nests too deep") from None
    if error is not None:
        raise UndecodableError(f"{error.json_path}: {error.message}"[:300])


def _pattern(
    validator: Validator, pattern: str, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and matches(pattern, value) is False:
        yield ValidationError(f"the text does not match {pattern!r}")


def _pattern_properties(
    validator: Validator, patterns: dict[str, Json], value: Json, schema: Json
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, below in patterns.items():
            for name, item in value.items():
                if matches(pattern, name):
                    yield from validator.descend(item, below, path=name, schema_path=pattern)
