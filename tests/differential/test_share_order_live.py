"""Kafka's classes go through the partitions of a share fetch's answer in the recorded order."""

from __future__ import annotations

import subprocess

from tests.golden.broker.test_share_order import DATA
from tests.support.kafka import ROOT, kafka_libs

ORACLE = ROOT / "compat_tests" / "peers" / "ShareOrder.java"
TIMEOUT_S = 120


def test_the_recorded_order_is_kafkas() -> None:
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*", str(ORACLE)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert done.stdout == DATA.read_text()
