"""JSON as schemas need it: read within bounds, written as Jackson writes it.

Kafka's registries are Java programs; a schema is found again by the text that Jackson makes of it:
no whitespace, keys in their order, characters beyond ASCII as they are, floats as Java prints them.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TypeAlias

from kwire.json_numbers import finite, refused
from kwire.schemas.formats.parsed import DEPTH_MAX, TEXT_BYTES_MAX, InvalidSchema

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def check_size(text: str) -> None:
    """Raise InvalidSchema for a text that is too long or cannot be written as UTF-8."""
    try:
        size = len(text) if len(text) > TEXT_BYTES_MAX else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidSchema("The schema has half of a surrogate pair") from None
    if size > TEXT_BYTES_MAX:
        raise InvalidSchema(f"The schema has more than {TEXT_BYTES_MAX} bytes")


def load(text: str) -> Json:
    """The value of a JSON text; InvalidSchema for what is none, too long or nested too deep."""
    check_size(text)
    try:
        value: Json = json.loads(text, parse_constant=refused, parse_float=finite)
    except RecursionError:
        raise InvalidSchema(f"The schema nests deeper than {DEPTH_MAX} levels") from None
    except ValueError as error:
        raise InvalidSchema(f"The schema is no JSON: {error}") from None
    check_depth(value)
    if "\\u" in text:
        check_size(dump(value))  # the escape of half a pair is ASCII, what it stands for is not
    return value


def check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(DEPTH_MAX + 1):
        below: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise InvalidSchema(f"The schema nests deeper than {DEPTH_MAX} levels")


def _number(value: float) -> str:
    """As `Double.toString` of Java prints it."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    power = int(exponent) + len(text) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def dump(value: Json) -> str:
    """The text of a value without whitespace; keys stay in their order."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{string(key)}:{dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def sort_keys(value: Json) -> Json:
    """The same value with the keys of every object in alphabetical order."""
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sort_keys(item) for item in value]
    return value
