"""CPU of what an archive's decoding does in Python with each value: `python bench/decoding.py`.

A value has six fields. Prints the least of some rounds, in microseconds a value: what comes behind
it (spark-avro, `from_json`) is Spark's.
"""

from __future__ import annotations

import json
import pathlib
import struct
import tempfile
import time

import pyarrow as pa

from kwire.spark.decoding import Checker, checked_batch

VALUES, ROUNDS = 20_000, 5
HEADER = struct.pack(">bi", 0, 1)
FIELDS = ("user", "page", "at", "ms", "ok", "price")
VALUE = ("user-12345", "/a/b/c.html", 1_760_000_000_000, 77, True, 1.5)
AVRO = ("string", "string", "long", "int", "boolean", "double")
JSON = ("string", "string", "integer", "integer", "boolean", "number")
PROTOBUF = ("string", "string", "int64", "int32", "bool", "double")


def schemas(folder: pathlib.Path) -> None:
    """One of each format, with the id 1."""
    fields = [{"name": name, "type": type_} for name, type_ in zip(FIELDS, AVRO, strict=True)]
    avro = {"type": "record", "name": "Click", "fields": fields}
    (folder / "1.avsc").write_text(json.dumps(avro))
    properties = {name: {"type": type_} for name, type_ in zip(FIELDS, JSON, strict=True)}
    (folder / "1.json").write_text(json.dumps({"type": "object", "properties": properties}))
    lines = [f"{PROTOBUF[at]} {name} = {at + 1};" for at, name in enumerate(FIELDS)]
    text = f'syntax = "proto3"; message Click {{ {" ".join(lines)} }}'
    (folder / "1.proto").write_text(text)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def values() -> dict[str, bytes]:
    """The same value in each format."""
    user, page, at, ms, _, price = VALUE
    texts = [str(text).encode() for text in (user, page)]
    avro = b"".join(varint(len(text) * 2) + text for text in texts)
    avro += varint(int(at) * 2) + varint(int(ms) * 2) + b"\1" + struct.pack("<d", price)
    protobuf = b"".join(
        bytes([n << 3 | 2, len(text)]) + text for n, text in enumerate(texts, start=1)
    )
    protobuf += b"\x18" + varint(int(at)) + b"\x20" + varint(int(ms)) + b"\x28\1\x31"
    protobuf += struct.pack("<d", price)
    text = json.dumps(dict(zip(FIELDS, VALUE, strict=True))).encode()
    return {"avro": avro, "json": text, "protobuf": b"\0" + protobuf}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        schemas(pathlib.Path(name))
        for form, body in values().items():
            check = {"value": Checker(form, None, name).check}
            column = pa.array([HEADER + body] * VALUES, pa.binary())
            batch = pa.RecordBatch.from_pydict({"value": column})
            times = []
            for _ in range(ROUNDS):
                began_s = time.process_time()
                checked = checked_batch(batch, check)
                times.append(time.process_time() - began_s)
            assert checked.column("reason").null_count == VALUES
            print(f"{form}\t{min(times) / VALUES * 1e6:.1f}")


if __name__ == "__main__":
    main()
