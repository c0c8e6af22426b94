"""Numbers in the JSON of Protobuf messages: which ones their type would alter.

Protobuf takes numbers as text too, and its Python library takes whatever Python's `int` and `float`
do: `1_000`, digits of other scripts, an infinity for 1e39, nothing for 1e-50.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

from google.protobuf.descriptor import FieldDescriptor

from kwire.json_numbers import finite

FLOATS = frozenset({FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE})
INTEGERS = frozenset(
    {
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_SINT32,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_FIXED32,
        FieldDescriptor.TYPE_SFIXED32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_FIXED64,
        FieldDescriptor.TYPE_SFIXED64,
    }
)
NAMED = frozenset({"NaN", "Infinity", "-Infinity"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"-?[0-9]+")
_NO_ZERO = re.compile(r"[-0.]*[1-9]")
ROUNDED = "a number that its type rounds"


class Written(float):
    """A number with a point or an exponent, and how it is written."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Written:
        value = super().__new__(cls, finite(text))
        value.text = text
        return value


def is_integer_text(text: str) -> bool:
    """Whether it is an integer as JSON writes it."""
    return _NUMBER.fullmatch(text) is not None and _DIGITS.fullmatch(text) is not None


def why_refused(of_type: int, value: str | float) -> str | None:
    """What is wrong with a number, or with its text, for a field of this type (one of FLOATS or
    INTEGERS); None where the field holds what is written."""
    if isinstance(value, bool):
        return "no number"
    if isinstance(value, str):
        if of_type in FLOATS and value in NAMED:
            return None
        if _NUMBER.fullmatch(value) is None:
            return "no number as JSON writes it"
    text = _text(value)
    if of_type in FLOATS:
        return _why_no_float(text, is_single=of_type == FieldDescriptor.TYPE_FLOAT)
    if _DIGITS.fullmatch(text) is not None:
        return None  # what is out of its range is for the library to refuse
    read = float(text)
    if math.isinf(read):
        return "too large for its type"
    if _is_lost(text, read):
        return "no whole number"
    exact = Decimal(text)
    if exact == exact.to_integral_value() and exact != Decimal(read):
        return "not exact: write it in digits alone"
    return None


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return value.text if isinstance(value, Written) else str(value)


def _why_no_float(text: str, *, is_single: bool) -> str | None:
    """A whole number is kept, or is the one that is shown for what is kept."""
    held = float(text)
    if is_single and not math.isinf(held):
        try:
            (held,) = struct.unpack("<f", struct.pack("<f", held))
        except OverflowError:
            held = math.inf
    if math.isinf(held):
        return "too large for its type"
    if _is_lost(text, held):
        return "a number that its type takes for zero"
    exact = Decimal(text)
    if exact != exact.to_integral_value() or exact in (Decimal(held), Decimal(repr(held))):
        return None
    return ROUNDED


def _is_lost(text: str, held: float) -> bool:
    return held == 0 and _NO_ZERO.match(text) is not None
