"""What decoding one message may make us allocate, beside the size of its frame.

Counts and lengths are checked against the bytes that remain before anything is allocated, so
that a short frame cannot claim a long array. What is left is amplification: an array element of
two bytes becomes a Python object of a hundred. These limits bound the number of such objects.
Kafka has no such limit; they are far above what its clients and brokers send.
"""

from __future__ import annotations

__all__ = ["REQUEST_ELEMENTS_MAX", "RESPONSE_ELEMENTS_MAX", "STRING_SIZE_BYTES_MAX", "elements_max"]

REQUEST_ELEMENTS_MAX = 1_000_000
"""Array elements and tagged fields of a request, all its arrays together."""

RESPONSE_ELEMENTS_MAX = 16_000_000
"""The same for what comes from brokers and from our own files."""

STRING_SIZE_BYTES_MAX = 32767
"""A string in Kafka's protocol is never longer, in compact encoding neither."""


def elements_max(kind: str) -> int:
    """The limit for messages of a kind (schema notation)."""
    return REQUEST_ELEMENTS_MAX if kind in ("request", "header") else RESPONSE_ELEMENTS_MAX
