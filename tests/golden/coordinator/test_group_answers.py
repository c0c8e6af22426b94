"""The group APIs answer what Apache Kafka 4.4 answered to the same scripts, and leave the same
records in `__consumer_offsets` (see record.py)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.coordinator.scripts import LIMITED, LIMITED_SETTINGS, SCRIPTS
from tests.support.group_scripts import InProcess, ScriptRun

DATA = Path(__file__).resolve().parents[1] / "data" / "group_answers.json.gz"
RECORDED: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("name", [*SCRIPTS, *LIMITED])
def test_script(name: str) -> None:
    limited = name in LIMITED
    steps = LIMITED[name] if limited else SCRIPTS[name]
    run = ScriptRun(InProcess(**LIMITED_SETTINGS) if limited else InProcess(), name)
    answers = json.loads(json.dumps(run.run(steps)))
    asked = [step for step in steps if step[0] in ("send", "recv", "quiet")]
    recorded = RECORDED[name]
    assert len(answers) == len(recorded["answers"])
    for step, ours, kafkas in zip(asked, answers, recorded["answers"], strict=True):
        assert ours == kafkas, step
    records = json.loads(json.dumps(run.records()))
    assert set(records) == set(recorded["records"])
    for group, ours in records.items():
        assert ours == recorded["records"][group], group
