"""Regular expressions that clients send: RE2 syntax and linear time, as Kafka's RE2/J has them.

google-re2 is used where it is installed; without it Python's `re` compiles the pattern, which
accepts a little more (look-around, back-references) and can be slow on hostile ones: those two
are refused, and the text is bounded by the length of ids.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from kwire.protocol.errors import ErrorCode, KafkaError

PATTERN_LENGTH_MAX = 4096
_BEYOND_RE2 = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "(?P=")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a whole text matches; INVALID_REGULAR_EXPRESSION if it
    cannot be compiled."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"pattern of {len(pattern)} characters; at most {PATTERN_LENGTH_MAX} are accepted",
        )
    try:
        import re2
    except ImportError:
        return _compile_with_re(pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise _invalid(pattern, _reason(error)) from None
    return lambda text: compiled.fullmatch(text) is not None


#: RE2's reasons in the words of RE2/J, which Kafka's clients see.
_REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
}


def _reason(error: Exception) -> str:
    text = error.args[0] if error.args else str(error)
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    reason = str(text).partition(": ")[0]
    return _REASONS.get(reason, reason)


def _compile_with_re(pattern: str) -> Callable[[str], bool]:
    import re

    if any(construct in pattern for construct in _BEYOND_RE2):
        raise _invalid(pattern, "look-around and back-references are not supported")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise _invalid(pattern, error.msg) from None
    return lambda text: compiled.fullmatch(text) is not None


def _invalid(pattern: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r} is not a regular expression: {reason}"
    )
