"""The recorded answers about changed TLS settings are still Kafka's (needs a JVM).

Run as a script it writes them anew: `python -m tests.differential.test_tls_live`.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
from typing import Any

from kwire.testing.cluster import free_adjacent_ports, free_ports
from tests.support.kafka import running_kafka
from tests.support.tls_scenario import RECORDED, play, prepare


def ask_kafka(directory: pathlib.Path) -> list[Any]:
    """The history's answers by a fresh Kafka."""
    stores = directory / "stores"
    stores.mkdir()
    (tls,) = free_ports(1)
    port = free_adjacent_ports()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls}"
    properties = prepare(stores) | {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{port + 1}",
        "advertised.listeners": f"{listeners},CONTROLLER://127.0.0.1:{port + 1}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
    }
    with running_kafka(directory / "kafka", properties, port=port) as bootstrap:
        return play(bootstrap, stores)


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert ask_kafka(tmp_path.resolve()) == recorded


def record() -> None:
    """Play the history to Kafka and write its answers down."""
    with tempfile.TemporaryDirectory() as directory:
        answers = ask_kafka(pathlib.Path(directory).resolve())
    RECORDED.write_bytes(gzip.compress(json.dumps(answers, indent=0).encode(), mtime=0))


if __name__ == "__main__":
    record()
