"""An error on command is, byte for byte, what Apache Kafka 4.4 answers to the real failure.

Recorded by `python -m tests.support.fault_answers`, without the texts of errors: a client decides
by codes. `tests/differential/test_fault_answers_live.py` asks anew.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.faults.answers import error_response
from kwire.faults.asked import Entry
from kwire.faults.places import ERROR_FIELDS, places_of
from kwire.protocol import frame
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Struct
from tests.support.fault_answers import DATA, requests, shown

RECORDED: dict[str, str] = json.loads(DATA.read_text())


def codes_in(struct: Struct) -> set[int]:
    """The errors in a response; a recorded one has only one."""
    found = {getattr(struct, name) for name in struct.FIELDS if name in ERROR_FIELDS}
    for name in struct.FIELDS:
        items = getattr(struct, name)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Struct):
                found |= codes_in(item)
    return found - {0}


def everything(_: Entry) -> bool:
    return True


@pytest.mark.parametrize(
    ("label", "request_", "version"), list(requests()), ids=lambda one: str(one)[:40]
)
def test_an_error_on_command_is_kafkas(label: str, request_: Any, version: int) -> None:
    key = int(request_.API_KEY)
    theirs = bytes.fromhex(RECORDED[label])
    _, answer = frame.decode_response(key, version, memoryview(theirs)[4:])
    (code,) = codes_in(answer)
    found = places_of(key, ErrorCode(code), version)
    assert found, f"{label}: {ErrorCode(code).name} is not in the list of the API"
    ours = error_response(found[0], request_, version, ErrorCode(code), everything, lambda _: None)
    assert shown(request_, ours, version) == RECORDED[label], f"ours {ours}\nKafka {answer}"
