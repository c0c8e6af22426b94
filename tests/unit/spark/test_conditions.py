"""Conditions on records: what is refused before Spark starts, and what must not be."""

from __future__ import annotations

import pytest

from kwire.spark.conditions import check_condition
from kwire.spark.lake import LAKE_COLUMNS
from kwire.spark.usage import UsageError


@pytest.mark.parametrize(
    "text",
    [
        "offset > 5",
        "OFFSET between 5 and 7 AND topic = 'it''s'",
        "cast(key as string) <> 'key-3'",
        "key = X'00ff' or value is null",
        "not (partition in (1, 2, 3)) and -offset < - 3",
        "timestamp >= timestamp '2026-01-01 00:00:00' and timestamp < date'2026-02-01'",
        "timestamp > current_timestamp() - interval 1 day",
        "exists(headers, h -> h.key = 'a' and h.value is not null)",
        "aggregate(headers, 0, (total, one) -> total + length(one.value)) > 3",
        "headers[0].key rlike '^a.*' and `offset` % 2 = 0",
        "case when partition = 1 then true else offset > 1e3 end",
        "value::string like '%\\'%' escape '/'",
        "get_json_object(valueJson, '$.a') = \"x\" and date = '2026-01-01'",
        "extract(hour from timestamp) = 3",
        "offset <=> 7 || '' and ~partition & 1 = 1",
        "cast(value as struct<a: int>) is null",
    ],
)
def test_conditions_that_pass(text: str) -> None:
    check_condition(text, "--where", LAKE_COLUMNS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("topic = 'a", "the ' at 9 is not closed"),
        ('topic = "a', 'the " at 9 is not closed'),
        ("`topic = 1", "the ` at 1 is not closed"),
        ("(offset > 5", "the ( at 1 is not closed"),
        ("offset > 5)", "the ) at 11 closes nothing"),
        ("headers[0) = 1", "the ) at 10 closes nothing"),
        ("ofset > 5", "no column ofset; there are topic, partition, offset"),
        ("`a b` > 5", "no column a b"),
        ("offset > and partition = 1", "nothing before and at 10"),
        ("offset >", "nothing behind > at 8"),
        ("offset > 5 and", "nothing behind and at 12"),
        ("and offset > 5", "nothing before and at 1"),
        ("= 5", "nothing before = at 1"),
        ("offset 5", "no operator between offset and 5 at 8"),
        ("offset partition", "no operator between offset and partition at 8"),
        ("offset > 5; drop table x", "';' at 11 is not understood"),
        ("offset > 5 -- all", "'--' at 12 is not understood"),
        ("offset in (select 1)", "has no SELECT"),
        ("exists(headers, h -> g.key = 'a')", "no column g"),
    ],
)
def test_conditions_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_condition(text, "--where", LAKE_COLUMNS)
    assert words in str(caught.value)
    assert str(caught.value).startswith("--where: ")
    assert "\n" not in str(caught.value)
