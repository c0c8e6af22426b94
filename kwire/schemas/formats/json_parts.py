"""What a JSON Schema says, in one shape for all drafts: its parts, types, bounds and items."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kwire.schemas.formats.json_schema import Place, target
from kwire.schemas.formats.json_text import Json, dump, sort_keys
from kwire.schemas.formats.parsed import InvalidSchema

TYPES: tuple[str, ...] = ("array", "boolean", "integer", "null", "number", "object", "string")
REFS_MAX = 50  # of one schema after the other
CONJUNCTS_MAX = 1000
# What may stand beside a `$ref` and says nothing of values.
NOTES = (
    *("$ref", "$dynamicRef", "$id", "$schema", "$defs", "$comment", "definitions", "title"),
    *("description", "default", "deprecated", "examples", "readOnly", "writeOnly"),
)


def plain(place: Place) -> bool:
    """Whether it accepts everything."""
    return place.schema is True or place.schema == {}


def resolved(place: Place) -> Place:
    """A schema that is not only a `$ref`."""
    for _ in range(REFS_MAX):
        if "$ref" not in place.keywords and "$dynamicRef" not in place.keywords:
            return place
        if has_siblings(place):
            return place
        place = target(place)
    raise InvalidSchema(f"More than {REFS_MAX} references lead from one to the next")


def has_siblings(place: Place) -> bool:
    """Whether a `$ref` stands beside other keywords that count (as they do since 2019-09)."""
    return any(keyword not in NOTES for keyword in place.keywords)


def group(place: Place, keyword: str) -> list[Place]:
    found = place.keywords.get(keyword)
    if not isinstance(found, list):
        return []
    return [place.below(item, keyword, at) for at, item in enumerate(found)]


def conjuncts(place: Place) -> list[Place]:
    """The schemas that all have to accept a value: itself, what it refers to, its `allOf`."""
    found: dict[str, Place] = {}
    ahead = [place]
    while ahead:
        place = resolved(ahead.pop())
        if place.where in found:
            continue
        found[place.where] = place
        if len(found) > CONJUNCTS_MAX:
            raise InvalidSchema(f"More than {CONJUNCTS_MAX} schemas apply to one value")
        ahead += reversed(group(place, "allOf"))
        if "$ref" in place.keywords or "$dynamicRef" in place.keywords:
            ahead.append(target(place))
    return list(found.values())


def one(place: Place, keyword: str) -> Place:
    """The schema of a keyword; where there is none, the one that accepts everything."""
    return place.below(place.keywords.get(keyword, True), keyword)


def named(place: Place, keyword: str) -> dict[str, Place]:
    found = place.keywords.get(keyword)
    if not isinstance(found, dict):
        return {}
    return {name: place.below(item, keyword, name) for name, item in found.items()}


def strings(value: Json) -> tuple[str, ...]:
    return tuple(x for x in value if isinstance(x, str)) if isinstance(value, list) else ()


def key(value: Json) -> str:
    """Equal for equal JSON values: 1.0 is 1, true is not."""
    if isinstance(value, dict):
        return dump(sort_keys({name: key(item) for name, item in value.items()}))
    if isinstance(value, list):
        return dump([key(item) for item in value])
    return str(int(value)) if isinstance(value, float) and value.is_integer() else dump(value)


def allowed_values(place: Place) -> dict[str, Json] | None:
    """By their key, what `enum` or `const` leave; None where neither is."""
    if "const" in place.keywords:
        return {key(place.keywords["const"]): place.keywords["const"]}
    values = place.keywords.get("enum")
    return {key(value): value for value in values} if isinstance(values, list) else None


def type_of(value: Json) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def types(place: Place) -> tuple[str, ...]:
    """The types it accepts, those of its enum where it names none; number includes integer."""
    said = place.keywords.get("type")
    if isinstance(said, str):
        found: tuple[str, ...] = (said,)
    elif isinstance(said, list):
        found = strings(said)
    else:
        values = allowed_values(place)
        if values is None:
            return TYPES
        return tuple(dict.fromkeys(type_of(value) for value in values.values()))
    return (*found, "integer") if "number" in found and "integer" not in found else found


@dataclass(frozen=True)
class Limit:
    """The bound of a number: `keyword` set it."""

    keyword: str
    value: Fraction
    is_exclusive: bool = False


def number(value: Json) -> Fraction | None:
    return (
        None if isinstance(value, bool) or not isinstance(value, (int, float)) else fraction(value)
    )


def fraction(value: int | float) -> Fraction:
    return Fraction(str(value))


def limit(place: Place, name: str, sign: int) -> Limit | None:
    """The tighter of `maximum` and `exclusiveMaximum` (sign 1), or of the minima (sign -1).

    In draft 4 `exclusiveMaximum` is a boolean beside `maximum`.
    """
    exclusive = f"exclusive{name.capitalize()}"
    found = []
    bound, other = number(place.keywords.get(name)), place.keywords.get(exclusive)
    if bound is not None:
        found.append(Limit(name, bound, other is True))
    strict = number(other)
    if strict is not None:
        found.append(Limit(exclusive, strict, True))
    return min(found, key=lambda x: (sign * x.value, not x.is_exclusive), default=None)


def items(place: Place) -> tuple[list[Place], Place]:
    """(schemas of the first items, schema of the rest): two spellings, before and since 2020-12."""
    first, keyword = group(place, "prefixItems"), "items"
    if isinstance(place.keywords.get("items"), list):
        first, keyword = group(place, "items"), "additionalItems"
    if keyword not in place.keywords and "unevaluatedItems" in place.keywords:
        keyword = "unevaluatedItems"
    return first, one(place, keyword)
