"""A follower called a tail of an old epoch committed for a moment, and woke who waited to read it.

It had led, and what it had appended last nobody else had. The new leader had others at those
offsets and had deleted them by then (retention), so that no diverging epoch told of it: its start
is where the follower's log ends. Found by simulation (seed 710226).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.log.types import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch
from kwire.replica.partition import Partition
from tests.support.replicas import Assignment, assign, replica_of_broker_1


def test_nobody_reads_what_the_leader_has_deleted(tmp_path: Path) -> None:
    replicas, partition = replica_of_broker_1(tmp_path)
    assign(replicas, Assignment(leader=2, epoch=1))
    tail = build_batch([Record(0, 0, None, b"never committed", [])], leader_epoch=0)
    partition.append_as_follower(bytes(tail))
    partition.log.write_tail()
    codes: list[ErrorCode] = []

    class Consumer:
        """Waits at the offset of that record."""

        def data_arrived(self, _: Partition, size_bytes: int) -> None:
            with pytest.raises(KafkaError) as raised:
                partition.log.read(0, 1000, isolation=Isolation.HIGH_WATERMARK)
            codes.append(raised.value.code)

    waiting: Any = Consumer()
    partition.data_listeners[waiting] = 0
    partition.leader_answered(1, 1)
    assert set(codes) == {ErrorCode.OFFSET_OUT_OF_RANGE}
    assert (partition.log.log_start_offset, partition.state.high_watermark) == (1, 1)
