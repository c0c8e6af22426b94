"""Moving a partition's log to another log directory while it is written to (KIP-113).

The copy grows in `NAME-P.UNIQUE-future` of the other directory, batch by batch as a follower's log
does, until it has caught up. Then, in one turn of the loop, what is left is copied and synced, the
copy gets the partition's name, and the original is renamed to `-delete`. A stop or a crash before
leaves the original in place and a `-future` with which the next start goes on, where the two agree;
one between the two renames leaves two logs of the same content, of which the next start sets one
aside.

All moves together copy at most `replica.alter.log.dirs.io.max.bytes.per.second`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from kwire.clock import Random
from kwire.kept_errors import anew
from kwire.log.directories.directory import FUTURE_SUFFIX, LogDirectory, suffixed_name
from kwire.log.directories.identity_files import PARTITION_METADATA
from kwire.log.files import Buffer, Files
from kwire.log.flushing import SyncRequest, sync_files
from kwire.log.partition.batch_rules import earlier_start
from kwire.log.partition.config import LONG_MAX
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.scheduling import Scheduler
from kwire.log.types import FetchSlices, FileSlice, Isolation
from kwire.pending import Pending, as_pending
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

STEP_BYTES = 1 << 20
LEFT_BYTES_MAX = 4 << 20  # what may be left for the turn that switches over
CLOSE_BYTES = 64 << 10
THROTTLE_MS = 200  # after which a changed rate shows

Key = tuple[str, int]


class MovableLogs(Protocol):
    """The logs of a node, and how a copy of one is made and takes its place."""

    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def files(self) -> Files: ...
    @property
    def random(self) -> Random: ...
    def get(self, topic: str, partition: int) -> PartitionLog | None: ...
    def directory_of(self, topic: str, partition: int) -> LogDirectory | None: ...
    def interrupt_cleaning(self, topic: str, partition: int) -> None: ...
    def write_partition_metadata(
        self, path: str, topic_id: bytes, *, sync: bool = False
    ) -> None: ...
    def open_future(
        self, directory: LogDirectory, path: str, key: Key, topic_id: bytes
    ) -> PartitionLog: ...
    def exchange(
        self, old: PartitionLog, new: PartitionLog, directory: LogDirectory
    ) -> PartitionLog: ...
    def take_offline(self, directory: LogDirectory, error: Exception) -> None: ...
    def remove_later(self, path: str) -> None: ...


class LogMoves:
    """The moves of a node that are under way. `on_moved(log)` hears of each that is done.

    `rate_max` is the limit of all together in bytes per second.
    """

    def __init__(self, logs: MovableLogs) -> None:
        self._logs = logs
        self.on_moved: Callable[[PartitionLog], None] = lambda log: None
        self.moves: dict[Key, LogMove] = {}
        self.rate_max: int = LONG_MAX

    def begin(self, key: Key, directory: LogDirectory) -> None:
        """Move a partition to `directory`; nothing to do when it is or goes there already.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        known = self.moves.get(key)
        if known is not None:
            if known.directory is directory:
                return
            self.cancel(key)
        if self._logs.directory_of(*key) is directory:
            return
        source = self._logs.get(*key)
        if source is None or directory.error is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory.path} is offline")
        self.moves[key] = move = self._make(source, directory, None)
        move.step()

    def resume(self, key: Key, directory: LogDirectory, path: str) -> bool:
        """Go on with the copy that an earlier run left in `path`; False where it is of no use.

        Raises KafkaError.
        """
        source = self._logs.get(*key)
        home = self._logs.directory_of(*key)
        if source is None or home is directory or key in self.moves:
            return False
        move = self._make(source, directory, path)
        self.moves[key] = move
        self._logs.scheduler.call_soon(move.step)
        return True

    def _make(self, source: PartitionLog, directory: LogDirectory, path: str | None) -> LogMove:
        # The cleaner leaves moving logs alone.
        self._logs.interrupt_cleaning(source.topic, source.partition)
        try:
            return LogMove(self, self._logs, source, directory, path)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"Error while creating log in {directory.path}"
            ) from error

    def cancel(self, key: Key) -> None:
        """Give up a move; its copy is removed."""
        move = self.moves.pop(key, None)
        if move is not None:
            move.cancel()

    def close(self) -> None:
        """The node stops: the copies are closed and stay, for the next start to go on with."""
        for move in self.moves.values():
            move.suspend()
        self.moves.clear()

    def ended(self, move: LogMove, log: PartitionLog | None) -> None:
        if self.moves.get(move.key) is move:
            del self.moves[move.key]
        if log is not None:
            self.on_moved(log)


