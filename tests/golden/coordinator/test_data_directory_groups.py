"""The groups of Kafka's data directories, loaded from their `__consumer_offsets`, are Kafka's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.settings import GroupSettings
from kwire.protocol import messages as m
from kwire.protocol.records import iterate_headers
from tests.support import data_directories as golden
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog
from tests.support.groups import answered

PARTITIONS = 4


def load(directory: Path) -> GroupCoordinator:
    """A coordinator that leads all of `directory`'s __consumer_offsets."""
    loop, log = ManualLoop(), MemoryLog()
    coordinator = GroupCoordinator(
        settings=GroupSettings(offsets_topic_partitions=PARTITIONS),
        partition_log=log,
        loop=loop,
        clock=ManualClock(loop),
        random=SeededRandom(1),
    )
    for partition in range(PARTITIONS):
        for path in sorted(directory.glob(f"__consumer_offsets-{partition}/*.log")):
            data = path.read_bytes()
            for position, header in iterate_headers(data):
                batch = bytearray(data[position : position + header.size_bytes])
                log.batches.setdefault(partition, []).append(batch)
                log.ends[partition] = header.next_offset
        log.commit(partition)
        coordinator.runtime.load(partition, 9)
    loop.run()
    return coordinator


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_groups(name: str, tmp_path: Path) -> None:
    coordinator = load(golden.unpack(name, tmp_path))
    expected: dict[str, Any] = golden.expected(name)["groups"]
    listed = coordinator.list_groups([], []).groups
    assert {x.group_id: (x.group_type, x.group_state, x.protocol_type) for x in listed} == {
        group: (facts["type"], facts["state"], facts["protocol"])
        for group, facts in expected.items()
    }
    for group, facts in expected.items():
        if facts["type"] == "share":
            continue  # where a share group stands is in another topic
        asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        found = answered(coordinator.fetch_offsets(asked, False))
        assert {
            f"{topic.name}-{x.partition_index}": {
                "offset": x.committed_offset,
                "leader_epoch": x.committed_leader_epoch,
                "metadata": x.metadata,
            }
            for topic in found.topics
            for x in topic.partitions
        } == facts["offsets"], group


def test_the_open_transaction_of_the_clean_directory_makes_its_offset_unstable(
    tmp_path: Path,
) -> None:
    coordinator = load(golden.unpack("clean", tmp_path))
    shards = [coordinator.runtime.shard(i) for i in range(PARTITIONS)]
    pending = {
        (producer_id, group)
        for shard in shards
        if shard is not None
        for producer_id, offsets in shard.storage.pending.items()
        for group in offsets.by_group
    }
    assert {producer_id for producer_id, _ in pending} == {3001}
