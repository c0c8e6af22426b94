"""A partition that this node hosts: its replica state, its log, and who waits for it.

The rules of reading and writing are here; which replica leads is decided by the metadata
(`manager.py`), when the high watermark moves by `state.py`. Errors are KafkaError with Kafka's
codes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Protocol

from kwire.log.files import Buffer
from kwire.log.partition.batch_rules import earlier_start
from kwire.log.partition.config import LONG_MAX
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.partition.producers import VerificationGuard
from kwire.log.types import LOG_END, AppendInfo, FetchSlices, Origin
from kwire.pending import Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader
from kwire.protocol.records.build import MadeBatch
from kwire.protocol.records.control import TransactionMarker
from kwire.protocol.records.validation import CheckedBatch
from kwire.replica.hosted_log import NO_EPOCH, HostedLog
from kwire.replica.reading import (
    ReadLimits,
    ReadRequest,
    ReadResult,
    diverging_epoch,
    nothing_read,
)
from kwire.replica.state import (
    AdvanceHighWatermark,
    Assigned,
    Effect,
    Event,
    FollowerFetched,
    LeaderAnswered,
    LogEndMoved,
    LogOpened,
    LogRestarted,
    MinIsrChanged,
    ReplicaState,
    TruncateTo,
)
from kwire.replica.traffic import Traffic
from kwire.replica.waiting import CommitCallback, SharedWrite, UnseenBytes, WriteWaiter

ANY_BYTES = 1 << 40


def _no_time() -> int:
    return 0


class DataListener(Protocol):
    """Someone who waits for data, or for a change of the partition."""

    def data_arrived(self, partition: Partition, size_bytes: int) -> None:
        """`size_bytes` more can be read (0 when only a position moved)."""
        ...

    def log_extended(self, partition: Partition, size_bytes: int) -> None:
        """The log's end moved; the high watermark is another matter."""
        ...

    def partition_changed(self, partition: Partition) -> None:
        """The partition is led by somebody else, went offline or was deleted."""
        ...


class LeaderQuota(Protocol):
    """What limits a leader's answers to its followers (KIP-73)."""

    def holds_back(self, partition: Partition, replica_id: int) -> bool:
        """Whether nothing of the partition is sent to this follower now."""
        ...

    def sent(self, partition: Partition, size_bytes: int) -> None:
        """A follower's read is answered with `size_bytes` of the partition."""
        ...


ReplicaSelector = Callable[["Partition", int, str], int | None]
"""(partition, offset, rack) -> the replica to read from, None for this one (KIP-392)."""


