"""How the commands show rows: tables, paragraphs where these are too wide, tabs to a pipe, JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console

from kwire.cli import app, output
from kwire.cli.tables import config_rows

NAME = "transaction.remove.expired.transaction.cleanup.interval.ms"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""

    def of_80_columns() -> Any:
        return Console(width=80, force_terminal=True, color_system=None)

    monkeypatch.setattr(output, "terminal", of_80_columns)


@pytest.mark.usefixtures("terminal")
def test_the_name_of_a_config_stays_whole_on_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """It was broken in the middle, and could not be copied."""
    assert app.main(["configs", NAME]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == NAME
    assert [line.split()[:2] for line in lines[1:3]] == [["type", "int"], ["default", "3600000"]]


@pytest.mark.usefixtures("terminal")
def test_rows_that_fit_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["api"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["key", "API", "versions"]
    assert lines[1].split() == ["0", "Produce", "3-13"]


def test_rows_for_a_pipe_have_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["configs", NAME]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.startswith("config\ttype\tdefault\t"), "it was lost in a pipe"
    assert row.startswith(f"{NAME}\tint\t3600000\t")


HOSTILE = [
    "[/red]x",
    "[bold]y",
    ":smile:",
    "a\nb",
    "a\tb",
    "\x1b]0;t\x07\x1b[2J",
    "\u202eabc",
    "\ud800",
    "\x85\x9b",
    "\U000e0001",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("width", [0, 20, 200])
def test_names_of_others_are_shown_as_they_are_and_change_nothing(
    name: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group `[/red]x` ended the command on a terminal, others moved the cursor or forged a
    line."""
    if width:
        console = Console(width=width, force_terminal=True, color_system=None)
        monkeypatch.setattr(output, "terminal", lambda: console)
    output.table(("group", "state"), [(name, "Stable"), ("z" * 15, ["members", name])])
    told = capsys.readouterr().out
    assert ascii(name)[1:-1] in told.replace("\n", " ")
    assert all(one.isprintable() or one in "\n\t" for one in told)
    assert told.count("\t") == (3 if not width else 0)
    output.say_json({"group": name})
    line = capsys.readouterr().out.removesuffix("\n")
    assert line.isprintable()
    assert json.loads(line) == {"group": name}


def test_a_complaint_is_one_line_whatever_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["acl", "why", "alice", "read", "topic\x1b[2J\n\ud800:x"]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert told.strip().isprintable()


def test_rows_as_json_keep_their_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["configs", "--json", NAME]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["config"], told["type"], told["default"]) == (NAME, "int", "3600000")
    assert app.main(["configs", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"setting": "node.id", "value": "1", "kafkas_default": "(required)"} in rows
    assert app.main(["api", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["key"] == 0


def test_without_a_scope_the_configs_of_a_node_are_found_or_others() -> None:
    def names(*parts: str) -> list[str]:
        return [row[0] for row in config_rows(None, list(parts)) or []]

    assert names("kwire.audit.log", "log.retention.ms") == ["log.retention.ms", "kwire.audit.log"]
    assert names("producer_byte_rate") == ["producer_byte_rate"]
    assert names("no.such.config") == []
    assert config_rows("none", []) is None
