"""The committed metadata image of a node and who is told of its changes.

Every committed batch is replayed into one image; the delta of it and the image go to the
publishers, in the order in which they were added. While a metadata transaction is open its records
are held back (KIP-868), and nothing is published.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.kraft.metadata_log import MetadataBatch
from kwire.protocol.metadata_records import MetadataRecord


class ElectionCounts:
    """Leaders that were elected though they were not in sync, seen in committed changes: those of
    the eligible leader replicas, and the unclean ones, which may lack records."""

    __slots__ = ("of_eligible", "unclean")

    def __init__(self) -> None:
        self.of_eligible = self.unclean = 0

    def count(self, delta: MetadataDelta) -> None:
        """Elections among the changes of partitions."""
        for change in delta.partitions.values():
            old, new = change.old, change.new
            if old is None or new is None or new.leader < 0 or new.leader in old.isr:
                continue
            if new.leader in old.elr:
                self.of_eligible += 1
            elif new.leader != old.leader:
                self.unclean += 1


Publisher = Callable[[MetadataDelta, MetadataImage], None]


class ImagePublisher:
    """Listens to the driver, holds the image."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.last_timestamp_ms = -1
        self.elections = ElectionCounts()
        self._delta: MetadataDelta | None = None
        self._publishers: list[Publisher] = []

    def add(self, publisher: Publisher) -> None:
        """`publisher(delta, image)` is called after every change from now on."""
        self._publishers.append(publisher)

    def on_commit(self, batch: MetadataBatch) -> None:
        """One committed batch; a control batch only moves the image's epoch."""
        delta = self._delta or MetadataDelta()
        image = self.image
        for index, record in enumerate(batch.records):
            image.replay(record, batch.base_offset + index, batch.epoch, delta)
        if image.in_transaction:
            self._delta = delta
            return
        self._delta = None
        image.offset, image.epoch = batch.last_offset, batch.epoch
        self.last_timestamp_ms = batch.timestamp_ms
        if batch.records:
            self.elections.count(delta)
            self._publish(delta)

    def on_snapshot(
        self, records: list[MetadataRecord], offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        """The image becomes the content of a snapshot that ends with `offset` (inclusive)."""
        self._delta = None
        delta = MetadataDelta()
        self.image.load(records, offset, epoch, delta)
        self.last_timestamp_ms = timestamp_ms
        self._publish(delta)

    def _publish(self, delta: MetadataDelta) -> None:
        for publisher in self._publishers:
            publisher(delta, self.image)
