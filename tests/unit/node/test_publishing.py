"""Committed metadata on its way to the parts of a node: what follows it takes turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kwire.kraft.images.delta import PartitionDelta
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.node.publishing import AT_ONCE_PARTITIONS_MAX, Publishing
from kwire.protocol import messages as m
from kwire.testing.cluster import NodeInThread
from tests.support.wire import WireClient, batch_of, produce_request


class World:
    """A loop's turns, and two followers: the first takes as many slices as the image's epoch."""

    def __init__(self) -> None:
        self.turns: list[Callable[[], None]] = []
        self.told: list[str] = []
        self.fatal: list[str] = []
        self.publishing = Publishing(self, self.fatal.append)
        self.publishing.add(lambda delta, image: self.told.append(f"first {image.epoch}"))
        self.publishing.add_follower(self.follow)
        self.publishing.add_follower(lambda delta, image: self.told.append("second"))
        self.publishing.add_last(lambda delta, image: self.told.append("last"))
        self.publishing.begin_following(MetadataImage())
        self.told.clear()

    def call_soon(self, callback: Callable[[], None], /) -> None:
        self.turns.append(callback)

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> Iterator[None]:
        slices = image.epoch
        for number in range(slices):
            if number:
                yield
            if number == 99:
                raise ValueError("the hundredth slice")
            self.told.append(f"slice {number} of {slices}")

    def publish(self, slices: int, partitions: int = 0) -> None:
        image = MetadataImage()
        image.epoch = slices
        delta = MetadataDelta()
        for index in range(partitions):
            delta.partitions[b"t" * 16, index] = PartitionDelta("t", b"t" * 16, index, None, None)
        self.publishing.publish(delta, image)

    def turn(self) -> list[str]:
        """What is told in the next turn."""
        turns, self.turns = self.turns, []
        self.told.clear()
        for callback in turns:
            callback()
        return self.told


@pytest.fixture
def world() -> World:
    return World()


def test_a_small_change_is_followed_where_it_is_published(world: World) -> None:
    world.publish(1)
    assert world.told == ["first 1", "slice 0 of 1", "second", "last"]
    assert world.publishing.followed().done
    assert not world.turns


def test_a_large_change_takes_turns_and_the_next_one_waits_behind_it(world: World) -> None:
    world.publish(3)
    assert world.told == ["first 3", "slice 0 of 3", "last"]
    of_first = world.publishing.followed()
    world.publish(1)
    assert world.told[3:] == ["first 1", "last"], "what only knows the metadata does not wait"
    of_both = world.publishing.followed()
    world.publishing.followed().cancel()
    assert world.turn() == ["slice 1 of 3"]
    assert world.turn() == ["slice 2 of 3", "second"]
    assert (of_first.done, of_both.done) == (True, False)
    assert world.turn() == ["slice 0 of 1", "second"]
    assert of_both.done
    assert not world.turns


def test_of_large_changes_that_are_committed_together_one_is_followed_in_a_turn(
    world: World,
) -> None:
    for _ in range(3):
        world.publish(1, partitions=AT_ONCE_PARTITIONS_MAX + 1)
    world.publish(1)
    told = ["slice 0 of 1", "second"]
    assert [each for each in world.told if each not in ("first 1", "last")] == told
    for _ in range(3):
        assert not world.publishing.followed().done
        assert world.turn() == told
    assert world.publishing.followed().done
    world.publish(1)
    assert world.told[-4:] == ["first 1", *told, "last"]


def test_a_change_that_cannot_be_followed_ends_the_node(world: World) -> None:
    world.publish(100)
    world.publish(1)
    for _ in range(98):
        world.turn()
    assert world.fatal == []
    assert world.turn() == []
    assert world.fatal == [
        "a change of the metadata cannot be followed: ValueError('the hundredth slice')"
    ]
    assert world.turn() == [], "what comes behind it is not followed either"


def test_the_offset_that_is_followed_is_behind_that_of_the_image(world: World) -> None:
    image = MetadataImage()
    image.offset, image.epoch = 10, 1
    world.publishing.publish(MetadataDelta(), image)
    assert world.publishing.followed_offset(image) == 10
    image.offset, image.epoch = 20, 2
    world.publishing.publish(MetadataDelta(), image)
    image.offset, image.epoch = 30, 1
    world.publishing.publish(MetadataDelta(), image)
    assert world.publishing.followed_offset(image) == 10
    world.turn()
    assert world.publishing.followed_offset(image) == 20
    world.turn()
    assert world.publishing.followed_offset(image) == 30


def test_a_closed_node_follows_nothing_and_nobody_waits(world: World) -> None:
    world.publish(3)
    followed = world.publishing.followed()
    world.publishing.close()
    assert followed.done
    assert world.turn() == []
    world.publish(1)
    assert world.told == ["first 1", "last"]


def test_a_topic_of_many_partitions_is_led_when_its_creation_is_answered(tmp_path: Path) -> None:
    with NodeInThread(tmp_path / "data") as thread, WireClient(thread.bootstrap) as client:
        client.create_topic("wide", partitions=100)
        request = produce_request("wide", {index: batch_of([b"x"]) for index in range(100)})
        answers = client.call(request, 9).responses[0].partition_responses
        assert {answer.error_code for answer in answers} == {0}
        more = m.CreatePartitionsRequest.CreatePartitionsTopic(
            name="wide", count=150, assignments=None
        )
        asked = m.CreatePartitionsRequest(topics=[more], timeout_ms=10_000)
        assert client.call(asked, 3).results[0].error_code == 0
        request = produce_request("wide", {149: batch_of([b"x"])})
        assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0
