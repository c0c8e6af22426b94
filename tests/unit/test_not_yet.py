"""The lists of what may fail name only things that exist, and every line says why."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

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


def test_a_case_of_the_list_that_passes_fails_the_run(tmp_path: pathlib.Path) -> None:
    """They are not skipped, so that one which passes is seen; one that hangs costs its limit."""
    (tmp_path / "not_yet.tsv").write_text("test_one.py\tno such thing yet\n")
    (tmp_path / "conftest.py").write_text(
        "import pathlib, not_yet\n"
        "not_yet.LIST = pathlib.Path(__file__).parent / 'not_yet.tsv'\n"
        "not_yet.LIMIT_S = 1\n"
        "def pytest_collection_modifyitems(items):\n    not_yet.mark(items)\n"
    )
    (tmp_path / "test_one.py").write_text(
        "import os, pytest\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert 0\n"
        "@pytest.mark.timeout(60)\n"
        "def test_hangs(): os.read(os.pipe()[0], 1)\n"
        "def test_lacks_its_broker(): pytest.skip('needs --special x')\n"
    )
    (tmp_path / "test_two.py").write_text("def test_passes(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rfxs", "-p", "no:cacheprovider", "."]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CASES)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed, 1 skipped, 2 xfailed" in done.stdout
    assert "FAILED test_one.py::test_passes - [XPASS(strict)] no such thing yet" in done.stdout
