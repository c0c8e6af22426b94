"""The part of a log that is on this disk: its segments, its small files, what of them is durable.

It knows files and offsets, nothing of producers, leaders or readers (Kafka's LocalLog). Methods
raise OSError when a file fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from zlib import crc32

from kwire.clock import Clock
from kwire.log.files import Files, NotBegunError, unlink_quietly
from kwire.log.flushing import Flusher, SyncRequest, sync_files
from kwire.log.partition.config import LogConfig
from kwire.log.partition.leader_epochs import EpochFile
from kwire.log.partition.producer_snapshots import SnapshotFiles
from kwire.log.partition.producers import ProducerEntry
from kwire.log.scheduling import Scheduler
from kwire.log.segment.open_file_limit import OpenSegments
from kwire.log.segment.segment import DELETED_SUFFIX, Segment
from kwire.log.segment.segment_list import Segments
from kwire.pending import Pending


class LocalLog:
    """The files of one partition.

    `written_offset` is where they end, `recovery_point` up to where they are durable. Who flushes
    gets the error that `sync_failed` makes of one of the disk's: nothing that failed is synced
    again.
    """

    __slots__ = (
        "_open_segments",
        "clock",
        "config",
        "directory",
        "epoch_file",
        "files",
        "flusher",
        "has_new_files",
        "jitter_share",
        "last_flush_ms",
        "on_moved",
        "recovery_point",
        "scheduler",
        "segments",
        "snapshots",
        "sync_failed",
        "truncations",
        "unfinished",
        "unsynced_segments",
        "written_offset",
    )

    def __init__(
        self,
        directory: str,
        name: str,
        topic_id: bytes,
        config: LogConfig,
        clock: Clock,
        *,
        files: Files,
        scheduler: Scheduler,
        flusher: Flusher | None = None,
        open_segments: OpenSegments | None = None,
    ) -> None:
        self.directory = directory
        self.config = config
        self.clock = clock
        self.files = files
        self.scheduler = scheduler
        self.flusher = flusher or Flusher(files, scheduler)
        self._open_segments = open_segments or OpenSegments()
        self.segments = Segments()
        self.epoch_file = EpochFile(files, directory)
        self.snapshots = SnapshotFiles(files, directory)
        self.jitter_share = crc32(name.encode(), crc32(topic_id))  # of 2**32
        self.written_offset = 0
        self.recovery_point = 0
        self.last_flush_ms = 0
        self.truncations = 0  # how often records were dropped from the end
        self.has_new_files = False
        self.unsynced_segments: list[Segment] = []  # sealed, their trimmed indexes not durable yet
        self.unfinished: list[Segment] = []  # whose files could not all be made
        self.sync_failed: Callable[[Exception], Exception] = _as_it_is
        self.on_moved: Callable[[], None] = _unheard  # the recovery point, or where the files begin

    # -- segments -----------------------------------------------------------------------------

    def add(self, segment: Segment) -> None:
        """Make a segment part of the log."""
        segment.attach(self.flusher, self._open_segments)
        self.segments.add(segment)

    def share(self, scheduler: Scheduler, flusher: Flusher, open_segments: OpenSegments) -> None:
        """Share these with other logs from now on: a log is opened alone."""
        self.scheduler = scheduler
        self.flusher = flusher
        self._open_segments = open_segments
        for segment in self.segments:
            segment.attach(flusher, open_segments)

    def reconfigure(self, config: LogConfig) -> None:
        """Take over changed configs; segments keep their size until they are rolled."""
        self.config = config
        self.segments.active.index_interval_bytes = config.index_interval_bytes

    def seal_active(self) -> None:
        """Nothing more goes into the active segment: its indexes are trimmed."""
        active = self.segments.active
        active.seal()
        self.unsynced_segments.append(active)

    def begin_segment(self, base_offset: int) -> Segment:
        """Create an empty active segment; when that fails the log is as it was."""
        segment = self._empty_segment(base_offset)
        try:
            self.create(segment)
        except OSError:
            self.unfinished.append(segment)
            segment.close()
            raise
        self.add(segment)
        return segment

    def begin_in_empty_directory(self) -> None:
        """The first segment of a log whose directory was made for it just now."""
        created_ms = self.clock.wall_ms()
        segment = Segment(
            self.files, self.directory, 0, self.config, created_ms=created_ms, is_new=False
        )
        for path in (segment.log_path, segment.index_path, segment.time_index_path):
            self.files.close(self.files.open(path, create=True))  # nothing can be in their way
        self.has_new_files = True
        self.add(segment)
        if self.config.preallocate:
            try:
                segment.preallocate(self.config.segment_bytes)
            except OSError:
                segment.close()
                raise

    def add_empty(self, base_offset: int) -> Segment:
        """Make a segment part of the log whose files are made by `create` then."""
        segment = self._empty_segment(base_offset)
        self.add(segment)
        return segment

    def create(self, segment: Segment) -> None:
        """Make the files of an empty segment."""
        self.has_new_files = True
        segment.create()
        if self.config.preallocate:
            segment.preallocate(self.config.segment_bytes)

    def _empty_segment(self, base_offset: int) -> Segment:
        created_ms = self.clock.wall_ms()
        return Segment(self.files, self.directory, base_offset, self.config, created_ms=created_ms)

    def drop(self, segment: Segment) -> None:
        """Give up a segment and its files now."""
        self.segments.remove(segment)
        segment.delete_files()

    def truncate_to(self, offset: int) -> None:
        """Drop all records from `offset` on, which is not below the first segment."""
        for segment in reversed(self.segments.above(offset)):
            self.drop(segment)
        active = self.segments.active
        active.reopen(self.config)
        found = active.find(offset)
        if found is not None:
            active.truncate_to(offset, found[0])

    def drop_all(self) -> None:
        """Drop all segments and snapshots."""
        for segment in reversed(list(self.segments)):
            self.drop(segment)
        self.snapshots.remove(list(self.snapshots.offsets))

    def undo_roll(self) -> bool:
        """Undo a roll that failed; whether the files hold more than the written batches do.

        May be done again when it fails.
        """
        while self.unfinished:
            self.unfinished[-1].delete_files()
            self.unfinished.pop()
        active = self.segments.active
        if active.is_sealed:
            active.reopen(self.config)  # the roll did not get to its end
        return self.files.size(active.handle) != active.size_bytes

    def cut_back(self) -> None:
        """Let the files end where the written batches do; may be done again when it fails."""
        active = self.segments.active
        active.truncate_to(self.written_offset, active.size_bytes)

    def retire(self, gone: Sequence[Segment]) -> None:
        """Take segments out of the log: renamed now, their files go after the delay."""
        removed: list[Segment] = []
        try:
            for segment in gone:
                segment.rename(DELETED_SUFFIX)
                self.segments.remove(segment)
                removed.append(segment)
        finally:
            self.on_moved()
            self.remove_later(removed)
        self.snapshots.remove([segment.base_offset for segment in gone])

    def exchange(self, old: Sequence[Segment], new: Segment) -> None:
        """Let `new` stand for `old`, which were compacted into it and renamed."""
        for segment in old:
            self.segments.remove(segment)
        self.add(new)
        self.snapshots.remove([segment.base_offset for segment in old[1:]])

    def remove_later(self, gone: Sequence[Segment]) -> None:
        """Remove the `.deleted` files of segments after the delay: readers may still be there."""
        paths = [path for segment in gone for path in segment.paths()]

        def remove() -> None:
            for segment in gone:
                segment.is_deleted = True
                segment.close()
            self.scheduler.run(partial(unlink_quietly, self.files, paths))

        self.scheduler.call_later(self.config.file_delete_delay_ms, remove)

    def save_snapshot(self, entries: Iterable[ProducerEntry]) -> list[str]:
        """A snapshot of the producers at the end of the files, unless there is one or they are
        empty.

        Returns the path of the file that it wrote. Not durable: recovery can do without.
        """
        if self.written_offset <= max(self.snapshots.latest, 0):
            return []
        return [self.snapshots.write(self.written_offset, entries)]

    # -- durability ---------------------------------------------------------------------------

    def sync_request(self, offset: int) -> SyncRequest:
        """What has to be synced so that everything below `offset` is durable, epochs included.

        Where the epochs cannot be written (`is_unsaved`) the recovery point has to stay.
        """
        request = SyncRequest()
        self.epoch_file.save_waiting()
        if self.recovery_point < offset:
            for segment in self.segments.starting_at(self.recovery_point):
                if segment.base_offset < offset:
                    segment.add_to_sync(request)
        for segment in self.unsynced_segments:
            if not segment.is_deleted:
                segment.add_to_sync(request)
        self.unsynced_segments = []
        # Epochs that begin at the log's end are given up by the next start anyhow.
        file = self.epoch_file
        epochs = file.epochs.entries
        if file.is_unsynced and not file.is_unsaved and epochs and epochs[0][1] < offset:
            file.is_unsynced = False
            request.paths.append(file.path)
            self.has_new_files = True
        if self.has_new_files:
            self.has_new_files = False
            request.directories.append(self.directory)
        return request

    def flush_to(self, offset: int) -> Pending[None]:
        """Sync what holds offsets from the recovery point up to `offset`, which are written."""
        result: Pending[None] = Pending()
        if offset <= self.recovery_point and not self.unsynced_segments:
            result.complete(None)
            return result
        request = self.sync_request(offset)
        truncations, has_epochs = self.truncations, not self.epoch_file.is_unsaved

        def synced(done: Pending[None]) -> None:
            error = done.error()
            if error is not None:
                result.fail(self.sync_failed(error))
                return
            if has_epochs and truncations == self.truncations:
                durable = min(offset, self.written_offset)
                self.move_recovery_point(max(self.recovery_point, durable))
            self.last_flush_ms = self.clock.wall_ms()
            result.complete(None)

        self.flusher.request(request).add_done_callback(synced)
        return result

    def flush_up_to(self, offset: int) -> Pending[None]:
        """Make the segments below `offset` durable, as far as they are written."""
        return self.flush_to(min(offset, self.written_offset))

    def sync_now(self) -> None:
        """Make everything written durable before going on. Blocks.

        Raises NotBegunError where some of it was not tried: it may be done again then.
        """
        unsynced = self.unsynced_segments
        try:
            sync_files(self.files, self.sync_request(self.written_offset + 1))
        except NotBegunError:
            self.unsynced_segments = unsynced
            self.has_new_files = self.epoch_file.is_unsynced = True
            raise
        if not self.epoch_file.is_unsaved:
            self.move_recovery_point(self.written_offset)

    def move_recovery_point(self, offset: int) -> None:
        """Everything below `offset` is durable."""
        self.recovery_point = offset
        self.on_moved()

    def doubt_durability(self, offset: int) -> None:
        """After a kill nobody knows which files from `offset` on were synced: the next flush is."""
        self.has_new_files = self.epoch_file.is_unsynced = True
        self.unsynced_segments = [s for s in self.segments.starting_at(offset) if s.is_sealed]

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the files."""
        for segment in self.segments:
            segment.close()

    def give_up(self) -> None:
        """Close the files of a log that is deleted."""
        for segment in self.segments:
            segment.is_deleted = True
            segment.close()

    def relocate(self, path: str) -> None:
        """Rename the directory. Raises OSError."""
        self.files.rename(self.directory, path)
        self.directory = path
        self.epoch_file.relocate(path)
        self.snapshots = self.snapshots.relocated(path)
        for segment in self.segments:
            segment.relocate(path)


def _unheard() -> None:
    pass


def _as_it_is(error: Exception) -> Exception:
    return error
