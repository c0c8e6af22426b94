"""What the validation of schemas at publish costs.

    bench/schemas.py [--rounds N] [--records N] [--limit US]

us of CPU for a batch of 100 records of some 100 bytes, each with the id of a schema that is known:
the least of the rounds, which alternate. `none` is the question whether the topic asks at all.
With `--limit` it fails when a check without decoding costs more.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable, Mapping

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kwire.log.scheduling import ImmediateScheduler
from kwire.pending import Pending
from kwire.protocol.records import Record, build_batch
from kwire.protocol.records.header import parse_header
from kwire.schemas.registry.records import version_record
from kwire.schemas.registry.version import Version, guid_of
from kwire.schemas.validation.checks import SchemaChecks
from kwire.schemas.validation.closures import prepare
from kwire.schemas.validation.follower import Follower, Page
from kwire.schemas.validation.rules import (
    PACKAGE,
    RECORD_NAME,
    TOPIC_NAME,
    SideRules,
    TopicRules,
)

SCHEMAS = {
    1: (
        "AVRO",
        '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},'
        '{"name":"name","type":"string"},{"name":"tags","type":{"type":"array","items":"string"}}]}',
    ),
    2: ("JSON", '{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}'),
    3: ("PROTOBUF", 'syntax = "proto3"; message R { int64 id = 1; string name = 2; }'),
}
BYTES = {
    1: b"\x54" + b"\x64" + b"n" * 50 + b"\x06" + b"\x12tag numbr" * 3 + b"\0",
    2: b'{"id": 42, "name": "' + b"n" * 70 + b'"}',
    3: b"\0\x08\x2a\x12\x50" + b"n" * 80,
}


class Topic:
    """`_schemas`, in memory."""

    def topic_id(self) -> bytes | None:
        return b"1" * 16

    def read(self, offset: int) -> Pending[Page]:
        records = []
        for schema_id, (kind, text) in SCHEMAS.items():
            for subject in (f"s{schema_id}-value", "R"):
                guid = guid_of(text, (), None, None)
                version = Version(
                    subject, schema_id, schema_id, kind, text, (), None, None, False, guid, 0, {}
                )
                key, value = version_record(version)
                records.append(Record(key=key, value=value))
        return Pending.completed(Page([build_batch(records)] if offset == 0 else [], len(records)))

    def start(self) -> Pending[int]:
        return Pending.completed(0)


def measured(actions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """us of CPU of one call, the least of the rounds."""
    least = dict.fromkeys(actions, float("inf"))
    for _ in range(rounds):
        for name, action in actions.items():
            calls = 2000 if name == "none" else 20
            begun = time.process_time_ns()
            for _ in range(calls):
                action()
            least[name] = min(least[name], (time.process_time_ns() - begun) / calls / 1000)
    return least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--limit", type=float)
    arguments = parser.parse_args()
    scheduler = ImmediateScheduler()
    checks = SchemaChecks(
        Follower(Topic(), scheduler),
        scheduler,
        lambda: 0,
        lambda topic, closure: Pending.completed(prepare(closure)),
    )
    asking: dict[str, TopicRules] = {}

    def batch_check(schema_id: int, strategy: str, is_deep: bool) -> Callable[[], object]:
        head = b"\0" + schema_id.to_bytes(4, "big")
        records = [Record(value=head + BYTES[schema_id])] * arguments.records
        batch = build_batch(records)
        rules = TopicRules(f"s{schema_id}", None, SideRules("value", strategy), is_deep)
        header = parse_header(batch)

        def check() -> None:
            answer = checks.check(rules, batch, header)
            if isinstance(answer, Pending):
                answer.result()

        check()
        return check

    found = measured(
        {
            "none": lambda: "s1" in asking,
            "registered under the topic's subject": batch_check(1, TOPIC_NAME, False),
            f"by {RECORD_NAME.removeprefix(PACKAGE)}": batch_check(1, RECORD_NAME, False),
            "decodes as Avro": batch_check(1, TOPIC_NAME, True),
            "decodes as JSON Schema": batch_check(2, TOPIC_NAME, True),
            "decodes as Protobuf": batch_check(3, TOPIC_NAME, True),
        },
        arguments.rounds,
    )
    for name, us in found.items():
        print(f"{name:40} {us:10.2f} us a batch of {arguments.records} records")
    dearest = found["registered under the topic's subject"]
    if arguments.limit is not None and dearest > arguments.limit:
        print(f"a check without decoding takes {dearest:.1f} us, more than {arguments.limit}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
