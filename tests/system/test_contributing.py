"""The worked example of CONTRIBUTING.md works as it stands there, in a copy of the repository."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ("kwire", "tests/support", "tools", "pyproject.toml")


def blocks() -> list[str]:
    """What the steps of the example say to write, in order."""
    found = re.findall(
        r"^   ```\w*\n(.*?)^   ```$", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.M
    )
    return [re.sub(r"^ {3}", "", block, flags=re.M) for block in found]


def copied(to: pathlib.Path) -> None:
    for name in COPIED:
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, to / name)
        else:
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    (to / "tests/__init__.py").touch()


def run(folder: pathlib.Path, *arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_an_api_from_the_wire_to_the_test(tmp_path: pathlib.Path) -> None:
    wire, key, row, handler, test, request = blocks()
    copied(tmp_path)
    (tmp_path / "kwire/protocol/schema/api/echo_topics.txt").write_text(wire)
    keys = tmp_path / "kwire/protocol/api_keys.py"
    before, rest = keys.read_text().split("\n\n\nclass ApiInfo", 1)
    head, tail = rest.split("\n)\n\nAPI_KEYS", 1)
    keys.write_text(f"{before}\n{key}\n\nclass ApiInfo{head}\n{row})\n\nAPI_KEYS{tail}")
    (tmp_path / "kwire/api/echo_topics.py").write_text(handler)
    tested = tmp_path / "tests/unit/api/test_echo_topics.py"
    tested.parent.mkdir(parents=True)
    tested.write_text(test)
    (tmp_path / "ask.py").write_text(request)

    run(tmp_path, "tools/generate_messages.py")
    changed = ["kwire/protocol/api_keys.py", "kwire/api/echo_topics.py", str(tested), "ask.py"]
    run(tmp_path, "-m", "ruff", "check", *changed)
    run(tmp_path, "-m", "ruff", "format", "--check", *changed)
    run(tmp_path, "-m", "pytest", "-q", "-n", "0", str(tested))
    answered = run(tmp_path, "ask.py")
    assert "error_code=3, name='none', partitions=-1" in answered
