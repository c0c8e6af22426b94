"""The keywords of JSON Schema as records are checked by them: each takes steps.

What jsonschema has is taken as it is, but for what it matches by Python's `re`, which a pattern can
make take for ever, and for what looks at a value or follows references more often than it says:
patterns are RE2's, `uniqueItems` looks at each item once, and what `unevaluatedProperties` and
`unevaluatedItems` leave out is found here. Source: the JSON Schema specifications, 2019-09 and
2020-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

from kwire.schemas.formats import json_patterns
from kwire.schemas.formats.json_parts import key
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.allowance import Allowance, AllowanceSpentError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Keyword = Callable[["Validator", Json, Json, Json], "Iterator[ValidationError] | None"]
ALLOWANCE: ContextVar[Allowance] = ContextVar("allowance")
"""Of the document that is being checked."""
CHARACTERS_PER_STEP = 64  # that a pattern looks at, or that a fault is told in
INFINITE = (math.inf, -math.inf)
BITS_PER_STEP = 1000  # of numbers that are divided
UNITS_PER_STEP = 1000
"""Of a pattern, at each character: RE2 goes through all of them where its memory is too small for
what it would keep of them."""
REFERENCE_STEPS = 10
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
COMPARED = ("const", "enum")


def keywords_of(known: dict[str, Keyword]) -> dict[str, Keyword]:
    """Those of a draft, with steps."""
    own: dict[str, Keyword] = {
        "additionalProperties": _additional_properties,
        "divisibleBy": _multiple_of,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "unevaluatedItems": _unevaluated_items,
        "unevaluatedProperties": _unevaluated_properties,
        "uniqueItems": _unique_items,
    }
    return {name: _metered(name, own.get(name, keyword)) for name, keyword in known.items()}


def _metered(name: str, keyword: Keyword) -> Keyword:
    now, is_reference, is_compared = ALLOWANCE.get, name in REFERENCES, name in COMPARED

    def metered(  # written out: it is called for each keyword of each value
        validator: Validator, keyword_value: Json, value: Json, schema: Json
    ) -> Iterator[ValidationError] | None:
        allowance = now()
        cost, is_long = 1, False
        if isinstance(keyword_value, (dict, list)):
            cost += len(keyword_value)
            is_long = True
        elif isinstance(keyword_value, str):
            is_long = len(keyword_value) > CHARACTERS_PER_STEP
            if is_reference:
                cost = _reference_steps(validator, keyword_value)
        if isinstance(value, (dict, list)):
            cost += len(value)
            is_long = True
            if is_compared:
                _take_comparisons(keyword_value if name == "enum" else [keyword_value], value)
        elif isinstance(value, str) and len(value) > CHARACTERS_PER_STEP:
            cost += len(value) // CHARACTERS_PER_STEP
            is_long = True
        allowance.left -= cost
        if allowance.left < 0:
            raise AllowanceSpentError
        errors = keyword(validator, keyword_value, value, schema)
        return _metered_errors(errors, allowance) if is_long and errors else errors

    return metered


def _metered_errors(
    errors: Iterator[ValidationError], allowance: Allowance
) -> Iterator[ValidationError]:
    """Faults, which show the value and what the schema says."""
    for error in errors:
        allowance.take(len(error.message) // CHARACTERS_PER_STEP)
        yield error


def _reference_steps(validator: Validator, reference: str) -> int:
    """More where the address and its base are long, and for each part of a pointer."""
    characters = len(reference) + len(validator._resolver._base_uri)
    return REFERENCE_STEPS + characters // CHARACTERS_PER_STEP + reference.count("/")


def matches(pattern: str, text: str) -> bool | None:
    """None where it is not known. AllowanceSpentError where the pattern is to be made ready, and
    the check is one on the loop."""
    allowance = ALLOWANCE.get()
    try:
        found = json_patterns.ready(pattern, is_made=allowance.is_of_loop)
    except json_patterns.NotReadyError:
        raise AllowanceSpentError from None
    allowance.take(1 + len(text) * found.units // UNITS_PER_STEP)
    return found.matches(text)


def _take_all_of(value: Json) -> None:
    """Allowance for all that is in a value."""
    allowance, ahead = ALLOWANCE.get(), [value]
    while ahead:
        item = ahead.pop()
        if isinstance(item, (dict, list)):
            allowance.take(len(item))
            ahead += item.values() if isinstance(item, dict) else item


def _take_comparisons(listed: Json, value: dict[str, Json] | list[Json]) -> None:
    """What is of another length is not looked into."""
    _take_all_of(value)
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, (dict, list)) and len(one) == len(value):
            _take_all_of(one)


def _multiple_of(
    validator: Validator, divisor: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    """Of decimals, as they are written: 4.35 is a multiple of 0.01."""
    from jsonschema.exceptions import ValidationError

    if not _is_number(value) or not _is_number(divisor) or divisor == 0:
        return
    if not _is_multiple(value, divisor):
        yield ValidationError(f"{repr(value)[:100]} is not a multiple of {repr(divisor)[:100]}")


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_multiple(value: float, divisor: float) -> bool:
    """Neither has more than some thousands of digits: as many as `json` reads of an integer, and
    what a float may be."""
    if value in INFINITE or divisor in INFINITE:
        return False
    digits, exponent = _decimal(value)
    by_digits, by_exponent = _decimal(divisor)
    least = min(exponent, by_exponent)
    scaled: int = digits * 10 ** (exponent - least)
    by: int = by_digits * 10 ** (by_exponent - least)
    ALLOWANCE.get().take((scaled.bit_length() + by.bit_length()) // BITS_PER_STEP)
    return scaled % by == 0


def _decimal(number: float) -> tuple[int, int]:
    """An integer, and the power of ten that it is to be multiplied with."""
    if isinstance(number, int):
        return number, 0
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int), "is finite"
    found = int("".join(map(str, digits)))
    return -found if sign else found, exponent


def _unique_items(
    validator: Validator, is_asked: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if is_asked and isinstance(value, list):
        _take_all_of(value)
        if len({key(item) for item in value}) < len(value):
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


def _is_described(name: str, schema: dict[str, Json]) -> bool:
    """Whether a name is one of `properties` or `patternProperties`, as far as is known."""
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    if isinstance(properties, dict) and name in properties:
        return True
    if not isinstance(patterns, dict):
        return False
    return any(matches(pattern, name) is not False for pattern in patterns)


def _additional_properties(
    validator: Validator, below: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(value, dict) or not isinstance(schema, dict):
        return
    for name, item in value.items():
        if not _is_described(name, schema):
            if below is False:
                yield ValidationError(f"the property {name[:100]!r} is not allowed")
            else:
                yield from validator.descend(item, below, path=name)


# -- what was looked at by no other keyword that applies to the same value


def _applying(
    validator: Validator, schema: Json | Mapping[str, Json], value: Json
) -> Iterator[tuple[Validator, dict[str, Json]]]:
    """A schema, and those in it that apply to the same value and accept it."""
    if not isinstance(schema, dict):
        return
    ALLOWANCE.get().take(1 + len(schema))
    yield validator, schema
    for below, inner in _in_place(validator, schema, value):
        ALLOWANCE.get().take(1)
        if below.evolve(schema=inner).is_valid(value):
            yield from _applying(below, inner, value)


def _in_place(
    validator: Validator, schema: dict[str, Json], value: Json
) -> Iterator[tuple[Validator, Json | Mapping[str, Json]]]:
    from referencing.jsonschema import lookup_recursive_ref

    for keyword in REFERENCES:
        reference = schema.get(keyword)
        if isinstance(reference, str) and keyword in validator.VALIDATORS:
            ALLOWANCE.get().take(_reference_steps(validator, reference))
            found = (
                lookup_recursive_ref(validator._resolver)
                if keyword == "$recursiveRef"
                else validator._resolver.lookup(reference)
            )
            yield validator.evolve(_resolver=found.resolver), found.contents
    for keyword in ("allOf", "anyOf", "oneOf"):
        several = schema.get(keyword)
        if isinstance(several, list):
            yield from ((validator, one) for one in several)
    if "if" in schema:
        holds = validator.evolve(schema=schema["if"]).is_valid(value)
        yield validator, schema["if"]
        yield validator, schema.get("then" if holds else "else", False)
    dependent = schema.get("dependentSchemas")
    if isinstance(dependent, dict) and isinstance(value, dict):
        yield from ((validator, one) for name, one in dependent.items() if name in value)


def _unevaluated_properties(
    validator: Validator, below: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(value, dict):
        return
    left = dict(value)
    for _, one in _applying(validator, schema, value):
        ALLOWANCE.get().take(len(left))
        is_all = "additionalProperties" in one or (
            "unevaluatedProperties" in one and one is not schema
        )
        left = {} if is_all else {n: item for n, item in left.items() if not _is_described(n, one)}
    for name, item in left.items():
        if below is False:
            yield ValidationError(f"the property {name[:100]!r} is not allowed")
        else:
            yield from validator.descend(item, below, path=name)


def _unevaluated_items(
    validator: Validator, below: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(value, list):
        return
    first, held = 0, dict.fromkeys(range(len(value)))
    for inner, one in _applying(validator, schema, value):
        ALLOWANCE.get().take(1 + len(held))
        prefix, items = one.get("prefixItems"), one.get("items")
        if "prefixItems" not in inner.VALIDATORS:  # 2019-09
            prefix, items = None, items
            if isinstance(items, list):
                prefix, items = items, one.get("additionalItems")
        if items is not None or ("unevaluatedItems" in one and one is not schema):
            return
        first = max(first, len(prefix) if isinstance(prefix, list) else 0)
        if "contains" in one:  # in 2019-09, too: other validators have it so
            matching = inner.evolve(schema=one["contains"])
            held = {at: None for at in held if not matching.is_valid(value[at])}
    for at in held:
        if at >= first:
            if below is False:
                yield ValidationError(f"the item {at} is not allowed")
            else:
                yield from validator.descend(value[at], below, path=at)
