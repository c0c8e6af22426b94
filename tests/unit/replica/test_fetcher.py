"""Followers over real logs: fetching, truncation by epochs, out of range, sessions, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica.fetcher import EARLIEST, LATEST, FetchState
from kwire.replica.follower_session import Asked, FollowerSession, whole_batches_bytes
from tests.support.replicas import TOPIC_ID, Replicas


@pytest.fixture
def world(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def test_a_follower_copies_and_the_high_watermark_follows(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.append(1, b"a", b"b")
    assert world[1].partition.state.high_watermark == 0
    world.exchange()
    assert world.values(2) == [b"a", b"b"]
    assert world[1].partition.state.high_watermark == 2
    assert world[2].partition.log.high_watermark == 2, "told by the next answer"
    assert world.epochs(2) == world.epochs(1) == [(0, 0)]


def test_only_what_changed_is_named_again(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.exchange()
    world.append(1, b"a")
    world.exchange()
    first, *later = world[2].sent
    assert (first.session_epoch, first.topics[0].partitions[0].fetch_offset) == (0, 0)
    named = [request for request in later if request.topics]
    assert [request.topics[0].partitions[0].fetch_offset for request in named] == [1]
    assert all(request.session_id for request in later)


def test_a_session_that_the_leader_forgot_begins_anew(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.exchange()
    world[1].sessions.remove(world[2].sent[-1].session_id)
    world.append(1, b"a")
    world.exchange()
    assert world.values(2) == [b"a"]
    assert [request.session_epoch for request in world[2].sent].count(0) == 2


def test_what_the_new_leader_never_had_is_truncated(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.exchange()
    world.lead(1, epoch=0, isr=(1,))
    world[2].is_up = False
    world.append(1, b"lost")
    world[2].is_up, world[1].is_up = True, False
    world.lead(2, epoch=1)
    world.append(2, b"kept")
    world[1].is_up = True
    world.lead(2, epoch=2)
    world.exchange()
    assert world.values(1) == world.values(2) == [b"a", b"kept"]
    assert world.epochs(1) == [(0, 0), (1, 1)], "an epoch counts once it has records"


def test_a_follower_behind_the_leader_start_begins_there(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.append(1, b"a", b"b")
    world.exchange()
    world[2].is_up = False
    world.lead(1, epoch=1, isr=(1,))
    world.append(1, b"c")
    world[1].partition.log.delete_records_before(3)
    world.append(1, b"d")
    world[2].is_up = True
    world.lead(1, epoch=2, isr=(1,))
    world.exchange(500)
    log = world[2].partition.log
    assert (log.log_start_offset, log.log_end_offset, world.values(2)) == (3, 4, [b"d"])
    assert world[1].wanted_isrs[-1].isr == (1, 2)


def test_the_leaders_log_start_is_taken_over(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.append(1, b"b")
    world.exchange()
    world[1].partition.log.delete_records_before(1)
    world.exchange()
    assert world[2].partition.log.log_start_offset == 1
    assert world[1].partition.low_watermark == 1


def test_a_follower_beyond_the_leaders_end_is_cut(world: Replicas) -> None:
    """An unclean leader: its log is shorter, of an epoch that both know."""
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.exchange()
    world[2].is_up = False
    world.lead(1, epoch=0, isr=(1,))
    world.append(1, b"b")
    world.append(1, b"c")
    world[2].is_up = True
    world.lead(2, epoch=1, isr=(2,))
    world.exchange()
    assert world.values(1) == [b"a"]
    assert world[1].partition.state.high_watermark == 1, "it was beyond the end of the log"


def test_a_fenced_fetch_waits_for_metadata(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.exchange()
    world[1].assign(1, 1, 50, (1, 2))  # the follower has not heard of epoch 1
    world.append(1, b"a")
    world.exchange()
    followed = next(iter(world[2].fetchers._by_leader.values())).followed[TOPIC_ID, 0]
    assert followed.state is FetchState.FAILED
    sent = len(world[2].sent)
    world.exchange(10_000)
    assert len(world[2].sent) == sent
    world.lead(1, epoch=2)
    world.exchange()
    assert world.values(2) == [b"a"]


def test_a_leader_that_cannot_be_reached_is_asked_again(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world[1].is_up = False
    world.exchange(1000)
    tries = len(world[2].sent)
    assert 8 < tries < 30, "soon at first, then every 100 ms"
    world[1].is_up = True
    world.append(1, b"a")
    world.exchange(200)
    assert world.values(2) == [b"a"]


def test_a_new_partition_does_not_wait_for_a_fetch_under_way(world: Replicas) -> None:
    world.lead(1, epoch=0)
    fetcher = next(iter(world[2].fetchers._by_leader.values()))
    world.exchange()
    while fetcher._pending is None:
        world.exchange(1)
    answer, world[2]._answer = world[2]._answer, lambda *_: None  # type: ignore[method-assign]
    world.exchange(2)
    sent = len(world[2].sent)
    fetcher.add(world[2].partition, 0)
    world[2].fetchers.settle()
    world.exchange(3)
    assert len(world[2].sent) == sent, "an answer may be on its way"
    world[2]._answer = answer  # type: ignore[method-assign]
    world.exchange(20)
    assert world[2].reconnects == [1]
    assert len(world[2].sent) > sent
    assert world[2].sent[sent].session_epoch == 0


def test_a_change_of_many_partitions_ends_a_fetch_once(world: Replicas) -> None:
    """It is followed in many turns of the loop; a fetch that waits is ended behind the last."""
    world.lead(1, epoch=0)
    fetcher = next(iter(world[2].fetchers._by_leader.values()))
    world.exchange()
    while fetcher._pending is None:
        world.exchange(1)
    answer, world[2]._answer = world[2]._answer, lambda *_: None  # type: ignore[method-assign]
    world.exchange(2)
    sent = len(world[2].sent)
    for _ in range(8):
        fetcher.add(world[2].partition, 0)
        world.exchange(8)
    assert (world[2].reconnects, len(world[2].sent)) == ([], sent)
    for _ in range(2):  # another change behind it puts nothing off
        world[2].fetchers.settle()
        world.exchange(3)
    assert (world[2].reconnects, len(world[2].sent)) == ([1], sent + 1)
    world[2]._answer = answer  # type: ignore[method-assign]


def test_a_change_that_takes_long_does_not_keep_new_partitions_waiting(world: Replicas) -> None:
    world.lead(1, epoch=0)
    fetcher = next(iter(world[2].fetchers._by_leader.values()))
    world.exchange()
    while fetcher._pending is None:
        world.exchange(1)
    answer, world[2]._answer = world[2]._answer, lambda *_: None  # type: ignore[method-assign]
    world.exchange(2)
    for _ in range(64):
        fetcher.add(world[2].partition, 0)
        world.exchange(8)
    assert world[2].reconnects == [1]
    world[2]._answer = answer  # type: ignore[method-assign]


def test_damage_on_the_way_is_fetched_again(world: Replicas) -> None:
    world.lead(1, epoch=0)
    fetch, damaged = world[1].fetch, []

    def damage(request: object) -> object:
        response = fetch(request)
        if not response.responses:
            return response
        answer = response.responses[0].partitions[0]
        if answer.records and not damaged:
            damaged.append(True)
            answer.records = answer.records[:-1] + b"\xff"
        return response

    world[1].fetch = damage  # type: ignore[method-assign]
    world.append(1, b"a")
    world.exchange()
    assert damaged and world.values(2) == []  # noqa: PT018
    world.exchange(200)
    assert world.values(2) == [b"a"]


def test_a_replica_that_is_none_is_told_so(world: Replicas) -> None:
    world.lead(1, epoch=0)
    state = world[1].partition.state
    del state.followers[2]
    world.append(1, b"a")
    world.exchange()
    codes = [world[1].fetch(world[2].sent[0]).responses[0].partitions[0].error_code]
    assert codes == [ErrorCode.UNKNOWN_LEADER_EPOCH], "it may be about to become one"


@pytest.mark.parametrize("unknown", [LATEST, EARLIEST])
def test_positions_that_the_leader_does_not_tell_are_asked_for_again(
    world: Replicas, unknown: int
) -> None:
    """A replica that is out of range must not wait for ever."""
    world.lead(1, epoch=0)
    world[2].is_up = False
    world.lead(1, epoch=1, isr=(1,))
    world.append(1, b"a")
    world[1].partition.log.delete_records_before(1)
    world.append(1, b"b")
    list_offsets, refused = world[1].list_offsets, []

    def refuse_once(request: Any) -> Any:
        response = list_offsets(request)
        if request.topics[0].partitions[0].timestamp == unknown and not refused:
            refused.append(True)
            response.topics[0].partitions[0].error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return response

    world[1].list_offsets = refuse_once  # type: ignore[method-assign]
    world[2].is_up = True
    world.lead(1, epoch=2, isr=(1,))
    world.exchange()
    assert refused
    assert world.values(2) == []
    world.exchange(200)
    assert world.values(2) == [b"b"]


def test_a_leader_that_does_not_know_it_yet_is_asked_again_after_a_pause(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world[2].assign(1, 1, 50, (1, 2))  # the leader has not heard of epoch 1
    world.append(1, b"a")
    before = len(world[2].sent)
    world.exchange(100)
    assert 2 <= len(world[2].sent) - before <= 10
    world.lead(1, epoch=1)
    world.exchange(100)
    assert world.values(2) == [b"a"]


def test_a_replica_whose_log_is_gone_is_not_fetched(world: Replicas) -> None:
    world.lead(1, epoch=0)
    followed = next(iter(world[2].fetchers._by_leader.values())).followed[TOPIC_ID, 0]
    world[2].partition.log = None
    world.exchange()
    assert followed.state is FetchState.FAILED


def test_a_fetcher_without_partitions_is_closed(world: Replicas) -> None:
    """Whatever it has under way is given up."""
    world.lead(1, epoch=0)
    fetcher = next(iter(world[2].fetchers._by_leader.values()))
    fetcher._pending = under_way = Pending[Any]()
    world[2].assign(2, 1, 50, (1, 2))
    assert len(world[2].fetchers) == 0
    assert under_way.done


def test_a_session_names_what_is_to_be_forgotten_and_counts_its_epochs() -> None:
    session, asked, other = FollowerSession(), Asked(0, 1, -1, 0), bytes(15) + b"\x09"
    session.fill(m.FetchRequest(), {(TOPIC_ID, 0): asked, (TOPIC_ID, 3): asked}, [], 100)
    assert session.answered(0, 77)
    request = m.FetchRequest()
    session.fill(request, {(TOPIC_ID, 0): asked, (other, 4): asked}, [(TOPIC_ID, 3)], 100)
    assert [(t.topic_id, t.partitions) for t in request.forgotten_topics_data] == [(TOPIC_ID, [3])]
    assert [t.topic_id for t in request.topics] == [other]
    session.epoch = 0x7FFFFFFE
    assert session.answered(0, 77)
    assert session.epoch == 0x7FFFFFFF
    assert session.answered(0, 77)
    assert session.epoch == 1, "0 would begin anew"


def test_only_whole_batches_count() -> None:
    def batch(length: int, data: bytes) -> bytes:
        return bytes(8) + length.to_bytes(4, "big", signed=True) + data

    whole = batch(5, bytes(5))
    assert whole_batches_bytes(whole * 2) == 2 * len(whole)
    assert whole_batches_bytes(whole + whole[:-1]) == len(whole)
    assert whole_batches_bytes(whole + whole[:11]) == len(whole)
    assert whole_batches_bytes(batch(0, b"")) == 12
    for length in (-1, -12, -(1 << 31)):
        assert whole_batches_bytes(whole + batch(length, bytes(20))) == len(whole)
