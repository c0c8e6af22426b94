"""Regular expressions that clients send: RE2/J's dialect, as Kafka has it, in linear time.

`re2j.translate` reads the dialect and says what is wrong with a pattern. google-re2 matches where
it is installed; without it Python's `re` does, which can be slow on hostile patterns: their text is
bounded by the length of ids. Texts of ASCII, as names of topics are, have a small program of their
own; the one for all others is made when the first comes. Where it cannot be made (too large for
the engine, or classes that `re` lacks; its own go by Python's tables), no text outside of ASCII
matches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.re2j import PatternError, translate

PATTERN_LENGTH_MAX = 4096


class PatternRefused(KafkaError):
    """INVALID_REGULAR_EXPRESSION; `reason` is what is wrong with the pattern, in RE2/J's words."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"{pattern!r} is not a regular expression: {reason}",
        )
        self.reason = reason


class Match(Protocol):
    """That a text matches."""


class Program(Protocol):
    """A compiled pattern of `re2`, or of `re`."""

    def fullmatch(self, text: str, /) -> Match | None: ...


class CompiledPattern:
    """Tells of a text whether all of it matches. `size` counts the pattern's positions: what a
    character of a text costs at most, in steps of some 15 ns."""

    def __init__(self, pattern: str) -> None:
        try:
            translated = translate(pattern)
            self._for_ascii = _program(translated.ascii)
        except PatternError as error:
            raise PatternRefused(pattern, str(error)) from None
        self.size = translated.size
        self._full = translated.full
        self._is_full_made = False
        self._for_all: Program | None = None

    def __call__(self, text: str) -> bool:
        if text.isascii():
            return self._for_ascii.fullmatch(text) is not None
        if not self._is_full_made:
            self._for_all = _program_or_none(self._full)
            self._is_full_made = True
        try:
            return self._for_all is not None and self._for_all.fullmatch(text) is not None
        except UnicodeEncodeError:  # half a pair of surrogates
            return False


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> CompiledPattern:
    """The pattern, ready to match; PatternRefused where RE2/J refuses it or it is too large."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        why = f"it has {len(pattern)} characters; at most {PATTERN_LENGTH_MAX} are accepted"
        raise PatternRefused(f"{pattern[:40]}...", why)
    return CompiledPattern(pattern)


def _program_or_none(pattern: str) -> Program | None:
    try:
        return _program(pattern)
    except PatternError:
        return None


def _program(pattern: str) -> Program:
    """A compiled pattern of those that `translate` makes; PatternError where the engine cannot."""
    try:
        import re2
    except ImportError:
        return _program_of_re(pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Program = re2.compile(pattern, options)
        return compiled
    except UnicodeEncodeError:
        raise PatternError("invalid UTF-8") from None
    except re2.error as error:
        reason = error.args[0] if error.args else str(error)
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(text.partition(": ")[0]) from None


def _program_of_re(pattern: str) -> Program:
    import re

    if "[:" in pattern:
        raise PatternError("classes of Unicode need google-re2")
    # Until Python 3.14 the end of a text is \Z.
    spelt = re.sub(r"\\x\{([0-9a-f]+)\}", lambda x: f"\\U{int(x[1], 16):08x}", pattern)
    try:
        return re.compile(spelt.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError):
        raise PatternError("it needs google-re2") from None
