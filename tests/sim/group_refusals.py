"""Groups whose log refuses appends for moments: what timers and jobs decide happens all the same.

One coordinator, a log in memory that loses its in-sync replicas for a while, or in the middle of
what takes several batches. Every assignment is a job, as those of large groups are. Members of a
consumer group and of a share group come, come back, leave and fall silent; topics are deleted.

    promise, once the log takes everything                      checked when
    a group has the members that are heard, and nobody else     it has been quiet for two sessions
    with members it is at its epoch, each partition assigned    it has been quiet for two sessions
    nothing is kept of a topic that was deleted                 it has been quiet for two sessions
    only members are assigned to                                after every step
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.clock import SeededRandom
from kwire.coordinator.group.assignment_jobs import BEGIN_AFTER_MS
from kwire.protocol.errors import ErrorCode
from tests.sim.model import Violation
from tests.support.groups import GroupWorld
from tests.unit.coordinator.group.test_consumer_groups import Consumers
from tests.unit.coordinator.group.test_share_groups import Sharers, told

STEPS = 40
PARTITIONS = 5
NAMES = ("m0", "m1", "m2", "m3")
BATCH_BYTES = 200
QUIET_ROUNDS, QUIET_MS = 30, 3_000
REFUSED_MS = (30, 70, 700, 46_000)
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID)
STATIC = "i"


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)


class RefusalHistory:
    """What both kinds of group have in common; `run` raises Violation for a broken promise."""

    world: GroupWorld
    topics: Any

    def __init__(self, seed: int) -> None:
        self.below = SeededRandom(seed).below
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, list[int]] = {}
        self.refused = 0
        self.number = 0
        self.steps: tuple[Callable[[], None], ...] = (
            self.come, self.come, self.beat_all, self.fall_silent, self.leave, self.time_passes,
            self.refuse, self.refuse_in_the_middle, self.delete_topic,
        )  # fmt: skip

    def run(self) -> None:
        for _ in range(STEPS):
            self.steps[self.below(len(self.steps))]()
            group = self.group()
            targets = {} if group is None else group.targets
            strangers = [x for x in targets if x not in group.members]
            _check(not strangers, f"{strangers} are assigned to and no members")
        for _ in range(QUIET_ROUNDS):
            self.world.loop.advance(QUIET_MS)
            self.beat_all()
        self.check()

    # --- steps

    def come(self) -> None:
        """Half of those that come meet a log that refuses soon afterwards."""
        name = NAMES[self.below(len(NAMES))]
        self.owned[name] = []
        self.take(name, self.join(name))
        if self.below(2):
            self.refuse()

    def fall_silent(self) -> None:
        for name in list(self.epochs)[: self.below(2)]:
            self.forget(name)

    def leave(self) -> None:
        for name in list(self.epochs)[: self.below(2)]:
            if self.beat(name, -1).error_code == ErrorCode.NONE:
                self.forget(name)

    def beat_all(self) -> None:
        for name, epoch in list(self.epochs.items()):
            self.take(name, self.beat(name, epoch))

    def time_passes(self) -> None:
        self.world.loop.advance((5, 25, 1_000, 3_000)[self.below(4)])

    def refuse(self) -> None:
        self._refused_for(REFUSED_MS[self.below(len(REFUSED_MS))])

    def _refused_for(self, ms: int) -> None:
        self.refused += 1
        self.world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.loop.advance(ms)
        self.world.log.refuse = None

    def refuse_in_the_middle(self) -> None:
        """Batches are small, and the first of them are taken."""
        log, left = self.world.log, [1 + self.below(3)]
        append, bytes_max = log.append, log.bytes_max

        def some(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
            return append(*given, **named)

        log.bytes_max = BATCH_BYTES
        log.append = some  # type: ignore[method-assign]
        self.world.loop.advance(70)
        del log.append
        log.bytes_max, log.refuse = bytes_max, None

    # --- who they are

    def take(self, name: str, answer: Any) -> None:
        if answer.error_code in GONE:
            self.forget(name)
        elif answer.error_code == ErrorCode.NONE:
            self.epochs[name] = answer.member_epoch
            if answer.assignment is not None:
                self.owned[name] = told(answer)

    def forget(self, name: str) -> None:
        self.epochs.pop(name, None)
        self.owned.pop(name, None)

    def check_group(self) -> None:
        group = self.group()
        members = [] if group is None else sorted(group.members)
        _check(members == sorted(self.ids()), f"members are {members}, live {self.ids()}")
        if not members:
            return
        _check(group.target_epoch == group.epoch, f"at {group.target_epoch} of {group.epoch}")
        told_to = sorted({x for name in self.epochs for x in self.owned[name]})
        _check(told_to == list(range(PARTITIONS)), f"assigned are {told_to}")

    def ids(self) -> list[str]:
        return list(self.epochs)

    def group(self) -> Any:
        raise NotImplementedError

    def join(self, name: str) -> Any:
        raise NotImplementedError

    def beat(self, name: str, epoch: int) -> Any:
        raise NotImplementedError

    def delete_topic(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError


class ConsumerRefusals(RefusalHistory):
    """A consumer group; the first of its members is a static one."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.consumers = Consumers(t=PARTITIONS)
        self.world, self.topics = self.consumers.world, self.consumers.topics
        self.static_id = ""
        self.steps += (self.come_back_during_a_job,)
        self.gone: list[str] = []

    def come_back_during_a_job(self) -> None:
        """The static member, while an assignment is computed, or waits to be written."""
        other = NAMES[1 + self.below(len(NAMES) - 1)]
        self.owned[other] = []
        self.take(other, self.join(other))
        self.world.loop.advance(BEGIN_AFTER_MS + self.below(2))
        self.owned[NAMES[0]] = []
        self.take(NAMES[0], self.join(NAMES[0]))

    def _fields(self, name: str) -> dict[str, Any]:
        return {"instance_id": STATIC} if name == NAMES[0] else {}

    def group(self) -> Any:
        return self.world.shard.storage.consumer.groups.get("g")

    def _id(self, name: str) -> str:
        return self.static_id if name == NAMES[0] else name

    def ids(self) -> list[str]:
        return [self._id(name) for name in self.epochs]

    def join(self, name: str) -> Any:
        """A static member that was there has gone for a moment, and has a new id."""
        if name == NAMES[0]:
            if name in self.epochs:
                self.beat(name, -2)
                self.forget(name)
                self.owned[name] = []
            self.number += 1
            self.static_id = f"s{self.number}"
        return self.consumers.join(self._id(name), **self._fields(name))

    def beat(self, name: str, epoch: int) -> Any:
        owned = self.consumers.owning(*self.owned[name]) if self.owned[name] else []
        fields = self._fields(name)
        return self.consumers.beat(self._id(name), epoch, topic_partitions=owned, **fields)

    def delete_topic(self) -> None:
        """Of which a group without members has an offset."""
        self.number += 1
        name = f"gone{self.number}"
        self.world.commit(1, group="offsets", topic=name, topic_id=name.encode().ljust(16))
        self.gone.append(name)
        if self.below(2):
            self.world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.follow_topics(**{name: name.encode().ljust(16)})
        self._refused_for(70)

    def check(self) -> None:
        self.check_group()
        kept = [name for name in self.gone if self.world.offset("offsets", name) != -1]
        _check(not kept, f"offsets of {kept} are kept")


