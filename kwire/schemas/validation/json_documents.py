"""Whether a document is one of a JSON Schema: by jsonschema, within bounds (`json_keywords.py`)."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from kwire.json_numbers import refused
from kwire.schemas.formats.json_patterns import CLASS_UNITS, UNITS_MAX, units
from kwire.schemas.formats.json_schema import Place
from kwire.schemas.formats.json_text import Json
from kwire.schemas.formats.parsed import InvalidSchema
from kwire.schemas.validation.allowance import Allowance, AllowanceSpentError
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.json_keywords import (
    ALLOWANCE,
    CHARACTERS_PER_STEP,
    keywords_of,
)

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

PATTERN_UNITS_MAX = 100_000
"""Of a schema; a unit takes 2 to 70 us."""


def checker_of(place: Place) -> Validator:
    from jsonschema import Draft7Validator
    from jsonschema.validators import validator_for

    chosen = validator_for(place.schema, default=Draft7Validator)
    return _metered(chosen)(place.schema, _resolver=place.resolver)


@cache
def _metered(known: type[Validator]) -> type[Validator]:
    """The validator of a draft, with keywords that take steps."""
    from jsonschema.validators import extend, validator_for

    made: type[Validator] = extend(known, keywords_of(dict(known.VALIDATORS)))

    def evolve(self: Validator, **changes: Json) -> Validator:
        """The library's leads to its own validators, without steps, where `$schema` stands."""
        schema = changes.get("schema", self.schema)
        kind = type(self)
        if isinstance(schema, dict) and "$schema" in schema:
            chosen = validator_for(schema, default=kind)
            kind = kind if chosen is kind else _metered(chosen)
        resolver = changes.get("_resolver", self._resolver)
        if resolver is not self._resolver:
            ALLOWANCE.get().take(len(resolver._base_uri) // CHARACTERS_PER_STEP)
        return kind(schema, _resolver=resolver)

    made.evolve = evolve
    return made


def check_patterns(schema: Json) -> None:
    """InvalidSchema where the patterns of a schema take too long to be made ready."""
    found: dict[str, None] = {}
    ahead = [schema]
    while ahead:
        item = ahead.pop()
        if isinstance(item, dict):
            pattern, patterns = item.get("pattern"), item.get("patternProperties")
            found |= dict.fromkeys(patterns) if isinstance(patterns, dict) else {}
            found |= {pattern: None} if isinstance(pattern, str) else {}
            ahead += item.values()
        elif isinstance(item, list):
            ahead += item
    total = sum(min(units(pattern), UNITS_MAX) for pattern in found)
    if total > PATTERN_UNITS_MAX:
        raise InvalidSchema(
            f"Its patterns have {total} characters and repetitions in all, of at most "
            f"{PATTERN_UNITS_MAX}; those with classes of Unicode count {CLASS_UNITS} times"
        )


def document_of(data: bytes) -> Json:
    """Raises UndecodableError."""
    try:
        document: Json = _DECODER.decode(data.decode(json.detect_encoding(data), "surrogatepass"))
    except (ValueError, RecursionError):
        raise UndecodableError("it is no JSON") from None
    return document


def check_document(checker: Validator, document: Json, allowance: Allowance) -> None:
    """Raises UndecodableError with the first fault, AllowanceSpentError."""
    token = ALLOWANCE.set(allowance)
    try:
        error = next(checker.iter_errors(document), None)
    except AllowanceSpentError:
        raise
    except RecursionError:
        raise UndecodableError("it nests too deep") from None
    except Exception as failed:
        # The library raises what it meets: of numbers, of texts with half of a surrogate pair.
        why = f"it cannot be checked: {type(failed).__name__}: {failed}"
        raise UndecodableError(why[:300]) from None
    finally:
        ALLOWANCE.reset(token)
    if error is not None:
        raise UndecodableError(f"{error.json_path}: {error.message}"[:300])


_DECODER = json.JSONDecoder(parse_constant=refused)
