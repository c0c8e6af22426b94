"""A replication quota is exceeded when Apache Kafka 4.4's is.

`tests/golden/data/replication_quota_answers.json.gz` holds what Kafka's ReplicationQuotaManager
said to scripts drawn at random; made by `python -m tests.golden.quota.test_replication_answers`.
`tests/differential` asks anew.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import random
import subprocess

from kwire.replica.quota import ReplicationQuota
from tests.support.kafka import kafka_libs

ORACLE = str(pathlib.Path(__file__).with_name("ReplicationOracle.java"))
DATA = pathlib.Path(__file__).parent.parent / "data" / "replication_quota_answers.json.gz"
SEED, SCRIPTS = 31, 100


def drawn(seed: int, count: int) -> list[str]:
    """Quotas that are used over some windows, and are asked between."""
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(count):
        rate = rng.choice([1, 1000, 1_000_000, 50_000_000])
        samples, seconds = rng.choice([(11, 1), (11, 1), (1, 1), (2, 1), (3, 5)])
        lines.append(f"new\t{rate}\t{samples}\t{seconds}")
        now_ms = rng.choice([0, 10**12]) + rng.randrange(5000)
        for _ in range(rng.randrange(10, 60)):
            now_ms += rng.choice([0, rng.randrange(300), rng.randrange(3000), samples * 1000])
            if rng.random() < 0.05:
                rate = max(1, int(rate * rng.choice([0.5, 2])))
                lines.append(f"rate\t{rate}")
            if rng.random() < 0.7:
                lines.append(f"record\t{rng.randrange(2 * rate * seconds)}\t{now_ms}")
            lines.append(f"exceeded\t{now_ms}")
    return lines


def answers_of_kafka(lines: list[str], libs: pathlib.Path) -> list[str]:
    done = subprocess.run(
        ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", ORACLE],
        input=("\n".join(lines) + "\n").encode(),
        capture_output=True,
        check=True,
        timeout=300,
    )
    return done.stdout.decode().split("\n")[:-1]


def our_answers(lines: list[str]) -> list[str]:
    quota, answers = ReplicationQuota(), []
    for line in lines:
        verb, *parts = line.split("\t")
        answer = ""
        if verb == "new":
            quota = ReplicationQuota(int(parts[0]), int(parts[1]), int(parts[2]) * 1000)
        elif verb == "rate":
            quota.rate = int(parts[0])
        elif verb == "record":
            quota.record(int(parts[0]), int(parts[1]))
        else:
            answer = "1" if quota.is_exceeded(int(parts[0])) else "0"
        answers.append(answer)
    return answers


def test_answers_are_those_of_kafka() -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    said: list[str] = recorded["answers"]
    assert min(said.count("0"), said.count("1")) > 300
    assert our_answers(recorded["lines"]) == said


def main() -> None:
    lines = drawn(SEED, SCRIPTS)
    answers = answers_of_kafka(lines, kafka_libs())
    with open(DATA, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps({"lines": lines, "answers": answers}).encode())


if __name__ == "__main__":
    main()
