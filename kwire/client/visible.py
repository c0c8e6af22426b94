"""What an application sees of the records that a fetch brought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kwire.protocol import messages as m
from kwire.protocol.records import Record, iterate_headers, read_batch
from kwire.protocol.records.control import ControlType, control_type
from kwire.protocol.structs import Buffer, Records

_Data: TypeAlias = "m.FetchResponse.PartitionData"


def one_buffer(records: Records) -> Buffer:
    """The batches of a response: decoded, they are one buffer."""
    if isinstance(records, list):
        raise AssertionError("records of a response in pieces")
    return records


def visible_records(data: _Data, *, committed_only: bool) -> Iterator[Record]:
    """The records of a partition's answer that an application sees; KafkaError where they cannot
    be read."""
    if not data.records:
        return
    records = one_buffer(data.records)
    pending = sorted(
        (entry.first_offset, entry.producer_id) for entry in data.aborted_transactions or []
    )
    aborting: dict[int, None] = {}
    for position, header in iterate_headers(records):
        while committed_only and pending and pending[0][0] <= header.last_offset:
            aborting[pending.pop(0)[1]] = None
        if header.is_control:
            marker = read_batch(records, position)
            if marker and control_type(marker[0]) == ControlType.ABORT:
                aborting.pop(header.producer_id, None)
        elif not (header.is_transactional and header.producer_id in aborting):
            yield from read_batch(records, position)
