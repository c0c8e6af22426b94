"""The recorded answers about config providers are still Kafka's (needs a JVM).

Run as a script it writes them anew: `python -m tests.differential.test_config_providers_live`.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any

from tests.support.kafka import ROOT, kafka_libs
from tests.support.provider_cases import (
    DIRECTORY,
    ENVIRONMENT,
    RECORDED,
    in_directory,
    recorded,
    write_files,
)

ORACLE = ROOT / "compat_tests" / "peers" / "ConfigProviders.java"
TIMEOUT_S = 120


def ask_kafka(cases: dict[str, Any], directory: pathlib.Path) -> dict[str, Any]:
    """Case -> what KafkaConfig makes of its settings, with `@DIR@` for the directory."""
    write_files(directory)
    settings = [in_directory(case["settings"], directory) for case in cases.values()]
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*", str(ORACLE)],
        input=json.dumps(settings),
        env={"PATH": os.environ["PATH"], **ENVIRONMENT},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    last = done.stdout.splitlines()[-1]  # what is logged stands before it
    answers = json.loads(last.replace(str(directory), DIRECTORY))
    return dict(zip(cases, answers, strict=True))


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    cases = recorded()
    answers = ask_kafka(cases, tmp_path.resolve())
    assert {case: one["answer"] for case, one in cases.items()} == answers


def record() -> None:
    """Ask Kafka about the recorded cases' settings and write its answers down."""
    cases = recorded()
    with tempfile.TemporaryDirectory() as directory:
        answers = ask_kafka(cases, pathlib.Path(directory).resolve())
    for case, answer in answers.items():
        cases[case]["answer"] = answer
    text = json.dumps(cases, indent=0, ensure_ascii=False)
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    record()
