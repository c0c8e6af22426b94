"""Texts to typed values and back, as Kafka's ConfigDef does (measured on Apache Kafka 4.4).

A value's Python type by Kafka's: int, short, long -> int; double -> float; boolean -> bool;
list -> list[str]; string, class, password -> str; null -> None. Texts are trimmed first.
`parse` raises `ConfigError` with Kafka's own wording, because clients see it in INVALID_CONFIG.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from kwire.config.errors import ConfigError

INTEGER_RANGES = {
    "short": (-(1 << 15), (1 << 15) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
}
_JAVA_FLOAT_WORDS = {"NaN": "nan", "Infinity": "inf"}
_FLOAT_CHARACTERS = frozenset("0123456789+-.eE")

Value = int | float | bool | str | list[str] | None
TypedValue: TypeAlias = Any
"""A Value that is looked up by its config's name: whoever reads it knows its type by that."""


def parse(name: str, kind: str, text: str) -> Value:
    """The typed value of `text` for a config of Kafka's type `kind`; ConfigError if it has none."""
    if kind == "password":
        return text.strip()
    trimmed = text.strip()
    if kind in ("string", "class"):
        return trimmed
    if kind in INTEGER_RANGES:
        return _parse_integer(name, kind, text, trimmed)
    if kind == "boolean":
        lowered = trimmed.lower()
        if lowered in ("true", "false"):
            return lowered == "true"
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: "
            "Expected value to be either true or false"
        )
    if kind == "list":
        return split_list(trimmed)
    if kind == "double":
        return _parse_double(name, text, trimmed)
    raise AssertionError(f"unknown config type {kind} of {name}")


def split_list(text: str) -> list[str]:
    """The entries of a comma-separated list, blanks around commas removed."""
    return [entry.strip() for entry in text.split(",")] if text else []


def operands(text: str) -> list[str]:
    """The entries that APPEND and SUBTRACT are given: as Java splits, without empty ones behind."""
    entries = [entry.strip() for entry in text.split(",")]
    while len(entries) > 1 and not entries[-1]:
        entries.pop()
    return entries if entries != [""] or "," not in text else []


def has_repeats(text: str) -> bool:
    """Whether a list has an entry twice."""
    entries = split_list(text)
    return len(set(entries)) != len(entries)


def _parse_integer(name: str, kind: str, text: str, trimmed: str) -> int:
    digits = trimmed[1:] if trimmed[:1] in ("+", "-") else trimmed
    if digits.isdecimal() and len(digits) <= 64:
        value = int(trimmed)
        low, high = INTEGER_RANGES[kind]
        if low <= value <= high:
            return value
    raise ConfigError(
        f"Invalid value {text} for configuration {name}: Not a number of type {kind.upper()}"
    )


def _parse_double(name: str, text: str, trimmed: str) -> float:
    """Java's Double.parseDouble: signed decimals and hexadecimals, with an optional d or f."""
    body = trimmed
    sign = ""
    if body[:1] in ("+", "-"):
        sign, body = body[0], body[1:]
    if body in _JAVA_FLOAT_WORDS:
        return float(sign + _JAVA_FLOAT_WORDS[body])
    try:
        if body[:2] in ("0x", "0X"):
            lowered = body.lower()
            if "p" in lowered:
                exponent_end = lowered[:-1] if lowered[-1] in "df" else lowered
                return float.fromhex(sign + exponent_end)
        else:
            if body[-1:] in ("d", "D", "f", "F"):
                body = body[:-1]
            if _FLOAT_CHARACTERS.issuperset(body):
                return float(sign + body)
    except ValueError:
        pass
    except OverflowError:
        return float(sign + "inf")
    raise ConfigError(f"Invalid value {text} for configuration {name}: Not a number of type DOUBLE")


def to_text(value: Value) -> str | None:
    """The text Kafka shows for a typed value (ConfigDef.convertToString)."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, list):
        return ",".join(value)
    return str(value)


def java_double(value: float) -> str:
    """A double as Java's Double.toString writes it: 0.5, 1.0E-4, 1.7976931348623157E308."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if str(value)[0] == "-" else "0.0"
    magnitude = abs(value)
    if magnitude == 5e-324:
        return "4.9E-324" if value > 0 else "-4.9E-324"
    if 1e-3 <= magnitude < 1e7:
        # repr() is positional in this range.
        return repr(value)
    mantissa, exponent = _scientific(repr(magnitude))
    return f"{'-' if value < 0 else ''}{mantissa}E{exponent}"


def _scientific(shortest: str) -> tuple[str, int]:
    """Shortest repr of a positive double -> (mantissa with one leading digit, exponent)."""
    digits, _, exponent_text = shortest.partition("e")
    exponent = int(exponent_text or "0")
    whole, _, fraction = digits.partition(".")
    if whole.strip("0"):
        exponent += len(whole) - 1
        significant = whole + fraction
    else:
        leading = len(fraction) - len(fraction.lstrip("0"))
        exponent -= leading + 1
        significant = fraction[leading:]
    significant = significant.rstrip("0") or "0"
    return f"{significant[0]}.{significant[1:] or '0'}", exponent
