"""The addresses in a copy of the metadata log: other ports, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from kwire.clock import SystemClock
from kwire.kraft.raft.control_records import ControlType, build_control_batch
from kwire.kraft.raft.voters import VoterSet
from kwire.kraft.snapshots.content import build_snapshot, encode_batch, parse_snapshot
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.metadata_records import decode_record
from kwire.testing.brokers.addresses import METADATA, move_addresses

PORTS = {9092: 19092, 9093: 9092}
"""One becomes what another was: no port is moved twice."""


def voters() -> m.VotersRecord:
    return m.VotersRecord(
        version=0,
        voters=[
            m.VotersRecord.Voter(
                voter_id=number,
                voter_directory_id=bytes([number]) * 16,
                endpoints=[m.VotersRecord.Endpoint(name="C", host="127.0.0.1", port=port)],
            )
            for number, port in ((1, 9093), (2, 9999))
        ],
    )


def registered(port: int) -> m.RegisterBrokerRecord:
    record = m.RegisterBrokerRecord(broker_id=1, incarnation_id=bytes(16), broker_epoch=5)
    record.end_points = [
        m.RegisterBrokerRecord.BrokerEndpoint(name="P", host="127.0.0.1", port=port)
    ]
    return record


def test_ports_are_other_ones_and_every_batch_is_sound(tmp_path: Path) -> None:
    folder = tmp_path / METADATA
    folder.mkdir()
    topic = m.TopicRecord(name="t", topic_id=bytes(range(16)))
    log = b"".join(
        (
            build_control_batch(
                ((ControlType.VOTERS, voters()),), base_offset=0, epoch=1, timestamp_ms=7
            ),
            encode_batch(
                [(topic, 0), (registered(9092), 3), (registered(9092), 3)],
                base_offset=1,
                epoch=1,
                timestamp_ms=8,
            ),
        )
    )
    path = folder / f"{0:020d}.log"
    path.write_bytes(log + log[:30])  # it ends in the middle of a batch
    os.link(path, tmp_path / "kept")
    checkpoint = folder / f"{4:020d}-{1:010d}.checkpoint"
    checkpoint.write_bytes(
        b"".join(
            build_snapshot(
                [(topic, 0)],
                epoch=1,
                clock=SystemClock(),
                last_timestamp_ms=8,
                kraft_version=1,
                voters=VoterSet.from_record(voters()),
            )
        )
    )
    checkpoint.chmod(0o400)
    move_addresses(tmp_path, PORTS)

    moved = path.read_bytes()
    assert len(moved) == len(log) + 30
    batches = list(records.iterate_headers(moved[: len(log)]))
    assert all(records.check_crc(moved, at, header) for at, header in batches)
    first, *rest = (record for at, _ in batches for record in records.read_batch(moved, at))
    assert first.value is not None
    assert ports_of(m.VotersRecord.decode(first.value, 0)) == [9092, 9999]
    topic_again, *brokers = (decode_record(record.value or b"")[0] for record in rest)
    assert topic_again == topic
    assert [one.end_points[0].port for one in brokers if isinstance(one, type(registered(1)))] == [
        19092,
        19092,
    ]
    assert (tmp_path / "kept").read_bytes() == log + log[:30]
    taken = parse_snapshot(checkpoint.read_bytes()).voters
    assert taken is not None
    assert ports_of(taken.to_record()) == [9092, 9999]
    assert checkpoint.stat().st_mode & 0o777 == 0o400


def ports_of(record: m.VotersRecord) -> list[int]:
    return [voter.endpoints[0].port for voter in record.voters]
