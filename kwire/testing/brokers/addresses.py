"""The addresses in a copy of a broker's metadata log: others, so that a second cluster has it.

Where brokers and controllers are reached is in the metadata log and its snapshots:

    VotersRecord                the controllers, by which the quorum finds itself
    RegisterBrokerRecord        the brokers, until they register anew
    RegisterControllerRecord    the controllers, likewise

A copy that kept them would have its brokers ask those of the cluster that it was copied from. Only
ports change, which have a fixed size: records keep their places, and batches get a new checksum.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from kwire.kraft.raft.control_records import ControlType, decode_control
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import KafkaError
from kwire.protocol.metadata_records import decode_record, encode_record
from kwire.protocol.records.header import compute_crc

METADATA = "__cluster_metadata-0"
SUFFIXES = (".log", ".checkpoint")
CRC_POSITION = 17

_Endpoint: TypeAlias = (
    "m.RegisterBrokerRecord.BrokerEndpoint | m.RegisterControllerRecord.ControllerEndpoint"
    "| m.VotersRecord.Endpoint"
)


def move_addresses(data: Path, ports: Mapping[int, int]) -> None:
    """In a data directory that nobody uses, each port that `ports` has becomes what it says there.

    Files that change are new ones: other names of theirs keep what they were. OSError.
    """
    for path in sorted((data / METADATA).iterdir()):
        if path.suffix not in SUFFIXES:
            continue
        content = bytearray(path.read_bytes())
        if _move(content, ports):
            draft = path.with_name(path.name + ".moved")
            draft.write_bytes(content)
            draft.chmod(path.stat().st_mode & 0o777)
            os.replace(draft, path)


def _move(content: bytearray, ports: Mapping[int, int]) -> bool:
    """Whether any batch has changed."""
    has_changed = False
    for position, header in _batches(content):
        is_other = False
        at = position
        for record in records.read_batch(bytes(content), position):
            if record.value is None:
                continue
            value = bytes(record.value)
            at = content.index(value, at)
            moved = _moved(record.key, value, ports, is_control=header.is_control)
            if moved != value:
                content[at : at + len(value)] = moved
                is_other = True
            at += len(value)
        if is_other:
            crc = compute_crc(content, position, header.size_bytes)
            content[position + CRC_POSITION : position + CRC_POSITION + 4] = crc.to_bytes(4, "big")
            has_changed = True
    return has_changed


def _batches(content: bytearray) -> list[tuple[int, records.BatchHeader]]:
    """Up to what is no batch: a copy of a broker that was killed may end in the middle of one."""
    found = []
    with suppress(KafkaError):
        for position, header in records.iterate_headers(bytes(content)):
            if not records.check_crc(content, position, header):
                break
            found.append((position, header))
    return found


def _moved(
    key: bytes | memoryview | None, value: bytes, ports: Mapping[int, int], *, is_control: bool
) -> bytes:
    """The value of a record with other ports, as long as it was."""
    if is_control:
        entry = decode_control(0, key, value)
        if entry.type != ControlType.VOTERS or not isinstance(entry.message, m.VotersRecord):
            return value
        for voter in entry.message.voters:
            _set_ports(voter.endpoints, ports)
        return entry.message.encode(entry.message.version)
    message, version = decode_record(value)
    if not isinstance(message, m.RegisterBrokerRecord | m.RegisterControllerRecord):
        return value
    _set_ports(message.end_points, ports)
    return encode_record(message, version)


def _set_ports(endpoints: Sequence[_Endpoint], ports: Mapping[int, int]) -> None:
    for endpoint in endpoints:
        endpoint.port = ports.get(endpoint.port, endpoint.port)
