"""Strings that are not UTF-8, read as Kafka reads them (see also golden/protocol/test_mutated)."""

from __future__ import annotations

import pytest

from kwire.protocol.text import decode_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("é€🚀".encode(), "é€🚀"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xf0\x9f\x98b\xc3", "\ufffdb\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0\xed\x72", "\ufffd\ufffdr"),
        (b"\x80\xed\xbf\xbfA", "\ufffd\ufffdA"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"ok\xff\xed\x9f\xbf", "ok\ufffd\ud7ff"),
    ],
)
def test_bad_bytes_become_replacement_characters(data: bytes, text: str) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert decode_text(buffer) == text
