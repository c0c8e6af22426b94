"""Driving a group coordinator in a test: requests in a line each."""

from __future__ import annotations

from typing import Any

from kwire.clock import SeededRandom
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.found_offsets import FoundOffsets
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.reloading import PAUSE_MS_MAX
from kwire.coordinator.replies import convert_all
from kwire.pending import Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog, open_batches


class GroupWorld:
    """One partition of __consumer_offsets with its coordinator, log, loop and clock."""

    def __init__(
        self,
        *,
        lagging: bool = False,
        seed: int = 1,
        topics: Any = None,
        consumer_settings: Any = None,
        worker: Any = None,
        share_settings: Any = None,
        persister: Any = None,
        latest_offsets: Any = None,
        log: MemoryLog | None = None,
        **settings: Any,
    ) -> None:
        self.loop = ManualLoop()
        self.log = log or MemoryLog(lagging=lagging)
        self.clock = ManualClock(self.loop)
        settings.setdefault("initial_rebalance_delay_ms", 0)
        self.coordinator = GroupCoordinator(
            settings=GroupSettings(offsets_topic_partitions=1, **settings),
            partition_log=self.log,
            loop=self.loop,
            clock=self.clock,
            random=SeededRandom(seed),
            topics=topics,
            consumer_settings=consumer_settings,
            worker=worker,
            share_settings=share_settings,
            persister=lambda: persister,
            latest_offsets=latest_offsets,
        )
        self.log.listener = self.coordinator.runtime.high_watermark_advanced
        self.epoch = -1
        self.reload()

    @property
    def shard(self) -> GroupShard:
        """The live one; where it is being loaded anew, once it is, which may be after a pause."""
        if self.coordinator.runtime.shard(0) is None:
            self.loop.run()
        if self.coordinator.runtime.shard(0) is None:
            self.loop.advance(PAUSE_MS_MAX)
        shard = self.coordinator.runtime.shard(0)
        assert shard is not None
        return shard

    def reload(self) -> None:
        """Lose the leadership and win it back."""
        self.epoch += 1
        self.coordinator.runtime.unload(0)
        self.coordinator.runtime.load(0, self.epoch)
        self.loop.run()

    def now(self, answer: Any) -> Any:
        """The answer, which must be there by now."""
        self.loop.run()
        if isinstance(answer, Pending):
            assert answer.done, "not answered yet"
            return answer.result()
        return answer

    def decided(self) -> list[bytearray]:
        """The batches of the log, and the one that is about to be appended."""
        return self.log.batches.get(0, []) + open_batches(self.coordinator.runtime)

    # ------------------------------------------------------------------ requests

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        version: int = 3,
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 10_000,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"meta"),),
        protocol_type: str = "consumer",
    ) -> Any:
        shape = m.JoinGroupRequest.JoinGroupRequestProtocol
        request = m.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[shape(name=name, metadata=metadata) for name, metadata in protocols],
        )
        return self.coordinator.join(request, Caller(version, "client", "/127.0.0.1"))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
    ) -> Any:
        shape = m.SyncGroupRequest.SyncGroupRequestAssignment
        request = m.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            assignments=[
                shape(member_id=key, assignment=value) for key, value in (assignments or {}).items()
            ],
        )
        return self.coordinator.sync(request)

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> Any:
        request = m.HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return self.coordinator.heartbeat(request)

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> Any:
        shape = m.LeaveGroupRequest.MemberIdentity
        identities = [shape(member_id=x, group_instance_id=i) for x, i in members]
        return self.coordinator.leave(m.LeaveGroupRequest(group_id=group, members=identities))

    def commit(
        self,
        offset: int,
        *,
        group: str = "g",
        topic: str = "t",
        partition: int = 0,
        topic_id: bytes = bytes(16),
        member_id: str = "",
        generation: int = -1,
        metadata: str | None = None,
        retention_ms: int = -1,
    ) -> Any:
        shape = m.OffsetCommitRequest
        request = shape(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=[
                shape.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id,
                    partitions=[
                        shape.OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        return self.coordinator.commit_offsets(request, 9)

    def commit_in_transaction(
        self,
        offset: int,
        producer_id: int,
        *,
        epoch: int = 0,
        group: str = "g",
        topic: str = "t",
        partition: int = 0,
        topic_id: bytes = bytes(16),
        member_id: str = "",
        generation: int = -1,
    ) -> Any:
        shape = m.TxnOffsetCommitRequest
        request = shape(
            transactional_id="x",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                shape.TxnOffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id,
                    partitions=[
                        shape.TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        return self.coordinator.commit_offsets_in_transaction(request)

    def fetch(
        self,
        topics: dict[str, list[int]] | None = None,
        *,
        group: str = "g",
        require_stable: bool = False,
        topic_id: bytes = bytes(16),
    ) -> Any:
        shape = m.OffsetFetchRequest
        asked = None
        if topics is not None:
            asked = [
                shape.OffsetFetchRequestTopics(
                    name=name, topic_id=topic_id, partition_indexes=indexes
                )
                for name, indexes in topics.items()
            ]
        request = shape.OffsetFetchRequestGroup(group_id=group, topics=asked)
        found = self.coordinator.fetch_offsets(request, require_stable)
        return convert_all(as_pending(found), lambda done: answered(done.result()))

    def follow_topics(self, **deleted: bytes) -> None:
        """The topics have changed, and those are gone (name, id)."""
        for _ in self.coordinator.follow_topics(deleted):
            pass

    def delete_offsets(self, topic: str, *partitions: int, group: str = "g") -> Any:
        shape = m.OffsetDeleteRequest
        request = shape(
            group_id=group,
            topics=[
                shape.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        shape.OffsetDeleteRequestPartition(partition_index=x) for x in partitions
                    ],
                )
            ],
        )
        return self.coordinator.delete_offsets(request)

    # ------------------------------------------------------------------ shorter still

    def offset(self, group: str = "g", topic: str = "t", partition: int = 0) -> int:
        """The committed offset, -1 for none."""
        found = self.now(self.fetch({topic: [partition]}, group=group))
        assert found.error_code == 0, found
        return int(found.topics[0].partitions[0].committed_offset)

    def state(self, group: str = "g") -> str:
        return str(self.now(self.coordinator.describe_groups([group]))[0].group_state)

    def stable(self, count: int, **join: Any) -> list[str]:
        """A Stable group of `count` dynamic members; their ids, the leader's first."""
        members: list[str] = []
        for _ in range(count):
            answers = [self.join(**join)]
            answers += [self.join(x, **join) for x in members]
            results = [self.now(x) for x in answers]
            members.append(results[0].member_id)
            self.generation = results[0].generation_id
            leader = results[0].leader
            members.sort(key=lambda x: x != leader)
            waiting = [self.sync(x, self.generation) for x in members if x != leader]
            plan = {x: x.encode() for x in members}
            assert self.now(self.sync(leader, self.generation, plan)).error_code == 0
            assert all(self.now(x).error_code == 0 for x in waiting)
        return members


def answered(found: FoundOffsets) -> m.OffsetFetchResponse.OffsetFetchResponseGroup:
    """What a group has committed, all at once."""
    return m.OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id=found.group_id,
        topics=[topic.answer() for topic in found.topics],
        error_code=found.error_code,
    )


def codes(response: Any) -> list[ErrorCode]:
    """The partitions' error codes of a response about offsets."""
    return [ErrorCode(x.error_code) for topic in response.topics for x in topic.partitions]
