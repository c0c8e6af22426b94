"""The README's first program does what it says, against a broker on another port."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from kwire.testing.cluster import Broker

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_kafka_python_program_prints_what_it_sent() -> None:
    pytest.importorskip("kafka")
    program = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert "KafkaConsumer" in program
    with Broker() as broker:
        finished = subprocess.run(
            [sys.executable, "-c", program.replace("localhost:9092", broker.bootstrap)],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    assert finished.returncode == 0, finished.stderr
    printed = [line.split() for line in finished.stdout.splitlines()]
    assert printed == [["0", str(number), f"b'{number}'"] for number in range(10)]
