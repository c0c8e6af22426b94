"""Runs coordinator shards: loads them from their log, appends what they decide, releases replies.

One runtime serves one internal topic. A shard exists per partition that this broker leads, from
`load` to `unload`. The runtime replays the records of an operation into the shard at once, appends
them together with those of other operations of the same turn (`open_batch.py`), and holds the reply
until the high watermark has passed everything pending (DESIGN.md, decision 9;
docs/adr/0006-coordinator-runtime.md, 0016-coordinator-batches.md). The log, the loop and the clock
are injected, so a test drives a runtime with a high watermark that lags as it likes.

Errors that callers see on the returned `Pending`: NOT_COORDINATOR (not led, unloaded, discarded),
COORDINATOR_LOAD_IN_PROGRESS, REQUEST_TIMED_OUT (not committed in time), what the operation raised,
and what the log refused an append with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kwire.clock import Clock
from kwire.coordinator import batches
from kwire.coordinator.loading import Loading, Worker
from kwire.coordinator.lone_batches import lone_batches
from kwire.coordinator.open_batch import Encoded, OpenBatch, size_of
from kwire.coordinator.partition import HeldReply, Parked, PartitionShard, ShardState, unavailable
from kwire.coordinator.reloading import PAUSE_MS, Reloads, may_pass
from kwire.coordinator.shard_interface import (
    CoordinatorLog,
    DecidedRecords,
    Failable,
    Loop,
    Moment,
    Number,
    Result,
    Shard,
)
from kwire.coordinator.shard_timers import ShardTimers
from kwire.kept_errors import kept
from kwire.log.partition.producers import VerificationGuard
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.turn_budget import TurnBudget

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=Shard)
R = TypeVar("R")
Operation = Callable[[S, Moment], Result[R]]

# `append_linger_ms` of a batch that is appended at the end of the loop's turn.
END_OF_TURN = -1
# Parked replies that leave a turn: a thousand that one operation answers take tens of ms.
REPLIES_A_TURN = 25
# Append errors that say that somebody else leads the partition by now: `load` or `unload` follows.
LOST_LEADERSHIP = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class CoordinatorRuntime(Generic[S]):
    """The shards of one internal topic on this broker.

    `module` names Kafka's record definitions ("group-coordinator"). `write_timeout_ms` bounds how
    long a reply waits for its records to be committed, `append_linger_ms` is how long records
    wait for others: 0 not at all, -1 until the end of the turn; `on_appended` is called when the
    batches of a turn are appended and their replies, as far as committed, left. `worker` loads.
    """

    def __init__(
        self,
        *,
        module: str,
        new_shard: Callable[[int], S],
        partition_log: CoordinatorLog,
        loop: Loop,
        clock: Clock,
        write_timeout_ms: int = 5000,
        load_bytes: int = 1 << 20,
        base_sequence: int = 0,
        append_linger_ms: int = 0,
        on_appended: Callable[[], None] | None = None,
        worker: Worker | None = None,
    ) -> None:
        self._module = module
        self._new_shard = new_shard
        self._log = partition_log
        self._loop = loop
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._load_bytes = load_bytes
        self._base_sequence = base_sequence
        self._append_linger_ms = append_linger_ms
        self._on_appended = on_appended
        self._worker = worker
        # Partitions with an open batch whose time has not come yet.
        self._lingering: dict[int, PartitionShard[S]] = {}
        self._partitions: dict[int, PartitionShard[S]] = {}
        self._generation = 0
        self._parked = TurnBudget(loop.call_soon, REPLIES_A_TURN)
        self.reloads = Reloads()
        self._timers: ShardTimers[S] = ShardTimers(loop, clock, self._expire_one, self._settle)

    # ------------------------------------------------------------------ leadership

    def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads `partition` from `leader_epoch` on: build its shard from the log.
        Repeating the current epoch, or an older one, does nothing unless loading had failed."""
        current = self._partitions.get(partition)
        if current is not None:
            stale = leader_epoch < current.leader_epoch
            if stale or (
                leader_epoch == current.leader_epoch and current.state is not ShardState.FAILED
            ):
                return
            if current.state is ShardState.ACTIVE and leader_epoch > current.leader_epoch:
                # Still the leader: what the log holds has not changed, nor has the shard.
                current.leader_epoch = leader_epoch
                return
            self._discard(current)
        self._start_loading(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """This broker no longer leads `partition` (or was told so at `leader_epoch`, which is
        ignored when it is older than the one we lead at)."""
        current = self._partitions.get(partition)
        if current is None or (leader_epoch is not None and leader_epoch < current.leader_epoch):
            return
        self._discard(current)

    def close(self) -> None:
        """Unload everything."""
        for partition in list(self._partitions):
            self.unload(partition)
        self._parked.do_all()

    def partitions(self) -> list[int]:
        """The partitions that are loaded or being loaded, ascending."""
        return sorted(self._partitions)

    def state(self, partition: int) -> ShardState | None:
        """None for a partition that this broker does not lead."""
        current = self._partitions.get(partition)
        return None if current is None else current.state

    def led(self, partition: int) -> PartitionShard[S] | None:
        """The partition with what the runtime keeps about it; None where another broker leads."""
        return self._partitions.get(partition)

    def shard(self, partition: int) -> S | None:
        """The shard itself, for metrics and tests; None unless it is active."""
        current = self._partitions.get(partition)
        if current is None or current.state is not ShardState.ACTIVE:
            return None
        return current.shard

    # ------------------------------------------------------------------ operations

    def write(
        self, partition: int, operation: Operation[S, R], reply: Pending[R] | None = None
    ) -> Pending[R]:
        """Run `operation` on the newest state; the reply comes once everything pending is
        committed, also when it wrote nothing. `reply` is the Pending to use, of a kind of its
        own; what the operation parks has one already."""
        pending = Pending() if reply is None else reply
        current = self._partitions.get(partition)
        if current is not None and current.state is ShardState.ACTIVE:
            return self._run(current, operation, pending)
        pending.fail(unavailable(current))
        return pending

    def take_in(
        self,
        current: PartitionShard[S],
        decided: DecidedRecords[S],
        numbers: Sequence[Number],
        reply: HeldReply,
    ) -> bool:
        """`write` of records that are decided and encoded, into the open batch: `reply` is held.

        `current` is active, not busy. False, and nothing has happened, where `write` decides more.
        """
        size_bytes, batch = decided.size_bytes, current.batch
        try:
            if batch is None and self._append_linger_ms != 0:
                batch = self._new_batch(current, size_bytes)
        except KafkaError:
            return False
        if batch is None or not batch.has_room(size_bytes):
            return False
        current.now_ms = now_ms = int(self._loop.time() * 1000)
        try:
            decided.put(current.shard, numbers, batch, self._clock.wall_ms())
        except Exception as error:
            self._broken(current, reply, error)
            return True
        reply.offset = current.last_written = batch.next_offset
        reply.deadline_ms = now_ms + current.write_timeout_ms
        current.held.append(reply)
        return True

    def read(
        self,
        partition: int,
        query: Callable[[S, Moment], R],
        reply: Pending[R] | None = None,
    ) -> Pending[R]:
        """Ask the newest state; the answer comes once what it rests on is committed."""
        return self.write(partition, lambda shard, moment: Result((), query(shard, moment)), reply)

    def write_all(self, operation: Operation[S, R]) -> list[Pending[R]]:
        """`write` to every partition led here, ascending."""
        return [self.write(partition, operation) for partition in self.partitions()]

    def read_all(self, query: Callable[[S, Moment], R]) -> list[Pending[R]]:
        """`read` from every partition led here, ascending."""
        return [self.read(partition, query) for partition in self.partitions()]

    def write_marker(
        self,
        partition: int,
        batch: bytearray,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        transaction_version: int = 0,
    ) -> Pending[None]:
        """Append the marker that ends a producer's transaction and apply it; the reply (None)
        comes when it is committed."""
        current = self._partitions.get(partition)
        if current is None or current.state is not ShardState.ACTIVE:
            return Pending.failed(unavailable(current))
        pending: Pending[None] = Pending()
        if not self._close_batch(current):
            return Pending.failed(KafkaError(ErrorCode.NOT_COORDINATOR))
        self._moment(current)
        current.busy = True
        try:
            self._append(current, batch, transaction_version=transaction_version)
            current.shard.replay_marker(producer_id, producer_epoch, commit)
        except KafkaError as error:
            current.hold(pending, None, error)
            self._lost(current, error)
        except Exception as error:
            self._broken(current, pending, error)
        else:
            current.hold(pending, None, None)
        finally:
            current.busy = False
        self._settle(current)
        return pending

    def high_watermark_advanced(self, partition: int, offset: int) -> None:
        """The log's high watermark of `partition` is now `offset`."""
        current = self._partitions.get(partition)
        if current is None or offset <= current.committed:
            return
        current.committed = offset
        if not current.busy:
            self._settle(current)

    # ------------------------------------------------------------------ running

    def _moment(self, current: PartitionShard[S]) -> Moment:
        current.now_ms = now_ms = int(self._loop.time() * 1000)
        return Moment(now_ms, self._clock.wall_ms())

    def _run(
        self, current: PartitionShard[S], operation: Operation[S, R], pending: Pending[R]
    ) -> Pending[R]:
        moment = self._moment(current)
        current.busy = True
        try:
            try:
                result = operation(current.shard, moment)
            except KafkaError as error:
                current.hold(pending, None, error)
            else:
                pending = self._apply(current, result, moment, pending)
        except Exception as error:
            # A bug: the shard may have changed half-way, so its state cannot be trusted.
            self._broken(current, pending, error)
        finally:
            current.busy = False
        if current.batch is None:  # else when it is appended, at the end of this turn
            self._settle(current)
        return pending

    def _apply(
        self, current: PartitionShard[S], result: Result[R], moment: Moment, pending: Pending[R]
    ) -> Pending[R]:
        """Append and replay the records of `result`, then answer with its response."""
        response = result.response
        error: KafkaError | None = None
        follows: Pending[None] | None = None
        if result.records:
            error = self._append_records(current, result, moment)
        if error is None:
            if result.appended is not None:
                follows = result.appended()
        elif self._partitions.get(current.partition) is not current or self._lost(current, error):
            pending = response if isinstance(response, Pending) else pending
            pending.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
            return pending
        elif result.refused is not None:
            response = result.refused(error)
            if response is not None:
                error = None
        if not isinstance(response, Pending):
            current.hold(pending, response, error)
        else:
            pending = response
            if error is not None:
                current.hold(pending, None, error)
        if follows is not None:
            current.hold(follows, None, None)
        for parked, answer in current.shard.take_replies():
            current.hold(parked, answer, None, Parked)
        return pending

    def _append_records(
        self, current: PartitionShard[S], result: Result[R], moment: Moment
    ) -> KafkaError | None:
        """Replay and append; the error with which the log refused all, or the rest, of it."""
        try:
            encoded = result.encoded
            if encoded is None:
                encoded = [] if result.built is not None else batches.encode_all(result.records)
            is_lone = result.producer is not None or result.built is not None
            if not is_lone and self._append_linger_ms != 0:
                size_bytes = size_of(encoded)
                batch = self._batch_for(current, size_bytes)
                if batch is not None:
                    self._take_in(current, batch, result, encoded, size_bytes, moment)
                    return None
            if not self._close_batch(current):
                return KafkaError(ErrorCode.NOT_COORDINATOR)
            self._append_alone(current, result, encoded, moment)
        except KafkaError as error:
            return kept(error)
        return None

    def _append_alone(
        self, current: PartitionShard[S], result: Result[R], encoded: list[Encoded], moment: Moment
    ) -> None:
        """Append an operation's records in batches of their own, then replay them."""
        bytes_max = self._log.batch_bytes_max(current.partition)
        guard = None if result.producer is None else result.producer.guard
        cut = lone_batches(result, encoded, moment.wall_ms, bytes_max, self._base_sequence)
        for batch, replay in cut:
            replay(current.shard, self._append(current, batch, guard))

    # ------------------------------------------------------------------ batches

    def _batch_for(self, current: PartitionShard[S], size_bytes: int) -> OpenBatch | None:
        """The open batch with room for so much, a new one if need be; None for what no batch of
        several operations has room for. Raises what the log would refuse a batch with."""
        batch = current.batch
        if batch is not None:
            if batch.has_room(size_bytes):
                return batch
            if not self._close_batch(current):
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self._new_batch(current, size_bytes)

    def _new_batch(self, current: PartitionShard[S], size_bytes: int) -> OpenBatch | None:
        """See `_batch_for`; none is open."""
        batch = OpenBatch(*self._log.check_append(current.partition, current.leader_epoch))
        if not batch.has_room(size_bytes):
            return None
        current.batch = batch
        self._linger(current)
        return batch

    def _take_in(
        self,
        current: PartitionShard[S],
        batch: OpenBatch,
        result: Result[R],
        encoded: list[Encoded],
        size_bytes: int,
        moment: Moment,
    ) -> None:
        replay = current.shard.replay
        offset = batch.next_offset
        batch.add(encoded, size_bytes, moment.wall_ms)
        current.last_written = batch.next_offset
        for record in result.records:
            replay(record.key, record.value, offset, -1, -1)
            offset += 1

    def _linger(self, current: PartitionShard[S]) -> None:
        """See to it that the open batch of `current` is appended when its time has come."""
        if not self._lingering:
            if self._append_linger_ms == END_OF_TURN:
                self._loop.call_soon(self._append_open)
            else:
                self._later(self._append_linger_ms, self._append_open)
        self._lingering[current.partition] = current

    def _append_open(self) -> None:
        """Append every open batch; the first one is due, the others are not worth a timer."""
        lingering, self._lingering = self._lingering, {}
        for partition, current in lingering.items():
            if self._partitions.get(partition) is current and self._close_batch(current):
                self._settle(current)
        if self._on_appended is not None:
            self._on_appended()

    def _close_batch(self, current: PartitionShard[S]) -> bool:
        """Append the open batch of `current`, if there is one. False if that cost it its shard,
        whose replies have been answered."""
        batch, current.batch = current.batch, None
        if batch is None:
            return True
        was_busy, current.busy = current.busy, True
        base_offset = batch.base_offset
        try:
            made = batch.make(self._base_sequence, current.leader_epoch)
            if self._log.append_made(current.partition, made):
                self.reloads.succeeded(current.partition)
            else:
                built = batch.build(self._base_sequence)
                base_offset = self._append(current, built, at_once=True)
        except KafkaError as error:
            self._warn(current, f", its log refused what was decided: {error}")
            if not self._lost(current, error):
                self._restart(current)
            return False
        finally:
            current.busy = was_busy
        if base_offset != batch.base_offset:
            at = f"offset {batch.base_offset} is {base_offset}"
            self._warn(current, f": somebody else wrote to it, {at}")
            self._restart(current)
            return False
        return self._partitions.get(current.partition) is current

    def _append(
        self,
        current: PartitionShard[S],
        batch: bytearray,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        at_once: bool = False,
    ) -> int:
        """Append one batch; returns its base offset."""
        epoch, generation = current.leader_epoch, current.generation
        info = self._log.append(
            current.partition, batch, epoch, guard, transaction_version, at_once
        )
        current.last_written = info.last_offset + 1
        self.reloads.watch(
            current.partition,
            info.written,
            lambda: self._restart(current) if current.generation == generation else None,
        )
        return info.base_offset

    def _settle(self, current: PartitionShard[S]) -> None:
        """After an operation or a move of the high watermark: release, then set the timers."""
        if self._partitions.get(current.partition) is not current:
            return
        current.release_committed(self._parked)
        if self._partitions.get(current.partition) is not current:
            return  # a callback of a released reply unloaded us
        if current.held and current.held_timer is None:
            generation = current.generation
            current.held_timer = self._loop.call_at(
                current.held[0].deadline_ms / 1000, lambda: self._held_due(current, generation)
            )
        self._timers.arm(current)

    def _held_due(self, current: PartitionShard[S], generation: int) -> None:
        if current.generation != generation:
            return
        current.held_timer = None
        current.release_overdue(int(self._loop.time() * 1000 + 0.5))
        self._settle(current)

    def _expire_one(self, current: PartitionShard[S], moment: Moment) -> bool:
        """Run what is due first; False when nothing is, or the shard is not ours any more."""
        unheard: Pending[None] = Pending()
        current.busy = True
        try:
            result = current.shard.expire(moment)
            if result is None:
                return False
            self._apply(current, result, moment, unheard)
        except Exception as error:
            self._broken(current, unheard, error)
            return False
        finally:
            current.busy = False
        return self._partitions.get(current.partition) is current

    # ------------------------------------------------------------------ loading

    def _start_loading(self, partition: int, leader_epoch: int, pause_ms: int = 0) -> None:
        self._generation += 1
        current = PartitionShard(
            partition,
            leader_epoch,
            self._new_shard(partition),
            self._generation,
            self._write_timeout_ms,
        )
        self._partitions[partition] = current
        if pause_ms:
            self._later(pause_ms, lambda: self._load_now(current))
        else:
            self._load_now(current)

    def _later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._loop.call_at(self._loop.time() + delay_ms / 1000, callback)

    def _load_now(self, current: PartitionShard[S]) -> None:
        if self._partitions.get(current.partition) is not current:
            return
        current.loading = Loading(
            current.shard,
            current.partition,
            module=self._module,
            partition_log=self._log,
            loop=self._loop,
            bytes_max=self._load_bytes,
            finished=lambda end_offset: self._finish_loading(current, end_offset),
            failed=lambda error: self._loading_failed(current, error),
            worker=self._worker,
            times_s=self.reloads.times_s,
        )

    def _finish_loading(self, current: PartitionShard[S], end_offset: int) -> None:
        current.loading = None
        current.last_written = end_offset
        current.committed = max(current.committed, self._log.high_watermark(current.partition))
        current.state = ShardState.ACTIVE
        moment = self._moment(current)
        current.busy = True
        try:
            result = current.shard.loaded(moment)
            self._apply(current, result, moment, Pending())
        except Exception as error:
            self._broken(current, Pending(), error)
        finally:
            current.busy = False
        self._settle(current)

    def _loading_failed(self, current: PartitionShard[S], error: Exception) -> None:
        current.loading_failed()
        if may_pass(error):
            pause_ms = max(self.reloads.pause_ms(current.partition), PAUSE_MS)
            self._later(pause_ms, lambda: self._restart(current))

    # ------------------------------------------------------------------ giving up

    def _broken(self, current: PartitionShard[S], pending: Failable, error: Exception) -> None:
        """An operation failed in a way that no Kafka error describes: a bug of ours. Its caller
        is told so, the shard is built anew from what the log says."""
        logger.error(
            "an operation on partition %d of the %s failed; loading it anew",
            current.partition,
            self._module,
            exc_info=error,
        )
        pending.fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)))
        self._restart(current)

    def _warn(self, current: PartitionShard[S], why: str) -> None:
        where = current.partition, self._module
        logger.warning("partition %d of the %s is loaded anew%s", *where, why)

    def _lost(self, current: PartitionShard[S], error: KafkaError) -> bool:
        """Give the shard up if `error` says that its log is not ours any more."""
        if error.code in LOST_LEADERSHIP:
            self._discard(current)
        elif error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            self._restart(current)
        else:
            return False
        return True

    def _restart(self, current: PartitionShard[S]) -> None:
        """Give the shard up and load it again at the same epoch, later where that failed."""
        partition = current.partition
        if self._partitions.get(partition) is not current:
            return
        self._discard(current)
        self._start_loading(partition, current.leader_epoch, self.reloads.pause_ms(partition))

    def _discard(self, current: PartitionShard[S]) -> None:
        del self._partitions[current.partition]
        for pending in current.give_up():
            pending.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
