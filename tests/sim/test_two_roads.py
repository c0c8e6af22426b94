"""Plain roads answer what the general way answers, and leave the same state behind (ADR 55)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import pytest

from kwire.coordinator.coordinator_log import PartitionCoordinatorLog
from kwire.coordinator.group import current_consumer
from kwire.coordinator.group.consumer.state import Member as ConsumerMember
from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.current_consumer import CurrentConsumer
from kwire.coordinator.group.current_member import CurrentMember
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.group.usual_commit import OffsetShard, UsualCommit
from kwire.coordinator.open_batch import OpenBatch
from kwire.coordinator.partition import PartitionShard
from kwire.coordinator.shard_interface import Moment, Number
from kwire.protocol import messages as m
from kwire.protocol.commit_frames import CommitValue
from kwire.protocol.records.build import MadeBatch
from kwire.server.described_topics import DescribedTopics
from tests.sim.two_roads import TOPICS, Member, Road, difference
from tests.support.effort import seeds


@pytest.mark.parametrize("seed", seeds(12))
def test_both_roads_give_the_same_answers_and_leave_the_same_state(seed: int) -> None:
    assert difference(seed) is None


def test_most_usual_requests_of_these_histories_take_a_plain_road() -> None:
    """The comparison above is one: otherwise it would compare the general way with itself."""
    taken = of_plain_apis = 0
    for seed in range(6):
        road = Road(seed, plain=True)
        road.run()
        taken += road.taken
        of_plain_apis += road.of_plain_apis
    assert taken > of_plain_apis / 3, (taken, of_plain_apis)


class EmptyTopics(Road):
    """A member commits topics of which it names no partition."""

    async def _history(self) -> None:
        peer = await self._connected(0)
        for name in TOPICS:
            await self._create(peer, "create", name)
        await self._ask(peer, "find", self._found(peer))
        await asyncio.sleep(1)
        while not peer.member.member_id:
            await self._join(peer, 0)
        for counts in ((1, 1), (1, 0), (0, 1), (0, 0), (1, 0), (0, 1)):
            for version in (8, 10):
                request = self._commit_of(peer.member, version, counts)
                await self._ask(peer, f"{counts} in {version}", peer.encoded(request, version))
        peer.writer.close()

    def _commit_of(
        self, member: Member, version: int, counts: tuple[int, ...]
    ) -> m.OffsetCommitRequest:
        shape = m.OffsetCommitRequest
        topics = []
        for name, count in zip(TOPICS, counts, strict=True):
            partitions = [
                shape.OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
                for index in range(count)
            ]
            topic = shape.OffsetCommitRequestTopic(name=name, partitions=partitions)
            if version >= 10:
                topic.topic_id = self.topic_ids[name]
            topics.append(topic)
        return shape(
            group_id=member.group, generation_id_or_member_epoch=member.generation,
            member_id=member.member_id, topics=topics,
        )  # fmt: skip


def test_both_roads_leave_out_topics_of_which_no_partition_is_committed() -> None:
    assert difference(0, road=EmptyTopics) is None


def _parts_from_seed(seeds_max: int = 60) -> str | None:
    return next((found for seed in range(seeds_max) if (found := difference(seed))), None)


def test_a_road_that_does_not_extend_the_session_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_alive(self: CurrentMember, now_ms: int) -> bool:
        return original(self, now_ms - 50)

    original = CurrentMember.is_alive
    monkeypatch.setattr(CurrentMember, "is_alive", is_alive)
    assert _parts_from_seed()


def test_a_road_that_does_not_look_at_the_generation_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_alive(self: CurrentMember, now_ms: int) -> bool:
        self._generation = self._group.generation
        return original(self, now_ms)

    original = CurrentMember.is_alive
    monkeypatch.setattr(CurrentMember, "is_alive", is_alive)
    assert _parts_from_seed()


def test_a_road_that_answers_whoever_was_a_member_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_alive(self: CurrentMember, now_ms: int) -> bool:
        original(self, now_ms)
        return True

    original = CurrentMember.is_alive
    monkeypatch.setattr(CurrentMember, "is_alive", is_alive)
    assert _parts_from_seed()


def test_a_road_that_remembers_metadata_beyond_a_change_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DescribedTopics, "applied", lambda self, delta: None)
    assert _parts_from_seed()


def test_a_road_that_forgets_when_topics_are_looked_at_again_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(current_consumer, "METADATA_REFRESH_MS", 1)
    assert _parts_from_seed()


def test_a_road_that_does_not_look_at_the_member_s_epoch_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_any_epoch(
        self: GroupCoordinator, group_id: str, member_id: str, epoch: int
    ) -> tuple[CurrentConsumer, ConsumerMember] | None:
        found = (original(self, group_id, member_id, any_epoch) for any_epoch in range(30))
        return next((each for each in found if each is not None), None)

    original = GroupCoordinator.current_consumer
    monkeypatch.setattr(GroupCoordinator, "current_consumer", at_any_epoch)
    assert _parts_from_seed()


def test_a_road_that_commits_for_whoever_was_a_member_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check_usual(self: OffsetOperations, commit: UsualCommit, moment: Moment) -> bool:
        original(self, commit, moment)
        return self._kinds.of(commit.request.group_id) is not None

    original = OffsetOperations.check_usual
    monkeypatch.setattr(OffsetOperations, "check_usual", check_usual)
    assert _parts_from_seed()


def test_a_road_whose_commits_do_not_extend_the_session_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def takes_commit(
        self: GroupCoordinator, commit: UsualCommit, now_ms: int
    ) -> PartitionShard[GroupShard] | None:
        return original(self, commit, now_ms - 50)

    original = GroupCoordinator.takes_commit
    monkeypatch.setattr(GroupCoordinator, "takes_commit", takes_commit)
    assert _parts_from_seed()


def test_a_road_whose_records_are_not_the_general_ones_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def encoded(self: CommitValue, offset: int, leader_epoch: int, commit_ms: int) -> bytes:
        return original(self, offset, -1, commit_ms)

    original = CommitValue.encoded
    monkeypatch.setattr(CommitValue, "encoded", encoded)
    assert _parts_from_seed()


def test_a_road_whose_commits_have_no_effect_but_in_the_log_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def put(
        self: UsualCommit,
        shard: OffsetShard,
        numbers: Sequence[Number],
        batch: OpenBatch,
        wall_ms: int,
    ) -> None:
        storage = shard.storage
        before = {group: dict(topics) for group, topics in storage.offsets.by_group.items()}
        original(self, shard, numbers, batch, wall_ms)
        storage.offsets.by_group.update(before)

    original = UsualCommit.put
    monkeypatch.setattr(UsualCommit, "put", put)
    assert _parts_from_seed()


def test_commits_that_do_not_know_where_their_records_stand_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def replay_committed(
        self: GroupStorage, group_id: str, topic: str, partition: int, stored: StoredOffset
    ) -> None:
        at = stored.record_offset + (sys._getframe(1).f_code is UsualCommit.put.__code__)
        original(self, group_id, topic, partition, stored._replace(record_offset=at))

    original = GroupStorage.replay_committed
    monkeypatch.setattr(GroupStorage, "replay_committed", replay_committed)
    assert _parts_from_seed()


def test_batches_that_are_not_what_is_checked_elsewhere_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def make(self: OpenBatch, base_sequence: int, leader_epoch: int) -> MadeBatch:
        return original(self, base_sequence + 1, leader_epoch)

    original = OpenBatch.make
    monkeypatch.setattr(OpenBatch, "make", make)
    assert _parts_from_seed()


def test_an_answer_in_front_of_its_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is acknowledged that is not in the log (decision 9)."""

    def append_made(self: PartitionCoordinatorLog, partition: int, made: MadeBatch) -> bool:
        return partition >= 0  # it is said to be there

    monkeypatch.setattr(PartitionCoordinatorLog, "append_made", append_made)
    assert _parts_from_seed()
