"""Batches of the metadata log that are replayed at once come as few runs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from kwire.kraft import metadata_log as module
from kwire.kraft.images.image_publisher import ImagePublisher
from kwire.kraft.metadata_log import MetadataBatch, MetadataLog, metadata_log_config
from kwire.kraft.snapshots.content import encode_batch
from kwire.protocol import messages as m
from kwire.protocol.structs import Message
from tests.support.logs import ManualClock


def topic(number: int) -> Message:
    return m.TopicRecord(name=f"t{number}", topic_id=number.to_bytes(16, "big"))


BEGIN, END = m.BeginTransactionRecord(name="x"), m.EndTransactionRecord()
# (epoch, records) of each batch
BATCHES: list[tuple[int, list[Message]]] = [
    (1, [topic(1)]),
    (1, [topic(2), topic(3)]),
    (1, [topic(4)]),
    (2, [topic(5)]),
    (2, [topic(6)]),
    (2, [BEGIN]),
    (2, [topic(7)]),
    (2, [topic(8)]),
    (2, [END]),
    (2, [topic(9)]),
    (2, [topic(10)]),
    (2, [BEGIN, topic(11)]),
]


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    made = MetadataLog.open(str(tmp_path), metadata_log_config(), ManualClock())
    offset = 0
    for number, (epoch, records) in enumerate(BATCHES):
        batch = encode_batch(
            [(record, 0) for record in records],
            base_offset=offset,
            epoch=epoch,
            timestamp_ms=1000 + number,
        )
        made.append_batch(offset, epoch, batch, 0)
        offset += len(records)
    return made


def names(batch: MetadataBatch) -> list[str]:
    return [record.name if isinstance(record, m.TopicRecord) else "-" for record in batch.records]


def test_runs_end_with_an_epoch_and_beside_the_ends_of_a_transaction(log: MetadataLog) -> None:
    runs = list(log.read_runs(0, log.log.next_offset))
    assert [names(run) for run in runs] == [
        ["t1", "t2", "t3", "t4"],
        ["t5", "t6"],
        ["-"],
        ["t7", "t8"],
        ["-"],
        ["t9", "t10"],
        ["-", "t11"],
    ]
    assert [run.epoch for run in runs] == [1, 2, 2, 2, 2, 2, 2]
    assert runs[0].timestamp_ms == 1002
    assert all(one.last_offset + 1 == other.base_offset for one, other in pairwise(runs))
    batches = list(log.read_batches(0, log.log.next_offset))
    assert len(batches) == len(BATCHES)
    assert sum(run.size_bytes for run in runs) == sum(batch.size_bytes for batch in batches)


def test_a_run_has_a_bound(log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [batch.size_bytes for batch in log.read_batches(0, 4)]
    monkeypatch.setattr(module, "READ_BYTES", sizes[0] + sizes[1])
    assert [names(run) for run in log.read_runs(0, 4)] == [["t1", "t2", "t3"], ["t4"]]


def test_runs_begin_and_end_where_they_are_asked_to(log: MetadataLog) -> None:
    """An offset inside a batch asks for what begins behind it."""
    assert [names(run) for run in log.read_runs(2, 6)] == [["t4"], ["t5", "t6"]]


def test_who_follows_by_runs_has_what_was_there_before_an_open_transaction(
    log: MetadataLog,
) -> None:
    told: list[list[str]] = []
    publisher = ImagePublisher()
    publisher.add(
        lambda delta, image: told.append([one.name for one in delta.topics_created.values()])
    )
    for run in log.read_runs(0, log.log.next_offset):
        publisher.on_commit(run)
    assert told == [
        ["t1", "t2", "t3", "t4"],
        ["t5", "t6"],
        ["t7", "t8"],
        ["t9", "t10"],
    ]
    assert publisher.image.in_transaction
    assert publisher.image.offset == log.log.next_offset - 3
