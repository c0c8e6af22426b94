"""What is wrong about a fault that somebody asks for."""

from __future__ import annotations

SHOWN_MAX = 80
ANOTHER = "is asked of another broker"
"""In the refusal of a fault that only the broker it names can bring about."""


def shown(value: object) -> str:
    """A value that somebody has given, for a line: plain words as they are, all else quoted."""
    return _cut(value) if isinstance(value, str) and _is_plain(value) else quoted(value)


def quoted(value: object) -> str:
    """The same, in quotes where it is text."""
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _is_plain(text: str) -> bool:
    return bool(text) and text.isprintable() and not text.isspace()


class FaultError(ValueError):
    """A fault, selector or option that cannot be right: one line that names it and what is
    accepted."""
