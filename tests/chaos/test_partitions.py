"""Nothing acknowledged is lost while brokers are cut off from each other (`partitions.py`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.partitions import EXIT_SKIPPED
from tests.support.effort import seeds
from tests.support.kafka import ROOT
from tests.support.namespaces import missing

LIMIT_S = 900

pytest.importorskip("confluent_kafka")


@pytest.mark.parametrize("seed", seeds(1))
def test_promises_hold_across_partitions(seed: int, tmp_path: Path) -> None:
    why = missing()
    if why is not None:
        pytest.skip(f"partitions of real processes: {why}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.partitions", str(seed), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode != EXIT_SKIPPED, done.stdout
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
