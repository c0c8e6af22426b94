"""A follower took over while its last append was being written: its high watermark stood still.

Found in a cluster with Apache Kafka: the new leader counted its log's end from before the append,
the other replica was level with it, and the producer that waited for those very records sent no
others. Until somebody appended again nothing was committed.
"""

from __future__ import annotations

from pathlib import Path

from kwire.clock import SeededRandom, SystemClock
from kwire.log.log_config import LogConfig
from kwire.log.manager import LogManager
from kwire.pending import Pending
from kwire.protocol.records import Record, build_batch
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.replica.state import FollowerFetched, ReplicaState


class Later:
    """A scheduler whose next turn never comes."""

    def call_soon(self, callback: object) -> None:
        pass

    def call_later(self, delay_ms: float, callback: object) -> None:
        pass

    def run(self, job: object) -> Pending[None]:
        return Pending()


def test_the_new_leader_commits_what_it_had_fetched(tmp_path: Path) -> None:
    logs = LogManager([str(tmp_path)], SystemClock(), SeededRandom(1), scheduler=Later())  # type: ignore[arg-type]
    logs.open_directories()
    replicas = ReplicaManager(1, logs, lambda topic: LogConfig(), lambda: 0)
    partition = Partition("t", bytes(16), 0, ReplicaState(1))
    partition.log = logs.create("t", 0, bytes(16), LogConfig())
    replicas.by_id[bytes(16), 0] = partition

    class Image:
        def __init__(self, leader: int, epoch: int) -> None:
            self.leader, self.leader_epoch, self.partition_epoch = leader, epoch, epoch
            self.replicas = self.isr = (1, 2)

    replicas._assign("t", bytes(16), 0, Image(2, 0))
    batch = build_batch([Record(0, 0, None, b"v", [])], leader_epoch=0)
    info = partition.append_as_follower(bytes(batch))
    assert not info.written.done
    replicas._assign("t", bytes(16), 0, Image(1, 1))
    assert partition.log.leader_epochs.entries == [(0, 0), (1, 1)]
    partition.step(FollowerFetched(2, -1, 1, 0))
    assert partition.state.high_watermark == 1
