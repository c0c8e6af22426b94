"""The checks of `kwire.testing.simulation`, each broken by what an application could do."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from types import SimpleNamespace

import pytest

from kwire.protocol import messages as m
from kwire.protocol.coordinator_records import encode_key, encode_value
from kwire.testing.records import Record
from kwire.testing.simulation import (
    Check,
    CheckFailed,
    ExactlyOnce,
    KeyOrder,
    NothingDoubled,
    NothingLost,
    OffsetsForward,
    watch,
)

Partition = namedtuple("Partition", "topic partition")


class Topics:
    """Stands for a cluster with these records in its topics."""

    def __init__(self, **topics: list[Record]) -> None:
        self._topics = topics
        self.asked: list[tuple[str, bool]] = []

    async def records(self, topic: str, *, committed: bool = True) -> list[Record]:
        self.asked.append((topic, committed))
        return self._topics[topic]


def records(*values: bytes | None, key: bytes | None = None) -> list[Record]:
    return [Record("t", 0, offset, 0, key, value) for offset, value in enumerate(values)]


def commit(group: str, offset: int | None) -> Record:
    key = m.OffsetCommitKey(group=group, topic="t", partition=1)
    value = None
    if offset is not None:
        value = encode_value(m.OffsetCommitValue(offset=offset, metadata=""), 3)
    return Record("__consumer_offsets", 0, 0, 0, encode_key(key), value)


def test_a_lost_value_is_told_and_one_that_was_not_acknowledged_is_not() -> None:
    check = NothingLost()
    check.sending(b"a")
    check.sent(b"b")
    check.sent(b"c")
    check.sent(b"c")
    check.received(b"c")
    assert check.problems() == [
        "b'b' was acknowledged and is lost",
        "b'c' was acknowledged and is lost",
    ]
    check.received(b"b")
    check.received(b"c")
    check.verify()


def test_a_value_that_is_there_more_often_than_it_was_sent_is_told() -> None:
    check = NothingDoubled()
    for value in (b"a", b"a", b"b", b"unknown"):
        check.received(value)
    assert check.problems() == ["b'a' is there 2 times"]
    check.sending(b"a")
    assert check.problems() == ["b'a' is there 2 times"]
    check.sending(b"a")  # sent twice by the application itself
    check.verify()


def test_a_value_that_overtakes_another_of_its_key_is_told() -> None:
    check = KeyOrder()
    for value in (1, 2, 3):
        check.sending(value, "k")
        check.sending(value, "other")
    for value in (1, 3, 2):
        check.received(value, "k")
    for value in (1, 2, 3):
        check.received(value, "other")
    check.received("never sent", "k")
    assert check.problems() == ["key 'k': 2 comes after 3"]


def test_a_lost_value_does_not_break_the_order_of_its_key() -> None:
    check = KeyOrder()
    for value in (1, 2, 3):
        check.sending(value, "k")
    for value in (1, 3):
        check.received(value, "k")
    check.verify()


@pytest.mark.parametrize("repeats", [False, True])
def test_a_value_that_comes_again_breaks_the_order_unless_repeats_are_allowed(
    repeats: bool,
) -> None:
    check = KeyOrder(repeats=repeats)
    for value in (1, 2):
        check.sending(value, "k")
    for value in (1, 2, 1, 2):
        check.received(value, "k")
    assert check.problems() == ([] if repeats else ["key 'k': 1 comes after 2"])


def test_exactly_once_tells_what_is_missing_doubled_and_never_asked_for() -> None:
    check = ExactlyOnce(lambda value: value.upper())
    topics = Topics(a=records(b"x", b"y", b"z"), b=records(b"X", b"Y", b"Y", b"W"))
    with pytest.raises(CheckFailed) as caught:
        asyncio.run(check.compare(topics, "a", "b"))
    assert str(caught.value).splitlines() == [
        "ExactlyOnce:",
        "b'Y' is there 2 times, expected 1",
        "b'Z' is there 0 times, expected 1",
        "b'W' is there 1 times, expected 0",
    ]
    assert topics.asked == [("a", True), ("b", True)]


def test_exactly_once_takes_a_list_of_outputs_and_inputs_that_are_equal() -> None:
    def split(value: bytes) -> list[bytes]:
        return value.split()

    topics = Topics(a=records(b"x y", b"", b"y"), b=records(b"y", b"x", b"y"))
    asyncio.run(ExactlyOnce(split).compare(topics, "a", "b"))


def test_a_commit_that_goes_back_is_told_by_group() -> None:
    kept = [commit("g", 5), commit("h", 1), commit("g", 5), commit("g", 3), commit("h", 2)]
    member = encode_key(m.GroupMetadataKey(group="g"))
    kept.insert(1, Record("__consumer_offsets", 0, 0, 0, member, b""))
    told = ["group 'g': t-1 goes back from 5 to 3"]
    for group, expected in ((None, told), ("g", told), ("h", [])):
        check = OffsetsForward(group)
        asyncio.run(check.read_commits(Topics(__consumer_offsets=kept)))
        assert check.problems() == expected


def test_offsets_that_were_deleted_begin_anew() -> None:
    kept = [commit("g", 5), commit("g", None), commit("g", 3)]
    check = OffsetsForward("g")
    asyncio.run(check.read_commits(Topics(__consumer_offsets=kept)))
    check.verify()


def test_ten_problems_are_shown_and_the_others_counted() -> None:
    check = NothingLost()
    for number in range(13):
        check.sent(number)
    with pytest.raises(CheckFailed) as caught:
        check.verify()
    lines = str(caught.value).splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("NothingLost:", "… and 3 more", 12)


class Producer:
    """Stands for aiokafka's: `send` gives a future, which the test resolves."""

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[None]] = []

    async def send(self, topic: str, value=None, key=None, partition=None) -> asyncio.Future[None]:
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]


