"""The error codes in the responses of an API, counted by functions that are written for it."""

from __future__ import annotations

from functools import cache

from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.error_fields import CODE_FIELDS, has_code, holds_code
from kwire.protocol.structs import Message

CODES = 256  # by error code; -1 is the last
NEVER_AT_TOP = frozenset({ApiKey.METADATA})
AT_TOP_WITHOUT = {
    ApiKey.FIND_COORDINATOR: "coordinators",
    ApiKey.OFFSET_FETCH: "groups",
    ApiKey.ADD_PARTITIONS_TO_TXN: "results_by_topic_v3_and_below",
}
"""The error at the top counts only where this list is empty."""


@cache
def usual_codes(api_key: int) -> int:
    """How many codes nearly every response of an API has: one at the top, where there is one, and
    one inside, where there are any."""
    response_class = m.response_class(api_key)
    return int(_has_code_at_top(response_class)) + bool(_lines_of_structs(response_class))


def error_lines(response_class: type[Message]) -> list[str]:
    """The lines that count the error codes of a `response` in `numbers`, as Apache Kafka 4.4 counts
    them (`errorCounts` of its classes): one at the top, and those of the structs inside.

    At SEEN is counted by how many they are more than `usual_codes`, from REFUSED on those that are
    not NONE, by code.
    """
    lines: list[str] = []
    if _has_code_at_top(response_class):
        _, *lines = _code_lines("response.error_code", "")
    if inner := _lines_of_structs(response_class):
        lines += ["codes = -1", *inner, "if codes:", "    numbers[SEEN] += codes"]
    return lines or ["pass"]


def _has_code_at_top(response_class: type[Message]) -> bool:
    key = response_class.API_KEY
    is_counted = key not in NEVER_AT_TOP and key not in AT_TOP_WITHOUT
    return is_counted and has_code(response_class.SCHEMA.root)


def _lines_of_structs(response_class: type[Message]) -> list[str]:
    """The lines that count in `codes` too. There is the one at the top where it counts only with
    those inside."""
    key = response_class.API_KEY
    lines: list[str] = []
    if key in AT_TOP_WITHOUT:
        lines.append(f"if not response.{AT_TOP_WITHOUT[ApiKey(key)]}:")
        lines += _code_lines("response.error_code", "    ")
    _write_inner(response_class.SCHEMA.root, "response", "", lines)
    return lines


def _code_lines(code: str, indent: str) -> list[str]:
    """The lines that count one code."""
    return [
        f"{indent}codes += 1",
        f"{indent}if {code}:",
        f"{indent}    numbers[REFUSED + {code}] += 1",
    ]


def _write_inner(struct: schema.Struct, name: str, indent: str, lines: list[str]) -> None:
    """The lines that count the codes in the structs of a struct."""
    for field in struct.fields:
        inner = field.struct
        if inner is None or not holds_code(inner):
            continue
        each = f"{name}_"
        if field.is_array:
            or_none = " or ()" if field.nullable != schema.NONE else ""
            lines.append(f"{indent}for {each} in {name}.{field.name}{or_none}:")
        else:
            lines.append(f"{indent}{each} = {name}.{field.name}")
            lines.append(f"{indent}if {each} is not None:")
        for code in inner.fields:
            if code.name in CODE_FIELDS:
                lines += _code_lines(f"{each}.{code.name}", indent + "    ")
        _write_inner(inner, each, indent + "    ", lines)
