"""Committed records on their way from the log to those who listen.

Batches that this node has just appended are kept decoded until they are committed; what was in
the log before is read from it, where many batches come as one. Everybody gets every record once
and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kwire.kraft.metadata_log import MetadataBatch, MetadataLog, decode_batches
from kwire.kraft.raft.types import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from kwire.kraft.snapshots.content import parse_snapshot
from kwire.protocol.metadata_records import MetadataRecord

UNCOMMITTED_BYTES_MAX = 64 << 20


class Listener(Protocol):
    """Hears of committed metadata, in order."""

    def on_commit(self, batch: MetadataBatch) -> None: ...

    def on_snapshot(
        self, records: list[MetadataRecord], offset: int, epoch: int, timestamp_ms: int
    ) -> None: ...


class CommitFeed:
    """Delivers what is committed. `next_offset` is the first offset not delivered yet."""

    def __init__(self, metadata_log: MetadataLog, next_offset: int) -> None:
        self._log = metadata_log
        self._listeners: list[Listener] = []
        self._appended: deque[MetadataBatch] = deque()
        self._appended_bytes = 0
        self.next_offset = next_offset
        self.delivered_bytes = 0

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def appended(self, batch: MetadataBatch) -> None:
        """A batch was appended; kept while there is room, else read from the log later."""
        if self._appended and self._appended[-1].last_offset + 1 != batch.base_offset:
            self.forget()
        if self._appended_bytes + batch.size_bytes > UNCOMMITTED_BYTES_MAX:
            self.forget()
            return
        self._appended.append(batch)
        self._appended_bytes += batch.size_bytes

    def appended_raw(self, data: bytes) -> None:
        for batch in decode_batches(data):
            self.appended(batch)

    def truncated(self, end_offset: int) -> None:
        while self._appended and self._appended[-1].last_offset >= end_offset:
            self._appended_bytes -= self._appended.pop().size_bytes

    def forget(self) -> None:
        self._appended.clear()
        self._appended_bytes = 0

    def commit(self, high_watermark: int) -> None:
        """Deliver everything below the high watermark."""
        while self._appended and self._appended[0].base_offset < self.next_offset:
            self._appended_bytes -= self._appended.popleft().size_bytes
        while self.next_offset < high_watermark:
            if self._appended and self._appended[0].base_offset == self.next_offset:
                batch = self._appended.popleft()
                self._appended_bytes -= batch.size_bytes
                self._deliver(batch)
                continue
            end = high_watermark
            if self._appended:
                end = min(end, self._appended[0].base_offset)
            for batch in self._log.read_runs(self.next_offset, end):
                self._deliver(batch)

    def _deliver(self, batch: MetadataBatch) -> None:
        self.next_offset = batch.last_offset + 1
        self.delivered_bytes += batch.size_bytes
        for listener in self._listeners:
            listener.on_commit(batch)

    def load_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Everybody starts anew from a snapshot; the formatted one holds no state of the log."""
        self.forget()
        if snapshot == BOOTSTRAP_SNAPSHOT:
            return
        content = parse_snapshot(self._log.snapshots.read(snapshot))
        self.next_offset = snapshot.offset
        self.delivered_bytes = 0
        for listener in self._listeners:
            listener.on_snapshot(
                content.records, snapshot.offset - 1, snapshot.epoch, content.last_timestamp_ms
            )


LeaderListener = Callable[[int | None, int], None]
"""Called with leader id and epoch whenever either changes."""