class LogMove:
    """One move: `target` is the copy, `lag` how many offsets it is behind."""

    def __init__(
        self,
        moves: LogMoves,
        logs: MovableLogs,
        source: PartitionLog,
        directory: LogDirectory,
        path: str | None,
    ) -> None:
        self.key: Key = (source.topic, source.partition)
        self.directory = directory
        self._logs = logs
        self._source = source
        self._moves = moves
        self._unpaid_bytes = 0.0  # copied, not yet paid for with time
        self._is_over = False
        self._truncations = source.truncations
        if path is None:
            unique = logs.random.random_bytes(16).hex()
            name = suffixed_name(source.topic, source.partition, unique, FUTURE_SUFFIX)
            path = f"{directory.path}/{name}"
            logs.files.make_directory(path)
            logs.write_partition_metadata(path, source.topic_id)
            request = SyncRequest()
            request.paths.append(f"{path}/{PARTITION_METADATA}")
            request.directories += [path, directory.path]
            directory.flusher.request(request).add_done_callback(self._synced)
        self._path = path
        self.target = logs.open_future(directory, path, self.key, source.topic_id)
        # Nothing in the copy is acknowledged: it is synced at the end, not by flush.messages.
        self.target.reconfigure(replace(source.config, flush_messages=LONG_MAX))
        self._agree()

    def _synced(self, done: Pending[None]) -> None:
        error = done.error()
        if error is not None:
            self._logs.take_offline(self.directory, error)

    def _agree(self) -> None:
        """Let the copy end where it and the original are the same (KIP-101, KIP-279)."""
        source, target = self._source, self.target
        end = target.log_end_offset
        while end > source.log_start_offset:
            latest = target.leader_epochs.latest
            epoch, epoch_end = source.end_offset_for_epoch(latest)
            end = min(end, epoch_end)
            target.truncate_to(max(end, 0))
            if epoch == latest:
                break
            # The original knows no batch of that epoch: it was cut off there meanwhile.
            end = min(
                end, target.leader_epochs.entries[-1][1] if target.leader_epochs.entries else 0
            )
        if not source.log_start_offset < end <= source.log_end_offset:
            target.truncate_fully_and_start_at(source.log_start_offset)

    @property
    def lag(self) -> int:
        return max(self._source.log_end_offset - self.target.log_end_offset, 0)

    def cancel(self) -> None:
        """Forget the copy."""
        if self._is_over:
            return
        self._is_over = True
        self.target.abandon()
        self._logs.remove_later(self._path)

    def suspend(self) -> None:
        """The node stops: close the copy and leave it."""
        self._is_over = True
        if self.directory.error is None:
            self.target.close(sync=True)
        else:
            self.target.abandon()

    def step(self) -> None:
        """Copy a piece, then give the loop its turn."""
        if self._is_over:
            return
        source = self._source
        if source.is_closed or self._logs.get(*self.key) is not source:
            self._fail("it was deleted")
            return
        try:
            if self._adjust() and self._is_close() and self._switch():
                return
            self._copy_piece()
        except (KafkaError, OSError) as error:
            self._fail(str(error))

    def _adjust(self) -> bool:
        """Follow truncations and the log's start; whether nothing had to be given up."""
        source, target = self._source, self.target
        start = source.log_start_offset
        if self._truncations != source.truncations or start > target.log_end_offset:
            self._truncations = source.truncations
            target.truncate_fully_and_start_at(start)
            return False
        target.move_start(start)
        return True

    def _is_close(self) -> bool:
        return self._bytes_left() <= CLOSE_BYTES

    def _bytes_left(self) -> int:
        """About how much is left: counted in the source's last segment, else too much."""
        offset = self.target.log_end_offset
        active = self._source.segments.active
        if self.lag == 0:
            return 0
        if offset < active.base_offset:
            return LEFT_BYTES_MAX + 1
        return active.size_bytes - active.position_of(offset)

    def _copy_piece(self) -> None:
        if self.lag == 0:
            self._logs.scheduler.call_later(10, self.step)
            return
        found = self._source.read(
            self.target.log_end_offset, STEP_BYTES, isolation=Isolation.LOG_END, may_wait=True
        )
        pending = as_pending(found)
        pending.add_done_callback(self._read)

    def _read(self, done: Pending[FetchSlices]) -> None:
        if self._is_over:
            return
        error = done.error()
        if error is not None:
            self._fail(str(error))
            return
        if self._truncations == self._source.truncations:
            try:
                self._append(done.result())
            except (KafkaError, OSError) as failure:
                self._fail(str(failure))
                return
        self._paid()

    def _paid(self) -> None:
        """The next piece, once the last one was paid for with time."""
        if self._is_over:
            return
        rate = self._moves.rate_max
        if self._unpaid_bytes <= 0 or rate >= LONG_MAX:
            self._unpaid_bytes = 0.0
            self._logs.scheduler.call_soon(self.step)
            return
        bytes_per_turn = rate * THROTTLE_MS / 1000 / max(len(self._moves.moves), 1)
        paid = min(self._unpaid_bytes, bytes_per_turn)
        wait_ms = THROTTLE_MS * paid / bytes_per_turn if bytes_per_turn else THROTTLE_MS
        self._unpaid_bytes -= paid
        self._logs.scheduler.call_later(wait_ms, self._paid)

    def _append(self, slices: FetchSlices) -> None:
        target = self.target
        buffers = [_as_buffer(buffer) for buffer in slices.buffers]
        self._unpaid_bytes += slices.size_bytes
        if not buffers:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "nothing can be read where there is more")
        start = earlier_start(buffers[0], target.log_start_offset, target.log_end_offset)
        if start is not None:
            target.truncate_fully_and_start_at(start)
        target.append_as_follower(buffers)
        target.write_tail()
        target.update_high_watermark(min(self._source.high_watermark, target.log_end_offset))
        if start is not None:
            target.move_start(self._source.log_start_offset)

    def _switch(self) -> bool:
        """Copy what is left, let the copy take over, all in this turn; False when it is too early.

        The syncs at the end block, for what little was not synced yet.
        """
        source, target = self._source, self.target
        if source.error is not None:
            raise anew(source.error)
        source.write_tail()
        if source.log_end_offset != source.next_offset:
            return False  # acknowledgements wait for a flush of the source
        while self.lag:
            slices = source.read(target.log_end_offset, STEP_BYTES)
            assert isinstance(slices, FetchSlices)
            self._append(slices)
        target.take_over(source)
        request = SyncRequest()
        request.paths.append(f"{self._path}/{PARTITION_METADATA}")
        request.directories += [self._path]
        try:
            # Of two that are there after a loss of power none may end before the other.
            source.sync_now()
        except OSError as error:
            source.fail(error, lost=True)
            raise
        try:
            target.sync_now()
            sync_files(self._logs.files, request)
        except OSError as error:
            self._logs.take_offline(self.directory, error)
            raise
        self._is_over = True
        moved = self._logs.exchange(source, target, self.directory)
        logger.info("%s was moved to %s", source.name, self.directory.path)
        self._moves.ended(self, moved)
        return True

    def _fail(self, reason: str) -> None:
        if self._is_over:
            return
        logger.error("%s cannot be moved to %s: %s", self._source.name, self.directory.path, reason)
        self.cancel()
        self._moves.ended(self, None)


def _as_buffer(data: Buffer | FileSlice) -> Buffer:
    return data.read() if isinstance(data, FileSlice) else data
