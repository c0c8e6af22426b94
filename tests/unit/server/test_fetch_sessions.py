"""KIP-227 sessions: epochs, what is answered, who is evicted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.log.types import Isolation
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.quiet_read import kind_of
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.server.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_MS,
    QUIET_FROM,
    FetchSession,
    FetchSessionCache,
    SessionPartition,
    next_epoch,
)
from tests.support.replica_world import World

LIMITS = ReadLimits(1, 1 << 20, 500, Isolation.HIGH_WATERMARK, from_follower=True)


def asked(index: int, offset: int = 0) -> Any:
    return m.FetchRequest.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=100
    )


def topic(name: str, *partitions: Any) -> Any:
    return m.FetchRequest.FetchTopic(topic=name, partitions=list(partitions))


def partitions(count: int) -> list[SessionPartition]:
    return [SessionPartition("t", asked(index)) for index in range(count)]


def opened(
    cache: FetchSessionCache, count: int = 1, now_ms: int = 0, privileged: bool = False
) -> FetchSession:
    session = cache.create(
        partitions(count), privileged=privileged, uses_topic_ids=False, now_ms=now_ms
    )
    assert session is not None
    return session


def found(
    size_bytes: int = 0, high_watermark: int = 5, log_start_offset: int = 0, **fields: Any
) -> ReadResult:
    result = ReadResult(high_watermark, high_watermark, log_start_offset, size_bytes=size_bytes)
    for name, value in fields.items():
        setattr(result, name, value)
    return result


@pytest.fixture
def cache() -> FetchSessionCache:
    return FetchSessionCache(3, SeededRandom(1))


@pytest.mark.parametrize(("epoch", "after"), [(1, 2), (EPOCH_MAX, 1), (-1, -1), (0, 1)])
def test_next_epoch(epoch: int, after: int) -> None:
    assert next_epoch(epoch) == after


def test_epochs_must_follow_each_other(cache: FetchSessionCache) -> None:
    session = opened(cache)
    assert cache.resume(session.session_id, 1, False) is session
    cache.used(session, 1)
    assert cache.resume(session.session_id, 1, False) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.resume(session.session_id, 3, False) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.resume(session.session_id, 2, True) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert cache.resume(session.session_id + 1, 2, False) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.resume(session.session_id, 2, False) is session


def test_update_adds_changes_and_forgets(cache: FetchSessionCache) -> None:
    session = opened(cache, 2)
    forgotten = SimpleNamespace(topic="t", topic_id=bytes(16), partitions=[0])
    session.update([topic("t", asked(1, 7), asked(5, 9))], [forgotten])
    assert {key: p.fetch_offset for key, p in session.partitions.items()} == {
        ("t", 1): 7,
        ("t", 5): 9,
    }


def test_a_partition_with_data_moves_to_the_end(cache: FetchSessionCache) -> None:
    session = opened(cache, 3)
    session.rotate(("t", 0))
    assert [index for _, index in session.partitions] == [1, 2, 0]


def test_only_what_is_new_is_answered() -> None:
    partition = partitions(1)[0]
    failed = ReadResult.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert partition.must_answer(found()), "the first answer"
    assert not partition.must_answer(found())
    assert partition.must_answer(found(10)), "records"
    assert not partition.must_answer(found())
    assert partition.must_answer(found(high_watermark=6))
    assert partition.must_answer(found(high_watermark=6, log_start_offset=1))
    assert not partition.must_answer(found(high_watermark=6, log_start_offset=1))
    assert partition.must_answer(failed)
    assert partition.must_answer(failed)
    assert partition.must_answer(found(high_watermark=6, log_start_offset=1)), "well again"


def test_where_to_go_on_is_always_told() -> None:
    partition = partitions(1)[0]
    for news in ({"preferred_replica": 2}, {"diverging_epoch": (3, 4)}):
        assert partition.must_answer(found(**news))
        assert partition.must_answer(found(**news))
    assert partition.must_answer(found()), "behind a diverging epoch"
    assert not partition.must_answer(found())


def test_a_full_cache_keeps_recent_sessions(cache: FetchSessionCache) -> None:
    for _ in range(3):
        opened(cache)
    assert cache.create(partitions(9), privileged=False, uses_topic_ids=False, now_ms=1) is None
    assert len(cache) == 3


def test_an_idle_session_gives_way(cache: FetchSessionCache) -> None:
    sessions = [opened(cache, 5) for _ in range(3)]
    cache.used(sessions[0], EVICTION_MS)
    cache.used(sessions[2], EVICTION_MS)
    opened(cache, 1, now_ms=EVICTION_MS + 1)
    assert cache.evictions == 1
    assert cache.resume(sessions[1].session_id, 1, False) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_larger_session_takes_the_place_of_an_older_smaller_one(
    cache: FetchSessionCache,
) -> None:
    small, large, other = opened(cache, 1), opened(cache, 8), opened(cache, 4)
    now_ms = EVICTION_MS + 1
    for session in (small, large, other):
        cache.used(session, now_ms)
    assert (
        cache.create(partitions(1), privileged=False, uses_topic_ids=False, now_ms=now_ms) is None
    )
    opened(cache, 2, now_ms=now_ms)
    assert (
        cache.resume(small.session_id, small.epoch, False) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
    assert cache.resume(large.session_id, large.epoch, False) is large


def test_followers_are_kept_before_consumers(cache: FetchSessionCache) -> None:
    follower = opened(cache, 1, privileged=True)
    consumers = [opened(cache, 50), opened(cache, 60)]
    now_ms = EVICTION_MS + 1
    for session in (follower, *consumers):
        cache.used(session, now_ms)
    opened(cache, 100, now_ms=now_ms)
    assert cache.resume(follower.session_id, follower.epoch, False) is follower
    opened(cache, 1, now_ms=now_ms, privileged=True)
    assert (
        cache.resume(consumers[1].session_id, consumers[1].epoch, False)
        is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    ), "a follower takes the place of a consumer, however large"


# -- sessions in which nothing happens


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create([1], partitions=2)
    return world


def at_rest(cache: FetchSessionCache, world: World, count: int = 1) -> FetchSession:
    """A session whose client knows all positions, and asks for its plain road."""
    session = opened(cache, count)
    for partition in session.partitions.values():
        partition.high_watermark = partition.local_log_start_offset = 0
    session.wants_quiet = True
    return session


def listed(session: FetchSession, world: World) -> list[ReadTarget[SessionPartition]]:
    return [ReadTarget(world.partition(x.index), x) for x in session.partitions.values()]


def find_nothing(
    session: FetchSession, world: World, targets: list[ReadTarget[SessionPartition]]
) -> None:
    session.look_for_quiet(kind_of(LIMITS), world.replicas.traffic.late)
    for target in targets:
        session.found_nothing(world.replicas, target)


def moving(session: FetchSession) -> list[int]:
    """Which partitions a fetch reads."""
    return [partition.index for partition in session.moving_in_order()]


def test_a_session_where_nothing_happens_is_quiet(cache: FetchSessionCache, world: World) -> None:
    session = at_rest(cache, world, 2)
    for _ in range(2):
        find_nothing(session, world, listed(session, world))
        assert session.quiet is not None
        assert moving(session) == []
    assert [len(world.partition(index).watchers) for index in range(2)] == [1, 1]
    cache.remove(session.session_id)
    assert session.quiet is None
    assert not world.partition().watchers


def test_a_session_of_many_partitions_need_not_be_asked(cache: FetchSessionCache) -> None:
    assert [opened(cache, QUIET_FROM - x).wants_quiet for x in range(2)] == [True, False]
    cache = FetchSessionCache(3, SeededRandom(1), looks_for_quiet=False)
    assert not opened(cache, QUIET_FROM).wants_quiet


def test_a_fetch_reads_what_moves_and_what_it_names(cache: FetchSessionCache, world: World) -> None:
    session = at_rest(cache, world, 2)
    find_nothing(session, world, listed(session, world))
    world.append(index=1)
    world.scheduler.turn()
    assert moving(session) == [1]
    session.update([topic("t", asked(0))], [])
    assert moving(session) == [0, 1], "in the order of the session"
    session.rotate(("t", 0))
    assert moving(session) == [1, 0]
    forgotten = m.FetchRequest.ForgottenTopic(topic="t", partitions=[1])
    session.update([topic("t", asked(2))], [forgotten])
    assert moving(session) == [0, 2]


def test_a_fetch_of_a_closed_session_leaves_nothing_behind(
    cache: FetchSessionCache, world: World
) -> None:
    session = at_rest(cache, world)
    waiting = listed(session, world)
    cache.remove(session.session_id)
    find_nothing(session, world, waiting)
    assert session.quiet is None
    assert not world.partition().watchers


def test_a_fetch_that_waited_tells_nothing_of_partitions_that_came_meanwhile(
    cache: FetchSessionCache, world: World
) -> None:
    session = at_rest(cache, world)
    waiting = listed(session, world)
    forgotten = m.FetchRequest.ForgottenTopic(topic="t", partitions=[0])
    session.update([topic("t", asked(1))], [forgotten])
    find_nothing(session, world, waiting)
    assert moving(session) == [1]
    assert not world.partition().watchers


def test_what_moved_since_it_was_read_is_told_first(cache: FetchSessionCache, world: World) -> None:
    """An answer in slices."""
    session = at_rest(cache, world, 2)
    session.partitions["t", 1].local_log_start_offset = 5
    find_nothing(session, world, listed(session, world))
    assert moving(session) == [1]
