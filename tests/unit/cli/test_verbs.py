"""Command lines that cannot be: one line, with what was meant."""

from __future__ import annotations

import pytest

from kwire.cli.main import main
from kwire.cli.verbs import nearest

GROUP = ["list", "describe", "delete", "reset-offsets"]


@pytest.mark.parametrize(
    ("verb", "meant"),
    [
        ("reset", "reset-offsets"),
        ("rset", "reset-offsets"),
        ("rm", "delete"),
        ("ls", "list"),
        ("descibe", "describe"),
    ]
    + [("Delete", "delete"), ("kafka-list.sh", "list"), ("frobnicate", None), ("", None)],
)
def test_the_verb_that_was_meant(verb: str, meant: str | None) -> None:
    assert nearest(verb, GROUP) == meant


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["topc", "list"], "did you mean kwire topic?"),
        (["topic", "remove", "x"], "did you mean kwire topic delete?"),
        (["topic", "--list"], "did you mean kwire topic list?"),
        (["group", "--describe", "--group", "g"], "did you mean kwire group describe?"),
        (["group", "reset"], "did you mean kwire group reset-offsets?"),
        (["group", "frobnicate"], "kwire group --help lists them"),
        (["consume", "t", "--cuont", "3"], "did you mean --count"),
        (["consume", "t", "--count", "x"], "kwire consume --help tells more"),
        (["consume", "t", "--count", "-1"], "kwire consume --help tells more"),
        (["consume"], "which topic?"),
        (["consume", "a", "--topic", "b"], "two names of a topic: a and b"),
        (["consume", "t", "-f", "%z"], "is no token"),
        (["consume", "t", "--json", "--keys"], "leave out the others"),
        (["consume", "t", "--from-end", "--offset", "3"], "exclude each other"),
        (["consume", "t", "--isolation-level", "strict"], "read_committed"),
        (["produce", "t", "-f", "%k%s"], "nothing tells where one ends"),
        (["produce", "t", "--json", "-f", "%s"], "exclude each other"),
        (["produce", "t", "--property", "acks=1"], "parse.key"),
        (["topic", "alter", "t"], "nothing to alter"),
        (["topic", "create", "t", "-o", "x"], "expected name=value"),
        (["group", "reset-offsets", "g", "-t", "t"], "where to?"),
        (["group", "reset-offsets", "g", "-t", "t", "--to-datetime", "soon"], "expected a time"),
        (["group", "reset-offsets", "g", "-t", "t", "--to-datetime", "1969-12-31"], "before 1970"),
        (["produce", "t", "--timestamp", f"{1 << 63}"], "kwire produce --help tells more"),
        (["serve", "--lisen", "x"], "did you mean --listen?"),
        (["serve", "--listen", f"localhost:{'1' * 5000}"], "expected HOST:PORT"),
        (["serve", "--feature", f"metadata.version={'1' * 5000}"], "expected NAME=LEVEL"),
        (["serve", "--brokers", "10000"], "--brokers 10000: expected 1 to 9"),
        (["serve", "--brokers", "1" * 5000], "expected a number from 1 on"),
        (["spark", "aduit"], "did you mean audit?"),
        (["spark", "audit", "--no-such-option"], "--no-such-option"),
        (["spark", "archive"], "kwire spark archive"),
        (["log", "dmp", "x"], "did you mean dump?"),
        (["info", "--timeout", "never"], "kwire info --help tells more"),
        (["acl", "why", "a", "fly", "topic:t"], "fly: not an operation; accepted: all, read"),
        (["acl", "why", "a", "all", "topic:t"], "ask for one operation"),
        (["acl", "why", "a", "read", "t"], "t: not a resource; accepted: topic:NAME"),
        (["acl", "why", "a", "read", "topic:"], "topic:: not a resource"),
        (["acl", "why", "a", "read", "topic:t", "home"], "home: not an address"),
        (["acl", "add", "a", "read", "cluster:x"], "cluster:x: not a resource"),
        (["acl", "add", "a", "read", "topic:t", "--host", "home"], "home: not an address"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typer says it in four lines, and knows no nearest verb."""
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("kwire")
    assert told.err.count("\n") == 1
    assert words in told.err


def test_a_fault_of_our_own_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("of two\nlines")

    monkeypatch.setattr("kwire.cli.tables.api_rows", fail)
    assert main(["api"]) == 1
    line = capsys.readouterr().err
    assert line.startswith("kwire: KeyError: ")
    assert line.count("\n") == 1
    monkeypatch.setenv("KWIRE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["api"])


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["consume"], ["--bootstrap-server", "--max-messages", "--formatter-property"]),
        (["produce"], ["--compression-codec", "--reader-property", "--key-separator"]),
        (["topic", "create"], ["--replication-factor", "--bootstrap-server"]),
    ],
)
def test_the_help_shows_options_whole(
    arguments: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """In boxes of 80 columns their names were cut off."""
    assert main([*arguments, "--help"]) == 0
    told = capsys.readouterr().out
    assert [option for option in options if option not in told] == []
