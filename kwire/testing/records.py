"""Records as a test looks at them, and how they differ from those it expected."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

SHOWN_BYTES = 60


class Record(NamedTuple):
    """One record of a topic. `timestamp_ms` is since 1970; a header's value may be None."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str | bytes, bytes | None], ...] = ()


Text: TypeAlias = bytes | str | None
Expected: TypeAlias = Text | tuple[Text, Text] | Mapping[str, object] | Record
"""A value; key and value; or fields of `Record` by name, of which the others do not count."""

_FIELDS = frozenset(Record._fields)


def assert_records(
    actual: Sequence[Record], expected: Sequence[Expected], *, in_order: bool = True
) -> None:
    """AssertionError with a line for each record that is missing or too many.

    `in_order=False` compares them as a bag: records of several partitions have no order.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    wanted = [_fields(one) for one in expected]
    lines = _in_order(actual, wanted) if in_order else _as_bag(actual, wanted)
    if any(not line.startswith("  ") for line in lines):
        said = f"{len(actual)} records, expected {len(expected)}"
        raise AssertionError("\n".join([f"{said} (- is missing, + is too many):", *lines]))


def _in_order(actual: Sequence[Record], expected: Sequence[dict[str, object]]) -> list[str]:
    # What matches is the same token, so that the shortest difference is found.
    names: list[tuple[str, ...]] = [tuple(sorted(one)) for one in expected]
    fields = sorted({name for row in names for name in row} or {"value"})
    if len(set(names)) > 1:
        return _one_by_one(actual, expected)
    left = [_token({name: one[name] for name in fields}) for one in expected]
    right = [_token({name: getattr(record, name) for name in fields}) for record in actual]
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            lines += [f"  {shown(record)}" for record in actual[c:d]]
            continue
        lines += [f"- {_shown_fields(one)}" for one in expected[a:b]]
        lines += [f"+ {shown(record)}" for record in actual[c:d]]
    return lines


def _one_by_one(actual: Sequence[Record], expected: Sequence[dict[str, object]]) -> list[str]:
    lines: list[str] = []
    for index in range(max(len(actual), len(expected))):
        record = actual[index] if index < len(actual) else None
        one = expected[index] if index < len(expected) else None
        if record is not None and one is not None and _matches(record, one):
            lines.append(f"  {shown(record)}")
            continue
        lines += [f"- {_shown_fields(one)}"] if one is not None else []
        lines += [f"+ {shown(record)}"] if record is not None else []
    return lines


def _as_bag(actual: Sequence[Record], expected: Sequence[dict[str, object]]) -> list[str]:
    left = list(actual)
    missing: list[dict[str, object]] = []
    # What says most is looked for first: a value alone takes any record that has it.
    for one in sorted(expected, key=len, reverse=True):
        found = next((record for record in left if _matches(record, one)), None)
        if found is None:
            missing.append(one)
        else:
            left.remove(found)
    lines = [f"- {_shown_fields(one)}" for one in missing]
    return lines + [f"+ {shown(record)}" for record in left]


def _fields(expected: Expected) -> dict[str, object]:
    if isinstance(expected, Record):
        return dict(expected._asdict())
    if expected is None or isinstance(expected, bytes | str):
        return {"value": _bytes(expected)}
    if isinstance(expected, tuple) and len(expected) == 2:
        return {"key": _bytes(expected[0]), "value": _bytes(expected[1])}
    if not isinstance(expected, Mapping) or not expected:
        raise TypeError(
            f"{expected!r} is no expected record; accepted are a value, (key, value), a Record, "
            f"and a dictionary of some of {', '.join(Record._fields)}"
        )
    unknown = sorted(set(expected) - _FIELDS)
    if unknown:
        raise TypeError(f"a record has no {unknown[0]!r}; accepted are {', '.join(Record._fields)}")
    found = dict(expected)
    for name in ("key", "value"):
        if name in found:
            found[name] = _bytes(found[name])
    if "headers" in found:
        found["headers"] = _headers(found["headers"])
    return found


def _bytes(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


def _headers(value: object) -> object:
    if isinstance(value, Mapping):
        value = tuple(value.items())
    if isinstance(value, Sequence):
        return tuple((name, _bytes(content)) for name, content in value)
    return value


def _matches(record: Record, expected: Mapping[str, object]) -> bool:
    return all(getattr(record, name) == value for name, value in expected.items())


def _token(fields: Mapping[str, object]) -> str:
    return repr(sorted(fields.items()))


def shown(record: Record) -> str:
    """A record in one line."""
    place = f"{record.topic}-{record.partition}@{record.offset}"
    return f"{place} {_shown_fields({'key': record.key, 'value': record.value})}" + (
        f" headers={dict(record.headers)!r}" if record.headers else ""
    )


def _shown_fields(fields: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_shown(value)}" for name, value in fields.items())


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            pass
        text = repr(value)
        return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}... ({len(text)})"
    return repr(value)
