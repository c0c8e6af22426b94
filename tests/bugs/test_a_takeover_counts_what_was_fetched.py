"""A follower took over while its last append was being written: its high watermark stood still.

Found in a cluster with Apache Kafka: the new leader counted its log's end from before the append,
the other replica was level with it, and the producer that waited for those very records sent no
others. Until somebody appended again nothing was committed.
"""

from __future__ import annotations

from pathlib import Path

from kwire.pending import Pending
from kwire.protocol.records import Record, build_batch
from kwire.replica.state import FollowerFetched
from tests.support.replicas import Assignment, assign, replica_of_broker_1


class Later:
    """A scheduler whose next turn never comes."""

    def call_soon(self, callback: object) -> None:
        pass

    def call_later(self, delay_ms: float, callback: object) -> None:
        pass

    def run(self, job: object) -> Pending[None]:
        return Pending()


def test_the_new_leader_commits_what_it_had_fetched(tmp_path: Path) -> None:
    replicas, partition = replica_of_broker_1(tmp_path, Later())  # type: ignore[arg-type]
    assign(replicas, Assignment(leader=2, epoch=0))
    batch = build_batch([Record(0, 0, None, b"v", [])], leader_epoch=0)
    info = partition.append_as_follower(bytes(batch))
    assert not info.written.done
    assign(replicas, Assignment(leader=1, epoch=1))
    assert partition.log.leader_epochs.entries == [(0, 0), (1, 1)]
    partition.step(FollowerFetched(2, -1, 1, 0))
    assert partition.state.high_watermark == 1
