"""Patterns of JSON Schemas, matched by RE2: in linear time, whatever they are.

To make one ready takes longer the more it repeats: `units` says how long, 2 to 70 us each. What
has too many, or is not one of RE2's, is not known, and neither is what it matches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2

CHARACTERS_MAX = 1000
UNITS_MAX = 2000
CLASS_UNITS = 20
"""For each unit of a pattern with classes of Unicode, which have hundreds of ranges."""
KEPT_MAX = 1000
MEMORY_BYTES_MAX = 1 << 20
_REPEATED = re.compile(r"\{(\d+)(?:,(\d*))?\}")

_kept: dict[str, re2._Regexp[str] | None] = {}


class NotReadyError(Exception):
    """A pattern has to be made ready first, which takes too long where it was asked."""


def units(pattern: str) -> int:
    """How long it takes to make a pattern ready, of its characters and what it repeats."""
    repeated = (int(most or least) for least, most in _REPEATED.findall(pattern))
    found = len(pattern) + sum(repeated)
    return found * CLASS_UNITS if "\\p" in pattern or "\\P" in pattern else found


def matches(pattern: str, text: str, *, is_ready: bool = False) -> bool | None:
    """None where it is not known, also without RE2. `is_ready`: NotReadyError where it is not."""
    try:
        known = _kept[pattern]
    except KeyError:
        if is_ready:
            raise NotReadyError from None
        known = _made(pattern)
        for oldest in list(_kept)[: max(0, len(_kept) - KEPT_MAX + 1)]:
            _kept.pop(oldest, None)  # another thread may have done so
        _kept[pattern] = known
    return None if known is None else known.search(text) is not None


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
