"""Asks Apache Kafka about record batches and writes the golden data of tests/golden/records.

`vectors.py --libs JARS [--seed N] [--check]`: makes good and damaged batches, gives them to
Records.java (compiled into a temporary directory), and writes `appends.jsonl.gz` and
`filtered.jsonl.gz`. With `--check` nothing is written: the test's own rules are applied to the
answers at once, which with another seed is a differential test on batches never seen before.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kwire.protocol.records import (  # noqa: E402
    Codec,
    Record,
    assemble,
    build_batch,
    compress,
    compute_crc,
    read_batch,
)
from kwire.protocol.records.build import encode_record, varint  # noqa: E402
from kwire.protocol.records.control import end_transaction_marker  # noqa: E402

DATA = ROOT / "tests" / "golden" / "data"
NOW = 1_700_000_000_000
T0 = NOW - 50
CONFIGS = (
    "",
    "compression.type=uncompressed",
    "compression.type=gzip",
    "compression.type=snappy",
    "compression.type=lz4",
    "compression.type=zstd",
    "message.timestamp.type=LogAppendTime",
    "cleanup.policy=compact",
    "message.timestamp.before.max.ms=1000;message.timestamp.after.max.ms=1000",
    "max.message.bytes=150",
    "max.decompressed.message.bytes=40",
    "compression.type=zstd;message.timestamp.type=LogAppendTime",
    "cleanup.policy=compact;message.timestamp.before.max.ms=1000",
    "compression.type=gzip;max.decompressed.message.bytes=40",
)
BODIES = [
    "000000010100",
    "000000030100",
    "000000010500",
    "0000000101020101",
    "0000000101020001",
    "0000000101020005",
    "000000010102026102",
    "62",
    "000000010101",
    "000000010102",
    "008000000001010000",
    "00800000010100",
    "00808080808080808080000001",
    "0100",
    "00feffffffffffffff010001",
    "0100",
    "000080808080",
    "0001",
    "0100",
    "0000808080807001010000",
    "00008080808080000101",
    "00",
    "00000081808080000100",
    "ff0000010100",
    "070000010100",
    "00000001010000",
    "0000000101",
    "00000001",
    "00",
]

Case = tuple[str, int, str, str, bytes]  # name, version, origin, config, batch


def records(count: int = 3) -> list[Record]:
    return [
        Record(i, T0 + i, b"k%d" % i, b"v%d" % i, [("h", b"x")] if i % 2 else [])
        for i in range(count)
    ]


def patched(batch: bytes | bytearray, position: int, form: str, value: int) -> bytearray:
    """The batch with a field changed and its checksum made right again."""
    changed = bytearray(batch)
    struct.pack_into(form, changed, position, value)
    changed[17:21] = compute_crc(changed, 0, len(changed)).to_bytes(4, "big")
    return changed


def raw_batch(payload: bytes, codec: Codec, count: int) -> bytearray:
    return assemble(
        compress(codec, payload),
        base_offset=0,
        leader_epoch=-1,
        attributes=int(codec),
        last_offset_delta=count - 1,
        base_timestamp=NOW,
        max_timestamp=NOW,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )


def record_cases(codec: Codec) -> Iterator[tuple[str, bytearray]]:
    """Batches whose records are right, wrong or unusual."""
    plain = records()
    yield "plain", build_batch(plain, codec=codec)
    unkeyed = [record._replace(key=None) if record.offset != 1 else record for record in plain]
    yield "null keys", build_batch(unkeyed, codec=codec)
    for name, step in (("old times", -5000), ("times ahead", 5_000_000)):
        made = [record._replace(timestamp=NOW + step * record.offset) for record in plain]
        yield name, build_batch(made, codec=codec)
    untimed = [record._replace(timestamp=-1) for record in plain]
    yield "no times", build_batch(untimed, codec=codec)
    mixed = [r._replace(timestamp=NOW - 5000 * r.offset, key=None) for r in plain]
    yield "old times and null keys", build_batch(mixed, codec=codec)
    yield "append time", build_batch(plain, codec=codec, timestamp_type=1, append_time_ms=NOW + 7)
    yield "delete horizon", build_batch(plain, codec=codec, delete_horizon_ms=NOW - 9)
    large = [Record(i, NOW, b"k" * 20, b"v" * 60) for i in range(2)]
    yield "large", build_batch(large, codec=codec)
    marker = [Record(0, NOW, b"\0\0\0\1", b"\0\0\0\0\0\0")]
    yield "control", build_batch(marker, codec=codec, control=True, producer_id=5, producer_epoch=1)
    same = b"".join(encode_record(0, 0, b"k", b"v%d" % i, []) for i in range(3))
    yield "same offsets", raw_batch(same, codec, 3)
    gaps = build_batch([Record(i, NOW, b"k", b"v") for i in (0, 2, 3)], codec=codec)
    yield "offset gaps", patched(patched(gaps, 23, ">i", 2), 57, ">i", 3)


def header_cases(codec: Codec) -> Iterator[tuple[str, bytearray]]:
    """Batches whose headers are right, wrong or unusual."""
    plain = build_batch(records(), codec=codec)
    yield "wrong max timestamp", patched(plain, 35, ">q", NOW + 77)
    yield "base timestamp -1", patched(patched(plain, 27, ">q", -1), 35, ">q", -1)
    yield "unused bit 7", patched(plain, 21, ">h", 0x80 | codec)
    yield "unused bit 15", patched(plain, 21, ">h", -32768 | codec)
    yield "leader epoch", patched(plain, 12, ">i", 99)
    yield "base offset", patched(plain, 0, ">q", 5)
    for pid, epoch, sequence in ((9, 0, 0), (9, 0, -1), (-1, 0, 4)):
        yield (
            f"producer {pid} {epoch} {sequence}",
            build_batch(
                records(),
                codec=codec,
                producer_id=pid,
                producer_epoch=epoch,
                base_sequence=sequence,
            ),
        )
    for value in (-1, 0, 1, 2, 4, 100):
        yield f"count {value}", patched(plain, 57, ">i", value)
        yield f"last delta {value}", patched(plain, 23, ">i", value)
        yield f"both {value}", patched(patched(plain, 23, ">i", value - 1), 57, ">i", value)
    for bits in range(8):
        yield f"codec bits {bits}", patched(plain, 21, ">h", bits)


def buffer_cases(codec: Codec) -> Iterator[tuple[str, bytes | bytearray]]:
    """What a request may hold in place of one batch."""
    plain = build_batch(records(), codec=codec)
    yield "two", plain + plain
    for name, rest in (
        ("5", plain[:5]),
        ("20", plain[:20]),
        ("ff", b"\xff" * 30),
        ("0", bytes(30)),
    ):
        yield f"trailing {name}", plain + rest
    for cut in (0, 5, 12, 16, 17, 25, 60, 61, 62, len(plain) - 1):
        yield f"cut {cut}", plain[:cut]
    for length in (-1, 0, 5, 13, 14, 20, 48, 49, 50, len(plain) - 13, len(plain) - 11, 1000):
        changed = bytearray(plain)
        struct.pack_into(">i", changed, 8, length)
        yield f"length {length}", changed


def body_cases(codec: Codec) -> Iterator[tuple[str, bytearray]]:
    """One record whose bytes were written by hand, with a right and a wrong length."""
    for text in BODIES:
        body = bytes.fromhex(text) if len(text) % 2 == 0 else b""
        for name, length, rest in (
            ("", len(body), b""),
            (" and a byte", len(body), b"\0"),
            (" length + 1", len(body) + 1, b""),
            (" length - 1", len(body) - 1, b""),
        ):
            yield f"body {text}{name}", raw_batch(varint(length) + body + rest, codec, 1)


def random_batch(rng: random.Random) -> tuple[Codec, bytearray]:
    codec = rng.choice(list(Codec))
    made = [
        Record(
            index,
            T0 + rng.randrange(-3, 4),
            rng.choice([None, b"", b"key", b"k" * 70]),
            rng.choice([None, b"", b"value", b"v" * 70]),
            [(f"h{j}", rng.choice([None, b"", b"z"])) for j in range(rng.choice([0, 0, 1, 2]))],
        )
        for index in range(rng.randrange(1, 6))
    ]
    raw = bytearray(build_batch(made)[61:])
    for _ in range(rng.randrange(0, 3)):
        position = rng.randrange(len(raw))
        raw[position] = rng.choice([raw[position] ^ (1 << rng.randrange(8)), rng.randrange(256)])
    if rng.random() < 0.1:
        raw += bytes(rng.randrange(1, 4))
    if rng.random() < 0.1:
        del raw[-rng.randrange(1, 4) :]
    packed = bytearray(compress(codec, raw))
    if codec and rng.random() < 0.2:
        packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
    batch = raw_batch(b"", Codec.NONE, len(made)) + packed
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">q", batch, 27, made[0].timestamp)
    return codec, patched(batch, 21, ">h", codec)


def append_cases(rng: random.Random, count: int) -> Iterator[Case]:
    for codec in Codec:
        for config in CONFIGS:
            for name, batch in (*record_cases(codec), *header_cases(codec)):
                yield f"{name} {codec.name}", 9, "CLIENT", config, bytes(batch)
            control = dict(record_cases(codec))["control"]
            if codec == Codec.NONE:
                yield "control", 9, "COORDINATOR", config, bytes(control)
        for config in ("", "compression.type=gzip", "cleanup.policy=compact"):
            for name, batch in body_cases(codec):
                yield f"{name} {codec.name}", 9, "CLIENT", config, bytes(batch)
        plain = bytes(build_batch(records(), codec=codec))
        for version in range(3, 14):
            yield f"version {version} {codec.name}", version, "CLIENT", "", plain
        for name, data in buffer_cases(codec):
            yield f"{name} {codec.name}", 9, "CLIENT", "", bytes(data)
    for _ in range(count):
        codec, batch = random_batch(rng)
        config = rng.choice(CONFIGS + ("",) * 6)
        yield f"random {codec.name}", 9, "CLIENT", config, bytes(batch)


def filter_cases(rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        base = offset = rng.choice([0, 100, 10**12])
        made = []
        for _ in range(rng.randrange(1, 7)):
            time = NOW + rng.randrange(-(10 ** rng.randrange(1, 7)), 10**6)
            value = rng.choice([None, b"", b"v" * rng.randrange(80)])
            headers = [("h", b"x")] if rng.random() < 0.2 else []
            made.append(Record(offset, time, b"k%d" % offset, value, headers))
            offset += rng.choice([1, 1, 1, 3, 200])
        options: dict[str, Any] = {}
        if rng.random() < 0.2:
            options = {"timestamp_type": 1, "append_time_ms": NOW + 500_000}
        if rng.random() < 0.3:
            options |= {"producer_id": 9, "producer_epoch": 2, "transactional": rng.random() < 0.5}
            options["base_sequence"] = rng.choice([0, 2**31 - 2])
        if rng.random() < 0.2:
            options["delete_horizon_ms"] = NOW + 900_000
        codec = Codec(rng.choice([0, 0, 0, 1, 2, 3, 4]))
        last = made[-1].offset + rng.choice([0, 0, 4])
        batch = build_batch(
            made, base_offset=base, last_offset=last, codec=codec, leader_epoch=4, **options
        )
        marker = rng.random() < 0.1
        if marker:
            commit = rng.random() < 0.5
            batch = end_transaction_marker(9, 2, commit, 3, NOW, base_offset=base, leader_epoch=4)
            made = read_batch(batch)
        keep = [r.offset for r in made if marker or rng.random() < 0.6]
        yield {
            "hex": bytes(batch).hex(),
            "retained": keep,
            "keep_empty": rng.random() < 0.5,
            "empty_marker": marker,
            "delete_horizon_ms": NOW + 1_000_000 + 86_400_000,
        }


def ask(libs: str, questions: list[str]) -> list[list[str]]:
    """The answers of Records.java, field by field, without the identifiers."""
    with tempfile.TemporaryDirectory() as folder:
        jars = f"{Path(libs).resolve()}/*"
        source = str(Path(__file__).with_name("Records.java"))
        subprocess.run(["javac", "-cp", jars, "-d", folder, source], check=True)
        options = ["-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}"]  # its logs go with it
        command = ["java", *options, "-cp", f"{folder}:{jars}", "Records"]
        text = "".join(line + "\n" for line in questions)
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    return [line.split("\t")[1:] for line in done.stdout.splitlines()]


def appended(libs: str, rng: random.Random, count: int) -> list[dict[str, Any]]:
    cases = list(dict.fromkeys(append_cases(rng, count)))
    answers = ask(
        libs,
        [
            f"append\t{index}\t{version}\t{origin}\t{NOW}\t{config}\t{batch.hex()}"
            for index, (_, version, origin, config, batch) in enumerate(cases)
        ],
    )
    rows = []
    for (name, version, origin, config, batch), answer in zip(cases, answers, strict=True):
        code, _, errors, stored, readable = answer
        row: dict[str, Any] = {
            "case": name,
            "version": version,
            "origin": origin.lower(),
            "wall_ms": NOW,
            "config": dict(entry.split("=") for entry in config.split(";") if entry),
            "hex": batch.hex(),
            "code": code,
            "record_errors": [int(e.split(":")[0]) for e in errors.split("|") if e],
        }
        if code == "NONE":
            row |= {"stored": stored, "readable": readable == "yes"}
        rows.append(row)
    return rows


def filtered(libs: str, rng: random.Random, count: int) -> list[dict[str, Any]]:
    rows = list(filter_cases(rng, count))
    answers = ask(
        libs,
        [
            f"filter\t{index}\t{NOW + 1_000_000}\t86400000\t"
            f"{'RETAIN_EMPTY' if row['keep_empty'] else 'DELETE_EMPTY'}\t"
            f"{str(row['empty_marker']).lower()}\t{','.join(map(str, row['retained']))}\t{row['hex']}"
            for index, row in enumerate(rows)
        ],
    )
    for row, answer in zip(rows, answers, strict=True):
        row["left"] = answer[0]
    return rows


def write(name: str, rows: list[dict[str, Any]]) -> None:
    with gzip.GzipFile(DATA / f"{name}.jsonl.gz", "wb", mtime=0) as file:
        for row in rows:
            file.write((json.dumps(row) + "\n").encode())
    print(f"{name}: {len(rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libs", required=True, metavar="JARS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    appends = appended(arguments.libs, rng, arguments.count)
    filters = filtered(arguments.libs, rng, arguments.count // 3)
    if not arguments.check:
        write("appends", appends)
        write("filtered", filters)
        return
    from tests.golden.records import test_appends, test_filtered
    from tests.support.kernels import installed

    failed = 0
    for check, rows in ((test_appends.check, appends), (test_filtered.check, filters)):
        for row in rows:
            try:
                check(installed(), row)
            except Exception as error:  # every kind of difference is to be listed
                failed += 1
                print(f"{type(error).__name__}: {json.dumps(row)[:600]}")
    if failed:
        sys.exit(f"{failed} differences")
    print(f"{len(appends)} appends and {len(filters)} filtered batches: as Kafka")


if __name__ == "__main__":
    main()
