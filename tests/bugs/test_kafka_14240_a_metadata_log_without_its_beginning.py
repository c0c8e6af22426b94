"""KAFKA-14240: a metadata log that begins behind 0 needs a snapshot of what was before.

Without one (files were lost, or copied in part) Kafka started with metadata that lacked topics, and
brokers took their logs for stray ones. A node does not start on such a log, and says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.kraft.raft import messages as msg
from kwire.kraft.snapshots.content import SnapshotError
from tests.support.driver_cluster import IDS, Cluster


def test_a_log_that_lacks_its_snapshot_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start(*IDS)
    leader = cluster.wait_active()
    late = next(node_id for node_id in IDS if node_id != leader.id)
    cluster.kill(late)
    reply = leader.write("topic")
    cluster.loop.run_until(lambda: reply.done)
    assert leader.driver.snapshotter.take()
    log = leader.driver.raft.log
    cluster.loop.run_until(lambda: log.latest_snapshot[0] > 0)
    leader.driver.step(msg.DeletePrefix(log.latest_snapshot))
    assert log.start_offset > 0
    cluster.start(late)
    cluster.wait_same()
    stopped = cluster.nodes[late].driver.stop()
    cluster.loop.run_until(lambda: stopped.done)
    root = tmp_path / str(late)

    def opened() -> MetadataLog:
        clock = cluster.loop
        return MetadataLog.open(str(root), metadata_log_config(), clock, scheduler=clock)

    assert opened().log_state().start_offset == log.start_offset
    for checkpoint in (root / "__cluster_metadata-0").glob("*.checkpoint"):
        checkpoint.unlink()
    with pytest.raises(SnapshotError, match=f"starts at {log.start_offset}") as refused:
        opened().log_state()
    assert "\n" not in str(refused.value)
