"""A schema that somebody has put into `_schemas` to hold up a broker holds up nobody."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")
pytest.importorskip("confluent_kafka.schema_registry")

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.records import schema_key
from kwire.testing.cluster import Broker
from tests.support.registry_client import RegistryClient
from tests.support.wire import WireClient
from tests.system.test_http import port_of
from tests.system.test_schema_validation import DEEP, USER, faults, head, new_topic, produced
from tests.system.test_schema_validation import registered as register

ENDLESS_ID = 900_001
PARTS = 60
"""With them the schema has nearly as many characters as a broker reads of one."""
WIDE = {"allOf": [{}] * 19_900}
"""Of what is read in spite of its limits this takes longest for its characters."""


def put(client: WireClient, subject: str, schema_id: int, schema: object, **fields: Json) -> None:
    """A schema that somebody with the right to write the topic has put there."""
    text = json.dumps(schema, separators=(",", ":"))
    value = {"subject": subject, "version": 1, "id": schema_id, "schemaType": "JSON"}
    told = json.dumps({**value, **fields, "schema": text, "deleted": False}).encode()
    record = Record(key=schema_key(subject, 1), value=told)
    assert produced(client, "_schemas", [record]).error_code == 0


def tried_again(client: WireClient, topic: str) -> dict[int, str]:
    """What a producer is told at last: where no processor is to spare that takes some tries."""
    while True:
        answer = produced(client, topic, [Record(value=head(ENDLESS_ID))])
        if answer.error_code != ErrorCode.REQUEST_TIMED_OUT:
            return faults(answer)


def test_it_is_refused_while_others_publish() -> None:
    """Each of the schemas that it refers to takes about half a second to be checked."""
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(options={"http.listeners": "http://127.0.0.1:0"}))
        client, other = (stack.enter_context(WireClient(broker.bootstrap)) for _ in range(2))
        hostile, good = new_topic(client, DEEP), new_topic(client, DEEP)
        registry = RegistryClient(f"127.0.0.1:{port_of(broker)}")
        known = head(register(registry, f"{good}-value", USER))
        for at in range(PARTS):
            put(client, f"part-{at}", ENDLESS_ID + 1 + at, {**WIDE, "title": f"Part {at}"})
        references: list[Json] = [
            {"name": f"part-{at}", "subject": f"part-{at}", "version": 1} for at in range(PARTS)
        ]
        put(client, f"{hostile}-value", ENDLESS_ID, {}, references=references)
        with ThreadPoolExecutor(1) as thread:
            refused = thread.submit(tried_again, other, hostile)
            published = 0
            while not refused.done():
                answer = produced(client, good, [Record(value=known + b"\x06Ada")])
                assert answer.error_code == 0
                published += 1
        assert "takes more than 5 s of a processor" in refused.result()[0]
        assert published > 10
