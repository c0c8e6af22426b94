"""How many partitions share sessions name: bounded, each and all together."""

from __future__ import annotations

import random

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share import sessions
from kwire.share.sessions import PartitionKey, ShareSession, ShareSessions


def key(number: int) -> PartitionKey:
    return number.to_bytes(16, "big"), number % 7


def test_a_session_names_no_more_than_its_bound_over_any_number_of_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "PARTITIONS_MAX", 10)
    known = ShareSessions(2)
    session = known.open("g", "m")
    known.update(session, map(key, range(6)), ())
    known.update(session, map(key, range(10)), ())  # those that are there count once
    with pytest.raises(KafkaError) as refused:
        known.update(session, [key(10)], ())
    assert refused.value.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert list(session.partitions) == [key(i) for i in range(10)]
    known.update(session, [key(10)], [key(0), key(99)])
    assert len(session.partitions) == known.partition_count == 10


def test_all_sessions_together_have_a_bound_and_what_closes_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "PARTITIONS_OF_ALL_MAX", 12)
    known = ShareSessions(3)
    first, second = known.open("g", "a"), known.open("g", "b")
    known.update(first, map(key, range(8)), ())
    with pytest.raises(KafkaError):
        known.update(second, map(key, range(5)), ())
    known.remove(first)
    known.update(second, map(key, range(12)), ())
    assert known.partition_count == 12


def test_the_count_is_that_of_what_is_named() -> None:
    chance = random.Random(5)
    known = ShareSessions(50)
    opened: list[ShareSession] = []
    for turn in range(400):
        if not opened or (chance.random() < 0.1 and len(known) < 50):
            opened.append(known.open("g", f"{turn}"))
        session = chance.choice(opened)
        if chance.random() < 0.05:
            known.remove(session)
            opened.remove(session)
            continue
        added = [key(chance.randrange(30)) for _ in range(chance.randrange(9))]
        forgotten = [key(chance.randrange(30)) for _ in range(chance.randrange(9))]
        wanted = (set(session.partitions) | set(added)) - set(forgotten)
        known.update(session, added, forgotten)
        assert set(session.partitions) == wanted
        assert session.owed <= wanted
        assert known.partition_count == sum(len(one.partitions) for one in known)
