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
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start = error.start
    found = error.object[start : start + 3]
    if len(found) > 1 and found[0] == 0xED and 0xA0 <= found[1] <= 0xBF:
        whole = len(found) == 3 and 0x80 <= found[2] <= 0xBF
        return "\ufffd", start + (3 if whole else 2)
    return "\ufffd", error.end


codecs.register_error(ERRORS, _replace_as_java)


def decode_text(buffer: bytes | bytearray | memoryview) -> str:
    """The string that Kafka reads from these bytes."""
    return str(buffer, "utf-8", ERRORS)
