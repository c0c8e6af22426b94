"""A topic that is deleted and made anew while the node still follows the deletion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kwire.kraft.images.metadata_image import MetadataDelta
from kwire.node.publishing import Publishing
from kwire.protocol import messages as m
from tests.support.replica_world import World

WIDE, OLD, NEW = (bytes(15) + letter for letter in (b"W", b"O", b"N"))
PARTITIONS = 150


class Node:
    """Replicas that follow what is published, a slice a turn."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.turns: list[Callable[[], None]] = []
        self.fatal: list[str] = []
        self.publishing = Publishing(self, self.fatal.append)
        replicas = self.world.replicas
        self.publishing.add(lambda delta, _: replicas.forget_names(delta))
        self.publishing.add_follower(replicas.apply)
        self.publishing.is_following = True

    def call_soon(self, callback: Callable[[], None], /) -> None:
        self.turns.append(callback)

    def publish(self, *records: Any) -> None:
        delta, world = MetadataDelta(), self.world
        for record in records:
            world.offset += 1
            world.image.replay(record, world.offset, 1, delta)
        self.publishing.publish(delta, world.image)

    def create(self, name: str, topic_id: bytes, partitions: int = 1) -> None:
        self.publish(
            m.TopicRecord(name=name, topic_id=topic_id),
            *[
                m.PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[1],
                    isr=[1],
                    leader=1,
                    leader_epoch=0,
                    directories=[bytes(15) + b"\x65"],
                )
                for index in range(partitions)
            ],
        )

    def delete(self, *topic_ids: bytes) -> None:
        self.publish(*[m.RemoveTopicRecord(topic_id=topic_id) for topic_id in topic_ids])

    def turn(self) -> None:
        turns, self.turns = self.turns, []
        for callback in turns:
            callback()

    def settle(self) -> None:
        while self.turns:
            self.turn()
        assert not self.fatal
        assert not self.world.replicas._leaving

    def found(self) -> bytes | None:
        """The topic id of what is found by the name `t`."""
        partition = self.world.replicas.partition("t", 0)
        return None if partition is None else partition.topic_id


def test_a_name_never_leads_to_a_topic_that_is_gone(tmp_path: Path) -> None:
    """A record would be acknowledged there, and be gone with it."""
    node = Node(tmp_path)
    node.create("a", WIDE, PARTITIONS)
    node.create("t", OLD)
    node.settle()
    assert node.found() == OLD
    node.delete(WIDE, OLD)
    assert node.found() is None
    assert node.world.replicas.partition_by_id(OLD, 0) is not None, "it is removed later"
    node.create("t", NEW)
    while node.turns:
        assert node.found() in (None, NEW)
        node.turn()
    assert node.found() == NEW
    assert [str(each) for each in node.world.replicas] == ["Partition(t-0)"]


def test_a_topic_that_is_deleted_before_it_is_made_is_not_made(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.create("a", WIDE, PARTITIONS)
    node.create("t", OLD)
    assert node.found() is None
    node.delete(OLD)
    node.create("t", NEW)
    while node.turns:
        assert node.found() in (None, NEW)
        node.turn()
    assert node.found() == NEW
    assert node.world.replicas.partition_by_id(OLD, 0) is None


def test_a_topic_that_is_deleted_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.create("a", WIDE, PARTITIONS)
    node.turn()
    node.delete(WIDE)
    node.settle()
    assert list(node.world.replicas) == []
    assert node.world.replicas.by_name == {}
    node.world.scheduler.turn()
    assert not [
        each
        for each in tmp_path.iterdir()
        if each.name.startswith("a-") and not each.name.endswith("-delete")
    ]
