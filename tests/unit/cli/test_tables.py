"""How the commands show rows: tables, paragraphs where these are too wide, tabs to a pipe."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.cli import app

NAME = "transaction.remove.expired.transaction.cleanup.interval.ms"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    console = app.Console

    def of_80_columns() -> Any:
        return console(width=80, force_terminal=True, color_system=None)

    monkeypatch.setattr(app, "Console", of_80_columns)


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
    assert capsys.readouterr().out.startswith(f"{NAME}\tint\t3600000\t")
