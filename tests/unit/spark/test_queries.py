"""Which topics a query names."""

from __future__ import annotations

import pytest

from kwire.spark.query import check_apart, named_in
from kwire.spark.usage import UsageError

TOPICS = ("a", "a-b", "a.b", "click", "clicks", "key", "größe")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("select count(*) from clicks", ["clicks"]),
        ("select clicks.key from clicks", ["clicks"]),
        ("select * from `clicks`,`a-b`", ["a-b", "clicks"]),
        ("select * from `archive:a.b` x", ["a.b"]),
        ("select * from `latest:a`, `topic:a`", []),
        ('select * from "a-b"', ["a-b"]),
        ("select a - b from (select 1 as x)", ["a"]),
        ("select clickstream, aclick, click_2 from x", []),
        ("select 1", []),
        ("SELECT\n*\nFROM\nclick\n", ["click"]),
        ("select * from größe", ["größe"]),
        ("select * from a.b", ["a"]),
    ],
)
def test_topics_that_a_query_names(text: str, names: list[str]) -> None:
    """Any topic counted whose name is somewhere in the text, as in another name: a version that
    was asked for was refused as one of several tables, and their logs were read."""
    assert named_in(text, "archive", TOPICS) == names


def test_names_that_differ_by_case_alone_are_refused() -> None:
    """One view took the place of the other: rows of another topic, and not a word."""
    check_apart(["topic:a", "a", "b"])
    with pytest.raises(UsageError, match="names Clicks and clicks, which are one name to Spark"):
        check_apart(["Clicks", "b", "clicks"])
