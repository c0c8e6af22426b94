"""The recorded answers about rights are still Kafka's: a live one is asked (needs a JVM).

`KWIRE_RECORD=1` writes what Kafka says now over the recording.
"""

from __future__ import annotations

import os
import pathlib

from kwire.testing.cluster import free_adjacent_ports, free_ports
from tests.support.kafka import running_kafka
from tests.support.rights.playing import differences, play, read, write
from tests.support.rights.users import properties


def test_recorded_rights_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    port = free_adjacent_ports()
    settings = properties(port, port + 1, free_ports(1)[0])
    with running_kafka(tmp_path, settings, port=port):
        answers = play(f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}", kafka=True)
    if os.environ.get("KWIRE_RECORD") == "1":
        write(answers)
    recorded = read()
    assert {at: set(asked) for at, asked in answers.items()} == {
        at: set(asked) for at, asked in recorded.items()
    }
    assert differences(answers, recorded) == {}
