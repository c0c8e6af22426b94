"""The recorded answers to requests about ACLs are Kafka's: a live one is asked (needs a JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

from tests.golden.acls.dialogue import OLDER, PROPERTIES, run
from tests.golden.acls.test_answers import DATA
from tests.support.kafka import running_kafka


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    answers: dict[str, Any] = {}
    with running_kafka(tmp_path / "newest", PROPERTIES) as bootstrap:
        host, _, port = bootstrap.rpartition(":")
        answers["broker"] = run(bootstrap)
        answers["controller"] = run(f"{host}:{int(port) + 1}")
    release = f"--release-version {OLDER}"
    with running_kafka(tmp_path / "older", PROPERTIES, format_arguments=release) as bootstrap:
        answers["older"] = run(bootstrap, only_hosts=True)
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    for part, expected in recorded.items():
        given = answers[part]
        assert {x: given.get(x) for x in expected if given.get(x) != expected[x]} == {}, part