class Partition(HostedLog):
    """One hosted partition."""

    __slots__ = (
        "_awaited",
        "_commit_callbacks",
        "_commit_order",
        "_shared_writes",
        "_unseen",
        "data_listeners",
        "index",
        "is_in_order",
        "now_ms",
        "on_effects",
        "on_high_watermark",
        "on_low_watermark",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(self, topic: str, topic_id: bytes, index: int, state: ReplicaState) -> None:
        super().__init__(state)
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.traffic = Traffic()
        # With which of a node's reads that wait it is, by which they hear; 0, in front of them all,
        # for who is no read.
        self.data_listeners: dict[DataListener, int] = {}
        self.is_in_order = True  # False once one was put behind those that hear after it
        self.on_high_watermark: Callable[[int, int], None] | None = None
        self.on_low_watermark: dict[Callable[[Partition], None], None] = {}
        self.on_effects: Callable[[Partition, list[Effect]], None] | None = None
        self.now_ms: Callable[[], int] = _no_time
        self._commit_callbacks: list[CommitCallback] = []  # a heap
        self._commit_order = 0
        self._unseen: UnseenBytes | None = None  # of most partitions it stays so: it is large
        self._awaited: Pending[None] | None = None  # the write that the last append waits for
        self._shared_writes: list[SharedWrite] = []  # under way; the newest is that one

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index})"

    # -- writing

    def append(
        self,
        batches: Buffer | Sequence[Buffer] | TransactionMarker,
        *,
        acks: int,
        wall_ms: int,
        origin: Origin = Origin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        leader_epoch: int = NO_EPOCH,
        may_wait: bool = False,
        checked: CheckedBatch | None = None,
    ) -> AppendInfo:
        """Append as leader. NOT_ENOUGH_REPLICAS when acks=-1 cannot be met from the start.

        `may_wait` and `checked` as in PartitionLog.append_as_leader.
        """
        if checked is None:  # else it was here before
            self.traffic.produce_requests += 1
        log = self.check_append(acks, leader_epoch)
        state = self.state
        info = log.append_as_leader(
            batches,
            leader_epoch=state.leader_epoch,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
            wall_ms=wall_ms,
            may_wait=may_wait,
            checked=checked,
        )
        written = info.written
        if info.duplicate:
            self.traffic.messages_in += info.last_offset - info.base_offset + 1
        elif not written.done:
            self._await(written, info.base_offset, info.last_offset + 1, info.size_bytes)
        elif written.error() is None:
            self._written(info.base_offset, info.last_offset + 1, info.size_bytes)
        return info

    def append_usual(self, batch: memoryview, acks: int, wall_ms: int) -> BatchHeader | None:
        """`append` of a client's usual batch, which waits for the end of the turn: its header.

        None, and nothing is changed, where `append` has more to decide or to say: a batch that is
        refused or repeated; acks=-1 where other replicas, or a flush, are in between.
        """
        state, log = self.state, self.log
        if (
            log is None
            or state.leader_id != state.broker_id
            or (acks == -1 and (state.isr != state.replicas or len(state.isr) != 1))
            or log.config.flush_messages != LONG_MAX
        ):
            return None
        appended = log.append_usual(batch, state.leader_epoch, wall_ms)
        if appended is None:
            return None
        header, written = appended
        first = header.base_offset
        self.traffic.produce_requests += 1
        self._await(written, first, first + header.last_offset_delta + 1, header.size_bytes)
        return header

    def append_made(self, made: MadeBatch, wall_ms: int) -> bool:
        """`append` with acks=-1, and its write, of a batch that was made here for the log's end:
        False, and nothing is changed, where `append` has more to say; KAFKA_STORAGE_ERROR."""
        state, log, header = self.state, self.log, made.header
        if (
            log is None
            or state.leader_id != state.broker_id
            or state.leader_epoch != header.partition_leader_epoch
            or (len(state.isr) < len(state.replicas) and not self.enough_replicas())
            or log.config.flush_messages != LONG_MAX
        ):
            return False
        try:
            if not log.append_made(made, wall_ms):
                return False
        except KafkaError as error:
            self.end_waiting(ErrorCode(error.code))
            raise
        self.traffic.produce_requests += 1
        first = header.base_offset
        self._written(first, first + header.last_offset_delta + 1, header.size_bytes)
        return True

    def share_write(self, waiter: WriteWaiter) -> None:
        """Hear of the write that the last append waits for."""
        self._shared_writes[-1].waiters.append(waiter)

    @property
    def write_under_way(self) -> Pending[None] | None:
        """What the last append waits for."""
        return self._awaited

    def check_append(self, acks: int, leader_epoch: int = NO_EPOCH) -> PartitionLog:
        """The log, if an append may be tried; raises what `append` would before it."""
        log = self.leader_log(leader_epoch)
        state = self.state
        if acks == -1 and len(state.isr) < len(state.replicas) and not self.enough_replicas():
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(state.isr)} in-sync replicas of {self.topic}-{self.index}, "
                f"{self.effective_min_isr()} needed",
            )
        return log

    def _await(self, written: Pending[None], first: int, end: int, size_bytes: int) -> None:
        """Take notice of a write once, however many appends share it: one behind the other."""
        if written is self._awaited:
            shared = self._shared_writes[-1]
            shared.end = end
            shared.size_bytes += size_bytes
            return
        self._awaited = written
        shared = SharedWrite(first, end, size_bytes)
        self._shared_writes.append(shared)
        written.add_done_callback(lambda done: self._write_done(done, shared))

    def effective_min_isr(self) -> int:
        """min.insync.replicas, never more than there are replicas (KIP-966)."""
        assert self.log is not None
        return min(self.log.config.min_insync_replicas, len(self.state.replicas))

    def _write_done(self, done: Pending[None], shared: SharedWrite) -> None:
        if done is self._awaited:
            self._awaited = None
        self._shared_writes.remove(shared)
        if done.error() is None:
            self._written(shared.first, shared.end, shared.size_bytes)
            if shared.waiters:
                shared.written(
                    self.state.high_watermark, self.log is None or self.enough_replicas()
                )
        else:
            self.end_waiting(ErrorCode.KAFKA_STORAGE_ERROR)
            shared.failed(ErrorCode.KAFKA_STORAGE_ERROR)

    def _written(self, first: int, end: int, size_bytes: int) -> None:
        """What was appended from `first` on is written, up to `end`: alone, it is committed."""
        traffic = self.traffic
        traffic.messages_in += end - first
        traffic.bytes_in += size_bytes
        state = self.state
        if state.leader_id != state.broker_id:
            return
        if self.watchers:
            self.disturb()
        if not state.followers:
            if len(state.replicas) > 1:
                self.step(LogEndMoved(end), size_bytes)
            elif state.end_moved_alone(end):
                self.advance_high_watermark(end, size_bytes)
            return
        self._not_seen_yet(end, size_bytes)
        self.step(LogEndMoved(end))
        for listener in self._listeners():
            listener.log_extended(self, size_bytes)

    def _not_seen_yet(self, end: int, size_bytes: int) -> None:
        """Bytes that consumers will see once the high watermark has passed `end`."""
        if self._unseen is None:
            self._unseen = UnseenBytes()
        self._unseen.add(end, size_bytes)

    def step(self, event: Event, size_bytes: int = 0) -> None:
        """Let the replica's state decide; `size_bytes` is what becomes visible by it."""
        effects = self.state.step(event, self.now_ms())
        for effect in effects:
            if type(effect) is AdvanceHighWatermark:
                self.advance_high_watermark(effect.offset, size_bytes)
            elif type(effect) is TruncateTo:
                assert self.log is not None
                self.log.truncate_to(effect.offset)
        if effects and self.on_effects is not None:
            self.on_effects(self, effects)

    def advance_high_watermark(self, offset: int, size_bytes: int = 0) -> None:
        """Everything before `offset` is committed: tell the log, then whoever waited for it."""
        assert self.log is not None
        if self.watchers:
            self.disturb()
        self.log.update_high_watermark(offset)
        if self._unseen is not None:
            size_bytes += self._unseen.take_to(offset)
        callbacks = self._commit_callbacks
        while callbacks and callbacks[0].offset <= offset:
            heapq.heappop(callbacks).run(ErrorCode.NONE)
        if self.on_high_watermark is not None:
            self.on_high_watermark(self.index, offset)
        self.wake_readers(size_bytes)

    def wake_readers(self, size_bytes: int) -> None:
        """More can be read, or a position moved."""
        if self.data_listeners:
            for listener in self._listeners():
                listener.data_arrived(self, size_bytes)

    def positions_changed(self) -> None:
        """Followers hear of the log's start now, not when their fetches time out."""
        for listener in self._listeners():
            listener.log_extended(self, ANY_BYTES)

    def _listeners(self) -> list[DataListener]:
        """Who hears, in order. They are sorted here and not as they come: of those that a write
        wakes each listens to many partitions, and most of these wake nobody."""
        if not self.is_in_order:
            self.is_in_order = True
            in_order = sorted(self.data_listeners.items(), key=itemgetter(1))
            self.data_listeners = dict(in_order)
        return list(self.data_listeners)

    def wait_for_commit(
        self, offset: int, callback: Callable[[ErrorCode], None]
    ) -> CommitCallback | None:
        """Run `callback(code)` when the high watermark reaches `offset`, or we lead no more.

        None when it already has; the callback then was not and will not be called. Raises
        NOT_LEADER_OR_FOLLOWER where nobody would tell it: we do not lead.
        """
        if self.state.high_watermark >= offset:
            return None
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._commit_order += 1
        waiting = CommitCallback(offset, self.state.leader_epoch, self._commit_order, callback)
        heapq.heappush(self._commit_callbacks, waiting)
        return waiting

    def enough_replicas(self) -> bool:
        """Whether the ISR still meets min.insync.replicas (asked after a commit)."""
        return len(self.state.isr) >= self.effective_min_isr()

    # -- followers, at the leader

    def follower_fetched(
        self, replica_id: int, replica_epoch: int, fetch_offset: int, log_start_offset: int
    ) -> None:
        """A follower has everything before `fetch_offset`."""
        for watcher in list(self.watchers):
            watcher.follower_fetched(self, replica_id)
        event = FollowerFetched(replica_id, replica_epoch, fetch_offset, log_start_offset)
        if not self.on_low_watermark:
            self.step(event)
            return
        before = self.low_watermark
        self.step(event)
        if self.low_watermark != before:
            self.low_watermark_changed()

    def check_follower(self, replica_id: int, current_leader_epoch: int) -> None:
        """Whether that broker replicates this partition: UNKNOWN_LEADER_EPOCH (it may be about to)
        or, without an epoch, NOT_LEADER_OR_FOLLOWER."""
        if replica_id not in self.state.followers:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH
                if current_leader_epoch != NO_EPOCH
                else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )

    @property
    def low_watermark(self) -> int:
        """The smallest log start of the live replicas; -1 while one of them is unknown."""
        assert self.log is not None
        low = self.log.log_start_offset
        for replica, progress in self.state.followers.items():
            if self.state.is_eligible(replica, NO_EPOCH):
                low = min(low, progress.log_start_offset)
        return low

    def low_watermark_changed(self) -> None:
        """Whoever waits for records to be deleted everywhere hears of it."""
        for callback in list(self.on_low_watermark):
            callback(self)

    # -- following

    def append_as_follower(self, records: Buffer) -> AppendInfo:
        """Append what the leader sent. KafkaError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.

        A log without records may have to begin earlier for it (`earlier_start`).
        """
        log = self.log
        assert log is not None
        start = earlier_start(records, log.log_start_offset, log.log_end_offset)
        if start is not None:
            self.start_anew_at(start)
        info = log.append_as_follower(records)
        self.traffic.replication_bytes_in += info.size_bytes
        self._not_seen_yet(info.last_offset + 1, info.size_bytes)
        return info

    def taken_over(self) -> None:
        """What we had fetched is written, and by now we lead."""
        assert self.log is not None
        self.step(LogEndMoved(self.log.log_end_offset))

    def leader_answered(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's positions, as far as our log goes."""
        log = self.log
        assert log is not None
        if log_start_offset > log.log_start_offset and log_start_offset <= log.log_end_offset:
            # Before that nothing is readable at the leader: it is committed or gone. First the
            # start: what we have there may be a tail of an old epoch, which nobody may read.
            log.move_start(log_start_offset)
            if log_start_offset > self.state.high_watermark:
                self.step(LeaderAnswered(log_start_offset, log.log_end_offset))
        self.step(LeaderAnswered(high_watermark, log.log_end_offset))

    def truncate_to(self, offset: int) -> None:
        """Drop what the leader does not have from `offset` on."""
        assert self.log is not None
        end = self.log.log_end_offset
        self.step(LeaderAnswered(NO_EPOCH, end, diverging_end_offset=offset))

    def start_anew_at(self, offset: int) -> None:
        """Drop everything: the leader's log begins behind the end of ours."""
        assert self.log is not None
        self.log.truncate_fully_and_start_at(offset)
        self.step(LogRestarted(offset))

    # -- reading

    def read(
        self,
        request: ReadRequest,
        limits: ReadLimits,
        bytes_left: int,
        min_one: bool = True,
        selector: ReplicaSelector | None = None,
        quota: LeaderQuota | None = None,
    ) -> ReadResult | Pending[ReadResult]:
        """Whole batches of at most `bytes_left` from where `request` says, as far as `limits` show.

        `min_one` gives the first batch whatever its size. A follower's read tells how far it is,
        and is held back by `quota`; a consumer may be sent elsewhere by `selector`. A read that has
        to wait for the disk gives a Pending. Raises KafkaError, from an epoch that is not ours to
        OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE and KAFKA_STORAGE_ERROR.
        """
        self.traffic.fetch_requests += 1
        offset, isolation = request.fetch_offset, limits.isolation
        if limits.from_follower:
            log = self.readable_log(request.current_leader_epoch)
            if selector is not None and self.is_leader:
                replica = selector(self, offset, limits.rack)
                if replica is not None:
                    elsewhere = nothing_read(log, isolation)
                    elsewhere.preferred_replica = replica
                    return elsewhere
        else:
            log = self.leader_log(request.current_leader_epoch)
            if limits.replica_id >= 0:
                self.check_follower(limits.replica_id, request.current_leader_epoch)
        if request.last_fetched_epoch >= 0:
            epoch_end = diverging_epoch(log, request)
            if epoch_end is not None:
                diverging = nothing_read(log, isolation)
                diverging.diverging_epoch = epoch_end
                return diverging
        end = log.log_end_offset if isolation is LOG_END else log.high_watermark
        if quota is not None and quota.holds_back(self, limits.replica_id):
            if not log.log_start_offset <= offset <= log.log_end_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            end = offset
        if offset == end:
            result = nothing_read(log, isolation)
            if limits.replica_id >= 0:
                self._follower_read(request, limits, result, quota)
            return result
        is_negative = request.partition_bytes_max < 0 or bytes_left < 0
        if is_negative and log.log_start_offset <= offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka 4.4 answers it
        found = log.read(
            offset,
            max(0, min(request.partition_bytes_max, bytes_left)),
            isolation=isolation,
            may_wait=True,
            as_file=limits.as_files,
            min_one=min_one,
        )
        if isinstance(found, Pending):
            return after(found, lambda done: self._found(request, limits, done.result(), quota))
        return self._found(request, limits, found, quota)

    def _found(
        self,
        request: ReadRequest,
        limits: ReadLimits,
        slices: FetchSlices,
        quota: LeaderQuota | None,
    ) -> ReadResult:
        result = ReadResult(
            slices.high_watermark,
            slices.last_stable_offset,
            slices.log_start_offset,
            slices.aborted,
            slices.buffers,
            slices.size_bytes,
            slices.counted_bytes,
        )
        if limits.replica_id >= 0:
            self._follower_read(request, limits, result, quota)
        return result

    def _follower_read(
        self,
        request: ReadRequest,
        limits: ReadLimits,
        result: ReadResult,
        quota: LeaderQuota | None,
    ) -> None:
        """Our log holds what a follower asked for: it has everything before."""
        self.follower_fetched(
            limits.replica_id, limits.replica_epoch, request.fetch_offset, request.log_start_offset
        )
        if self.log is not None:
            result.high_watermark = self.log.high_watermark
        if result.size_bytes and quota is not None:
            quota.sent(self, result.size_bytes)

    # -- changing roles

    def log_opened(self, log: PartitionLog) -> None:
        """What this replica reads and writes is there."""
        self.log = log
        self.step(LogOpened(log.high_watermark, log.config.min_insync_replicas))

    def configured(self) -> None:
        """The log's configs changed."""
        assert self.log is not None
        min_isr = self.log.config.min_insync_replicas
        if min_isr != self.state.min_isr:
            self.step(MinIsrChanged(min_isr))

    def assign(self, assigned: Assigned, now_ms: int) -> list[Effect]:
        """Take committed metadata in; who waits for an older leadership is told."""
        self.disturb()
        was_leader, old_epoch = self.is_leader, self.state.leader_epoch
        effects = self.state.step(assigned, now_ms)
        if was_leader and not self.is_leader:
            self.end_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif was_leader and self.state.leader_epoch != old_epoch:
            self._changed()
        return effects

    def end_waiting(self, code: ErrorCode) -> None:
        """Everybody who waits here is answered with `code`."""
        callbacks, self._commit_callbacks = self._commit_callbacks, []
        for shared in list(self._shared_writes):
            shared.end_commits(code)
        for waiting in sorted(callbacks):
            waiting.run(code)
        if self.on_low_watermark:
            self.low_watermark_changed()
        self._changed()

    def _changed(self) -> None:
        self.disturb()
        for listener in self._listeners():
            listener.partition_changed(self)
