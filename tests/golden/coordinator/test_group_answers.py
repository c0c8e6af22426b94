"""The group APIs answer what Apache Kafka 4.4 answered to the same scripts (see record.py)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.coordinator.scripts import LIMITED, LIMITED_SETTINGS, SCRIPTS
from tests.support.group_scripts import InProcess, ScriptRun

DATA = Path(__file__).resolve().parents[1] / "data" / "group_answers.json.gz"
ANSWERS: dict[str, list[Any]] = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("name", [*SCRIPTS, *LIMITED])
def test_script(name: str) -> None:
    limited = name in LIMITED
    steps = LIMITED[name] if limited else SCRIPTS[name]
    target = InProcess(**LIMITED_SETTINGS) if limited else InProcess()
    answers = json.loads(json.dumps(ScriptRun(target, name).run(steps)))
    asked = [step for step in steps if step[0] in ("send", "recv", "quiet")]
    assert len(answers) == len(ANSWERS[name])
    for step, ours, kafkas in zip(asked, answers, ANSWERS[name], strict=True):
        assert ours == kafkas, step
