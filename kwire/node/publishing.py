"""Committed metadata on its way to the parts of a node.

What follows a change may take long: a log for each of 2,000 new partitions. So it is work that is
done in slices, one a turn of the loop, and changes that are published meanwhile wait behind it. A
change of usual size is followed in the turn that publishes it, and those of a turn that are
published behind one of many partitions, in the next ones. A slice that fails ends the node: it
would lead and serve something else than the metadata says.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from kwire.coordinator.shard_interface import Loop
from kwire.kraft.images.image_publisher import Publisher
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.pending import Pending

AT_ONCE_PARTITIONS_MAX = 20
"""A change of more partitions is the only one that is followed in the turn that publishes it."""

logger = logging.getLogger(__name__)


class Follower(Protocol):
    """Acts on a change: at once, or by an iterator that yields between its slices."""

    def __call__(self, delta: MetadataDelta, image: MetadataImage, /) -> Iterator[None] | None: ...


class _Work:
    """What followers do for one change. `before` is the offset of the image before it."""

    __slots__ = ("before", "done", "slices")

    def __init__(self, slices: Iterator[None], before: int) -> None:
        self.slices = slices
        self.before = before
        self.done: Pending[None] = Pending()


class Publishing:
    """Calls listeners with every change, in the order in which they were added: first those of
    `add`, then those of `add_last`, and in between those of `add_follower`, which may take turns.

    Followers act on topics and brokers, for which the logs have to be loaded: they hear of changes
    only once `begin_following` has given them the whole image. Each hears of a change when the one
    before it has done all it does for it, and of the next change behind that. They are handed the
    newest image, which may be newer than the change. `on_fatal(reason)` is called when a change
    cannot be followed, but for its first slice, which raises at whoever publishes.
    """

    def __init__(self, loop: Loop, on_fatal: Callable[[str], None]) -> None:
        self._loop = loop
        self._on_fatal = on_fatal
        self._first: list[Publisher] = []
        self._followers: list[Follower] = []
        self._last: list[Publisher] = []
        self._works: deque[_Work] = deque()
        self._offset = -1  # of the image that was published last
        self._is_turn_over = False
        self.is_following = False
        self._is_closed = False

    def add(self, listener: Publisher) -> None:
        self._first.append(listener)

    def add_follower(self, listener: Follower) -> None:
        self._followers.append(listener)

    def add_last(self, listener: Publisher) -> None:
        self._last.append(listener)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Tell of committed metadata."""
        before, self._offset = self._offset, image.offset
        for listener in self._first:
            listener(delta, image)
        if self.is_following and not self._is_closed:
            self._works.append(_Work(self._follow(delta, image), before))
            if len(self._works) == 1:
                if self._is_turn_over:
                    self._loop.call_soon(self._turn)
                else:
                    self._go_on()
            if len(delta.partitions) > AT_ONCE_PARTITIONS_MAX and not self._is_turn_over:
                self._is_turn_over = True
                self._loop.call_soon(self._turn_began)
        for listener in self._last:
            listener(delta, image)

    def begin_following(self, image: MetadataImage) -> Pending[None]:
        """The logs are loaded: followers hear of everything in the image as new."""
        self.is_following = True
        self.publish(full_delta(image), image)
        return self.followed()

    def followed(self) -> Pending[None]:
        """Done once followers have done all they do for what is published so far."""
        if not self._works:
            return Pending.completed(None)
        followed: Pending[None] = Pending()  # who waits may cancel it
        self._works[-1].done.add_done_callback(lambda _: followed.complete(None))
        return followed

    def followed_offset(self, image: MetadataImage) -> int:
        """How far followers have done what the metadata says; `image` is the published one."""
        return self._works[0].before if self._works else image.offset

    def close(self) -> None:
        """Nothing is followed any more, and nobody waits for it."""
        self._is_closed = True
        while self._works:
            self._works.popleft().done.complete(None)

    def _follow(self, delta: MetadataDelta, image: MetadataImage) -> Iterator[None]:
        for listener in self._followers:
            slices = listener(delta, image)
            if slices is not None:
                yield from slices

    def _go_on(self) -> None:
        """One slice of the oldest change."""
        if not self._works:
            return  # closed
        work = self._works[0]
        is_done = True
        try:
            is_done = next(work.slices, True) is True
        finally:
            if is_done and self._works:
                self._works.popleft()
            if self._works:
                self._loop.call_soon(self._turn)
            if is_done:
                work.done.complete(None)

    def _turn_began(self) -> None:
        self._is_turn_over = False

    def _turn(self) -> None:
        try:
            self._go_on()
        except Exception as error:
            logger.exception("a change of the metadata cannot be followed")
            self.close()
            self._on_fatal(f"a change of the metadata cannot be followed: {error!r}")


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
