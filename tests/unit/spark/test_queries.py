"""Which topics a query names, and at which versions."""

from __future__ import annotations

import argparse
from typing import Any
from unittest.mock import MagicMock

import pytest

from kwire.spark import query
from kwire.spark.job import Progress
from kwire.spark.query import check_apart, named_in
from kwire.spark.usage import UsageError

TOPICS = ("2024", "2024_clicks", "a", "a-b", "a.b", "click", "clicks", "key", "größe")


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
        ("select * from 2024_clicks limit 2024", ["2024_clicks"]),
        ("select * from `2024`", ["2024"]),
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


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("select * from a, `latest:a`", "a and latest:a"),
        ("select * from a, b", "a and b"),
        ("select * from a", None),
        ("select * from `latest:a`", None),
    ],
)
def test_a_version_is_not_taken_of_a_topic_and_its_newest_records(
    text: str, tables: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table counts its own: the number of one was a version of any time of the other."""
    archive: Any = MagicMock(topics=["a", "b"], latest=["a"], alone=None)
    archive.select.side_effect = lambda names: [MagicMock(topic=n, names=[n]) for n in names]
    monkeypatch.setattr(query, "Archive", lambda *_: archive)

    def register(moment: tuple[str, int]) -> list[str]:
        options = argparse.Namespace(sql=text, bootstrap=None, lake="/lake", moment=moment)
        return query.register(MagicMock(), options, Progress("query", quiet=True))

    assert register(("time", 1_000))
    if tables is None:
        assert register(("version", 3))
    else:
        with pytest.raises(UsageError, match=f"--as-of 3: .* of {tables}; give a time"):
            register(("version", 3))
