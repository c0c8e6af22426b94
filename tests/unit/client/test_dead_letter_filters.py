"""The conditions of `kwire share --where`."""

from __future__ import annotations

import pytest

from kwire.client.dead_letters.filters import Subject, parse_filter
from kwire.client.dead_letters.letters import DeadLetter, Origin
from kwire.client.errors import ClientError

NOW_MS = 100_000_000
LETTER = DeadLetter(
    7, NOW_MS - 7_200_000, Origin("mail", 2, 40), "g", 3, "Offset rejected by client.", b"k", None
)
HEADERS = [("tenant", b"acme"), (b"\xff", b"1"), ("none", None), ("tenant", b"other")]


def chosen(text: str) -> bool:
    return parse_filter(text).matches(Subject(LETTER, HEADERS, NOW_MS))


@pytest.mark.parametrize(
    "text",
    [
        "topic = mail",
        "TOPIC=mail",
        "topic != other",
        "topic ~ ai",
        "topic !~ x",
        "partition = 2 and offset >= 40 and offset < 41",
        "deliveries > 2",
        "reason ~ REJECTED",
        "reason = 'Offset rejected by client.'",
        'reason = "Offset rejected by client."',
        "age > 1h and age <= 120m and age < 3d and age >= 7200s",
        "age = 7200000ms",
        "header.tenant = acme",
        "header.tenant = other",
        "header.'tenant' ~ cm",
        "header.none != x",
        "header.missing !~ x",
        "not topic = other",
        "not (topic = other or partition = 3)",
        "topic = other or topic = mail",
        "topic = other and topic = mail or partition = 2",
        "partition = 2 or topic = mail and topic = other",
        "not not topic = mail",
        "topic != 'it''s'",
    ],
)
def test_what_holds(text: str) -> None:
    assert chosen(text)
    assert not chosen(f"not ({text})")


@pytest.mark.parametrize(
    "text",
    [
        "header.none = x",
        "header.missing ~ x",
        "header.none = ''",
        "header.tenant != acme",
        "topic = mail and partition = 1",
        "offset > 999999999999999999",
        "not topic = mail or partition = 1",
    ],
)
def test_what_does_not_hold(text: str) -> None:
    assert not chosen(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the end of the filter: expected a field: topic"),
        ("   ", "the end of the filter: expected a field"),
        ("topc = mail", "topc: the fields are topic, reason, partition"),
        ("topic", "the end of the filter: expected an operator behind topic"),
        ("topic =", "the end of the filter: expected a value behind ="),
        ("topic = = mail", "=: expected a value"),
        ("topic mail", "mail: expected an operator behind topic"),
        ("topic < mail", "topic <: it is compared by = != ~ !~"),
        ("partition ~ 1", "partition ~: it is compared by = != < <= > >="),
        ("partition = x", "partition x: expected a number"),
        ("offset = -1", "offset -1: expected a number"),
        ("offset = 1234567890123456789", "at most 18 digits"),
        ("offset = ١", "expected a number"),
        ("age > 5", "age 5: expected a time such as 30s"),
        ("age > 5w", "expected a time"),
        ("topic = mail and", "the end of the filter: expected a field"),
        ("topic = mail or or", "or: expected a field"),
        ("topic = mail partition = 1", "partition: expected and, or, or the end"),
        ("(topic = mail", "the end of the filter: expected )"),
        ("topic = mail)", "): expected and, or, or the end"),
        ("topic = 'mail", "'mail: expected a field"),
        ("'topic' = mail", "topic: expected a field"),
        ("header. = x", "header.: the fields are"),
        ("(" * 30 + "topic = a" + ")" * 30, "at most 20 brackets"),
        ("not " * 30 + "topic = a", "at most 20 brackets"),
        ("topic = " + "a" * 2000, "at most 2000 characters"),
    ],
)
def test_what_says_nothing_is_named_in_one_line(text: str, told: str) -> None:
    with pytest.raises(ClientError) as refused:
        parse_filter(text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_headers_are_needed_only_where_they_are_asked_about() -> None:
    assert parse_filter("topic = a or header.x = 1").needs_headers
    assert not parse_filter("topic = a").needs_headers
