"""The recorded answers to settings of security are still Kafka's: its start is asked (needs a JVM).

`KWIRE_RECORD=1` writes what Kafka says now.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from tests.support import security_sweep as sweep
from tests.support.kafka import kafka_libs

OF_THE_JDK = ("TLS: an encrypted key", "inline: an encrypted key")
"""Which encryption of keys a Java reads depends on its version, and so do its own words."""
RECORD = os.environ.get("KWIRE_RECORD") == "1"


def test_a_start_says_what_is_recorded(tmp_path: Path) -> None:
    sweep.prepare(tmp_path)
    answers = sweep.ask_kafka(kafka_libs(), tmp_path)
    if RECORD:
        data = json.dumps(answers, indent=0).encode()
        sweep.RECORDED.write_bytes(gzip.compress(data, mtime=0))
        return
    for name, recorded in sweep.recorded().items():
        told = answers[name]
        if name in OF_THE_JDK:
            continue
        assert (told is None) == (recorded is None), (name, told)
        if told is not None and recorded is not None and "java" not in recorded[0]:
            assert told[0] == recorded[0], name
