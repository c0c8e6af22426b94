"""Messages of Protobuf schemas as records: which of them are refused, and why."""

from __future__ import annotations

import pytest

pytest.importorskip("google.protobuf")

from kwire.schemas.formats import parse
from kwire.schemas.validation.allowance import Allowance
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.prepared import prepared

REQUIRED = """syntax = "proto2";
message Order {
  required int32 id = 1;
  repeated Line lines = 2;
  optional string note = 3;
}
message Line { required string name = 1; }
"""


def check(data: bytes) -> None:
    prepared(parse("PROTOBUF", REQUIRED, {})).decode(b"\0" + data, 0, Allowance(20_000))


def test_a_message_with_its_required_fields() -> None:
    check(b"\x08\x01")
    check(b"\x08\x01\x12\x03\x0a\x01a")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "required fields are missing: id$"),
        (b"\x12\x00", r"required fields are missing: id, lines\[0\].name$"),
        (b"\x08\x01\x12\x03\x0a\x01a\x12\x00", r"are missing: lines\[1\].name$"),
        (b"\x08\x01" + b"\x12\x00" * 1000, r"lines\[9\].name$"),
        (b"\x12\x00" * 1025, "required fields are missing$"),
        (b"\x08", "no message of the schema"),
    ],
)
def test_a_message_without_a_required_field_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        check(data)
