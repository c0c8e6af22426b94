"""What is a dead letter, and what only looks like one."""

from __future__ import annotations

import pytest

from kwire.client.dead_letters.letters import DeadLetter, Origin, read_letter
from kwire.protocol.records import Record
from kwire.share.dead_letters import REJECTED, DeadLetters, headers

WRITTEN = DeadLetters("g", "mail", bytes(16), 3, 10, 10, 2, REJECTED)
Headers = list[tuple[str | bytes, bytes | None]]


def record(given: Headers) -> Record:
    return Record(5, 1000, b"k", None, given)


def changed(name: str, value: bytes | None) -> Headers:
    return [(n, value if n == f"__dlq.errors.{name}" else v) for n, v in headers(WRITTEN, 10)]


def test_what_a_broker_writes_is_read() -> None:
    assert read_letter(record(headers(WRITTEN, 10))) == DeadLetter(
        5, 1000, Origin("mail", 3, 10), "g", 2, REJECTED, b"k", None
    )


def test_a_letter_without_a_count_and_a_reason_is_one() -> None:
    letter = read_letter(record(headers(WRITTEN, 10)[:4]))
    assert isinstance(letter, DeadLetter)
    assert (letter.delivery_count, letter.reason) == (None, "")
    assert isinstance(read_letter(record(changed("delivery.count", b"x"))), DeadLetter)
    assert isinstance(read_letter(record(changed("message", b"\xff"))), DeadLetter)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "__dlq.errors.topic is missing"),
        (headers(WRITTEN, 10)[1:], "__dlq.errors.topic is missing"),
        (headers(WRITTEN, 10)[:3], "__dlq.errors.group is missing"),
        (headers(WRITTEN, 10) * 2, "__dlq.errors.topic is there twice"),
        (changed("topic", None), "__dlq.errors.topic names no topic"),
        (changed("topic", b""), "names no topic"),
        (changed("topic", b"a/b"), "names no topic"),
        (changed("topic", b"a\n"), "names no topic"),
        (changed("topic", b"\xff"), "names no topic"),
        (changed("topic", b"a" * 250), "names no topic"),
        (changed("topic", b".."), "which no share group reads"),
        (changed("topic", b"__consumer_offsets"), "which no share group reads"),
        (changed("partition", b"-1"), "__dlq.errors.partition is no partition"),
        (changed("partition", b"2147483648"), "is no partition"),
        (changed("partition", b"9" * 1000), "is no partition"),
        (changed("offset", b" 1"), "__dlq.errors.offset is no offset"),
        (changed("offset", b"9223372036854775808"), "is no offset"),
        (changed("offset", None), "is no offset"),
        (changed("group", b""), "__dlq.errors.group names no group"),
        (changed("group", b"\xff"), "__dlq.errors.group names no group"),
    ],
)
def test_what_is_forged_is_none(given: Headers, told: str) -> None:
    found = read_letter(record(given))
    assert isinstance(found, str)
    assert told in found


def test_names_of_headers_that_are_no_text_change_nothing() -> None:
    assert isinstance(read_letter(record([(b"\xff\xfe", b"x"), *headers(WRITTEN, 10)])), DeadLetter)