class ShareRefusals(RefusalHistory):
    """A share group."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sharers = Sharers(t=PARTITIONS)
        self.world, self.topics = self.sharers.world, self.sharers.topics
        self.gone: list[bytes] = []

    def group(self) -> Any:
        return self.world.shard.storage.share.groups.get("g")

    def join(self, name: str) -> Any:
        return self.sharers.join(name, *self.topics.counts)

    def beat(self, name: str, epoch: int) -> Any:
        return self.sharers.beat(name, epoch)

    def take(self, name: str, answer: Any) -> None:
        super().take(name, answer)
        if answer.error_code == ErrorCode.NONE and answer.assignment is not None:
            topic_id = self.topics.id_of("t")
            topics = answer.assignment.topic_partitions
            self.owned[name] = [x for t in topics if t.topic_id == topic_id for x in t.partitions]

    def delete_topic(self) -> None:
        """Another topic than the one that stays: it is made, joined, and deleted again."""
        name, topic_id = "u", self.topics.id_of("u")
        if name not in self.topics.counts:
            self.topics.counts[name] = 1
            self.world.follow_topics()
            return
        del self.topics.counts[name]
        self.gone.append(topic_id)
        if self.below(2):
            self.world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.follow_topics(**{name: topic_id})
        self._refused_for(70)

    def check(self) -> None:
        self.check_group()
        group = self.group()
        known = [] if group is None else [name_of(x) for x in group.initialized()]
        there = list(self.topics.counts)
        _check(all(name in there for name in known), f"{known} are initialized, {there} exist")


def name_of(topic_id: bytes) -> str:
    return topic_id.rstrip(b"\0").decode()
