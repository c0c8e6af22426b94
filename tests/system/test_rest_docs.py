"""docs/REST.md: its commands work as they are written, and what it shows is what comes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from kwire.testing.cluster import Broker
from tests.system.test_http import port_of

PAGE = Path(__file__).parents[2] / "docs" / "REST.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY = ("timestamp", "producer_id")
MARK = "::"

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("jq") is None, reason="needs curl and jq"
)


def without(told: object) -> object:
    """What is not the same each time is left away."""
    if isinstance(told, dict):
        return {name: "any" if name in ANY else without(value) for name, value in told.items()}
    return [without(one) for one in told] if isinstance(told, list) else told


def test_the_commands_of_rest_md_answer_what_it_shows(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    steps: list[tuple[str, str]] = []
    for language, text in blocks:
        if language == "sh":
            steps.append((text, ""))
        else:
            assert language == "json"
            assert steps[-1][1] == "", "an answer has one command"
            steps[-1] = (steps[-1][0], text)
    assert len(steps) > 15
    script = "".join(f"echo; echo {MARK}\n{commands}" for commands, _ in steps)
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as broker:
        script = script.replace("127.0.0.1:8080", f"127.0.0.1:{port_of(broker)}")
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            env={**os.environ, "KWIRE_BOOTSTRAP": broker.bootstrap, "PATH": search},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr + done.stdout
    answers = [one.strip() for one in done.stdout.split(f"\n{MARK}\n")[1:]]
    for (commands, shown), answer in zip(steps, answers, strict=True):
        if shown:
            assert without(json.loads(answer)) == without(json.loads(shown)), commands
    end = json.loads((tmp_path / "end.json").read_text())
    assert [one["offset"] for one in end["offsets"]] == [1, 0, 1, 1]
