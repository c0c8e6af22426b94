"""What is counted of the metadata quorum: commits, leaders, elections that were not clean."""

from __future__ import annotations

from kwire.kraft.images.image_publisher import ElectionCounts
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.kraft.quorum_counts import QuorumCounts
from kwire.protocol import messages as m

TOPIC_ID = b"t" * 16


def test_a_commit_takes_from_the_append_until_the_high_watermark_is_behind_it() -> None:
    counts = QuorumCounts()
    counts.appended(0, 3, 1.0)
    counts.appended(3, 2, 2.0)
    counts.committed(4, 3.0)
    assert list(counts.commit_times_s) == [2.0]
    counts.committed(5, 5.0)
    assert list(counts.commit_times_s) == [2.0, 3.0]
    assert counts.appended_records == 5


def test_an_election_takes_from_the_loss_of_a_leader_to_the_next() -> None:
    counts = QuorumCounts()
    counts.leader_changed(1, 1.0)
    counts.leader_changed(None, 2.0)
    counts.leader_changed(None, 3.0)  # of the next epoch
    counts.leader_changed(2, 5.0)
    assert list(counts.election_times_s) == [3.0]
    assert counts.leaders == 2


def test_what_a_lost_leader_had_appended_is_never_its_commit() -> None:
    counts = QuorumCounts()
    counts.appended(0, 3, 1.0)
    counts.leader_changed(None, 2.0)
    counts.committed(3, 9.0)
    assert list(counts.commit_times_s) == []


def elected(isr: list[int], elr: list[int], leader: int, next_leader: int) -> tuple[int, int]:
    """(unclean, of the eligible) after one change of the leader."""
    image = MetadataImage()
    image.replay(m.TopicRecord(name="t", topic_id=TOPIC_ID), 0, 1, MetadataDelta())
    partition = m.PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=[1, 2, 3],
        isr=isr,
        eligible_leader_replicas=elr,
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=[b"d" * 16] * 3,
    )
    image.replay(partition, 1, 1, MetadataDelta())
    delta = MetadataDelta()
    change = m.PartitionChangeRecord(
        topic_id=TOPIC_ID, partition_id=0, leader=next_leader, isr=[next_leader]
    )
    image.replay(change, 2, 1, delta)
    counts = ElectionCounts()
    counts.count(delta)
    return counts.unclean, counts.of_eligible


def test_elections_are_told_apart() -> None:
    assert elected([1, 2], [], 1, 2) == (0, 0), "of the ISR"
    assert elected([1], [2], 1, 2) == (0, 1), "of those that were eligible"
    assert elected([1], [2], 1, 3) == (1, 0), "of neither"
    assert elected([1], [], 1, -1) == (0, 0), "nobody"
