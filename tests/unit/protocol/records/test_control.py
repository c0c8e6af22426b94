"""Control records: what their keys and values say, and what is not one."""

from __future__ import annotations

import pytest

from kwire.protocol import messages
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, control, parse_header, read_batch
from kwire.protocol.records.control import ControlType, parse_control


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_who_ended_what_and_how(commit: bool) -> None:
    data = control.end_transaction_marker(77, 3, commit, 12, 5000)
    header = parse_header(data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, -1)
    assert header.is_control
    assert header.is_transactional
    parsed = parse_control(read_batch(data)[0])
    assert parsed.type is (ControlType.COMMIT if commit else ControlType.ABORT)
    assert parsed.coordinator_epoch == 12


def test_raft_s_control_records_carry_their_messages() -> None:
    leader = messages.LeaderChangeMessage(leader_id=4)
    footer = messages.SnapshotFooterRecord()
    data = control.control_batch(
        [control.leader_change(leader, 10), control.snapshot_footer(footer, 11)],
        base_offset=30,
        leader_epoch=2,
    )
    header = parse_header(data)
    assert header.is_control
    assert not header.is_transactional
    records = read_batch(data)
    assert [record.offset for record in records] == [30, 31]
    parsed = [parse_control(record) for record in records]
    assert [entry.type for entry in parsed] == [
        ControlType.LEADER_CHANGE,
        ControlType.SNAPSHOT_FOOTER,
    ]
    assert parsed[0].value == leader
    assert parsed[1].value == footer


def test_types_of_the_future_are_skipped_not_refused() -> None:
    assert parse_control(Record(0, 0, b"\0\0\0\x63", b"any")).type is ControlType.UNKNOWN


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\0\0", b""),
        (b"\xff\xff\0\0", b""),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
        (b"\0\0\0\2", b"\0"),
    ],
)
def test_what_is_no_control_record_is_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(KafkaError) as raised:
        parse_control(Record(0, 0, key, value))
    assert raised.value.code == ErrorCode.INVALID_RECORD
