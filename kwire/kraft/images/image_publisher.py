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

Publisher = Callable[[MetadataDelta, MetadataImage], None]


class ImagePublisher:
    """Listens to the driver, holds the image."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.last_timestamp_ms = -1
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
