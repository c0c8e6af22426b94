"""Random histories of a node with two log directories, cut at any change of the disk.

Records are appended and deleted (DeleteRecords), logs move between the directories, are given up by
retention, compacted, and their topic is deleted and made anew, on the other directory too. At a
drawn call the process is killed, or the power goes, and the node starts again, three times over:

- what was acknowledged and lies above the log's start is there (a power loss: with
  `flush.messages=1`), of a compacted log the last value of every key;
- a log start that was answered never falls back, and none is above what was asked for;
- nothing is there that was not sent to this incarnation of the topic.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.protocol.records import Record, build_batch
from kwire.protocol.records.reading import read_batch
from tests.support.cleaning import CONFIG, CleaningWorld, batches
from tests.support.effort import seeds

TOPIC = "topic"
KEY = (TOPIC, 0)
STEPS = 60
CRASHES = 3
READING = {"pread", "read_file"}


class Crash(BaseException):
    """The machine stops at this call: nothing may catch it."""


class Incarnation:
    """What is known of the topic under one id."""

    def __init__(self) -> None:
        self.sent: dict[int, set[tuple[bytes, bytes]]] = {}
        self.acknowledged: dict[int, tuple[bytes, bytes]] = {}
        self.start_answered = 0
        self.start_asked = 0


class Node(CleaningWorld):
    """Two log directories and one topic, whose id the metadata knows."""

    def __init__(self, seed: int, *, flush: bool, compacts: bool) -> None:
        self.draw = SeededRandom(seed)
        self.topic_id = b""
        self.known: dict[bytes, Incarnation] = {}
        self.number = 0
        config = dataclasses.replace(
            CONFIG,
            cleanup_policy=("compact", "delete") if compacts else ("delete",),
            segment_bytes=600,
            delete_retention_ms=50,
            file_delete_delay_ms=300,
            flush_messages=1 if flush else LogConfig().flush_messages,
        )
        super().__init__(config, seed=seed, partitions=0, other_directories=("/other",))
        self.disk.sync_directory("/")
        self.make()

    @property
    def now(self) -> Incarnation:
        return self.known[self.topic_id]

    def make(self) -> None:
        """The topic under a new id, in either directory."""
        self.number += 1
        self.topic_id = self.number.to_bytes(16, "big")
        self.known[self.topic_id] = Incarnation()
        self.open_log()

    def open_log(self) -> None:
        directory = self.manager.directories[self.draw.below(2)]
        self.manager.create(TOPIC, 0, self.topic_id, self.config, directory=directory)
        self.scheduler.turn()

    def start(self, expected_topic: Any = None) -> None:
        super().start(lambda topic, partition: self.topic_id or None)

    @property
    def log(self) -> PartitionLog:
        log = self.manager.get(*KEY)
        assert log is not None
        return log

    # -- steps

    def put(self) -> None:
        self.number += 1
        log, row = self.log, (b"key-%d" % self.draw.below(5), b"%06d" % self.number + bytes(60))
        self.now.sent.setdefault(log.next_offset, set()).add(row)
        batch = memoryview(build_batch([Record(0, self.clock.now_ms, *row)]))
        info = log.append_as_leader(batch, leader_epoch=0)
        self.scheduler.turn()
        assert info.written.error() is None
        self.now.acknowledged[info.base_offset] = row
        log.update_high_watermark(log.log_end_offset)

    def delete_records(self) -> None:
        log = self.log
        offset = log.log_start_offset + self.draw.below(
            log.high_watermark - log.log_start_offset + 1
        )
        self.now.start_asked = max(self.now.start_asked, offset)
        log.delete_records_before(offset)
        saved = self.manager.checkpoint_log_starts([KEY])
        self.scheduler.turn()
        assert saved.error() is None
        self.now.start_answered = max(self.now.start_answered, offset)

    def move(self) -> None:
        home = self.manager.directory_of(*KEY)
        others = [directory for directory in self.manager.directories if directory is not home]
        self.manager.moves.rate_max = (1, 3000, 1 << 40)[self.draw.below(3)]
        self.manager.moves.begin(KEY, others[0])
        self.scheduler.advance(self.draw.below(400))

    def make_anew(self) -> None:
        self.topic_id = b""  # the metadata has forgotten it first
        self.manager.delete(*KEY)
        if self.draw.below(2):
            self.scheduler.turn()
        self.make()

    def maintain(self) -> None:
        self.manager.moves.rate_max = 1 << 40
        self.manager.enforce_retention()
        self.cleaner.find_work()
        self.scheduler.advance(self.draw.below(700))

    def checkpoint(self) -> None:
        self.manager.checkpoint_recovery()
        self.manager.checkpoint_high_watermarks()
        self.manager.checkpoint_log_starts()
        self.scheduler.turn()

    def restart(self) -> None:
        self.manager.shutdown(1)
        self.start()

    def live(self) -> None:
        """Steps as they are drawn."""
        steps = [self.put] * 12 + [self.delete_records] * 3 + [self.move] * 2 + [self.maintain] * 2
        steps += [self.checkpoint, self.make_anew, self.restart]
        for _ in range(STEPS):
            self.clock.now_ms += self.draw.below(40)
            if self.draw.below(6) == 0:
                self.log.roll()
            steps[self.draw.below(len(steps))]()

    # -- what is there

    def check(self) -> None:
        known = self.now if self.topic_id in self.known else None
        log = self.manager.get(*KEY)
        if known is None:
            assert log is None, "deleted, yet there"
            self.make()
            return
        if log is None:
            assert not known.acknowledged, "the log is gone"
            self.open_log()
            return
        assert log.topic_id == self.topic_id
        assert known.start_answered <= log.log_start_offset, "the log's start fell back"
        assert log.log_start_offset <= known.start_asked, "more was deleted than was asked for"
        log.update_high_watermark(log.log_end_offset)
        there = {}
        for _, data in batches(log):
            for record in read_batch(data):
                assert record.key is not None
                assert record.value is not None
                row = record.key, record.value
                assert row in known.sent.get(record.offset, ()), f"{record.offset} was not sent"
                there[record.offset] = row
        kept = {o: row for o, row in known.acknowledged.items() if o >= log.log_start_offset}
        if log.config.compacts:
            left = {key: offset for offset, (key, _) in sorted(there.items())}
            for offset, (key, _) in kept.items():
                assert left.get(key, -1) >= offset, f"the value of {key!r} at {offset} is lost"
        else:
            assert {o: there.get(o) for o in kept} == kept


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("seed", seeds(6))
def test_a_crash_in_any_history_keeps_what_was_told(seed: int, power: bool, compacts: bool) -> None:
    node = Node(4 * seed + 2 * power + compacts, flush=power, compacts=compacts)
    for _ in range(CRASHES):
        left = [node.draw.below(900)]

        def fault(operation: str, path: str, left: list[int] = left) -> None:
            left[0] -= operation not in READING
            if left[0] < 0:
                raise Crash

        node.disk.fault = fault
        try:
            node.live()
        except Crash:
            pass
        node.disk.fault = None
        if power:
            node.disk.crash()
        else:
            node.disk.process_killed()
        node.start()
        node.check()
        node.restart()
        node.check()
