"""A broker's partitions over real logs, which follow an image that a test changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kwire.clock import SeededRandom, SystemClock
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.replica.state import AlterIsr

TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000


class Turn:
    """A scheduler whose later turn comes when the test says so."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.later.append(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Any:
        class Never:
            def cancel(self) -> None:
                pass

        return Never()

    def run(self, job: Callable[[], Any]) -> Pending[Any]:
        try:
            return Pending.completed(job())
        except Exception as error:
            return Pending.failed(error)

    def turn(self) -> None:
        later, self.later = self.later, []
        for callback in later:
            callback()


class Waiter:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def data_arrived(self, partition: Partition, size_bytes: int) -> None:
        self.events.append(size_bytes)

    def log_extended(self, partition: Partition, size_bytes: int) -> None:
        pass

    def partition_changed(self, partition: Partition) -> None:
        self.events.append("changed")


class World:
    """A broker (id 1) following an image that the test changes with records."""

    def __init__(self, directory: Path) -> None:
        self.scheduler = Turn()
        self.configs: dict[str, LogConfig] = {}
        self.logs = LogManager(
            [str(directory)],
            SystemClock(),
            SeededRandom(1),
            scheduler=self.scheduler,
        )
        self.logs.open_directories()
        self.logs.load_all()
        self.now_ms = 0
        self.wanted_isrs: list[AlterIsr] = []
        self.replicas = ReplicaManager(
            1, self.logs, lambda topic: self.configs.get(topic, LogConfig()), lambda: self.now_ms
        )
        self.replicas.isr_changes = self
        self.image = MetadataImage()
        self.offset = -1
        self.slices = 0
        self.leaderships: list[tuple[str, int, int | None]] = []
        self.replicas.add_listener(
            lambda p, epoch: self.leaderships.append((p.topic, p.index, epoch))
        )

    def submit(self, partition: Partition, wanted: AlterIsr) -> None:
        self.wanted_isrs.append(wanted)

    def apply(self, *records: Any) -> None:
        delta = MetadataDelta()
        for record in records:
            self.offset += 1
            self.image.replay(record, self.offset, 1, delta)
        self.slices = 1 + sum(1 for _ in self.replicas.apply(delta, self.image))

    def create(self, replicas: list[int], leader: int = 1, partitions: int = 1) -> None:
        self.apply(
            m.TopicRecord(name="t", topic_id=TOPIC_ID),
            *[
                m.PartitionRecord(
                    partition_id=index,
                    topic_id=TOPIC_ID,
                    replicas=replicas,
                    isr=replicas,
                    leader=leader,
                    leader_epoch=3,
                    directories=[bytes(15) + b"\x65"] * len(replicas),
                )
                for index in range(partitions)
            ],
        )

    def change(self, index: int = 0, **fields: Any) -> None:
        self.apply(m.PartitionChangeRecord(partition_id=index, topic_id=TOPIC_ID, **fields))

    def partition(self, index: int = 0) -> Partition:
        found = self.replicas.partition("t", index)
        assert found is not None
        return found

    def append(self, acks: int = -1, index: int = 0, **options: Any) -> Any:
        batch = build_batch([Record(0, NOW_MS, None, b"value", [])])
        return self.partition(index).append(batch, acks=acks, wall_ms=NOW_MS, **options)

    def committed(self, offset: int) -> list[ErrorCode]:
        """What somebody is told who waits for `offset`; empty until then."""
        told: list[ErrorCode] = []
        self.partition().wait_for_commit(offset, told.append)
        return told

    def waited_for(self) -> tuple[list[ErrorCode], Waiter]:
        """A record that is not committed, with a producer and a consumer that wait for that."""
        self.create([1, 2])
        self.append()
        self.scheduler.turn()
        waiter = Waiter()
        self.partition().data_listeners[waiter] = 0
        return self.committed(1), waiter
