"""The recipes of docs/FAULTS.md are tests that pass, and there is one for each fault."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from kwire.faults.kinds import KINDS

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/FAULTS.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
OPTIONS = ["-p", "no:cacheprovider", "-q", "--tb=short", "-W", "error"]


def test_the_recipes_pass(tmp_path: pathlib.Path) -> None:
    (tmp_path / "test_recipes.py").write_text("\n".join(BLOCKS))
    command = [sys.executable, "-m", "pytest", *OPTIONS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_has_a_recipe(kind: str) -> None:
    own = "lose_power()" if kind == "power-loss" else f'"{kind}"'
    assert any(own in block for block in BLOCKS[1:])
