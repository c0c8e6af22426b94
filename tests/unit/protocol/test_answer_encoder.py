"""An encoder that tells whether a response is a usual one: the same bytes, and never a response of
which counting would find something else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.error_fields import CODE_FIELDS
from kwire.protocol.errors import UnsupportedVersionError
from kwire.protocol.frame import encode_answer, encode_response
from kwire.protocol.structs import Message, Struct
from kwire.server.request_counts import unusual_codes


@dataclass
class Told:
    """What was counted: versions of usual answers, and the others."""

    usual: list[int] = field(default_factory=list)
    unusual: list[tuple[int, Any]] = field(default_factory=list)

    def count_unusual(self, version: int, response: Any) -> None:
        self.unusual.append((version, response))


def filled(response_class: type[Message], version: int, elements: int) -> tuple[Message, list[Any]]:
    """A response with so many elements in each array that the version has, and all its structs
    that have an error code, with the code's name."""
    found: list[tuple[Struct, str]] = []

    def fill(struct: Any, definition: schema.Struct) -> Any:
        for each in definition.fields:
            if each.name in CODE_FIELDS:
                found.append((struct, each.name))
            inner = each.struct
            is_there = schema.within(version, each.versions) and each.tag is None
            if inner is not None and each.is_array and is_there:
                shape = response_class.STRUCTS[each.type]
                setattr(struct, each.name, [fill(shape(), inner) for _ in range(elements)])
        return struct

    return fill(response_class(), response_class.SCHEMA.root), found


@pytest.mark.parametrize("key", API_KEYS)
def test_what_is_told_to_be_usual_adds_nothing_but_one_request(key: ApiKey) -> None:
    response_class = m.response_class(key)
    for version in range(response_class.MIN_VERSION, response_class.MAX_VERSION + 1):
        for elements in (0, 1, 2):
            response, codes = filled(response_class, version, elements)
            check(key, version, response)
            for struct, name in codes:
                setattr(struct, name, 41)
                check(key, version, response)
                setattr(struct, name, 0)


def check(key: ApiKey, version: int, response: Message) -> None:
    try:
        expected = b"".join(encode_response(key, version, 7, response))
    except UnsupportedVersionError:
        return  # what is set is not in this version
    told = Told()
    assert b"".join(encode_answer(key, version, 7, response, told)) == expected
    assert told == Told([version]) or told == Told([], [(version, response)])
    assert told.unusual or unusual_codes(response) == 0, response


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.PRODUCE, 9),
        (ApiKey.FETCH, 12),
        (ApiKey.FETCH, 16),
        (ApiKey.OFFSET_COMMIT, 8),
        (ApiKey.HEARTBEAT, 3),
    ],
)
def test_nearly_every_response_is_a_usual_one(key: ApiKey, version: int) -> None:
    """One element on the way to each code, and none of them an error."""
    response, codes = filled(m.response_class(key), version, 1)
    for struct, _ in codes:
        if isinstance(struct, m.FetchResponse.PartitionData):
            struct.aborted_transactions = None
            struct.records = [b"records"]
    told = Told()
    encode_answer(key, version, 1, response, told)
    assert told == Told([version])
    for struct, name in codes:
        setattr(struct, name, 3)
        told = Told()
        encode_answer(key, version, 1, response, told)
        assert told == Told([], [(version, response)])
        setattr(struct, name, 0)
