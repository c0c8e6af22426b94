"""Whether a document is one of a JSON Schema: by jsonschema, within bounds.

Patterns are matched by RE2, `uniqueItems` looks at each item once, and a schema whose references
double (2^40 ways lead to the last one) runs out of the references that one document may follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from kwire.schemas.formats.json_objects import matches
from kwire.schemas.formats.json_parts import key
from kwire.schemas.formats.json_schema import Place
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.avro_bytes import UndecodableError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Keyword = Callable[["Validator", Json, Json, Json], "Iterator[ValidationError] | None"]
REFERENCES_FREE = 500  # beside one for each byte of the document
_references_left: ContextVar[list[int]] = ContextVar("references_left")


def checker_of(place: Place) -> Validator:
    from jsonschema import Draft7Validator
    from jsonschema.validators import extend, validator_for

    chosen = validator_for(place.schema, default=Draft7Validator)
    keywords: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "uniqueItems": _unique_items,
    }
    for name in ("$ref", "$dynamicRef", "$recursiveRef"):
        if name in chosen.VALIDATORS:
            keywords[name] = _counted(chosen.VALIDATORS[name])
    return extend(chosen, keywords)(place.schema, _resolver=place.resolver)


def check_document(checker: Validator, document: Json, size_bytes: int) -> None:
    """Raises UndecodableError with the first fault."""
    token = _references_left.set([REFERENCES_FREE + size_bytes])
    try:
        error = next(checker.iter_errors(document), None)
    except RecursionError:
        raise UndecodableError("it nests too deep") from None
    finally:
        _references_left.reset(token)
    if error is not None:
        raise UndecodableError(f"{error.json_path}: {error.message}"[:300])


def _counted(follow: Keyword) -> Keyword:
    def counted(
        validator: Validator, reference: Json, value: Json, schema: Json
    ) -> Iterator[ValidationError]:
        left = _references_left.get()
        left[0] -= 1
        if left[0] < 0:
            raise UndecodableError("its schema follows more references than the bytes it has")
        yield from follow(validator, reference, value, schema) or ()

    return counted


def _unique_items(
    validator: Validator, is_asked: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if is_asked and isinstance(value, list) and len({key(item) for item in value}) < len(value):
        yield ValidationError("an item is there twice")


def _pattern(
    validator: Validator, pattern: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and isinstance(pattern, str) and matches(pattern, value) is False:
        yield ValidationError(f"the text does not match {pattern!r}")


def _pattern_properties(
    validator: Validator, patterns: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    if isinstance(value, dict) and isinstance(patterns, dict):
        for pattern, below in patterns.items():
            for name, item in value.items():
                if matches(pattern, name):
                    yield from validator.descend(item, below, path=name, schema_path=pattern)
