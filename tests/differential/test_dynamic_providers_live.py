"""The recorded answers about dynamic settings with config providers are still Kafka's (JVM).

Run as a script it writes them anew: `python -m tests.differential.test_dynamic_providers_live`.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
from typing import Any

from tests.support.dynamic_provider_scenario import RECORDED, STATIC, play, write_values
from tests.support.kafka import running_kafka


def ask_kafka(directory: pathlib.Path) -> dict[str, Any]:
    """The history's answers by a fresh Kafka."""
    files = directory / "files"
    files.mkdir()
    write_values(files)
    static = {name: text.replace("@", str(files)) for name, text in STATIC.items()}
    with running_kafka(directory / "kafka", static) as bootstrap:
        return play(bootstrap, files)


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
