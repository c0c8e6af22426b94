"""Readable scripts of elections, divergence, snapshots and voter changes, with their transcripts.

`KWIRE_REWRITE=1` writes what happened into the scripts instead of comparing: read the difference
before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.raft_script import run_script

SCRIPTS = sorted((Path(__file__).parent / "raft").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_script(path: Path) -> None:
    happened, expected = run_script(path.read_text())
    if os.environ.get("KWIRE_REWRITE"):
        path.write_text(happened)
        return
    assert happened == expected


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 10
