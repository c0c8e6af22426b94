"""The recorded answers about cordoned log directories are still Kafka's (needs a JVM).

Run as a script it writes them anew: `python -m tests.differential.test_cordon_live`.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
from typing import Any

from tests.support.cordon_scenario import LOG_DIRS, RECORDED, play
from tests.support.kafka import running_kafka


def ask_kafka(directory: pathlib.Path) -> dict[str, Any]:
    """The history's answers by a fresh Kafka."""
    with running_kafka(directory, {"log.dirs": LOG_DIRS}) as bootstrap:
        return play(bootstrap, str(directory / "node-1"))


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert ask_kafka(tmp_path.resolve()) == recorded


def record() -> None:
    """Play the history to Kafka and write its answers down."""
    with tempfile.TemporaryDirectory() as directory:
        answers = ask_kafka(pathlib.Path(directory).resolve())
    text = json.dumps(answers, indent=0)
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    record()
