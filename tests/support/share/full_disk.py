"""A dead letter topic whose disk is full: what becomes of records that are rejected then.

The disk is a small one that this topic has for itself, mounted for the test (Linux, root; skipped
elsewhere). Apache Kafka takes the log directory offline when it is full.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from kwire.protocol import messages as m
from kwire.protocol.dead_letter_headers import OFFSET
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import read_records
from kwire.testing.cluster import wait_for
from tests.golden.coordinator.dead_letter_dialogues import ENABLED, INDEX, SOURCE, Dialogue
from tests.support.share.member import REJECT, Member, said, set_group_config
from tests.support.wire import batch_of, fetch_request, produce_request

SMALL_MIB, LARGE_MIB = 16, 64
# Kafka gives a letter up 28 to 34 s after it was rejected: the next record is to be locked still.
LOCK_MS = 60_000
FILLINGS = (900 << 10, 90 << 10, 9 << 10, 900, 90, 1)
TOPIC, GROUP = "dlq.full", "full"
TAKEN = [0, None, [[1, 0, None]]]


@contextmanager
def small_disk(path: pathlib.Path) -> Iterator[None]:
    """A disk of SMALL_MIB at `path`, which is made; skips the test where none can be mounted."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs a disk of its own: Linux, as root")
    path.mkdir()
    if not _mount("-t", "tmpfs", "-o", f"size={SMALL_MIB}m", "tmpfs", str(path)):
        pytest.skip("needs a disk of its own: none can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def _mount(*words: str) -> bool:
    return subprocess.run(["mount", *words], check=False, capture_output=True).returncode == 0


class FullDisk:
    """A group with records in flight, and its dead letter topic in `small`, a directory of the
    broker on a small disk; all else is put into `others`."""

    def __init__(self, bootstrap: str, others: pathlib.Path, small: pathlib.Path) -> None:
        self.dialogue = Dialogue(bootstrap)
        self.client = self.dialogue.client
        self.key = (self.dialogue.topic_id, INDEX)
        self._small = small
        configs = {**ENABLED, "max.message.bytes": str(2 << 20)}
        self.client.create_topic(TOPIC, configs=configs)
        set_group_config(
            self.client,
            GROUP,
            share_auto_offset_reset="earliest",
            errors_deadletterqueue_topic_name=TOPIC,
            share_record_lock_duration_ms=str(LOCK_MS),
        )
        self.member = Member(bootstrap, GROUP, [SOURCE])
        self.member.join(3)
        self.member.acquire([self.key])
        self._part(str(others), str(small))

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self.member.close()
        self.client.close()

    def fill(self) -> None:
        """Write to the topic until nothing more fits."""
        for size_bytes in FILLINGS:
            refused = partial(self._is_refused, size_bytes)
            wait_for(refused, f"{size_bytes} bytes are too many")

    def free(self) -> None:
        """There is space again."""
        _mount("-o", f"remount,size={LARGE_MIB}m", str(self._small))

    def await_appends(self) -> None:
        """Until the topic takes records again."""
        wait_for(lambda: not self._is_refused(1), "the topic takes records")

    def reject(self, offset: int) -> None:
        """The acknowledgement is taken, and the record archived in the end."""
        answer = said(self.member.acknowledge({self.key: [(offset, offset, [REJECT])]}))
        assert answer == TAKEN, answer
        wait_for(lambda: self.dialogue.archived(GROUP) > offset, f"{offset} is archived")

    def letters(self) -> list[str]:
        """Origin offsets of the dead letters."""
        found: list[str] = []
        offset = 0
        while True:
            answer = self.client.call(fetch_request(TOPIC, {0: offset}), 12)
            data = bytes(answer.responses[0].partitions[0].records or b"")
            records = list(read_records(data))
            if not records:
                return found
            offset = records[-1].offset + 1
            for record in records:
                found += [str(bytes(x or b""), "ascii") for n, x in record.headers if n == OFFSET]

    def _is_refused(self, size_bytes: int) -> bool:
        request = produce_request(TOPIC, {0: batch_of([b"x" * size_bytes])})
        answer = self.client.call(request, 9).responses[0].partition_responses[0]
        full = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert answer.error_code in (0, *full), answer
        return answer.error_code in full

    def _part(self, others: str, full: str) -> None:
        shape = m.AlterReplicaLogDirsRequest
        moves: dict[str, dict[str, list[int]]] = {others: {}, full: {}}
        for name, index, _ in self._places():
            moves[full if name == TOPIC else others].setdefault(name, []).append(index)
        request = shape(
            dirs=[
                shape.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        shape.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                        for name, indexes in topics.items()
                    ],
                )
                for path, topics in moves.items()
            ]
        )
        self.client.call(request, 2)
        wait_for(
            lambda: all((path == full) == (name == TOPIC) for name, _, path in self._places()),
            "the topic has a directory of its own",
        )

    def _places(self) -> list[tuple[str, int, str]]:
        answer = self.client.call(m.DescribeLogDirsRequest(topics=None), 1)
        return [
            (topic.name, partition.partition_index, place.log_dir)
            for place in answer.results
            for topic in place.topics
            for partition in topic.partitions
        ]
