"""A voter whose metadata log was damaged after a clean stop started with what is before the damage.

It had acknowledged the rest: with its vote a replica that lacks committed records could lead, and
a node alone went on without the topics it had created, their logs set aside as strays. A clean
stop notes where the log ended; if something below is missing, the node says so and does not start.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.kraft.metadata_log import END_FILE, MetadataLog, metadata_log_config
from kwire.kraft.snapshots.content import SnapshotError
from tests.support.driver_cluster import IDS, Cluster


def flipped(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)


def cut(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-5])


def emptied(log: Path) -> None:
    log.write_bytes(b"")


def opened(cluster: Cluster, root: Path) -> MetadataLog:
    clock = cluster.loop
    return MetadataLog.open(str(root), metadata_log_config(), clock, scheduler=clock)


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[Cluster, Path, int]:
    """A cluster one of whose nodes was stopped; its directory and the end of its log."""
    cluster = Cluster(tmp_path)
    cluster.start(*IDS)
    node = cluster.wait_active()
    for number in range(5):
        reply = node.write(f"topic{number}")
        cluster.loop.run_until(lambda reply=reply: reply.done)  # type: ignore[misc]
    done = node.driver.stop()
    cluster.loop.run_until(lambda: done.done)
    return cluster, tmp_path / str(node.id), node.driver.raft.log.end_offset


@pytest.mark.parametrize("damage", [flipped, cut, emptied])
def test_what_was_durable_is_not_forgotten(
    stopped: tuple[Cluster, Path, int], damage: Callable[[Path], None]
) -> None:
    cluster, root, end_offset = stopped
    folder = root / "__cluster_metadata-0"
    log = folder / "00000000000000000000.log"
    whole = log.read_bytes()
    damage(log)
    damaged = log.read_bytes()
    for _ in range(2):
        with pytest.raises(SnapshotError, match="durable at the last stop") as refused:
            opened(cluster, root)
        assert "\n" not in str(refused.value)
        assert log.read_bytes() == damaged, "nothing is repaired"
    log.write_bytes(whole)
    assert opened(cluster, root).log_state().end_offset == end_offset
    assert not (folder / END_FILE).exists(), "what follows may be torn by a kill"


def test_after_a_kill_what_is_damaged_ends_the_log(stopped: tuple[Cluster, Path, int]) -> None:
    cluster, root, end_offset = stopped
    folder = root / "__cluster_metadata-0"
    opened(cluster, root)  # and never closed
    cut(folder / "00000000000000000000.log")
    assert 0 < opened(cluster, root).log_state().end_offset < end_offset
