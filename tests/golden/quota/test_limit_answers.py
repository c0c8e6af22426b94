"""Limits are told and kept as Apache Kafka 4.4 does: malformed values, partitions that are paid
for, connections that wait or are closed.

`tests/golden/data/limit_answers.json.gz` holds what Kafka said; made by
`python -m tests.golden.quota.test_limit_answers`. `tests/differential/test_limits_live.py` asks
anew.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
from typing import Any

from kwire.testing.cluster import Broker
from tests.support.kafka import running_kafka
from tests.support.limit_dialogue import PROPERTIES, dialogue

DATA = pathlib.Path(__file__).parent.parent / "data" / "limit_answers.json.gz"


def recorded() -> list[Any]:
    said: list[Any] = json.loads(gzip.decompress(DATA.read_bytes()))
    return said


def test_a_conversation_about_limits_is_that_of_kafka() -> None:
    with Broker(options=PROPERTIES) as broker:
        ours = dialogue(broker.bootstrap)
    assert len(ours) == len(recorded()) > 40
    for said, expected in zip(ours, recorded()):
        assert said == expected


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        running_kafka(pathlib.Path(directory), PROPERTIES) as bootstrap,
    ):
        said = dialogue(bootstrap)
    with open(DATA, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(said).encode())


if __name__ == "__main__":
    main()
