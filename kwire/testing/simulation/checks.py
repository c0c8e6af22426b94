"""What an application promises, checked: told by calls, by its clients, or read from the brokers.

    lost = NothingLost()
    watch(producer, lost)              # aiokafka's: what is acknowledged is `sent`
    watch(consumer, seen)              # what it gets is `received`
    lost.sent(value)                   # or by hand
    await lost.read(cluster, "orders") # what is in the topic at the end is `received`
    lost.verify()                      # CheckFailed says which

Values are compared as they are given; they should differ from each other, as ids do.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from kwire.protocol.coordinator_records import decode_key, decode_value, key_type
from kwire.testing.simulation.cluster import SimulatedCluster

Client = TypeVar("Client")
Value = Hashable
SHOWN = 10
OFFSETS_TOPIC = "__consumer_offsets"
OFFSET_COMMIT = 1


class CheckFailed(AssertionError):
    """A promise was broken: which, and by what."""


class Check:
    """What all have in common; each uses what it needs of it."""

    def sending(self, value: Value, key: Value = None) -> None:
        """It is about to be sent."""

    def sent(self, value: Value, key: Value = None) -> None:
        """It was acknowledged."""

    def received(self, value: Value, key: Value = None) -> None:
        """A consumer has it, or it is in the log."""

    def committed(self, topic: str, partition: int, offset: int) -> None:
        """A group has committed this offset."""

    async def read(self, cluster: SimulatedCluster, topic: str, *, committed: bool = True) -> None:
        """Everything in a topic is `received`; not what no transaction has committed."""
        for record in await cluster.records(topic, committed=committed):
            self.received(record.value, record.key)

    def problems(self) -> list[str]:
        """A line for each break; empty when there is none."""
        raise NotImplementedError

    def verify(self) -> None:
        """CheckFailed, with the first of them, when there are any."""
        __tracebackhide__ = True
        found = self.problems()
        if found:
            more = f"\n… and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            raise CheckFailed("\n".join([f"{type(self).__name__}:", *found[:SHOWN]]) + more)


class NothingLost(Check):
    """What was acknowledged is received, as often as it was sent."""

    def __init__(self) -> None:
        self._sent: Counter[Value] = Counter()
        self._received: Counter[Value] = Counter()

    def sent(self, value: Value, key: Value = None) -> None:
        self._sent[value] += 1

    def received(self, value: Value, key: Value = None) -> None:
        self._received[value] += 1

    def problems(self) -> list[str]:
        return [
            f"{value!r} was acknowledged and is lost"
            for value, count in self._sent.items()
            if self._received[value] < count
        ]


class NothingDoubled(Check):
    """Nothing is received more often than it was sent; once, where nobody says what is sent."""

    def __init__(self) -> None:
        self._sending: Counter[Value] = Counter()
        self._sent: Counter[Value] = Counter()
        self._received: Counter[Value] = Counter()

    def sending(self, value: Value, key: Value = None) -> None:
        self._sending[value] += 1

    def sent(self, value: Value, key: Value = None) -> None:
        self._sent[value] += 1

    def received(self, value: Value, key: Value = None) -> None:
        self._received[value] += 1

    def problems(self) -> list[str]:
        return [
            f"{value!r} is there {count} times"
            for value, count in self._received.items()
            if count > max(1, self._sending[value], self._sent[value])
        ]


class KeyOrder(Check):
    """What has one key is received in the order in which it was sent.

    A value that comes once more, later, breaks the order unless `repeats` are allowed: a consumer
    that starts again reads again.
    """

    def __init__(self, *, repeats: bool = False) -> None:
        self._places: dict[tuple[Value, Value], int] = {}
        self._newest: dict[Value, tuple[int, Value]] = {}
        self._seen: dict[tuple[Value, Value], bool] = {}
        self._repeats = repeats
        self._problems: list[str] = []

    def sending(self, value: Value, key: Value = None) -> None:
        self._places.setdefault((key, value), len(self._places))

    sent = sending

    def received(self, value: Value, key: Value = None) -> None:
        place = self._places.get((key, value))
        if place is None:
            return
        newest = self._newest.get(key)
        is_repeat = (key, value) in self._seen
        self._seen[key, value] = True
        if newest is None or place >= newest[0]:
            self._newest[key] = place, value
        elif not (is_repeat and self._repeats):
            self._problems.append(f"key {key!r}: {value!r} comes after {newest[1]!r}")

    def problems(self) -> list[str]:
        return list(self._problems)


class ExactlyOnce(Check):
    """Each input has its outputs once: `transform` gives the value, or the list of values, that
    come of one input. `received` are outputs; `taken` are inputs."""

    def __init__(self, transform: Callable[[Any], Any] = lambda value: value) -> None:
        self._transform = transform
        self._expected: Counter[Value] = Counter()
        self._found: Counter[Value] = Counter()

    def taken(self, value: Value) -> None:
        """It is in the input."""
        made = self._transform(value)
        for one in made if isinstance(made, list) else [made]:
            self._expected[one] += 1

    def received(self, value: Value, key: Value = None) -> None:
        self._found[value] += 1

    async def compare(self, cluster: SimulatedCluster, source: str, target: str) -> None:
        """Read both topics, what is committed of them, and verify."""
        for record in await cluster.records(source):
            self.taken(record.value)
        await self.read(cluster, target)
        self.verify()

    def problems(self) -> list[str]:
        found = []
        for value in dict.fromkeys([*self._expected, *self._found]):
            expected, count = self._expected[value], self._found[value]
            if count != expected:
                found.append(f"{value!r} is there {count} times, expected {expected}")
        return found


class OffsetsForward(Check):
    """What a group commits for a partition never goes back. Without `group`, any group."""

    def __init__(self, group: str | None = None) -> None:
        self._group = group
        self._newest: dict[tuple[str, str, int], int] = {}
        self._problems: list[str] = []

    def committed(self, topic: str, partition: int, offset: int) -> None:
        self._committed(self._group or "", topic, partition, offset)

    async def read_commits(self, cluster: SimulatedCluster) -> None:
        """All commits, as the brokers have kept them."""
        for record in await cluster.records(OFFSETS_TOPIC):
            if record.key is None or key_type(record.key) != OFFSET_COMMIT:
                continue
            key = decode_key("group-coordinator", record.key)
            if self._group not in (None, key.group):
                continue
            if record.value is None:  # deleted, or expired: begun anew
                self._newest.pop((key.group, key.topic, key.partition), None)
                continue
            value = decode_value("group-coordinator", OFFSET_COMMIT, record.value)
            self._committed(key.group, key.topic, key.partition, value.offset)

    def _committed(self, group: str, topic: str, partition: int, offset: int) -> None:
        newest = self._newest.get((group, topic, partition), -1)
        if offset < newest:
            where = f"{topic}-{partition}"
            self._problems.append(f"group {group!r}: {where} goes back from {newest} to {offset}")
        self._newest[group, topic, partition] = offset

    def problems(self) -> list[str]:
        return list(self._problems)


def watch(client: Client, *checks: Check) -> Client:
    """An aiokafka producer or consumer whose records the checks hear of; returns it."""
    found: Any = client
    for check in checks:
        if not isinstance(check, Check):
            raise TypeError(f"watch: {check!r} is no check; accepted are those of this module")
    if hasattr(found, "getone"):
        _watch_consumer(found, checks)
    elif hasattr(found, "send"):
        _watch_producer(found, checks)
    else:
        raise TypeError(f"watch: {client!r}; accepted are aiokafka's producers and consumers")
    return client


def _watch_producer(producer: Any, checks: Iterable[Check]) -> None:
    send = producer.send

    @functools.wraps(send)
    async def watched(
        topic: str, value: Any = None, key: Any = None, *args: Any, **options: Any
    ) -> Any:
        for check in checks:
            check.sending(value, key)
        future = await send(topic, value, key, *args, **options)

        def acknowledged(done: asyncio.Future[Any]) -> None:
            if not done.cancelled() and done.exception() is None:
                for check in checks:
                    check.sent(value, key)

        future.add_done_callback(acknowledged)
        return future

    producer.send = watched  # `send_and_wait` calls it


def _watch_consumer(consumer: Any, checks: Iterable[Check]) -> None:
    getone, getmany, commit = consumer.getone, consumer.getmany, consumer.commit

    @functools.wraps(getone)
    async def watched_one(*partitions: Any) -> Any:
        record = await getone(*partitions)
        for check in checks:
            check.received(record.value, record.key)
        return record

    @functools.wraps(getmany)
    async def watched_many(*partitions: Any, **options: Any) -> Any:
        found: Mapping[Any, list[Any]] = await getmany(*partitions, **options)
        for records in found.values():
            for record in records:
                for check in checks:
                    check.received(record.value, record.key)
        return found

    @functools.wraps(commit)
    async def watched_commit(offsets: Any = None) -> None:
        told = offsets
        if told is None:  # all that is consumed; aiokafka has no other way to ask
            subscription = consumer._subscription.subscription
            assignment = None if subscription is None else subscription.assignment
            told = {} if assignment is None else assignment.all_consumed_offsets()
        await commit(offsets)
        for partition, offset in told.items():
            number = int(offset[0] if isinstance(offset, tuple) else offset)
            for check in checks:
                check.committed(partition.topic, partition.partition, number)

    consumer.getone, consumer.getmany, consumer.commit = watched_one, watched_many, watched_commit
