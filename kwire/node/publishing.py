"""Committed metadata on its way to the parts of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kwire.kraft.images.image_publisher import Publisher
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage


class Publishing:
    """Calls listeners with every change, in the order in which they were added: first those of
    `add`, then those of `add_follower`, then those of `add_last`.

    Followers act on topics and brokers, for which the logs have to be loaded: they hear of changes
    only once `begin_following` has given them the whole image.
    """

    def __init__(self) -> None:
        self._first: list[Publisher] = []
        self._followers: list[Publisher] = []
        self._last: list[Publisher] = []
        self.is_following = False

    def add(self, listener: Publisher) -> None:
        self._first.append(listener)

    def add_follower(self, listener: Publisher) -> None:
        self._followers.append(listener)

    def add_last(self, listener: Publisher) -> None:
        self._last.append(listener)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Tell of committed metadata."""
        for listener in self._first:
            listener(delta, image)
        if self.is_following:
            for listener in self._followers:
                listener(delta, image)
        for listener in self._last:
            listener(delta, image)

    def begin_following(self, image: MetadataImage) -> None:
        """The logs are loaded: followers hear of everything in the image as new."""
        self.is_following = True
        self.publish(full_delta(image), image)


def full_delta(image: MetadataImage) -> MetadataDelta:
    """Everything in the image as new."""
    from kwire.kraft.images.difference import difference

    delta = MetadataDelta()
    difference(MetadataImage(), image, delta)
    return delta


def moved_brokers(delta: MetadataDelta) -> Iterator[int]:
    """Brokers that are gone, or reached elsewhere than before."""
    for broker_id, (old, new) in delta.brokers.items():
        if old is not None and (new is None or new.endpoints != old.endpoints):
            yield broker_id


def on_moved(disconnect: Callable[[int], None]) -> Publisher:
    """Calls `disconnect(broker id)` for those of `moved_brokers`."""

    def published(delta: MetadataDelta, image: MetadataImage) -> None:
        for broker_id in moved_brokers(delta):
            disconnect(broker_id)

    return published