class Consumer:
    """Stands for aiokafka's, with one partition and a position."""

    def __init__(self, *values: bytes) -> None:
        self._left = records(*values, key=b"k")
        self._position = 0
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=self))

    def all_consumed_offsets(self) -> dict[Partition, tuple[int, str]]:
        return {Partition("t", 0): (self._position, "")}

    def seek(self, position: int) -> None:
        self._position = position

    async def getone(self, *partitions: Partition) -> Record:
        self._position += 1
        return self._left.pop(0)

    async def getmany(self, *partitions: Partition, timeout_ms: int = 0):
        found, self._left = self._left, []
        self._position += len(found)
        return {Partition("t", 0): found}

    async def commit(self, offsets=None) -> None:
        """It is kept."""


def test_what_a_watched_producer_was_told_of_is_sent() -> None:
    async def produce() -> None:
        producer = watch(Producer(), lost, order)
        for value in (b"a", b"b", b"c", b"d"):
            await producer.send("t", value, b"k")
        good, bad, cancelled, _ = producer.futures
        good.set_result(None)
        bad.set_exception(ValueError("refused"))
        cancelled.cancel()
        await asyncio.sleep(0)
        assert isinstance(bad.exception(), ValueError)

    lost, order = NothingLost(), KeyOrder()
    asyncio.run(produce())
    assert lost.problems() == ["b'a' was acknowledged and is lost"]
    order.received(b"c", b"k")
    order.received(b"b", b"k")
    assert order.problems() == ["key b'k': b'b' comes after b'c'"]


def test_what_a_watched_consumer_gets_and_commits_is_told() -> None:
    async def consume() -> None:
        consumer = watch(Consumer(b"a", b"b", b"a", b"c"), doubled, forward)
        await consumer.getone()
        await consumer.getmany(timeout_ms=1)
        await consumer.commit()
        consumer.seek(2)
        await consumer.commit()
        await consumer.commit({Partition("t", 0): 1})

    doubled, forward = NothingDoubled(), OffsetsForward("g")
    asyncio.run(consume())
    assert doubled.problems() == ["b'a' is there 2 times"]
    assert forward.problems() == [
        "group 'g': t-0 goes back from 4 to 2",
        "group 'g': t-0 goes back from 2 to 1",
    ]


def test_what_cannot_be_watched_is_named() -> None:
    with pytest.raises(TypeError, match="watch: 3; accepted are aiokafka's producers"):
        watch(3, NothingLost())
    with pytest.raises(TypeError, match="watch: 3 is no check"):
        watch(Producer(), 3)
    with pytest.raises(NotImplementedError):
        Check().verify()
