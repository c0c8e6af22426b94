"""Writing generated Python: lines, indentation, the constants they use, and layout arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as PackStruct
from typing import Any

from kwire.protocol import schema

__all__ = ["FORMATS", "Writer", "is_flexible", "minimum_size_bytes"]

FORMATS = {
    "bool": "?",
    "float64": "d",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "int8": "b",
    "uint16": "H",
    "uint32": "I",
    "uuid": "16s",
}
"""Struct characters of the types of fixed size."""


class Writer:
    """Collects the lines of one function and the constants that it closes over."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._depth = 1
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """The lines written inside stand one level deeper, under `head`."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        """A variable name that no other line uses."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, name: str, value: Any) -> str:
        """`name`, bound to `value` where the function runs."""
        self.constants[name] = value
        return name

    def function(self, name: str, arguments: str, label: str) -> Any:
        """Compile the lines as a function's body and return the function."""
        source = f"def {name}({arguments}):\n" + "\n".join(self.lines) + "\n"
        code = compile(source, f"<{label}>", "exec", dont_inherit=True, optimize=2)
        namespace = dict(self.constants)
        exec(code, namespace)
        return namespace[name]


def is_flexible(message: schema.Message, version: int) -> bool:
    """Whether this version has compact lengths and tag sections."""
    return schema.within(version, message.flexible)


def minimum_size_bytes(
    struct: schema.Struct | None, type_name: str, version: int, flexible: bool
) -> int:
    """The least number of bytes that one value of a type takes in a version; never 0."""
    if struct is None:
        if type_name in FORMATS:
            return PackStruct(">" + FORMATS[type_name]).size
        return 1 if flexible else 2 if type_name == "string" else 4
    size = 1 if flexible else 0
    for field in struct.fields:
        if not schema.within(version, field.versions):
            continue
        if flexible and schema.within(version, field.tagged):
            continue
        if field.is_array:
            size += 1 if flexible else 4
        elif schema.within(version, field.nullable) and field.struct is not None:
            size += 1
        else:
            compact = flexible and not field.never_compact
            size += minimum_size_bytes(field.struct, field.type, version, compact)
    return max(size, 1)
