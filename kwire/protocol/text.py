"""Strings as Kafka reads them: bytes that are not UTF-8 become U+FFFD, nothing is refused.

Kafka decodes with Java's replacing decoder, so a broken topic name is an invalid topic and not a
broken connection. Python's `replace` differs from it only in surrogates that were encoded as
three bytes: Java makes one U+FFFD of them, cut short or not, Python one of each byte. Measured
on Apache Kafka 4.4.
"""

from __future__ import annotations

import codecs

__all__ = ["ERRORS", "decode_text"]

ERRORS = "kwire-java"
"""Name of the error handler for `str(buffer, "utf-8", ERRORS)`."""


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Called at the first bad byte of a string, and decodes all the rest of it.

    A call for every bad byte would let one frame of them hold up the broker for half a minute.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = error.object[error.start :]
    if b"\xed" in rest:
        import re

        rest = re.sub(b"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", rest)
    return rest.decode("utf-8", "replace"), len(error.object)


codecs.register_error(ERRORS, _replace_as_java)


def decode_text(buffer: bytes | bytearray | memoryview) -> str:
    """The string that Kafka reads from these bytes."""
    return str(buffer, "utf-8", ERRORS)
