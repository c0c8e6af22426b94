"""Damaged messages given to Kafka's own readers and to ours, freshly made from one seed.

KWIRE_SEED=n repeats a run. `mutated.jsonl.gz` holds what such runs answered, for machines without
Kafka's jars.
"""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
from typing import Any

from kwire.protocol import messages
from kwire.protocol.errors import EncodeError, MalformedError
from tests.support.kafka import kafka_libs
from tests.support.vectors import rows

ORACLE = pathlib.Path(__file__).with_name("WireOracle.java")
COUNT = 8000
BYTES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0xFE, 0xC3, 0xED, 0xA0, 0xF0, 0xC0]
NUMBERS = ["ffffffff", "7fffffff", "ffffffff0f", "ffffffff07", "8080808008", "8000", "808000"]


def damaged(chance: random.Random, data: bytes) -> bytes:
    """`data` with up to three things done to it."""
    buffer = bytearray(data)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        at = chance.randrange(len(buffer) + 1)
        kind = chance.choice(["set", "cut", "insert", "flip", "remove", "number"])
        if kind == "set":
            buffer[at : at + 1] = bytes([chance.choice(BYTES)])
        elif kind == "cut":
            del buffer[at:]
        elif kind == "insert":
            buffer[at:at] = bytes(chance.choice(BYTES) for _ in range(chance.randrange(1, 6)))
        elif kind == "flip" and at < len(buffer):
            buffer[at] ^= 1 << chance.randrange(8)
        elif kind == "remove":
            del buffer[at : at + chance.randrange(1, 5)]
        elif kind == "number":
            number = bytes.fromhex(chance.choice(NUMBERS))
            buffer[at : at + chance.randrange(len(number) + 1)] = number
    return bytes(buffer)


def ours(row: dict[str, Any], data: bytes) -> tuple[str, str | None]:
    """(what the oracle would say first, the bytes written or None)."""
    cls = messages.by_name(row["message"])
    try:
        message, end = cls.decode_from(data, 0, row["version"])
    except MalformedError:
        return "refused", None
    try:
        written = message.encode(row["version"]).hex()
    except EncodeError:
        written = None
    return f"accepted {len(data) - end}", written


def test_kafka_reads_the_same_from_damaged_messages() -> None:
    libs = kafka_libs()
    seed = int(os.environ.get("KWIRE_SEED") or 20_260_401)
    chance = random.Random(seed)
    vectors = [row for row in rows("wire") if row["type"] in ("request", "response")]
    chosen = [chance.choice(vectors) for _ in range(COUNT)]
    sent = [damaged(chance, bytes.fromhex(row["hex"])) for row in chosen]
    lines = [
        f"{row['type']} {row['api_key']} {row['version']} {data.hex()}\n"
        for row, data in zip(chosen, sent, strict=True)
    ]
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", str(ORACLE)]
    done = subprocess.run(
        command, input="".join(lines), capture_output=True, text=True, timeout=120, check=True
    )
    answers = done.stdout.splitlines()
    assert len(answers) == COUNT, done.stderr
    accepted = 0
    for row, data, answer in zip(chosen, sent, answers, strict=True):
        case = f"seed {seed}: {row['message']} v{row['version']} {data.hex()}"
        verdict, _, written = answer.partition(" ")
        said, wrote = ours(row, data)
        if verdict == "refused":
            assert said == "refused", case
            continue
        rest, _, written = written.partition(" ")
        assert said == f"accepted {rest}", case
        if written:
            assert wrote == written, case
        accepted += 1
    assert COUNT / 5 < accepted < COUNT * 4 / 5
