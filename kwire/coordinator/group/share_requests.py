"""The requests about share groups: records of the group, and its state with the persister between.

A heartbeat is answered when its records are committed; what it found to be initialized is asked
for afterwards, and what came of that becomes another record. Requests that alter or delete offsets
wait for the persister, and so do those that delete groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from kwire.coordinator.errors import refusal
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.refusals import deletable_group_error
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.group.share import offsets, state_partitions
from kwire.coordinator.group.share.describe import describe
from kwire.coordinator.group.share.heartbeat import Heartbeat, check_request, heartbeat
from kwire.coordinator.group.share.offsets import Altering, DeletedGroup, Deleting
from kwire.coordinator.group.share.state_partitions import Initialization
from kwire.coordinator.repeated_writes import RepeatedWrites
from kwire.coordinator.replies import gather
from kwire.coordinator.runtime import CoordinatorRuntime
from kwire.coordinator.shard_interface import Moment, Result
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share.persister import (
    UNKNOWN_DELIVERY_COMPLETE_COUNT,
    UNKNOWN_START_OFFSET,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionSummary,
    Persister,
)

R = TypeVar("R")
T = TypeVar("T")

TopicPartition = tuple[str, int]
# (topic, partition) -> its high watermark, or why nobody knows it.
LatestOffsets: TypeAlias = Callable[
    [Sequence[TopicPartition]], Pending[dict[TopicPartition, int | KafkaError]]
]
DeletedGroups = list[m.DeleteGroupsResponse.DeletableGroupResult]
_Begun: TypeAlias = tuple[dict[str, DeletedGroup], DeletedGroups]
"""The share groups whose state goes first, or that stay; what was deleted at once."""


NO_LEADER_EPOCH = -1


class NamedPartition(NamedTuple):
    """A partition of a topic by name and id."""

    topic: str
    topic_id: bytes
    partition: int


class DescribedOffset(NamedTuple):
    """Where a group begins in a partition; -1 for what is not known."""

    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int = 0
    error_message: str | None = None


class ShareGroupRequests:
    """Over the shards of `runtime`; `persister` gives the persister, None where there is none, and
    `latest_offsets` the end of partitions wherever they are led."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        repeated: RepeatedWrites[GroupShard],
        partition_for: Callable[[str], int],
        persister: Callable[[], Persister | None],
        latest_offsets: LatestOffsets,
    ) -> None:
        self._runtime = runtime
        self._repeated = repeated
        self._partition_for = partition_for
        self._persister = persister
        self._latest_offsets = latest_offsets

    # ------------------------------------------------------------------ membership

    def heartbeat(
        self, request: m.ShareGroupHeartbeatRequest, caller: Caller
    ) -> Answer[m.ShareGroupHeartbeatResponse]:
        """ShareGroupHeartbeat -> ShareGroupHeartbeatResponse."""
        try:
            check_request(request)
        except KafkaError as error:
            return heartbeat_error(error)
        written = self._write(
            request.group_id,
            lambda shard, moment: heartbeat(shard.share.groups, request, caller, moment),
        )
        outcome: Pending[m.ShareGroupHeartbeatResponse] = Pending()

        def answer(done: Pending[Heartbeat]) -> None:
            error = done.error()
            if isinstance(error, KafkaError):
                outcome.complete(heartbeat_error(error))
            elif error is not None:
                outcome.fail(error)
            else:
                # Whoever asked may be gone: what the group needs is done nevertheless.
                beat = done.result()
                outcome.complete(beat.response)
                if beat.initialization is not None:
                    self._initialize(beat.initialization)

        written.add_done_callback(answer)
        return outcome.result() if outcome.done else outcome

    def describe(
        self, group_ids: Sequence[str]
    ) -> Answer[list[m.ShareGroupDescribeResponse.DescribedGroup]]:
        """-> a ShareGroupDescribeResponse.DescribedGroup for each id, in order."""

        def ask(group_id: str) -> Pending[m.ShareGroupDescribeResponse.DescribedGroup]:
            if not group_id:
                return Pending.failed(KafkaError(ErrorCode.INVALID_GROUP_ID))
            return self._runtime.read(
                self._partition_for(group_id),
                lambda shard, moment: describe(shard.share.groups, group_id),
            )

        def combine(
            results: list[m.ShareGroupDescribeResponse.DescribedGroup | KafkaError],
        ) -> list[m.ShareGroupDescribeResponse.DescribedGroup]:
            return [
                m.ShareGroupDescribeResponse.DescribedGroup(
                    group_id=group_id, error_code=refusal(result), error_message=result.message
                )
                if isinstance(result, KafkaError)
                else result
                for group_id, result in zip(group_ids, results)
            ]

        return gather([ask(group_id) for group_id in group_ids], combine)

    def _initialize(self, asked: Initialization) -> Pending[list[PartitionResult]]:
        """Ask the persister, and write down what came of it; its results."""
        persister = self._persister()
        if persister is None:
            error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self._refused(asked)
            return Pending.failed(error)
        outcome: Pending[list[PartitionResult]] = Pending()

        def settle(done: Pending[list[PartitionResult]]) -> None:
            error = done.error()
            if error is not None:
                self._refused(asked)
                outcome.fail(error)
                return
            results = done.result()
            refused = any(x.error_code for x in results)
            partitions = _by_topic(results)
            operation = state_partitions.uninitialized if refused else state_partitions.initialized
            written = self._write(
                asked.group_id,
                lambda shard, moment: operation(shard.share.groups, asked.group_id, partitions),
            )
            written.add_done_callback(lambda _: outcome.complete(results))

        persister.initialize(asked.group_id, asked.partitions).add_done_callback(settle)
        return outcome

    def _refused(self, asked: Initialization) -> None:
        partitions: dict[bytes, list[int]] = {}
        for x in asked.partitions:
            partitions.setdefault(x.topic_id, []).append(x.partition)
        self._write(
            asked.group_id,
            lambda shard, moment: state_partitions.uninitialized(
                shard.share.groups, asked.group_id, partitions
            ),
        )

    # ------------------------------------------------------------------ offsets

    def alter_offsets(
        self, request: m.AlterShareGroupOffsetsRequest
    ) -> Answer[m.AlterShareGroupOffsetsResponse]:
        """AlterShareGroupOffsets (topics that may be altered) -> AlterShareGroupOffsetsResponse."""
        shape = m.AlterShareGroupOffsetsResponse
        if not request.group_id:
            return shape(error_code=ErrorCode.INVALID_GROUP_ID, error_message=INVALID_GROUP_TEXT)
        outcome: Pending[m.AlterShareGroupOffsetsResponse] = Pending()

        def refused(error: Exception) -> None:
            if isinstance(error, KafkaError):
                outcome.complete(shape(error_code=refusal(error), error_message=_text(error)))
            else:
                outcome.fail(error)

        def begun(done: Pending[Altering]) -> None:
            error = done.error()
            if error is not None:
                refused(error)
                return
            altering = done.result()
            if not altering.initialization.partitions:
                outcome.complete(shape(responses=altering.topics))
                return

            def initialized(done: Pending[list[PartitionResult]]) -> None:
                error = done.error()
                if error is not None:
                    refused(error)
                else:
                    outcome.complete(shape(responses=_with_errors(altering.topics, done.result())))

            self._initialize(altering.initialization).add_done_callback(initialized)

        self._write(
            request.group_id,
            lambda shard, moment: offsets.alter(shard.share.groups, request, moment),
        ).add_done_callback(begun)
        return outcome.result() if outcome.done else outcome

    def delete_offsets(
        self, request: m.DeleteShareGroupOffsetsRequest
    ) -> Answer[m.DeleteShareGroupOffsetsResponse]:
        """DeleteShareGroupOffsets (topics that may be deleted) ->
        DeleteShareGroupOffsetsResponse."""
        shape = m.DeleteShareGroupOffsetsResponse
        group_id = request.group_id
        if not group_id:
            return shape(error_code=ErrorCode.INVALID_GROUP_ID, error_message=INVALID_GROUP_TEXT)
        outcome: Pending[m.DeleteShareGroupOffsetsResponse] = Pending()

        def refused(error: Exception) -> None:
            if isinstance(error, KafkaError):
                outcome.complete(shape(error_code=refusal(error), error_message=_text(error)))
            else:
                outcome.fail(error)

        def begun(done: Pending[Deleting]) -> None:
            error = done.error()
            if error is not None:
                refused(error)
                return
            deleting = done.result()
            if not deleting.partitions:
                outcome.complete(shape(responses=deleting.refused))
                return
            self._delete(group_id, deleting.partitions).add_done_callback(
                lambda done: deleted(deleting, done)
            )

        def deleted(deleting: Deleting, done: Pending[list[PartitionResult]]) -> None:
            error = done.error()
            if error is not None:
                refused(error)
                return
            answered = list(deleting.refused)
            failed = {x.topic_id: x for x in reversed(done.result()) if x.error_code}
            for topic_id, result in failed.items():
                answered.append(_deleted(topic_id, deleting.names[topic_id], result))
            gone = {x: name for x, name in deleting.names.items() if x not in failed}
            if not gone:
                outcome.complete(shape(responses=answered))
                return
            answered += [_deleted(topic_id, name, None) for topic_id, name in gone.items()]

            def completed(done: Pending[None]) -> None:
                error = done.error()
                if error is not None:
                    refused(error)
                else:
                    outcome.complete(shape(responses=answered))

            self._write(
                group_id,
                lambda shard, moment: offsets.complete_delete(
                    shard.share.groups, group_id, frozenset(gone)
                ),
            ).add_done_callback(completed)

        names = [topic.topic_name for topic in request.topics]
        self._write(
            group_id,
            lambda shard, moment: offsets.begin_delete(shard.share.groups, group_id, names),
        ).add_done_callback(begun)
        return outcome.result() if outcome.done else outcome

    def state_topics(self, group_id: str) -> Pending[list[tuple[str, bytes, list[int]]]]:
        """-> (topic, id, partitions) whose state is initialized; fails with KafkaError where the
        group has no coordinator here."""
        return self._runtime.read(
            self._partition_for(group_id), lambda shard, moment: shard.share.state_topics(group_id)
        )

    def described_offsets(
        self, group_id: str, partitions: Sequence[NamedPartition]
    ) -> Pending[list[DescribedOffset]]:
        """Where the group begins in partitions, and what is behind that; one for each, in order.
        The lag is -1 where it is not known."""
        persister = self._persister()
        if persister is None:
            return Pending.failed(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        outcome: Pending[list[DescribedOffset]] = Pending()

        def known(done: Pending[list[PartitionSummary]]) -> None:
            error = done.error()
            if error is not None:
                outcome.fail(error)
                return
            summaries = done.result()
            wanted = [
                (asked.topic, asked.partition)
                for asked, summary in zip(partitions, summaries)
                if _has_lag(summary)
            ]
            if not wanted:
                outcome.complete([_described(summary, None) for summary in summaries])
                return

            def ended(ends: Pending[dict[TopicPartition, int | KafkaError]]) -> None:
                error = ends.error()
                if error is not None:
                    outcome.fail(error)
                    return
                found = ends.result()
                outcome.complete(
                    [
                        _described(summary, found.get((asked.topic, asked.partition)))
                        for asked, summary in zip(partitions, summaries)
                    ]
                )

            self._latest_offsets(wanted).add_done_callback(ended)

        epochs = [PartitionEpoch(x.topic_id, x.partition, NO_LEADER_EPOCH) for x in partitions]
        persister.read_summary(group_id, epochs).add_done_callback(known)
        return outcome

    # ------------------------------------------------------------------ deleting groups

    def delete_groups(self, partition: int, group_ids: list[str]) -> Pending[DeletedGroups]:
        """Delete groups of any kind that one partition keeps; the state of share groups first. A
        group whose state cannot be deleted stays, and is told so. What has no such state goes at
        once: a commit that comes behind this is not deleted with it."""
        outcome: Pending[DeletedGroups] = Pending()

        def begin(shard: GroupShard, moment: Moment) -> Result[_Begun]:
            shares = offsets.begin_delete_groups(shard.share.groups, group_ids)
            found = shares.response
            assert isinstance(found, dict)
            gone = shard.admin.delete([x for x in group_ids if x not in found], moment)
            assert isinstance(gone.response, list)
            made = [*shares.records, *gone.records]
            return Result(made, (found, gone.response), gone.appended, atomic=False)

        def begun(done: Pending[_Begun]) -> None:
            error = done.error()
            if error is not None:
                outcome.fail(error)
                return
            found, gone = done.result()
            errors = {x: group.error_code for x, group in found.items() if group.error_code}
            asked = [x for x, group in found.items() if group.partitions]

            def deleted(results: list[list[PartitionResult] | KafkaError]) -> None:
                for group_id, result in zip(asked, results):
                    code = _first_error(result)
                    if code:
                        errors[group_id] = code
                allowed = [x for x in asked if x not in errors]
                self._delete_records(partition, allowed, errors, gone, outcome)

            if asked:
                gather([self._delete(x, found[x].partitions) for x in asked], deleted)
            else:
                deleted([])

        self._runtime.write(partition, begin).add_done_callback(begun)
        return outcome

    def _delete_records(
        self,
        partition: int,
        allowed: list[str],
        errors: Mapping[str, ErrorCode],
        gone: DeletedGroups,
        outcome: Pending[DeletedGroups],
    ) -> None:
        known = [deletable_group_error(x, code) for x, code in errors.items()] + gone
        if not allowed:
            outcome.complete(known)
            return

        def settle(done: Pending[DeletedGroups]) -> None:
            error = done.error()
            if error is not None:
                outcome.fail(error)
            else:
                outcome.complete(known + done.result())

        self._runtime.write(
            partition, lambda shard, moment: shard.admin.delete(allowed, moment)
        ).add_done_callback(settle)

    def _delete(
        self, group_id: str, partitions: Sequence[PartitionId]
    ) -> Pending[list[PartitionResult]]:
        persister = self._persister()
        if persister is None:
            return Pending.failed(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return persister.delete(group_id, partitions)

    def topics_deleted(self, topic_ids: Sequence[bytes]) -> None:
        """Topics are gone from the metadata."""
        ids = frozenset(topic_ids)
        self._repeated.write_all(
            lambda shard, moment: state_partitions.topics_deleted(shard.share.groups, ids)
        )

    def _write(
        self, group_id: str, operation: Callable[[GroupShard, Moment], Result[R]]
    ) -> Pending[R]:
        return self._runtime.write(self._partition_for(group_id), operation)


INVALID_GROUP_TEXT = "The group id is invalid."
_TEXTS = {
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.INVALID_GROUP_ID: INVALID_GROUP_TEXT,
}


def heartbeat_error(error: KafkaError) -> m.ShareGroupHeartbeatResponse:
    """A ShareGroupHeartbeat answer that refuses."""
    return m.ShareGroupHeartbeatResponse(error_code=refusal(error), error_message=error.message)


def _text(error: KafkaError) -> str | None:
    return error.message or _TEXTS.get(refusal(error))


def _by_topic(results: Sequence[PartitionResult]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for result in results:
        found.setdefault(result.topic_id, []).append(result.partition)
    return found


def _first_error(result: list[PartitionResult] | KafkaError) -> ErrorCode:
    if isinstance(result, KafkaError):
        return refusal(result)
    return next((ErrorCode(x.error_code) for x in result if x.error_code), ErrorCode.NONE)


def _with_errors(
    topics: list[m.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic],
    results: Sequence[PartitionResult],
) -> list[m.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]:
    failed = {(x.topic_id, x.partition): x for x in results if x.error_code}
    for topic in topics:
        for partition in topic.partitions:
            result = failed.get((topic.topic_id, partition.partition_index))
            if result is not None:
                partition.error_code = result.error_code
                partition.error_message = result.error_message
    return topics


def _has_lag(summary: PartitionSummary) -> bool:
    return (
        not summary.error_code
        and summary.start_offset != UNKNOWN_START_OFFSET
        and summary.delivery_complete_count != UNKNOWN_DELIVERY_COMPLETE_COUNT
    )


def _described(summary: PartitionSummary, end: int | KafkaError | None) -> DescribedOffset:
    """Kafka tells no error of a summary; one that passes is told here."""
    if summary.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return DescribedOffset(-1, 0, -1)
    if summary.error_code:
        return DescribedOffset(-1, 0, -1, summary.error_code, summary.error_message)
    if isinstance(end, KafkaError):
        return DescribedOffset(-1, 0, -1, end.code, end.message)
    lag = -1
    if end is not None and _has_lag(summary):
        lag = end - summary.start_offset - summary.delivery_complete_count
    return DescribedOffset(summary.start_offset, summary.leader_epoch, lag)


def _deleted(
    topic_id: bytes, name: str, result: PartitionResult | None
) -> m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic:
    return m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
        topic_id=topic_id,
        topic_name=name,
        error_code=0 if result is None else result.error_code,
        error_message=None if result is None else result.error_message,
    )
