"""The lists of what may fail name only things that exist, and every line says why."""

from __future__ import annotations

import pathlib

import pytest

from tests.runner.model import read_allowed

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"
ALLOWED = sorted(ROOT.glob("compat_tests/**/allowed.tsv"))


def test_every_case_that_is_left_out_exists() -> None:
    for name in read_allowed(CASES / "not_yet.tsv"):
        file, _, test = name.partition("::")
        text = (CASES / file).read_text()
        assert not test or f"def {test.split('[', 1)[0]}(" in text, name


@pytest.mark.parametrize("path", ALLOWED, ids=lambda path: path.parent.name)
def test_every_allowed_failure_is_named_in_the_program(path: pathlib.Path) -> None:
    program = "".join(
        file.read_text(errors="replace")
        for pattern in ("*.py", "*.sh", "*.mjs", "*.go", "src/**/*.rs", "src/**/*.java")
        for file in path.parent.glob(pattern)
    )
    for entry in read_allowed(path):
        name = entry.rsplit("/", 1)[-1]
        # Names with a codec or a number in them are put together in the program.
        stem = name.rsplit("_", 1)[0].rsplit(" ", 1)[0]
        assert name in program or stem in program, name
