"""What share groups promise, checked of every record that is acquired, acknowledged or given up.

    promise                                                          checked when
    a record comes until it is acknowledged, and none is skipped     at the end, by the log
    it never comes again once its acknowledgement was answered       it is acquired
    its delivery count goes up by one, and never beyond the limit    it is acquired
    a count that was kept with an answered release is not forgotten  it is acquired
    what was deleted, or belongs to an aborted transaction, is not   it is acquired; at the end
    given out
    a dead letter was rejected, or delivered as often as allowed;    at the end, by the topic of
    what was rejected, or exhausted, is one at least once            dead letters

A leader that does not know yet that it was relieved may give out what it has: as with Apache Kafka
it finds out when it writes. Of a share partition the leader counts that has read its state with the
highest epoch. Two things weaken the promise about dead letters, as with Kafka: their topic cannot
be written to for five attempts, and an expiry that could not be written holds all the same. What
is said of a record that the share partition has left behind is answered without an error, and means
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kwire.protocol.errors import ErrorCode
from kwire.share.delayed_fetch import DelayedShareFetch
from kwire.share.led_partition import LedPartition
from tests.sim.model import Violation

PASSING = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
"""For the last two dead letters are given up at once, for the others after five attempts."""
Place = tuple[int, int]
"""(partition, offset)."""


class DeadLetter(NamedTuple):
    """What the topic of dead letters has of one record."""

    place: Place
    delivery_count: int
    value: bytes | None


class Log(NamedTuple):
    """A partition at the end: where it begins, and what a member may see."""

    start_offset: int
    values: Mapping[int, bytes]


class ShareChecker:
    """See the module. `limits` are the least and the highest delivery count limit of the group, as
    it was configured over the history."""

    def __init__(self, topic: str, limits: tuple[int, int]) -> None:
        self.topic = topic
        self.limit_min, self.limit_max = limits
        self.first: Violation | None = None
        self.epochs: dict[int, int] = {}
        self.last: dict[Place, tuple[LedPartition, int]] = {}
        self.counts: dict[Place, int] = {}
        self.kept: dict[Place, int] = {}
        self.given: dict[Place, set[tuple[str, int]]] = {}
        self.values: dict[Place, bytes] = {}
        self.said: dict[Place, set[str]] = {}
        self.ended: dict[Place, str] = {}
        self.deleted: dict[int, int] = {}
        self.deleted_asked: dict[int, int] = {}
        self.unburied: dict[Place, str] = {}
        self.unwritten: set[Place] = set()
        self.behind: set[Place] = set()
        self.seen = dict.fromkeys(
            (
                *("acquired", "stale", "opened", "buried", "unburied"),
                *("unwritten", "unsure", "behind"),
            ),
            0,
        )

    def fail(self, message: str) -> None:
        if self.first is None:
            self.first = Violation(message)

    # -- what happens in brokers

    def observe(self, replace: Callable[[Any, str, Any], None]) -> None:
        """Look at what leaders do."""
        acquire, opened = DelayedShareFetch._acquire, LedPartition._read
        done, written = LedPartition._done, LedPartition._written
        acknowledge = LedPartition.acknowledge

        def acquires(fetch: Any, target: Any, result: Any, records_max: int) -> int:
            count = acquire(fetch, target, result, records_max)
            for first, last, deliveries in target.acquired if count else ():
                for offset in range(first, last + 1):
                    self._acquired(target.led, offset, deliveries, fetch._ask.member_id)
            return count

        def opens(led: Any, answer: Any) -> None:
            if led.failure is None and answer.error() is None and not answer.result()[0].error_code:
                self._opened(led)
            opened(led, answer)

        def buries(led: Any, transition: Any, answer: Any) -> None:
            error = answer.error()
            self.seen["buried"] += 1
            if error is not None and led.failure is None:
                if getattr(error, "code", None) not in PASSING:
                    self.fail(f"{transition} is no dead letter: {error}")
                for place in self._places(led, transition):
                    self.seen["unburied"] += 1
                    self.unburied[place] = str(error)
            done(led, transition, answer)

        def writes(led: Any, changes: Any, error: Any, ends: bool) -> None:
            for change, _ in changes if error is not None else ():
                for transition in change.transitions if not change.can_fail else ():
                    self.seen["unwritten"] += 1
                    self.unwritten.update(self._places(led, transition))
            written(led, changes, error, ends)

        def acknowledges(led: Any, member_id: str, batches: Any) -> Any:
            said = list(batches)
            for batch in said:
                end = min(batch.last_offset + 1, led.state.start_offset)
                for offset in range(batch.first_offset, end):
                    self.behind.add((led.partition.index, offset))
            return acknowledge(led, member_id, said)

        replace(LedPartition, "acknowledge", acknowledges)
        replace(DelayedShareFetch, "_acquire", acquires)
        replace(LedPartition, "_read", opens)
        replace(LedPartition, "_done", buries)
        replace(LedPartition, "_written", writes)

    @staticmethod
    def _places(led: LedPartition, transition: Any) -> list[Place]:
        offsets = range(transition.first_offset, transition.last_offset + 1)
        return [(led.partition.index, offset) for offset in offsets]

    def _opened(self, led: LedPartition) -> None:
        if led.partition.topic == self.topic:
            index = led.partition.index
            self.seen["opened"] += 1
            self.epochs[index] = max(self.epochs.get(index, -1), led.leader_epoch)

    def _acquired(self, led: LedPartition, offset: int, count: int, member_id: str) -> None:
        place = led.partition.index, offset
        name = f"{place} for the {count}th time at epoch {led.leader_epoch}"
        self.given.setdefault(place, set()).add((member_id, count))
        self.seen["acquired"] += 1
        if not 1 <= count <= self.limit_max:
            self.fail(f"{name}: the limit is {self.limit_max}")
        if led.leader_epoch < self.epochs.get(place[0], -1):
            self.seen["stale"] += 1
            return
        if place in self.ended:
            self.fail(f"{name}, although it was {self.ended[place]}")
        if offset < self.deleted.get(place[0], 0):
            self.fail(f"{name}, although it was deleted")
        if count <= self.kept.get(place, 0):
            self.fail(f"{name}: {self.kept[place]} deliveries were acknowledged")
        by, before = self.last.get(place, (None, 0))
        if by is led and count != before + 1:
            self.fail(f"{name}, after {before} of the same leader")
        self.last[place] = led, count
        self.counts[place] = max(count, self.counts.get(place, 0))

    # -- what members see and say

    def delivered(self, place: Place, count: int, value: bytes | None) -> None:
        """A member got a record."""
        if count not in {known for _, known in self.given.get(place, ())}:
            self.fail(f"{place} is delivered for the {count}th time, acquired {self.given}")
        if self.values.setdefault(place, value or b"") != (value or b""):
            self.fail(f"{place} was {self.values[place]!r}, and is {value!r}")

    def says(self, places: Mapping[Place, tuple[str, int]]) -> None:
        """A member is about to say this of records (what, delivery count)."""
        for place, (what, _) in places.items():
            self.said.setdefault(place, set()).add(what)

    def answered(self, places: Mapping[Place, tuple[str, int]], failed: Iterable[Place]) -> None:
        """It was answered, but for what failed or is unsure."""
        lost = set(failed)
        for place, (what, count) in places.items():
            if place in lost:
                self.seen["unsure"] += 1
            elif place in self.behind:
                self.seen["behind"] += 1
            elif what == "released":
                self.kept[place] = max(count, self.kept.get(place, 0))
            elif place in self.ended:
                self.fail(f"{place} is {what}, although it was {self.ended[place]}")
            else:
                self.ended[place] = what

    # -- the end

    def finish(self, logs: Mapping[int, Log], letters: Iterable[DeadLetter]) -> None:
        """Nothing is in flight any more. Raises Violation."""
        if self.first is not None:
            raise self.first
        dead: dict[Place, list[DeadLetter]] = {}
        for letter in letters:
            dead.setdefault(letter.place, []).append(letter)
        begins = {
            index: max(log.start_offset, self.deleted_asked.get(index, 0))
            for index, log in logs.items()
        }
        for index, log in logs.items():
            for offset in log.values:
                if offset >= begins[index]:
                    self._check_end((index, offset), dead)
        for place, value in self.values.items():
            index, offset = place
            if offset >= logs[index].start_offset and logs[index].values.get(offset) != value:
                raise Violation(f"{place} was given as {value!r}; nobody may see it")
        for place, copies in dead.items():
            self._check_dead(place, copies, logs[place[0]].values.get(place[1]))

    def _check_end(self, place: Place, dead: Mapping[Place, list[DeadLetter]]) -> None:
        if place not in self.given:
            raise Violation(f"{place} was never delivered")
        said, deliveries = self.said.get(place, set()), self.counts.get(place, 0)
        is_excused = place in self.unburied or place in dead
        if self.ended.get(place) == "rejected" and not is_excused:
            raise Violation(f"{place} was rejected, and is no dead letter")
        if "accepted" not in said and not is_excused:
            raise Violation(f"{place} comes no more after {deliveries} deliveries, {said}")

    def _check_dead(self, place: Place, copies: list[DeadLetter], value: bytes | None) -> None:
        said = self.said.get(place, set())
        if "rejected" not in said and self.counts.get(place, 0) < self.limit_min:
            raise Violation(f"{copies} after {self.counts.get(place, 0)} deliveries, {said}")
        if self.ended.get(place) == "accepted" and place not in self.unwritten:
            raise Violation(f"{copies}, although it was accepted")
        for copy in copies:
            if copy.delivery_count > self.limit_max:
                raise Violation(f"{copy} beyond the limit {self.limit_max}")
            if copy.value is not None and value is not None and copy.value != value:
                raise Violation(f"{copy} of {value!r}")
