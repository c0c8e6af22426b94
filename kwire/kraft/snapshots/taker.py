"""Takes snapshots of the committed image and deletes old ones, off the hot path."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from kwire.clock import Clock
from kwire.kraft.metadata_log import MetadataLog
from kwire.kraft.raft import RaftState
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.kraft.snapshots.content import SnapshotError, snapshot_batches
from kwire.kraft.snapshots.policy import (
    CLEAN_INTERVAL_MS,
    SLICE_BATCHES,
    SnapshotPolicy,
    SnapshotTrigger,
    snapshot_to_start_at,
)
from kwire.log.scheduling import Scheduler, Timer
from kwire.pending import Pending
from kwire.protocol.metadata_records import VersionedRecord

logger = logging.getLogger(__name__)


class Image(Protocol):
    """The committed image, as a snapshot needs it (kwire/kraft/images/metadata_image.py)."""

    offset: int
    epoch: int

    def record_source(self) -> Iterator[VersionedRecord]: ...

    @property
    def in_transaction(self) -> bool: ...


class ImageSource(Protocol):
    """Who holds the committed image (kwire/kraft/images/image_publisher.py)."""

    last_timestamp_ms: int

    @property
    def image(self) -> Image: ...


class Quorum(Protocol):
    """This node's replica of the metadata log, running (kwire/kraft/raft_driver.py)."""

    clock: Clock
    metadata_log: MetadataLog
    raft: RaftState

    @property
    def now_ms(self) -> int: ...

    def step(self, message: msg.Message) -> None: ...

    def snapshot_facts(self, snapshot: OffsetAndEpoch) -> tuple[int, int]: ...


class Snapshotter:
    """Watches what is committed; `source` is set by who composes the node."""

    def __init__(self, quorum: Quorum, policy: SnapshotPolicy, scheduler: Scheduler) -> None:
        self._quorum = quorum
        self._policy = policy
        self._scheduler = scheduler
        self._trigger = SnapshotTrigger(policy, quorum.now_ms)
        self._timer: Timer | None = None
        self._is_busy = False
        self._stopped = False
        self._facts: dict[OffsetAndEpoch, tuple[int, int]] = {}  # of stored ones: they never change
        self.source: ImageSource | None = None
        self.written_bytes, self.written_at_ms = 0, quorum.now_ms
        """The newest snapshot that this process has written, 0 bytes before the first."""
        self._next_clean()

    def loaded(self, snapshot: OffsetAndEpoch, now_ms: int) -> None:
        """A stored snapshot was loaded."""
        self._trigger.reset(now_ms)
        self._trigger.snapshot_bytes = self._quorum.metadata_log.snapshots.size(snapshot)

    def committed(self, size_bytes: int) -> None:
        """So much was committed; take a snapshot if one is due."""
        self._trigger.committed(size_bytes)
        if self._trigger.is_due(self._quorum.now_ms):
            self.take()

    def take(self) -> bool:
        """Begin a snapshot of the committed image now; False if it is not possible."""
        source = self.source
        if source is None or self._is_busy or self._stopped:
            return False
        image = source.image
        snapshot = OffsetAndEpoch(image.offset + 1, image.epoch)
        raft = self._quorum.raft
        if image.in_transaction or image.offset < 0 or snapshot in raft.log.snapshots:
            return False
        if snapshot.offset <= raft.log.start_offset:
            return False
        self._is_busy = True
        self._trigger.reset(self._quorum.now_ms)
        batches = snapshot_batches(
            image.record_source(),
            epoch=snapshot.epoch,
            clock=self._quorum.clock,
            last_timestamp_ms=source.last_timestamp_ms,
            kraft_version=raft.voters.level_at(image.offset),
            voters=raft.voters.voters_at(image.offset),
        )
        self._encode(snapshot, batches, [])
        return True

    def _encode(
        self, snapshot: OffsetAndEpoch, batches: Iterator[bytes], done: list[bytes]
    ) -> None:
        """Encode in slices, so that the loop stays free; then write beside it."""
        if self._stopped:
            return
        for _ in range(SLICE_BATCHES):
            batch = next(batches, None)
            if batch is None:
                self._write(snapshot, done)
                return
            done.append(batch)
        self._scheduler.call_soon(lambda: self._encode(snapshot, batches, done))

    def _write(self, snapshot: OffsetAndEpoch, batches: list[bytes]) -> None:
        files = self._quorum.metadata_log.snapshots
        written = self._scheduler.run(lambda: files.write(snapshot, batches))
        size_bytes = sum(map(len, batches))
        written.add_done_callback(lambda end: self._written(snapshot, size_bytes, end))

    def _written(self, snapshot: OffsetAndEpoch, size_bytes: int, written: Pending[None]) -> None:
        self._is_busy = False
        error = written.error()
        if error is not None:
            logger.error("cannot write the metadata snapshot %s: %s", snapshot, error)
            return
        self.written_bytes, self.written_at_ms = size_bytes, self._quorum.now_ms
        self._trigger.snapshot_bytes = size_bytes
        logger.info("wrote the metadata snapshot up to offset %d", snapshot.offset)
        self._quorum.step(msg.SnapshotCreated(snapshot))

    # ---- retention

    def _next_clean(self) -> None:
        self._timer = self._scheduler.call_later(CLEAN_INTERVAL_MS, self._clean_timer)

    def _clean_timer(self) -> None:
        if not self._stopped:
            self.clean()
            self._next_clean()

    def clean(self) -> None:
        """Delete the snapshots, and the log before the next one, that retention gives up."""
        quorum = self._quorum
        known = self._facts
        try:
            self._facts = {
                snapshot: known.get(snapshot) or quorum.snapshot_facts(snapshot)
                for snapshot in quorum.raft.log.snapshots
            }
        except (OSError, SnapshotError) as error:
            logger.error("cannot look at the metadata snapshots: %s", error)
            return
        facts = [(snapshot, *of) for snapshot, of in self._facts.items()]
        start = snapshot_to_start_at(
            facts, quorum.metadata_log.log.size_bytes, self._policy, quorum.clock.wall_ms()
        )
        if start is not None:
            quorum.step(msg.DeletePrefix(start))

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
