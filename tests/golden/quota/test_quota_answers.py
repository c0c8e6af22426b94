"""Rates, token buckets and the precedence of quotas are those of Apache Kafka 4.4, to the digit.

`tests/golden/data/quota_answers.json.gz` holds what Kafka's quota managers said to scripts
drawn at random; made by `python -m tests.golden.quota.test_quota_answers`. `tests/differential`
asks anew.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import random

from tests.support.kafka import kafka_libs
from tests.support.quota_scripts import (
    Ours,
    answers_of_kafka,
    client_script,
    differences,
    drawn_precedence,
    drawn_script,
    used_by_client,
)

DATA = pathlib.Path(__file__).parent.parent / "data" / "quota_answers.json.gz"
SEED, SCRIPTS, CLIENTS = 26, 150, 24


def drawn(seed: int, count: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [draw(rng) for _ in range(count) for draw in (drawn_script, drawn_precedence)]


def test_answers_are_those_of_kafka() -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    scripts: list[list[str]] = recorded["scripts"]
    said: list[str] = recorded["answers"]
    assert len(said) == sum(map(len, scripts))
    assert sum(answer not in ("", "0") for answer in said) > 1000
    assert differences(scripts, said) == []


def test_one_client_gets_in_30_seconds_what_kafka_gives_it() -> None:
    """Its requests and waits are the same: not a per cent of difference is left."""
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    scripts, said, at = recorded["scripts"], recorded["answers"], 0
    shares: list[float] = []
    for script in scripts:
        theirs = said[at : at + len(script)]
        at += len(script)
        if script in scripts[-CLIENTS:]:
            ours = Ours()
            used = used_by_client(script, [ours.answer(line) for line in script])
            assert used == used_by_client(script, theirs)
            shares.append(used / float(script[1].split("\t")[3]) / 30)
    assert len(shares) == CLIENTS
    # What all windows but one allow comes at once, at the beginning.
    assert 1.05 < min(shares) < max(shares) < 1.2


def clients(seed: int, count: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [client_script(rng) for _ in range(count)]


def main() -> None:
    scripts = drawn(SEED, SCRIPTS) + clients(SEED, CLIENTS)
    answers = answers_of_kafka(scripts, kafka_libs(), 300)
    with open(DATA, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps({"scripts": scripts, "answers": answers}).encode())


if __name__ == "__main__":
    main()
