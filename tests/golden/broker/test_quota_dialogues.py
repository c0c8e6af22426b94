"""AlterClientQuotas and DescribeClientQuotas: Kafka's codes and texts, whatever is asked."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from kwire.testing.cluster import Broker
from tests.golden.broker.quota_dialogues import run

DATA = Path(__file__).parent.parent / "data" / "quota_dialogues.json.gz"


def test_answers_are_kafkas() -> None:
    expected = json.loads(gzip.decompress(DATA.read_bytes()))
    with Broker() as broker:
        ours = run(broker.bootstrap)
    assert sorted(ours) == sorted(expected)
    wrong = {label: (ours[label], its) for label, its in expected.items() if ours[label] != its}
    shown = "\n".join(f"{label}\n  ours  {a}\n  Kafka {b}" for label, (a, b) in wrong.items())
    assert not wrong, f"{len(wrong)} of {len(ours)} answers differ\n{shown}"
