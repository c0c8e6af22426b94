"""Reading a log: batches, look-ups by timestamp, aborted transactions."""

from __future__ import annotations

from typing import Protocol

from kwire.log.partition import lookups
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.replay import rebuild_transaction_indexes
from kwire.log.partition.reported_damages import ReportedDamages
from kwire.log.segment import reading
from kwire.log.segment.transaction_index import DamagedIndexError
from kwire.log.types import COMMITTED, HIGH_WATERMARK, FetchSlices, Isolation, TimestampOffset
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError


class Readable(Protocol):
    """What of a log its readers may see."""

    log_start_offset: int
    local_log_start_offset: int
    high_watermark: int
    log_end_offset: int

    @property
    def last_stable_offset(self) -> int: ...


class LogReader:
    """Reads the log whose files are `local`."""

    __slots__ = ("_damages", "_local", "_log", "_name", "_segments")

    def __init__(self, log: Readable, name: str, local: LocalLog) -> None:
        self._log = log
        self._name = name
        self._local = local
        self._segments = local.segments
        self._damages: ReportedDamages | None = None  # most logs have none

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        min_one: bool = True,
        may_wait: bool = False,
        as_file: bool = False,
    ) -> FetchSlices | Pending[FetchSlices]:
        """Whole batches from the one that holds `offset` on, up to what `isolation` shows.

        With `may_wait` a read that would have to wait for the disk is made off the loop and gives a
        Pending; without, it blocks. `as_file` lets much data be a FileSlice.
        Raises KafkaError: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        log = self._log
        if offset > log.log_end_offset or offset < log.local_log_start_offset:
            raise self._out_of_range(offset)
        stable = log.last_stable_offset
        offset_max = log.log_end_offset
        if isolation is HIGH_WATERMARK:
            offset_max = log.high_watermark
        elif isolation is COMMITTED:
            offset_max = stable
        found = reading.EMPTY
        if offset < offset_max:
            try:
                found = reading.read_batches(
                    self._segments,
                    offset,
                    bytes_max,
                    offset_max,
                    written_offset=self._local.written_offset,
                    min_one=min_one,
                    may_wait=may_wait,
                    as_file=as_file,
                )
            except reading.ColdReadError as cold:
                return self._read_later(cold, offset, bytes_max, isolation, min_one)
            except KafkaError as error:
                self._cannot_be_read(offset, error)
                raise
            except OSError as error:
                raise self._unreadable(error) from error
            if (
                found.data
                and reading.begins_above(found.data, offset)
                and not self._local.config.compacts
            ):
                self._report(f"offset {offset} and those behind it are missing")
        aborted = None
        if isolation is COMMITTED:
            try:
                aborted = self._aborted(offset, found.next_offset) if found.data else []
            except OSError as error:
                raise self._unreadable(error) from error
        return FetchSlices(
            [found.data] if found.data else [],
            len(found.data),
            found.next_offset if found.data else offset,
            log.high_watermark,
            stable,
            log.log_start_offset,
            aborted,
            found.counted_bytes,
        )

    def _out_of_range(self, offset: int) -> KafkaError:
        log = self._log
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {self._name}, but we only have "
            f"log segments from offset {log.local_log_start_offset} to {log.log_end_offset}.",
        )

    def _unreadable(self, error: OSError) -> KafkaError:
        message = f"Error while reading {self._name}: {error}"
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def _cannot_be_read(self, offset: int, error: KafkaError) -> None:
        segment, then = self._segments.floor(offset), ""
        if segment.is_sealed:
            segment.ask_for_repair()
            then = "; the next start keeps the damaged bytes aside and goes on behind them"
        self._report(f"cannot be read at offset {offset}: {error.message}{then}")

    def _report(self, damage: str) -> None:
        if self._damages is None:
            self._damages = ReportedDamages(self._local)
        self._damages.report(damage)

    def _read_later(
        self,
        cold: reading.ColdReadError,
        offset: int,
        bytes_max: int,
        isolation: Isolation,
        min_one: bool,
    ) -> Pending[FetchSlices]:
        """Bring the bytes into memory off the loop, then read as things are by then."""
        files, path = self._local.files, cold.segment.log_path

        def warm() -> None:
            handle = files.open(path, writable=False)  # the loop may close the segment's own
            try:
                files.pread(handle, cold.size_bytes, cold.position)
            finally:
                files.close(handle)

        result: Pending[FetchSlices] = Pending()

        def warmed(done: Pending[None]) -> None:
            # An error, or a file closed meanwhile, shows again in the read itself.
            try:
                found = self.read(offset, bytes_max, isolation=isolation, min_one=min_one)
            except Exception as error:
                result.fail(error)
            else:
                assert isinstance(found, FetchSlices)
                result.complete(found)

        self._local.scheduler.run(warm).add_done_callback(warmed)
        return result

    def _aborted(self, offset: int, next_offset: int) -> list[tuple[int, int]]:
        try:
            entries = lookups.aborted_transactions(self._segments, offset, next_offset)
        except DamagedIndexError:
            rebuild_transaction_indexes(self._local, self._log.log_end_offset)
            entries = lookups.aborted_transactions(self._segments, offset, next_offset)
        return [(entry.producer_id, entry.first_offset) for entry in entries]

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or behind `timestamp` (ms), None when there is none."""
        start = self._log.local_log_start_offset
        return lookups.offset_for_timestamp(self._segments, timestamp, start)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp."""
        return lookups.max_timestamp_offset(self._segments)
