"""The group coordinator as the broker sees it: requests in, answers or Pendings of them out.

Finds the shard, runs the operation on it, and turns what went wrong into the response that Kafka
gives. Topics are resolved and authorised by the API handlers before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from kwire.clock import Clock, Random
from kwire.coordinator.deleted_topics import DeletedTopics
from kwire.coordinator.errors import refusal
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.consumer.describe import Described
from kwire.coordinator.group.consumer.heartbeat import check_request
from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
from kwire.coordinator.group.consumer.state import Member
from kwire.coordinator.group.counts import GroupCounts
from kwire.coordinator.group.current_consumer import CurrentConsumer, current_consumer
from kwire.coordinator.group.current_member import CurrentMember, current_member
from kwire.coordinator.group.found_offsets import FoundOffsets
from kwire.coordinator.group.group_configs import GroupConfig, default_group_config
from kwire.coordinator.group.made_offsets import MadeOffsets
from kwire.coordinator.group.offsets import (
    CommittedTopic,
    TransactionalTopic,
    commit_of,
    transactional_commit_of,
)
from kwire.coordinator.group.refusals import (
    consumer_heartbeat_error,
    deletable_group_error,
    described_consumer_group_error,
    described_group_error,
    join_error,
    offset_commit_error,
    sync_error,
    txn_offset_commit_error,
)
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.group.share.settings import ShareGroupSettings
from kwire.coordinator.group.share_requests import LatestOffsets, ShareGroupRequests, TopicPartition
from kwire.coordinator.group.topics import Topics
from kwire.coordinator.group.usual_commit import UsualCommit
from kwire.coordinator.loading import Worker
from kwire.coordinator.partition import HeldReply, PartitionShard, ShardState
from kwire.coordinator.partitioner import partition_for
from kwire.coordinator.repeated_writes import RepeatedWrites
from kwire.coordinator.replies import Reply, convert, gather
from kwire.coordinator.runtime import CoordinatorRuntime
from kwire.coordinator.shard_interface import (
    CoordinatorLog,
    Loop,
    Moment,
    Number,
    Producer,
    Result,
)
from kwire.log.partition.producers import VerificationGuard
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import EncodeError, ErrorCode, KafkaError
from kwire.share.persister import Persister

T = TypeVar("T")

TOPIC = "__consumer_offsets"
MODULE = "group-coordinator"


SLICE_SHARDS = 10
"""A slice of what many topics mean to the groups is about 2 ms."""


def _topics_changed(shard: GroupShard, moment: Moment) -> Result[None]:
    for kind in shard.kinds:
        kind.topics_changed()
    return Result()


def _topics_deleted(topics: dict[str, bytes], shard: GroupShard, moment: Moment) -> Result[None]:
    return shard.expiry.topics_deleted(topics, moment)


class GroupCoordinator:
    """All group shards of this broker. `partition_count` gives the number of partitions of
    `__consumer_offsets`, or the configured one while there is no such topic."""

    def __init__(
        self,
        *,
        settings: GroupSettings,
        partition_log: CoordinatorLog,
        loop: Loop,
        clock: Clock,
        random: Random,
        partition_count: Callable[[], int] | None = None,
        consumer_settings: ConsumerGroupSettings | None = None,
        topics: Topics | None = None,
        group_config: GroupConfig = default_group_config,
        worker: Worker | None = None,
        share_settings: ShareGroupSettings | None = None,
        persister: Callable[[], Persister | None] = lambda: None,
        latest_offsets: LatestOffsets | None = None,
    ) -> None:
        self.settings = settings
        self._consumer_settings = consumer_settings or ConsumerGroupSettings()
        self._clock = clock
        self._random = random
        self._partition_count = partition_count or (lambda: settings.offsets_topic_partitions)
        self.counts = counts = GroupCounts()
        self._deleted = deleted = DeletedTopics()
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            module=MODULE,
            new_shard=lambda partition: GroupShard(
                settings,
                random,
                self._consumer_settings,
                topics or NoTopics(),
                group_config,
                share_settings or ShareGroupSettings(),
                counts,
                deleted,
            ),
            partition_log=partition_log,
            loop=loop,
            clock=clock,
            write_timeout_ms=settings.offset_commit_timeout_ms,
            load_bytes=settings.load_bytes,
            worker=worker,
            append_linger_ms=settings.append_linger_ms,
        )
        self._repeated = RepeatedWrites(self.runtime, loop)
        self.share = ShareGroupRequests(
            self.runtime,
            self._repeated,
            self.partition_for,
            persister,
            latest_offsets or _no_offsets,
        )

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that keeps the group."""
        return partition_for(group_id, self._partition_count())

    # ------------------------------------------------------------------ membership

    def join(self, request: m.JoinGroupRequest, caller: Caller) -> Answer[m.JoinGroupResponse]:
        """JoinGroup -> JoinGroupResponse; held until the group's join phase completes."""
        settings = self.settings
        if not request.group_id:
            return join_error(ErrorCode.INVALID_GROUP_ID, request.member_id)
        timeout_ms = request.session_timeout_ms
        if not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
            return join_error(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.join(request, caller, moment),
        )
        return convert(pending, on_error=lambda error: join_error(refusal(error)))

    def sync(self, request: m.SyncGroupRequest) -> Answer[m.SyncGroupResponse]:
        """SyncGroup -> SyncGroupResponse; held until the leader's assignments are committed."""
        if not request.group_id:
            return sync_error(ErrorCode.INVALID_GROUP_ID)
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.kinds.of_member(request.group_id).sync(request, moment),
        )
        return convert(pending, on_error=lambda error: sync_error(refusal(error)))

    def heartbeat(self, request: m.HeartbeatRequest) -> Answer[m.HeartbeatResponse]:
        """Heartbeat -> HeartbeatResponse."""
        if not request.group_id:
            return m.HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)

        def refused(error: KafkaError) -> m.HeartbeatResponse:
            code = refusal(error)
            if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # Members keep calm while their group is being loaded: it is still theirs.
                code = ErrorCode.NONE
            return m.HeartbeatResponse(error_code=code)

        return _now_or_later(
            self.runtime.write(
                self.partition_for(request.group_id),
                lambda shard, moment: shard.kinds.of_member(request.group_id).heartbeat(
                    request, moment
                ),
                Reply(refused),
            )
        )

    def current_member(
        self, group_id: str, member_id: str, generation: int
    ) -> CurrentMember | None:
        """A member of a classic group at this generation, for its heartbeats to come."""
        shard = self.runtime.led(self.partition_for(group_id))
        return current_member(shard, group_id, member_id, generation)

    def leave(self, request: m.LeaveGroupRequest) -> Answer[m.LeaveGroupResponse]:
        """LeaveGroup in the form of v3-5 -> LeaveGroupResponse with its members."""
        if not request.group_id:
            return m.LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)

        def refused(error: KafkaError) -> m.LeaveGroupResponse:
            code = refusal(error)
            if code != ErrorCode.UNKNOWN_MEMBER_ID:
                return m.LeaveGroupResponse(error_code=code)
            members = [
                m.LeaveGroupResponse.MemberResponse(
                    member_id=x.member_id,
                    group_instance_id=x.group_instance_id,
                    error_code=code,
                )
                for x in request.members
            ]
            return m.LeaveGroupResponse(members=members)

        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.kinds.of_member(request.group_id).leave(request, moment),
        )
        return convert(pending, on_error=refused)

    # ------------------------------------------------------------------ consumer groups

    def consumer_heartbeat(
        self, request: m.ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> Answer[m.ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat -> ConsumerGroupHeartbeatResponse (KIP-848)."""
        try:
            check_request(request, caller.api_version, self._consumer_settings.assignors)
        except KafkaError as error:
            return consumer_heartbeat_error(error)
        if not request.member_id:  # version 0 lets the coordinator choose
            request.member_id = uuids.to_text(uuids.random_uuid(self._random))
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.consumer.consumer_heartbeat(request, caller, moment),
        )
        return convert(pending, on_error=consumer_heartbeat_error)

    def current_consumer(
        self, group_id: str, member_id: str, epoch: int
    ) -> tuple[CurrentConsumer, Member] | None:
        """A member of a consumer group at this epoch, for its heartbeats to come."""
        shard = self.runtime.led(self.partition_for(group_id))
        return current_consumer(shard, group_id, member_id, epoch)

    def describe_consumer_groups(self, group_ids: Sequence[str]) -> Answer[list[Described]]:
        """-> a group of ConsumerGroupDescribe for each id, in order."""

        def ask(group_id: str) -> Pending[Described]:
            if not group_id:
                return Pending.failed(KafkaError(ErrorCode.INVALID_GROUP_ID))
            return self.runtime.read(
                self.partition_for(group_id),
                lambda shard, moment: shard.consumer.describe_consumer_group(group_id),
            )

        def combine(results: list[Described | KafkaError]) -> list[Described]:
            return [
                Described(described_consumer_group_error(group_id, result))
                if isinstance(result, KafkaError)
                else result
                for group_id, result in zip(group_ids, results)
            ]

        return gather([ask(group_id) for group_id in group_ids], combine)

    def follow_topics(self, deleted: dict[str, bytes]) -> Iterator[None]:
        """The metadata has other topics or partitions: groups that assign compare theirs again, and
        what was committed for those that are gone (name -> id) is forgotten. Some shards a slice.
        """
        self._deleted.add(deleted.values())
        done: set[int] = set()
        while left := [each for each in self.runtime.partitions() if each not in done]:
            for partition in left[:SLICE_SHARDS]:
                done.add(partition)
                self.runtime.write(partition, _topics_changed)
                if deleted:
                    self._repeated.write(partition, partial(_topics_deleted, deleted))
            yield
        if deleted:
            self.share.topics_deleted(list(deleted.values()))

    # ------------------------------------------------------------------ offsets

    def commit_offsets(
        self, request: m.OffsetCommitRequest, api_version: int
    ) -> Answer[m.OffsetCommitResponse]:
        """OffsetCommit (topics with name and id) -> OffsetCommitResponse."""
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.offsets.commit(request, api_version, moment),
            Reply(lambda error: offset_commit_error(request, refusal(error))),
        )
        return _now_or_later(pending)

    def make_commit(self, request: m.OffsetCommitRequest) -> MadeOffsets[CommittedTopic]:
        """What `commit_made` takes, to be made in slices."""
        metadata_bytes_max = self.settings.offset_metadata_bytes_max
        commit = commit_of(request, self._clock.wall_ms(), metadata_bytes_max)
        return MadeOffsets(commit, request.topics)

    def commit_made(
        self, request: m.OffsetCommitRequest, api_version: int, made: MadeOffsets[CommittedTopic]
    ) -> Answer[m.OffsetCommitResponse]:
        """`commit_offsets` of what is made: all of it is stored, or nothing."""
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.offsets.commit_made(request, api_version, made, moment),
            Reply(lambda error: offset_commit_error(request, refusal(error))),
        )
        return _now_or_later(pending)

    def usual_commit(self, request: m.OffsetCommitRequest, api_version: int) -> UsualCommit | None:
        """What commits that only differ in their numbers have in common; None where the general
        way has more to say. Holds until a topic changes."""
        partition = self.partition_for(request.group_id)
        shard = self.runtime.shard(partition)
        if shard is None or not shard.offsets.is_storable(request):
            return None
        try:
            return UsualCommit(request, api_version, partition)
        except EncodeError:
            return None

    def takes_commit(self, commit: UsualCommit, now_ms: int) -> PartitionShard[GroupShard] | None:
        """Who would take it as `commit_offsets` does, of a group that is there: its member lives
        then, and `takes_in` or `commit_usual` has to follow. None, and nothing has happened, where
        nobody would."""
        current = self.runtime.led(commit.partition)
        if (
            current is not None
            and current.state is ShardState.ACTIVE
            and not current.busy
            and current.shard.offsets.check_usual(commit, Moment(now_ms, 0))
        ):
            return current
        return None

    def takes_in(
        self,
        current: PartitionShard[GroupShard],
        commit: UsualCommit,
        numbers: Sequence[Number],
        reply: HeldReply,
    ) -> bool:
        """`commit_usual` in the open batch of its partition; False, and nothing has happened, where
        that is not possible. Follows `takes_commit`."""
        return self.runtime.take_in(current, commit, numbers, reply)

    def commit_usual(
        self, commit: UsualCommit, numbers: Sequence[Number], reply: Pending[None]
    ) -> None:
        """`commit_offsets` with these numbers; `reply` fails with what the response is to say."""
        self.runtime.write(
            commit.partition,
            lambda shard, moment: shard.offsets.commit_usual(commit, numbers, moment),
            reply,
        )

    def make_transactional_commit(
        self, request: m.TxnOffsetCommitRequest
    ) -> MadeOffsets[TransactionalTopic]:
        """What `commit_offsets_in_transaction` takes, to be made in slices."""
        metadata_bytes_max = self.settings.offset_metadata_bytes_max
        commit = transactional_commit_of(request, self._clock.wall_ms(), metadata_bytes_max)
        producer = Producer(request.producer_id, request.producer_epoch)
        return MadeOffsets(commit, request.topics, producer)

    def commit_offsets_in_transaction(
        self,
        request: m.TxnOffsetCommitRequest,
        guard: VerificationGuard | None = None,
        api_version: int = 3,
        made: MadeOffsets[TransactionalTopic] | None = None,
    ) -> Answer[m.TxnOffsetCommitResponse]:
        """TxnOffsetCommit -> TxnOffsetCommitResponse; `guard` is the log's proof that the
        transaction was verified (KIP-890)."""
        if not request.group_id:
            return txn_offset_commit_error(request, ErrorCode.INVALID_GROUP_ID)
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.offsets.commit_in_transaction(
                request, api_version, moment, guard, made
            ),
        )
        return convert(
            pending, on_error=lambda error: txn_offset_commit_error(request, refusal(error))
        )

    def fetch_offsets(
        self, group: m.OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> Answer[FoundOffsets]:
        """What one OffsetFetchRequestGroup asks for."""

        def refused(error: KafkaError) -> FoundOffsets:
            code = refusal(error)
            if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                # Older consumers retry on NOT_COORDINATOR only (KAFKA-17796).
                code = ErrorCode.NOT_COORDINATOR
            return FoundOffsets(group.group_id, [], code)

        pending = self.runtime.read(
            self.partition_for(group.group_id),
            lambda shard, moment: shard.offsets.fetch(group, require_stable),
            Reply(refused),
        )
        return _now_or_later(pending)

    def delete_offsets(self, request: m.OffsetDeleteRequest) -> Answer[m.OffsetDeleteResponse]:
        """OffsetDelete -> OffsetDeleteResponse."""
        if not request.group_id:
            return m.OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        pending = self.runtime.write(
            self.partition_for(request.group_id),
            lambda shard, moment: shard.offsets.delete(request),
        )
        return convert(
            pending, on_error=lambda error: m.OffsetDeleteResponse(error_code=refusal(error))
        )

    def complete_transaction(
        self,
        partition: int,
        batch: bytearray,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        transaction_version: int = 0,
    ) -> Pending[None]:
        """Append the marker `batch` of a transaction to a partition of `__consumer_offsets` and
        make its offsets visible, or drop them."""
        return self.runtime.write_marker(
            partition, batch, producer_id, producer_epoch, commit, transaction_version
        )

    # ------------------------------------------------------------------ administration

    def list_groups(
        self, states: Sequence[str], types: Sequence[str]
    ) -> Answer[m.ListGroupsResponse]:
        """-> ListGroupsResponse with the groups of every partition led here."""
        pendings = self.runtime.read_all(
            lambda shard, moment: shard.admin.list_groups(states, types)
        )

        def combine(
            results: list[list[m.ListGroupsResponse.ListedGroup] | KafkaError],
        ) -> m.ListGroupsResponse:
            listed: list[m.ListGroupsResponse.ListedGroup] = []
            for result in results:
                if not isinstance(result, KafkaError):
                    listed += result
                elif result.code != ErrorCode.NOT_COORDINATOR:
                    return m.ListGroupsResponse(error_code=refusal(result))
            return m.ListGroupsResponse(groups=listed)

        return gather(pendings, combine)

    def describe_groups(
        self, group_ids: Sequence[str]
    ) -> Answer[list[m.DescribeGroupsResponse.DescribedGroup]]:
        """-> a DescribedGroup for each id, in order."""

        def ask(group_id: str) -> Pending[m.DescribeGroupsResponse.DescribedGroup]:
            return self.runtime.read(
                self.partition_for(group_id),
                lambda shard, moment: shard.admin.describe(group_id),
            )

        def combine(
            results: list[m.DescribeGroupsResponse.DescribedGroup | KafkaError],
        ) -> list[m.DescribeGroupsResponse.DescribedGroup]:
            return [
                described_group_error(group_id, result)
                if isinstance(result, KafkaError)
                else result
                for group_id, result in zip(group_ids, results)
            ]

        return gather([ask(group_id) for group_id in group_ids], combine)

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> Answer[list[m.DeleteGroupsResponse.DeletableGroupResult]]:
        """-> a DeletableGroupResult for each id, in the order of their partitions."""
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_partition.setdefault(self.partition_for(group_id), []).append(group_id)

        def combine(
            results: list[list[m.DeleteGroupsResponse.DeletableGroupResult] | KafkaError],
        ) -> list[m.DeleteGroupsResponse.DeletableGroupResult]:
            combined: list[m.DeleteGroupsResponse.DeletableGroupResult] = []
            for ids, result in zip(by_partition.values(), results):
                if isinstance(result, KafkaError):
                    code = refusal(result)
                    combined += [deletable_group_error(x, code) for x in ids]
                else:
                    combined += result
            return combined

        pendings = [
            self.share.delete_groups(partition, ids) for partition, ids in by_partition.items()
        ]
        return gather(pendings, combine)


def _no_offsets(
    partitions: Sequence[TopicPartition],
) -> Pending[dict[TopicPartition, int | KafkaError]]:
    return Pending.completed({})


def _now_or_later(reply: Pending[T]) -> Answer[T]:
    return reply.result() if reply.done else reply


class NoTopics:
    """Metadata without topics."""

    def find(self, name: str) -> None:
        return None

    def name_of(self, topic_id: bytes) -> None:
        return None

    def names(self) -> tuple[str, ...]:
        return ()

    def version(self) -> int:
        return 0

    def has_all_of(self, now_ms: int) -> bool:
        return False
