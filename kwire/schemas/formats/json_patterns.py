"""Patterns of JSON Schemas, matched by RE2: in linear time, whatever they are.

To make one ready takes longer the more it repeats: `units` says how long, 2 to 70 us each. What
has too many, or is not one of RE2's, is not known, and neither is what it matches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import re2

CHARACTERS_MAX = 1000
UNITS_MAX = 2000
CLASS_UNITS = 20
"""For each unit of a pattern with classes of Unicode, which have hundreds of ranges."""
KEPT_MAX = 1000
MEMORY_BYTES_MAX = 1 << 20
_REPEATED = re.compile(r"\{(\d+)(?:,(\d*))?\}")


class NotReadyError(Exception):
    """A pattern has to be made ready first, which takes too long where it was asked."""


class Pattern(NamedTuple):
    """`regexp` is None where it is not known what the pattern matches."""

    regexp: re2._Regexp[str] | None
    units: int

    def matches(self, text: str) -> bool | None:
        """Takes as long as the text has characters times `units`, at the worst; None where it is
        not known."""
        return None if self.regexp is None else self.regexp.search(text) is not None


_kept: dict[str, Pattern] = {}


def units(pattern: str) -> int:
    """How long it takes to make a pattern ready, of its characters and what it repeats."""
    repeated = (int(most or least) for least, most in _REPEATED.findall(pattern))
    found = len(pattern) + sum(repeated)
    return found * CLASS_UNITS if "\\p" in pattern or "\\P" in pattern else found


def matches(pattern: str, text: str) -> bool | None:
    """None where it is not known, also without RE2."""
    return ready(pattern).matches(text)


def ready(pattern: str, *, is_made: bool = False) -> Pattern:
    """What a pattern is made to. `is_made`: NotReadyError where it has to be made."""
    try:
        return _kept[pattern]
    except KeyError:
        if is_made:
            raise NotReadyError from None
    made = Pattern(_made(pattern), units(pattern))
    for oldest in list(_kept)[: max(0, len(_kept) - KEPT_MAX + 1)]:
        _kept.pop(oldest, None)  # another thread may have done so
    _kept[pattern] = made
    return made


def _made(pattern: str) -> re2._Regexp[str] | None:
    if len(pattern) > CHARACTERS_MAX or units(pattern) > UNITS_MAX:
        return None
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
